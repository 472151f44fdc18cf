"""All bodies that are being read share one budget of bytes in each worker.

Beyond it the oldest body is dropped: an API server sends a body in some milliseconds, so the oldest
is the slowest.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from webhook.serving.heap import HEAP

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOM = 24 * 1024 * 1024
MANY = 2 * 1024 * 1024  # from here on a worker is crowded


class Crowded(Exception):  # noqa: N818  # an answer, not an error
    """There was no room to continue."""


class _Reader:
    """One body that is being read."""

    def __init__(self, bodies: Bodies, limit: asyncio.Timeout) -> None:
        self._bodies = bodies
        self.limit = limit
        self.held = 0
        self.gave_up = False

    def take(self, size: int) -> None:
        """Count so many more bytes; Crowded if this body must be dropped."""
        if not self.gave_up:
            self.held += size
            self._bodies.make_room(size)
        if self.gave_up:
            raise Crowded


class Bodies:
    """All bodies that are being read by this worker."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._held = 0
        self._readers: dict[_Reader, None] = {}  # the oldest first

    @contextmanager
    def reading(self, limit: asyncio.Timeout) -> Iterator[_Reader]:
        """Used while a body is read within this time limit; raises Crowded if it was dropped."""
        reader = _Reader(self, limit)
        self._readers[reader] = None
        try:
            yield reader
        except asyncio.CancelledError:
            if reader.gave_up:
                raise Crowded from None
            raise
        finally:
            self._forget(reader)

    @property
    def are_few(self) -> bool:
        """Whether few bytes are being read."""
        return self._held <= MANY

    def make_room(self, size: int) -> None:
        """Reserve so many more bytes."""
        self._held += size
        if self._held > MANY:
            HEAP.keep_large_blocks_apart(apart=True)
        while self._held > self._room:
            oldest = next(iter(self._readers))
            oldest.gave_up = True
            self._forget(oldest)
            if not oldest.limit.expired():
                oldest.limit.reschedule(asyncio.get_running_loop().time())

    def _forget(self, reader: _Reader) -> None:
        if reader in self._readers:
            del self._readers[reader]
            self._held -= reader.held
