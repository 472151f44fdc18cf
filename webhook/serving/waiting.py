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
STALLED_SECONDS = 5.0  # a watcher that has confirmed nothing for so long is not waited for
MOST_WAITING = 64  # denials for capacity in each worker, with so many bytes
MOST_ARRIVING = 256  # reviews of new namespaces, with as many bytes
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


class Places:
    """How many reviews of one kind may wait in this worker at once, and how many now do."""

    def __init__(self, most: int) -> None:
        self._most, self._reviews, self._bytes = most, 0, 0

    def take(self, size: int) -> bool:
        """Whether there was a place for a review of so many bytes."""
        if self._reviews >= self._most or self._bytes + size > MOST_BYTES:
            return False
        self._reviews += 1
        self._bytes += size
        return True

    def leave(self, size: int) -> None:
        """Give the place back."""
        self._reviews -= 1
        self._bytes -= size


class Waiting:
    """The reviews of this worker that wait."""

    def __init__(self, catch_up: Callable[[], float] = lambda: inf) -> None:
        self._catch_up = catch_up
        self._known_until = 0.0
        self._next_look = 0.0
        # Pods that fit nowhere take no place from those of a new namespace: anybody can send them.
        self._denials, self._arrivals = Places(MOST_WAITING), Places(MOST_ARRIVING)

    async def until(
        self, moment: float, size: int, last: float, is_there: Callable[[], bool] | None = None
    ) -> None:
        """Wait for the moment, at most until `last`, or until what was missing is there."""
        places = self._denials if is_there is None else self._arrivals
        if not places.take(size):
            return
        try:
            # The files of another process make no asyncio.Event.
            while not self._is_over(moment, last, is_there or bool):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            places.leave(size)

    def _is_over(self, moment: float, last: float, is_there: Callable[[], bool]) -> bool:
        if time.monotonic() >= last or self._is_known(moment) or is_there():
            return True
        return 0 < self._known_until < moment - STALLED_SECONDS

    def _is_known(self, moment: float) -> bool:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._known_until = self._catch_up()
        return self._known_until >= moment
