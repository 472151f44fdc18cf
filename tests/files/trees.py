"""Trees of files for tests, and rights that also bind whoever is root."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
_NOBODY = 65534


def tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files with their folders."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    return root


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that any user can come to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@contextmanager
def without_rights() -> Iterator[None]:
    """Be a user whom modes bind: root is nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(_NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
