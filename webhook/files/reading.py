"""Reads a whole file, or returns the reason why it cannot be read, with advice."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import BinaryIO

from webhook.files.prefilter import FLAGS, LIMIT

_REASONS = {
    errno.ENOENT: "is not there",
    errno.ENOTDIR: "is not there",
    errno.EACCES: "may not be read: chmod u+r, or leave it out with --exclude",
    errno.EPERM: "may not be read: leave it out with --exclude",
    errno.ELOOP: "is a loop of symbolic links: remove it, or leave it out with --exclude",
    errno.EISDIR: "is a folder",
    errno.ENAMETOOLONG: "has too long a path: start further down",
}
_SPECIAL = (
    (stat.S_ISFIFO, "is a pipe: give its text on the standard input, with -f -"),
    (stat.S_ISSOCK, "is a socket: it holds no text"),
    (stat.S_ISCHR, "is a device: it holds no text"),
    (stat.S_ISBLK, "is a device: it holds no text"),
    (stat.S_ISDIR, "is a folder"),
)
_PIECE = 1 << 20


class UnreadableError(Exception):
    """Why a file cannot be read, with advice."""


def read_regular(path: str, limit: int = LIMIT) -> tuple[bytes, os.stat_result]:
    """The content of a file, and its status before; at most `limit` bytes are read."""
    try:
        descriptor = os.open(path, FLAGS)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError(special(status.st_mode))
            if status.st_size > limit:
                raise UnreadableError(too_large(status.st_size, limit))
            return read_all(file, limit), status
    except OSError as error:
        raise UnreadableError(why(error)) from error


def text_of(file: str) -> str:
    """The text of a file that is needed for another file, without a byte order mark.

    Empty if it cannot be read.
    """
    with suppress(UnreadableError):  # reported with the file itself
        return read_regular(file)[0].decode("utf-8-sig", errors="replace")
    return ""


def read_all(file: BinaryIO, limit: int = LIMIT) -> bytes:
    """Read a source without a known end: a pipe, or a file that grows."""
    pieces, size = [], 0
    while piece := file.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise UnreadableError(too_large(size, limit))
    return b"".join(pieces)


def why(error: OSError) -> str:
    """The reason for users, with advice."""
    return _REASONS.get(error.errno or 0) or f"cannot be read: {error.strerror or error}"


def special(mode: int) -> str:
    """The name of a special file."""
    return next((words for test, words in _SPECIAL if test(mode)), "is no file")


def too_large(size: int, limit: int) -> str:
    """The reason for a file of at least this size."""
    return (
        f"has {size >> 20} MiB or more, {limit >> 20} are read at most: split it, or leave it out "
        "with --exclude"
    )
