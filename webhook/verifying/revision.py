"""A revision of a git repository as a folder: a name in, a temporary folder out."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


def root_of(path: str) -> str:
    """The folder of the work tree that this path is in."""
    folder = path if Path(path).is_dir() else str(Path(path).parent)
    return _git(folder, "rev-parse", "--show-toplevel").decode().rstrip("\n")


@contextmanager
def checked_out(root: str, revision: str) -> Iterator[str]:
    """The files of the revision in a temporary folder, as git would check them out.

    The work tree and its index stay: git uses an index beside the folder. (`git archive` leaves out
    what .gitattributes says.)
    """
    name = f"{revision}^{{tree}}"
    tree = _git(root, "rev-parse", "--verify", "--end-of-options", name).decode().strip()
    with tempfile.TemporaryDirectory(prefix="gpu-webhook-") as made:
        folder, index = os.path.join(made, "tree"), os.path.join(made, "index")  # noqa: PTH118
        Path(folder, ".git").mkdir(parents=True)  # so that .gitignore counts, as in the work tree
        _git(root, "read-tree", tree, index=index)
        _git(root, "checkout-index", "--all", f"--prefix={folder}{os.sep}", index=index)
        yield folder


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
