"""A revision of a git repository as a folder: a name in, a temporary folder out.

The commits of submodules are those of the revision, if the work tree has them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINK = "160000 "  # the mode of a submodule


def root_of(path: str) -> str:
    """The folder of the work tree that this path is in."""
    folder = path if Path(path).is_dir() else str(Path(path).parent)
    return _git(folder, "rev-parse", "--show-toplevel").decode().rstrip("\n")


@contextmanager
def checked_out(root: str, revision: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The files of the revision in a temporary folder, as git would check them out.

    With the submodules that are not there, each with the reason. The work tree and its index stay:
    git uses an index beside the folder. (`git archive` leaves out what .gitattributes says.)
    """
    name = f"{revision}^{{tree}}"
    tree = _git(root, "rev-parse", "--verify", "--end-of-options", name).decode().strip()
    with tempfile.TemporaryDirectory(prefix="gpu-webhook-") as made:
        folder, index = os.path.join(made, "tree"), os.path.join(made, "index")  # noqa: PTH118
        yield folder, dict(_check_out(root, tree, folder, index))


def _check_out(root: str, tree: str, folder: str, index: str) -> Iterator[tuple[str, str]]:
    Path(folder, ".git").mkdir(parents=True)  # so that .gitignore counts, as in the work tree
    _git(root, "read-tree", tree, index=index)
    _git(root, "checkout-index", "--all", f"--prefix={folder}{os.sep}", index=index)
    now = _submodules(root)
    for number, (path, commit) in enumerate(_submodules(root, index).items()):
        there = os.path.join(root, path)  # noqa: PTH118
        is_there = Path(there, ".git").exists()
        if not is_there and now.get(path) == commit:
            continue  # neither side has its files
        tree = ""
        if is_there:
            with suppress(InputError):
                tree = _git(there, "rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()
        if not tree:
            yield path, f"it is a submodule of git, and its commit {commit[:12]} is not here"
            continue
        inner = _check_out(there, tree, os.path.join(folder, path), f"{index}-{number}")  # noqa: PTH118
        yield from ((os.path.join(path, each), why) for each, why in inner)  # noqa: PTH118


def _submodules(root: str, index: str = "") -> dict[str, str]:
    """The commits of the submodules in an index, by their paths."""
    listed = _git(root, "ls-files", "--stage", "-z", "--full-name", index=index)
    entries = (entry.partition("\t") for entry in os.fsdecode(listed).split("\0"))
    return {path: said.split()[1] for said, _, path in entries if said.startswith(_LINK)}


def _git(folder: str, *words: str, index: str = "") -> bytes:
    command = ["git", "-C", folder, *words]  # a revision is never an option here
    around = {**os.environ, "GIT_INDEX_FILE": index} if index else None
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=around)  # noqa: S603
    except OSError as error:
        raise InputError(f"--git needs git: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(f"--git: git {words[0]}: {said[0] if said else done.returncode}")
    return done.stdout
