"""Memory that is free again goes back to the machine, where the C library is glibc."""

from __future__ import annotations

import ctypes
import gc

# Each connection takes buffers of 256 KiB, of which it touches little. glibc serves them from
# its heap once the first was freed (malloc(3), M_MMAP_THRESHOLD is dynamic), and there they leave
# holes; with a fixed threshold they stay mappings of their own.
_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def keep_large_blocks_apart() -> None:
    """Call it once in each process that serves."""
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_MMAP_THRESHOLD, _LARGE)


def trim() -> None:
    """Collect cycles and give free pages back: some milliseconds, so not for each request."""
    gc.collect()
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)


_LIBC = ctypes.CDLL(None)
