"""Reviews that wait until the inventory is as new as they are, so that no answer is too early.

The caller passes how to read the newest inventory, which returns until when it has all changes.
The event loop answers other reviews meanwhile. Beyond a number of reviews or of bytes none waits:
so a tenant who sends many pods that fit nowhere blocks nobody.
"""

from __future__ import annotations

import asyncio
import time
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_WAIT = 2.0  # seconds; the watcher confirms what it has every quarter of a second
LOOK_SECONDS = 0.05  # between two looks at its files
MOST_WAITING = 64  # in each worker, with so many bytes
MOST_BYTES = 8 * 1024 * 1024
# From a change in the API server until the watcher has received it: some ms; more under load.
MARGIN_SECONDS = 0.3


def moment_of(began: float) -> float:
    """When the watcher has the changes before a review, in seconds of the epoch.

    The review began at this time of the monotonic clock.
    """
    return time.time() - (time.monotonic() - began) + MARGIN_SECONDS


def latest(end: float) -> float:
    """Until when a review with this end may wait: half of the time is for its evaluation."""
    now = time.monotonic()
    return min(now + LONGEST_WAIT, now + (end - now) / 2)


class Waiting:
    """The reviews of this worker that wait."""

    def __init__(self, catch_up: Callable[[], float] = lambda: inf) -> None:
        self._catch_up = catch_up
        self._known_until = 0.0
        self._next_look = 0.0
        self._reviews = 0
        self._bytes = 0

    async def until(
        self, moment: float, size: int, last: float, is_enough: Callable[[], bool] = bool
    ) -> None:
        """Wait for the moment, at most until `last`, or until the inventory read is enough."""
        if self._reviews >= MOST_WAITING or self._bytes + size > MOST_BYTES:
            return
        self._reviews += 1
        self._bytes += size
        try:
            # The files of another process make no asyncio.Event.
            while time.monotonic() < last and not (self._is_known(moment) or is_enough()):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._reviews -= 1
            self._bytes -= size

    def _is_known(self, moment: float) -> bool:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._known_until = self._catch_up()
        return self._known_until >= moment
