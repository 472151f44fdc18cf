"""Returns freed memory to the operating system, if the C library is glibc."""

from __future__ import annotations

import ctypes
import gc

# For each piece that it decrypts, TLS allocates 256 KiB and frees most of it. On the heap that
# leaves holes between the remaining pieces: with hundreds of connections, hundreds of MiB. A
# mapping of its own leaves none, but takes 75 us for each call. See mallopt(3), M_MMAP_THRESHOLD.
_MMAP_THRESHOLD = -3
# glibc gives each thread a heap of its own, and each keeps what a page of a list once needed. Our
# threads take turns (the GIL), so one heap is as fast.
_ARENA_MAX = -8
_APART, _TOGETHER = 128 * 1024, 4 * 1024 * 1024
_LIBC = ctypes.CDLL(None)


class Heap:
    """The heap of this process, and how large blocks are allocated."""

    def __init__(self) -> None:
        self._is_apart = False

    def keep_large_blocks_apart(self, *, apart: bool) -> None:
        """Called when the process becomes crowded, and when it no longer is."""
        if apart != self._is_apart and hasattr(_LIBC, "mallopt"):
            self._is_apart = apart
            _LIBC.mallopt(_MMAP_THRESHOLD, _APART if apart else _TOGETHER)

    def share(self) -> None:
        """One heap for all threads, large blocks apart; called before the first thread starts."""
        if hasattr(_LIBC, "mallopt"):
            _LIBC.mallopt(_ARENA_MAX, 1)
        self.keep_large_blocks_apart(apart=True)

    @staticmethod
    def trim() -> None:
        """Collect cycles and return free pages: some milliseconds, so not for each request."""
        gc.collect()
        if hasattr(_LIBC, "malloc_trim"):
            _LIBC.malloc_trim(0)


HEAP = Heap()  # one for each process
