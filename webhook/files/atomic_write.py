"""Replaces the content of a file atomically: readers see the old text or the new one.

The new text goes into a temporary file in the same folder, which is then renamed. Mode, owner and
extended attributes stay; a symbolic link stays a link. A file that was changed meanwhile is not
replaced. The name of the temporary file follows from the file's name, so the next run with the same
file removes what a killed run has left.
"""

# ruff: noqa: PTH105, PTH108, PTH116, PTH123, PTH118, PTH119, PTH120
# Paths are texts here, as where they come from.

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from zlib import crc32

from webhook.files.folder import ORIGINAL, TEMPORARY
from webhook.files.reading import UnreadableError, read_regular, why

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_LONGEST_NAME = 200  # bytes from which a temporary name is made; most systems allow 255
_ATTEMPTS = 3
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_OLD = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_CHANGED = "was changed since it was read and is left as it is: run again"
_SEVERAL = "{} has {} names (hard links), and only one would get the new text: use --force"
_BUSY = "another run is about to write it"
_REASONS = {
    errno.EBUSY: "is mounted by itself: run where its folder is",
    errno.EROFS: "is on a file system that is mounted read-only",
    errno.EPERM: "is protected (lsattr shows by what)",
}


class UnwritableError(Exception):
    """Why a file was not changed, with advice."""


def replace(path: str, new_text: Callable[[bytes], bytes | None]) -> str:
    """Replace the content by the result of `new_text`; None means another content, which is kept.

    Raises UnwritableError with the reason if the file is not changed; returns a remark, or an empty
    text.
    """
    try:
        target = os.path.realpath(path, strict=True)
        raw, status = read_regular(target)
    except UnreadableError as error:
        raise UnwritableError(str(error)) from error
    except OSError as error:
        raise UnwritableError(why(error)) from error
    new = new_text(raw)
    if new is None:
        raise UnwritableError(_CHANGED)
    if _is_read_only(status):
        raise UnwritableError("is read-only: chmod u+w")
    try:
        return _write(target, new, status)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        raise UnwritableError(f"cannot be written: {reason}") from error


def is_read_only(path: str) -> bool:
    """Whether it cannot be replaced because nobody may write it."""
    with suppress(OSError):  # to write it says why
        return _is_read_only(os.stat(path))
    return False


def _is_read_only(status: os.stat_result) -> bool:
    """Root could write it, but should not."""
    return not status.st_mode & _WRITABLE


def of_several_names(paths: Iterable[str]) -> dict[str, str]:
    """Why not to write the files that have several names."""
    return {path: _SEVERAL.format(path, names) for path in paths if (names := _names(path)) > 1}


def _names(path: str) -> int:
    with suppress(OSError):  # to write it says why
        return os.stat(path).st_nlink
    return 0


def keep(path: str, raw: bytes) -> None:
    """Keep this content beside the file. Another text of that name stays: UnwritableError.

    The temporary file is that of the file itself, so the next run with it removes what is left.
    """
    target = os.path.realpath(path)
    kept, name = target + ORIGINAL, temporary_name(target)
    if os.path.lexists(kept):
        if _content(kept) != raw:
            other = os.path.basename(kept)
            raise UnwritableError(f"{other} is another text: remove it, or leave out --backup")
        return
    try:
        with _temporary(name) as descriptor:
            _fill(descriptor, raw)
            shutil.copymode(target, name)
            os.fsync(descriptor)
            os.replace(name, kept)
    except OSError as error:
        raise UnwritableError(f"{ORIGINAL} cannot be written: {error.strerror}") from error


def _fill(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _content(path: str) -> bytes | None:
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return None


def _write(target: str, new: bytes, was: os.stat_result) -> str:
    name = temporary_name(target)
    with _temporary(name) as descriptor:
        _fill(descriptor, new)
        said = _keep_attributes(target, descriptor, was)
        os.fsync(descriptor)
        if not _is_same(target, was):
            raise UnwritableError(_CHANGED)
        os.replace(name, target)
    _sync(os.path.dirname(target))
    if was.st_nlink > 1:
        said.append(f"has {was.st_nlink} names (hard links), and only this one has the new text")
    return "; ".join(said)


@contextmanager
def _temporary(name: str) -> Iterator[int]:
    """Make the temporary file; it is removed afterwards unless all went well."""
    descriptor = _created(name)
    try:
        yield descriptor
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    finally:
        os.close(descriptor)


def _created(name: str) -> int:
    """Create and lock it: an unlocked file of this name was left by a run that died."""
    for _ in range(_ATTEMPTS):
        try:
            descriptor = os.open(name, _NEW, 0o600)
        except FileExistsError:
            _remove_leftover(name)
            continue
        if _lock(descriptor) and _is_named(name, descriptor):
            return descriptor
        os.close(descriptor)  # another run treated it as left over
    raise UnwritableError(_BUSY)


def _remove_leftover(name: str) -> None:
    try:
        descriptor = os.open(name, _OLD)
    except FileNotFoundError:
        return
    except OSError as error:
        in_the_way = os.path.basename(name)
        raise UnwritableError(f"cannot be written: remove {in_the_way} beside it") from error
    try:
        if not _lock(descriptor):
            raise UnwritableError(_BUSY)
        if _is_named(name, descriptor):
            os.unlink(name)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # this file system has no locks
            return True
    return True


def _is_named(name: str, descriptor: int) -> bool:
    """Whether the open file still has this name."""
    try:
        named = os.stat(name, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def _keep_attributes(target: str, descriptor: int, was: os.stat_result) -> list[str]:
    """Give the new file mode, owner and extended attributes; returns what could not be kept."""
    if sys.platform == "win32":
        return []
    said = []
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (was.st_uid, was.st_gid):
        try:
            os.fchown(descriptor, was.st_uid, was.st_gid)
        except OSError:
            said.append("has another owner now: only root could have kept it")
    os.fchmod(descriptor, stat.S_IMODE(was.st_mode))
    if sys.platform == "linux":
        with suppress(OSError):  # a file system without them
            for name in os.listxattr(target):
                with suppress(OSError):  # attributes of the system cannot be set by every user
                    os.setxattr(descriptor, name, os.getxattr(target, name))
    return said


def _is_same(target: str, was: os.stat_result) -> bool:
    now = os.stat(target)
    return os.path.samestat(now, was) and (now.st_size, now.st_mtime_ns, now.st_ctime_ns) == (
        was.st_size,
        was.st_mtime_ns,
        was.st_ctime_ns,
    )


def _sync(folder: str) -> None:
    """Make the new name survive a loss of power."""
    with suppress(OSError):  # not all systems allow opening a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def temporary_name(target: str) -> str:
    """The name of the temporary file in the same folder."""
    folder, name = os.path.split(target)
    encoded = os.fsencode(name)
    if len(encoded) > _LONGEST_NAME:
        name = f"{os.fsdecode(encoded[:_LONGEST_NAME])}-{crc32(encoded):08x}"
    return os.path.join(folder, f".{name}{TEMPORARY}")
