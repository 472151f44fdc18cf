"""A folder that the processes of one server share, in memory if possible, with cleanup."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from webhook.core.errors import InputError

_PREFIX = "gpu-webhook-metrics-"
_LOCK = "lock"


class SharedFolder:
    """Locked as long as any of the processes lives, so that other servers recognize leftovers.

    A killed container leaves its folder behind: /dev/shm belongs to the pod.
    """

    def __init__(self) -> None:
        """Make the folder. InputError if that is not possible."""
        memory = Path("/dev/shm")  # noqa: S108  # everywhere else a disk may be read-only
        try:
            home = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
            _clean(home)
            while not self._made(home):  # another server treated it as a leftover
                pass
        except OSError as error:
            raise InputError(
                f"--metrics-bind: there is no folder to count in ({error.strerror}). Mount an "
                "emptyDir with medium: Memory at /dev/shm or at /tmp"
            ) from error

    def _made(self, home: Path) -> bool:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
        self.lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.lock)
            return False
        return self.path.exists()

    def remove(self) -> None:
        """Remove the folder, if it is still there."""
        shutil.rmtree(self.path, ignore_errors=True)


def _clean(home: Path) -> None:
    """Remove the folders of servers that have ended."""
    for folder in home.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == os.getuid():
                _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: a server still lives
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
