"""Reads regular files up to a size limit, for the server."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MIB = 1024 * 1024


def identity(*files: Path | str) -> tuple[tuple[int, ...], ...]:
    """Changes whenever a file is written, replaced, linked elsewhere, or becomes readable."""
    return tuple(map(_identity, files))


def _identity(file: Path | str) -> tuple[int, ...]:
    try:
        found = Path(file).stat()
    except OSError:
        return ()
    return found.st_ino, found.st_ctime_ns, found.st_size


def read(path: Path | str, most: int, *, pipes: bool = False) -> bytes:
    """The content of the file; OSError if it is too large, or is a device or another special file.

    A link to an endless device would fill the memory, and a pipe without a writer would block the
    server. `pipes`: for commands, so that users can pass one, as <(kubectl get nodes -o yaml).
    """
    # A pipe without a writer would block already at open().
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if pipes else os.O_NONBLOCK))
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not (stat.S_ISREG(mode) or (pipes and stat.S_ISFIFO(mode))):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = opened.read(most + 1) if found.st_size <= most else b""
    if max(found.st_size, len(content)) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // MIB} MiB")
    return content
