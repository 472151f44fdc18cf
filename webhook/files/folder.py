"""Looks into one folder: the names that may be of interest, and what its ignore files say."""

# ruff: noqa: PTH118
# Paths are texts here: to make Path objects would take longer than to read the files.

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.files.gitignore import NOTHING, Patterns
from webhook.files.prefilter import FLAGS
from webhook.files.reading import why
from webhook.files.results import FileResult

if TYPE_CHECKING:
    from webhook.files.gitignore import Ignored

_SUFFIXES = (
    ".yaml", ".yml", ".json",
    ".md", ".markdown",
    ".tpl", ".tmpl", ".template", ".j2", ".jinja", ".jinja2",
    ".jsonnet", ".libsonnet", ".tf", ".go", ".py", ".sh",
)  # fmt: skip
# The same in capitals, `x.yaml.in` and the like, and the text that a chart prints at last.
_UNUSUAL = re.compile(
    rf".+(?:{'|'.join(map(re.escape, _SUFFIXES))})"
    r"|.+\.(?:ya?ml|json)\.(?:in|dist|example|sample|default"
    r"|gotmpl|envsubst|injected|disabled|old|orig|bak|txt)"
    r"|NOTES\.txt",
    re.IGNORECASE | re.DOTALL,
)
NOT_ENTERED = frozenset({
    ".git", ".hg", ".svn", ".bzr", ".jj",
    "node_modules", "bower_components", "__pycache__", ".venv", ".tox", ".nox", ".eggs",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".terraform", ".terragrunt-cache", ".gradle",
})  # fmt: skip
MARKS = frozenset({".git", ".gitignore", ".helmignore", "Chart.yaml"})
_IGNORE_FILE_BYTES = 1 << 20


@dataclass(slots=True)
class Folder:
    """What is directly in a folder: names of what may be of interest."""

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    special: dict[str, int] = field(default_factory=dict)  # with their modes
    marks: set[str] = field(default_factory=set)
    said: list[FileResult] = field(default_factory=list)


def listed(prefix: str) -> Folder:
    """Look into a folder; what cannot be listed is said."""
    folder = Folder()
    try:
        with os.scandir(prefix or os.curdir) as entries:
            for entry in entries:
                name = entry.name
                if name in MARKS:
                    folder.marks.add(name)
                if entry.is_dir(follow_symlinks=False):
                    if name not in NOT_ENTERED:
                        folder.folders.append(name)
                elif entry.is_symlink():
                    folder.links.append(name)
                elif is_of_interest(name):
                    if entry.is_file(follow_symlinks=False):
                        folder.files.append(name)
                    else:
                        folder.special[name] = entry.stat(follow_symlinks=False).st_mode
    except OSError as error:
        folder.said.append(FileResult(shown(prefix or os.curdir), error=why(error)))
    return folder


def inside(prefix: str, marks: set[str], ignored: Ignored) -> tuple[Ignored, list[FileResult]]:
    """Add what the files of this folder ignore; give those that cannot be read, too."""
    names, unread = [], []
    if ".git" in marks:  # a repository of its own: what is above is none of its business
        ignored = NOTHING
        names.append(".git/info/exclude")
    if ".gitignore" in marks:
        names.append(".gitignore")
    if {"Chart.yaml", ".helmignore"} <= marks:
        names.append(".helmignore")
    for name in names:
        try:
            ignored = ignored.and_also(_patterns(prefix + name), len(prefix))
        except OSError as error:
            unread.append(FileResult(shown(prefix + name), error=why(error)))
    return ignored, unread


def above(root: str, cut: int) -> Ignored:
    """Give what the repository around a folder ignores there."""
    here, below = os.path.realpath(root), ""
    levels = []
    while not os.path.lexists(os.path.join(here, ".git")):
        here, name = os.path.split(here)
        if not name:  # no repository
            return NOTHING
        below = f"{name}{os.sep}{below}"
        levels.append((here, below))
    ignored = NOTHING
    for number, (place, prefix) in enumerate(reversed(levels)):
        for name in (".git/info/exclude", ".gitignore") if number == 0 else (".gitignore",):
            with suppress(OSError):  # it is not what was asked for
                patterns = _patterns(os.path.join(place, name))
                ignored = ignored.and_also(patterns, cut, prefix)
    return ignored


def _patterns(path: str) -> Patterns | None:
    """Read an ignore file; None where there is none."""
    try:
        descriptor = os.open(path, FLAGS)
    except (FileNotFoundError, NotADirectoryError):  # .git is a file in worktrees and submodules
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        text = os.fsdecode((file.read(_IGNORE_FILE_BYTES) or b"").removeprefix(b"\xef\xbb\xbf"))
    return Patterns.of(text.split("\n"))


def is_of_interest(name: str) -> bool:
    """Whether a file of this name may hold manifests, or text or programs that speak of them."""
    if name.startswith("._"):  # macOS keeps attributes of the file x in ._x
        return False
    return name.endswith(_SUFFIXES) or _UNUSUAL.fullmatch(name) is not None


def shown(path: str) -> str:
    """Give the path as a report can hold it: names need not be UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def as_prefix(folder: str) -> str:
    return "" if folder == os.curdir else os.path.join(folder, "")
