"""Returns freed memory to the operating system, if the C library is glibc."""

from __future__ import annotations

import ctypes
import gc

# For each piece that it decrypts, TLS asks for 256 KiB and gives most of it back. On the heap that
# leaves holes between the pieces that stay: with hundreds of connections, hundreds of MiB. As a
# mapping of its own it leaves none, but takes 75 us a call. See mallopt(3), M_MMAP_THRESHOLD.
_MMAP_THRESHOLD = -3
_APART, _TOGETHER = 128 * 1024, 4 * 1024 * 1024
_LIBC = ctypes.CDLL(None)


class Heap:
    """The heap of this process, and how large blocks are taken from it."""

    def __init__(self) -> None:
        self._is_apart = False

    def keep_large_blocks_apart(self, *, apart: bool) -> None:
        """Say so when the process gets crowded, and when it is no longer."""
        if apart != self._is_apart and hasattr(_LIBC, "mallopt"):
            self._is_apart = apart
            _LIBC.mallopt(_MMAP_THRESHOLD, _APART if apart else _TOGETHER)

    @staticmethod
    def trim() -> None:
        """Collect cycles and give free pages back: some milliseconds, so not for each request."""
        gc.collect()
        if hasattr(_LIBC, "malloc_trim"):
            _LIBC.malloc_trim(0)


HEAP = Heap()  # a process has one
