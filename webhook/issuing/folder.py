"""The pair of the server beside this process: a pair in, two files that always match out.

As in volumes of the kubelet, both names lead through one symbolic link, and replacing that link
replaces both files at once.
"""

from __future__ import annotations

import os
import secrets
import shutil
from typing import TYPE_CHECKING

from webhook.certs.authority import Identity
from webhook.files import limited_reading

if TYPE_CHECKING:
    from pathlib import Path

_DATA = "..data"
_NAMES = ("tls.crt", "tls.key")


def read(folder: Path) -> Identity | None:
    """The pair in the folder, if there is a good one."""
    try:
        texts = [limited_reading.read(folder / name, limited_reading.MIB) for name in _NAMES]
    except OSError:
        return None
    return Identity.read(*texts)


def write(folder: Path, pair: Identity) -> None:
    """Put this pair in the place of the one before. May raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"..{secrets.token_hex(8)}"
    new.mkdir(mode=0o700)
    for name, text in zip(_NAMES, (pair.text, pair.key), strict=True):
        file = os.open(new / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(text)
    _link(folder / _DATA, new.name)
    for name in _NAMES:
        if not (folder / name).is_symlink():
            _link(folder / name, f"{_DATA}/{name}")
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink() and each.name not in (new.name, _DATA):
            shutil.rmtree(each, ignore_errors=True)


def _link(path: Path, target: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(path)
