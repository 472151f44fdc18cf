"""Lists one folder: the files that are searched, and the patterns in its ignore files."""

# ruff: noqa: PTH118
# Paths are texts here: to make Path objects would take longer than to read the files.

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from webhook.files.gitignore import NOTHING, Ignored, Patterns
from webhook.files.prefilter import FLAGS
from webhook.files.reading import why
from webhook.files.results import FileResult, Skipped
from webhook.files.source import CHART, is_read

NOT_ENTERED = frozenset({
    ".git", ".hg", ".svn", ".bzr", ".jj",
    "node_modules", "bower_components", "__pycache__", ".venv", ".tox", ".nox", ".eggs",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".terraform", ".terragrunt-cache", ".gradle",
})  # fmt: skip
MARKS = frozenset({".git", ".gitignore", ".helmignore", CHART})
_IGNORE_FILE_BYTES = 1 << 20
TEMPORARY = ".gpu-webhook~"  # after a dot and the name of a file: its new text, not yet in place
_LEFT = Skipped(
    "a run that was killed has left this: the next run that writes the file removes it; remove it "
    "if no run is at work"
)
ORIGINAL = ".orig"  # after the name of a file: what --backup keeps


@dataclass(slots=True)
class Folder:
    """The entries of a folder; special ones only if they have the name of a manifest."""

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    special: dict[str, int] = field(default_factory=dict)  # with their modes
    marks: set[str] = field(default_factory=set)
    results: list[FileResult] = field(default_factory=list)


def listed(prefix: str) -> Folder:
    """List a folder; an error is returned as a result."""
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
                elif entry.is_file(follow_symlinks=False):
                    folder.files.append(name)
                elif is_read(name):
                    folder.special[name] = entry.stat(follow_symlinks=False).st_mode
    except OSError as error:
        folder.results.append(FileResult(shown(prefix or os.curdir), error=why(error)))
    folder.results += [
        FileResult(shown(prefix + name), skipped=(_LEFT,))
        for name in folder.files
        if is_temporary(name)
    ]
    has_backups = any(name.endswith(ORIGINAL) for name in folder.files)
    backups = {name + ORIGINAL for name in folder.files} if has_backups else set[str]()
    folder.files = [each for each in filter(is_searched, folder.files) if each not in backups]
    return folder


def inside(prefix: str, marks: set[str], ignored: Ignored) -> tuple[Ignored, list[FileResult]]:
    """Add the ignore files of this folder; returns those that cannot be read, too."""
    names, unread = [], []
    if ".git" in marks:  # a repository of its own: outer patterns do not apply
        ignored = NOTHING
        names.append(".git/info/exclude")
    if ".gitignore" in marks:
        names.append(".gitignore")
    if {CHART, ".helmignore"} <= marks:
        names.append(".helmignore")
    for name in names:
        try:
            ignored = ignored.and_also(_patterns(prefix + name), len(prefix))
        except OSError as error:
            unread.append(FileResult(shown(prefix + name), error=why(error)))
    return ignored, unread


def repository(folder: str) -> str:
    """The root of the repository around a folder, without links; empty if it is in none."""
    here = Path(os.path.realpath(folder))
    return next((str(e) for e in (here, *here.parents) if os.path.lexists(e / ".git")), "")


def above(root: str, cut: int) -> Ignored:
    """The patterns of the repository around a folder."""
    here, below = os.path.realpath(root), ""
    levels = []
    while not os.path.lexists(os.path.join(here, ".git")):
        here, name = os.path.split(here)
        if not name:  # not in a repository
            return NOTHING
        below = f"{name}{os.sep}{below}"
        levels.append((here, below))
    ignored = NOTHING
    for number, (place, prefix) in enumerate(reversed(levels)):
        for name in (".git/info/exclude", ".gitignore") if number == 0 else (".gitignore",):
            with suppress(OSError):  # it is not one of the arguments
                patterns = _patterns(os.path.join(place, name))
                ignored = ignored.and_also(patterns, cut, prefix)
    return ignored


def _patterns(path: str) -> Patterns | None:
    """Read an ignore file; None if there is none."""
    try:
        descriptor = os.open(path, FLAGS)
    except (FileNotFoundError, NotADirectoryError):  # .git is a file in worktrees and submodules
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        text = os.fsdecode((file.read(_IGNORE_FILE_BYTES) or b"").removeprefix(b"\xef\xbb\xbf"))
    return Patterns.of(text.split("\n"))


def is_searched(name: str) -> bool:
    """Whether a file of this name is searched: any, without those that programs write beside it."""
    # macOS stores attributes of the file x in ._x; editors and this program write the next two. A
    # SARIF file is a report on other files, and quotes them: ours has every legacy word.
    return not name.startswith("._") and not name.endswith((".swp", "~", ".sarif"))


def is_temporary(name: str) -> bool:
    """Whether a file of this name, or path, is a temporary file of this program."""
    return name.endswith(TEMPORARY) and os.path.basename(name).startswith(".")  # noqa: PTH119


def shown(path: str) -> str:
    """The path for a report: names need not be UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def as_prefix(folder: str) -> str:
    return "" if folder == os.curdir else os.path.join(folder, "")
