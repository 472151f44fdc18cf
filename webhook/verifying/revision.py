"""A revision of a git repository as a folder: a name in, a temporary folder out."""

from __future__ import annotations

import io
import subprocess
import tarfile
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
    """The files of the revision in a temporary folder; the work tree and the index stay."""
    tree = _git(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}")
    packed = _git(root, "archive", "--format=tar", tree.decode().strip())
    with tempfile.TemporaryDirectory(prefix="gpu-webhook-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(folder, filter="data")
        Path(folder, ".git").mkdir()  # so that its .gitignore counts, as in the work tree
        yield folder


def _git(folder: str, *words: str) -> bytes:
    try:
        command = ["git", "-C", folder, *words]  # a revision is never an option here
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    except OSError as error:
        raise InputError(f"--git needs git: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(f"--git: git {words[0]}: {said[0] if said else done.returncode}")
    return done.stdout
