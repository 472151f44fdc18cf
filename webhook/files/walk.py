"""Lists the files that the command line selects, always in the same order.

Arguments are files, folders, globs, or `-` for the standard input. Files are returned at once, so a
tree of any size takes the same memory.

A folder stands for its files, with `recursive` also for those in subfolders. Skipped are: paths
that the repository ignores, folders of version control and of package managers, and links to
folders (their targets can be named). An argument is used whatever its name is, unless `exclude`
matches it.

A link in a folder and its target are one file, returned once, with the path of the target. A link
to a file outside of the arguments keeps its own path, and `leads_out` returns its target.
"""

# ruff: noqa: PTH100, PTH114, PTH116, PTH117, PTH206, PTH207
# Paths are texts here: to make Path objects would take longer than to read the files.

from __future__ import annotations

import errno
import glob
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.files.folder import (
    MARKS,
    NOT_ENTERED,
    above,
    as_prefix,
    inside,
    is_searched,
    listed,
    shown,
)
from webhook.files.gitignore import NOTHING, Ignored, Patterns
from webhook.files.reading import special, why
from webhook.files.results import FileResult, Skipped
from webhook.files.search import SearchBatch
from webhook.files.source import is_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # Files of a folder, `-`, or a result without a file.
    Found = tuple[str, list[str]] | str | FileResult

STDIN = "-"

_IN_A_LOT = 256  # files that are searched in one batch


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files that the command line selects."""

    arguments: Sequence[str]
    recursive: bool = False
    exclude: Sequence[str] = ()  # patterns as in .gitignore, relative to the working directory


def find(wanted: Wanted) -> Iterator[SearchBatch | str | FileResult]:
    """All selected files, in batches, with `-` and errors in their order."""
    batch: list[tuple[str, list[str]]] = []
    files = 0
    for found in _Walk(wanted).arguments():
        if isinstance(found, tuple):
            batch.append(found)
            files += len(found[1])
        if batch and (files >= _IN_A_LOT or not isinstance(found, tuple)):
            yield SearchBatch(batch)
            batch, files = [], 0
        if not isinstance(found, tuple):
            yield found
    if batch:
        yield SearchBatch(batch)


def leads_out(path: str, wanted: Wanted) -> str:
    """The target of a link in a folder, if it is outside of the arguments."""
    if not os.path.islink(path):
        return ""
    arguments = [each for given in wanted.arguments for each in _expanded(given)]
    target = os.path.realpath(path)
    is_named = os.path.abspath(path) in map(os.path.abspath, arguments)
    is_given = is_named or any(_is_in(target, os.path.realpath(each)) for each in arguments)
    return "" if is_given else shown(target)


def which_is_met(wanted: Wanted) -> Callable[[str], bool]:
    """Returns a test whether a file (not a link) is selected: by name, or by a named folder."""
    return _Walk(wanted).meets


class _Walk:
    """The arguments, one after the other. An argument is not returned again for its folder."""

    def __init__(self, wanted: Wanted) -> None:
        self._recursive = wanted.recursive
        self._exclude = Patterns.of(wanted.exclude)
        self._arguments: dict[str, str] = {}  # by place, so that each is returned once
        self._linked: set[str] = set()  # files that were found only through links
        for argument in (each for given in wanted.arguments for each in _expanded(given)):
            place = argument if argument == STDIN else os.path.realpath(argument)
            if place not in self._arguments or not os.path.islink(argument):
                self._arguments[place] = argument if argument == STDIN else _plain(argument)

    def arguments(self) -> Iterator[Found]:
        for argument in self._arguments.values():
            if argument == STDIN:
                yield STDIN
            else:
                yield from self._argument(argument)

    def meets(self, file: str) -> bool:
        if file in self._arguments:
            return not self._is_excluded(self._arguments[file], folder=False)
        return any(
            self._comes_to(root, as_prefix(root) + file.removeprefix(as_prefix(place)))
            for place, root in self._arguments.items()
            if _is_in(file, place) and not self._is_excluded(root, folder=True)
        )

    def _argument(self, path: str) -> Iterator[Found]:
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            is_glob = error.errno == errno.ENOENT and glob.has_magic(path)
            yield FileResult(
                shown(path), error="nothing has such a name" if is_glob else why(error)
            )
            return
        is_folder = stat.S_ISDIR(mode)
        if self._is_excluded(path, folder=is_folder):
            return
        if is_folder:
            yield from self._tree(path)
        elif stat.S_ISREG(mode):
            yield "", [path]
        else:
            yield FileResult(shown(path), error=special(mode))

    def _is_excluded(self, path: str, *, folder: bool) -> bool:
        """Whether an argument, or a folder above it, is excluded."""
        seen = _seen(path)
        if self._exclude is None or seen == os.curdir:
            return False
        folders = [seen[:end] for end, character in enumerate(seen) if character == os.sep]
        return any(self._exclude.decide(each, folder=True) for each in folders) or bool(
            self._exclude.decide(seen, folder=folder)
        )

    def _tree(self, root: str) -> Iterator[Found]:
        prefix, ignored, excluded = self._entered(root)
        folders = [(prefix, ignored)]
        while folders:
            prefix, ignored = folders.pop()
            folder = listed(prefix)
            yield from folder.results
            ignored, unread = inside(prefix, folder.marks, ignored)
            yield from unread
            is_met = self._filter(prefix, ignored, excluded)
            names = list(filter(is_met, sorted(folder.files)))
            for first in range(0, len(names), _IN_A_LOT):
                yield prefix, names[first : first + _IN_A_LOT]
            for link in filter(is_met, sorted(folder.links)):
                yield from self._link(prefix, link)
            for name in filter(is_met, sorted(folder.special)):
                yield FileResult(shown(prefix + name), error=special(folder.special[name]))
            if self._recursive:
                is_met = self._filter(prefix, ignored, excluded, folder=True)
                inner = filter(is_met, sorted(folder.folders, reverse=True))
                folders += [(f"{prefix}{name}{os.sep}", ignored) for name in inner]

    def _entered(self, root: str) -> tuple[str, Ignored, Ignored]:
        """The prefix of the names in a folder, and its ignored and excluded paths."""
        prefix, seen = as_prefix(root), as_prefix(_seen(root))
        excluded = NOTHING.and_also(self._exclude, len(prefix), seen)
        return prefix, above(root, len(prefix)), excluded

    def _comes_to(self, root: str, path: str) -> bool:
        """Whether the walk through this folder returns a file below it that is not a link."""
        prefix, ignored, excluded = self._entered(root)
        *folders, name = path.removeprefix(prefix).split(os.sep)
        if (folders and not self._recursive) or not is_searched(name):
            return False
        for depth, each in enumerate([*folders, name]):
            marks = {mark for mark in MARKS if os.path.lexists(prefix + mark)}
            ignored, _ = inside(prefix, marks, ignored)
            is_folder = depth < len(folders)
            is_met = self._filter(prefix, ignored, excluded, folder=is_folder)
            if (is_folder and each in NOT_ENTERED) or (is_met is not None and not is_met(each)):
                return False
            prefix += each + os.sep
        return True

    def _filter(
        self, prefix: str, ignored: Ignored, excluded: Ignored, *, folder: bool = False
    ) -> Callable[[str], bool] | None:
        """The names that are selected; None for all of them, if none is left out."""
        several = len(self._arguments) > 1
        if not (ignored.files or excluded.files or several):
            return None
        place = as_prefix(os.path.realpath(prefix))

        def is_met(name: str) -> bool:
            path = prefix + name
            return not (
                (several and place + name in self._arguments)
                or excluded.says(path, folder=folder)
                or ignored.says(path, folder=folder)
            )

        return is_met

    def _link(self, prefix: str, name: str) -> Iterator[Found]:
        path = prefix + name
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            if error.errno == errno.ELOOP:
                yield FileResult(shown(path), skipped=(Skipped(why(error)),))
            elif is_read(name):
                yield FileResult(shown(path), error=why(error))
            return
        if stat.S_ISREG(mode):
            if is_searched(name):
                yield from self._linked_file(path)
        elif not stat.S_ISDIR(mode):
            if is_read(name):
                yield FileResult(shown(path), error=special(mode))
        elif self._recursive:
            yield from self._linked_folder(prefix, path)

    def _linked_file(self, link: str) -> Iterator[Found]:
        """The target of a link, unless the walk finds it in another way."""
        target = os.path.realpath(link)
        ways = [
            (root, as_prefix(root) + target.removeprefix(as_prefix(place)))
            for place, root in self._arguments.items()
            if _is_in(target, place)
        ]
        if not ways:
            yield "", [link]
        elif target not in self._arguments and target not in self._linked:
            self._linked.add(target)
            path = ways[0][1]
            is_met = any(self._comes_to(*each) for each in ways)
            if not is_met and not self._is_excluded(path, folder=False):
                yield "", [path]

    def _linked_folder(self, prefix: str, path: str) -> Iterator[FileResult]:
        """Why a link to a folder is not followed, unless the walk finds it in another way."""
        target, here = os.path.realpath(path), os.path.realpath(prefix or os.curdir)
        if _is_in(here, target):
            yield FileResult(shown(path), skipped=(Skipped(_LOOP),))
        elif not any(_is_in(target, place) for place in self._arguments):
            yield FileResult(shown(path), skipped=(Skipped(_NOT_FOLLOWED.format(shown(target))),))


_LOOP = (
    "a loop: the link leads to a folder that it is in; remove it, or leave it out with --exclude"
)
_NOT_FOLLOWED = "a link to a folder outside, {}, is not followed; name it to have it looked through"


def _expanded(argument: str) -> list[str]:
    """The matches of a glob; an existing name stands for itself."""
    if argument == STDIN or not glob.has_magic(argument) or os.path.lexists(argument):
        return [argument]
    return sorted(glob.glob(argument, recursive=True)) or [argument]


def _plain(path: str) -> str:
    # Where .. follows a link, only the system knows the result.
    return path if os.pardir in path else os.path.normpath(path)


def _seen(path: str) -> str:
    """The path for --exclude: relative to the working directory, if it is below it."""
    seen = os.path.relpath(path) if os.path.isabs(path) else path
    if seen.startswith(os.pardir + os.sep):
        return os.path.abspath(path).lstrip(os.sep)
    return seen


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(as_prefix(folder))
