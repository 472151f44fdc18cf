"""Reviews that wait until the inventory is as new as they are, so that no answer is too early.

The caller passes how to read the newest inventory, which returns until when it has all changes.
The event loop answers other reviews meanwhile. Beyond a number of reviews or of bytes the largest
do not wait: so a tenant who sends many pods that fit nowhere blocks nobody.
"""

from __future__ import annotations

import asyncio
import time
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from webhook.admission.decide import STALLED_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_WAIT = 2.0  # seconds; the watcher confirms what it has every quarter of a second
LOOK_SECONDS = 0.05  # between two looks at its files
MOST_WAITING = 64  # denials for capacity in each worker, with so many bytes
# Reviews of new namespaces: as many as a worker has connections, since anybody who reaches the port
# can send reviews of namespaces that do not exist.
MOST_ARRIVING = 1000
MOST_BYTES = 8 * 1024 * 1024  # of each kind
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


class _Waiter(NamedTuple):
    """A review that waits: for this moment, or until `is_there`; at most until `last`."""

    moment: float
    last: float
    is_there: Callable[[], bool]
    places: Places
    size: int
    over: asyncio.Future[None]


class Waiting:
    """The reviews of this worker that wait."""

    def __init__(self, catch_up: Callable[[], float] = lambda: inf) -> None:
        self._catch_up = catch_up
        self._known_until = 0.0
        self._next_look = 0.0
        self._waiters: set[_Waiter] = set()
        self._watch: asyncio.Task[None] | None = None
        # Pods that fit nowhere take no place from those of a new namespace: anybody can send them.
        self._denials, self._arrivals = Places(MOST_WAITING), Places(MOST_ARRIVING)

    async def until(
        self, moment: float, size: int, last: float, is_there: Callable[[], bool] | None = None
    ) -> None:
        """Wait for the moment, at most until `last`, or until what was missing is there."""
        places = self._denials if is_there is None else self._arrivals
        over = asyncio.get_running_loop().create_future()
        waiter = _Waiter(moment, last, is_there or bool, places, size, over)
        if self._is_over(waiter) or not self._has_place(waiter):
            return
        self._waiters.add(waiter)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look())
        try:
            await over
        finally:
            self._let_go(waiter)

    def _has_place(self, waiter: _Waiter) -> bool:
        """Whether there was a place; larger reviews of the same kind leave theirs."""
        while not waiter.places.take(waiter.size):
            others = (each for each in self._waiters if each.places is waiter.places)
            largest = max(others, key=lambda each: each.size, default=waiter)
            if largest.size <= waiter.size:
                return False
            self._let_go(largest)
        return True

    def _let_go(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.discard(waiter)
            waiter.places.leave(waiter.size)
        if not waiter.over.done():
            waiter.over.set_result(None)

    async def _look(self) -> None:
        """One task for all: a thousand may wait."""
        try:
            while self._waiters:
                await asyncio.sleep(LOOK_SECONDS)
                for each in filter(self._is_over, [*self._waiters]):
                    self._let_go(each)
        finally:
            for each in [*self._waiters]:
                self._let_go(each)

    def _is_over(self, waiter: _Waiter) -> bool:
        if time.monotonic() >= waiter.last or self._is_known(waiter.moment) or waiter.is_there():
            return True
        return 0 < self._known_until < waiter.moment - STALLED_SECONDS

    def _is_known(self, moment: float) -> bool:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._known_until = self._catch_up()
        return self._known_until >= moment
