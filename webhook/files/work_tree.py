"""What git has not got yet of the files of a run: changed files in, reasons against writing out.

An edit of a file with changes that are in no commit and not in the index cannot be undone without
them. Changes that an earlier run of this program wrote are no reason: their hashes are kept in the
folder of git, which belongs to no commit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.files.folder import repository

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MOST = 100_000  # hashes that are kept
_UNSTAGED = "{} has unstaged changes: `git add` it first, or use --force"
_UNKNOWN = "git does not say whether {} has unstaged changes ({}): use --force"


class GitError(Exception):
    """What git said."""


def unstaged(files: Mapping[str, bytes]) -> dict[str, str]:
    """Why not to write some of these files, which have this content."""
    reasons: dict[str, str] = {}
    for root, paths in _by_root(files).items():
        try:
            modified = set(_git(root, "ls-files", "--modified", "-z").split("\0"))
            ours = _written(_record(root))
        except GitError as error:
            reasons |= {path: _UNKNOWN.format(path, error) for path in paths}
            continue
        for path in paths:
            name = os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/")
            if name in modified and _hash(files[path]) not in ours:
                reasons[path] = _UNSTAGED.format(path)
    return reasons


def remember(files: Mapping[str, bytes]) -> None:
    """Keep the hashes of the content that is about to be written into these files."""
    for root, paths in _by_root(files).items():
        with suppress(GitError, OSError):  # then a later run asks for --force
            record = _record(root)
            with _alone(record.parent):
                kept = dict.fromkeys([*_written(record), *(_hash(files[path]) for path in paths)])
                new = record.with_name(f"{record.name}.new")
                new.write_text("".join(f"{each}\n" for each in [*kept][-_MOST:]), "ascii")
                new.replace(record)  # a run that is killed leaves the old record


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Other runs in the work tree wait meanwhile: each adds to what the others have written."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _by_root(paths: Iterable[str]) -> dict[str, list[str]]:
    """The files in work trees, by the folder that has `.git`; others are left out."""
    found: dict[str, list[str]] = defaultdict(list)
    roots: dict[str, str] = {}
    for path in paths:
        folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
        if folder not in roots:
            roots[folder] = _root(folder)
        if roots[folder]:
            found[roots[folder]].append(path)
    return found


def _root(folder: str) -> str:
    """The root of its work tree; an empty text if it is in none, or if there is no git."""
    root = repository(folder)
    try:
        return root and _git(root, "rev-parse", "--git-dir") and root
    except FileNotFoundError:
        return ""  # the image has no git
    except GitError as error:
        return "" if "not a git repository" in str(error) else root


def _record(root: str) -> Path:
    return Path(root, _git(root, "rev-parse", "--git-path", "gpu-webhook-written").rstrip("\n"))


def _written(record: Path) -> list[str]:
    with suppress(OSError, ValueError):
        return record.read_text("ascii").split()
    return []


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _git(root: str, *words: str) -> str:
    # fsmonitor is a program that the settings of a repository name.
    command = ["git", "-C", root, "-c", "core.fsmonitor=false", *words]
    around = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, check=False, env=around)  # noqa: S603
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitError(said[0] if said else str(done.returncode))
    return os.fsdecode(done.stdout)
