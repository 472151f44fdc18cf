"""The second queue: reviews that may take long, one at a time in each worker, namespaces in turn.

They run in a thread, so that the event loop can answer light reviews. A tenant who sends many large
objects delays only their own: each namespace gets one turn at a time.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.admission.endpoint import Answer

# The queue of each worker; beyond this the namespace with the most bytes drops its oldest review.
MOST_WAITING = 256
MOST_BYTES = 24 * 1024 * 1024

_NAMESPACE = re.compile(rb'"namespace":"([^"\\]{1,253})"')
_HEAD = 4096  # bytes in which an API server has named the namespace


def namespace_of(body: bytes) -> bytes:
    """The namespace, which an API server writes before the object; empty if it is not there."""
    found = _NAMESPACE.search(body, 0, _HEAD)
    return found[1] if found is not None else b""


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    lane: bytes
    urgent: bool
    size: int
    work: Callable[[], Answer]
    end: float  # nobody waits for it any longer
    done: Future[Answer | None]

    def run(self) -> None:
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            self.done.set_result(self.work() if monotonic() < self.end else None)
        except Exception as error:  # noqa: BLE001 - the sender gets it
            self.done.set_exception(error)


class Backlog:
    """The queue for the one thread of this process."""

    def __init__(self) -> None:
        self._lanes: dict[bytes, deque[_Job]] = {}  # the first gets the next turn
        self._bytes = 0
        self._waiting = 0
        self._is_busy = False
        self._lock = Lock()  # of all these
        self._thread = ThreadPoolExecutor(1, "heavy-reviews")

    async def run(
        self, lane: bytes, size: int, work: Callable[[], Answer], seconds: float, *, urgent: bool
    ) -> Answer | None:
        """The result of the work; None if it was not done in time, or was dropped.

        In one lane urgent work is first: a limit must be checked, a repair can be skipped. Then the
        shortest: so a normal pod does not wait for all large ones of its namespace.
        """
        job = _Job(lane, urgent, size, work, monotonic() + seconds, Future())
        with self._lock:
            self._add(job)
            first = None if self._is_busy else self._take()
        if first is not None:
            self._thread.submit(self._work, first)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(job.done)
        except TimeoutError:
            # The loop has rounds of half a second with hundreds of connections, and may learn of
            # the end of the work after the end of the time.
            was_done = job.done.done() and not job.done.cancelled()
            return job.done.result() if was_done else None
        finally:
            with self._lock:
                self._remove(job)

    def _add(self, job: _Job) -> None:
        self._lanes.setdefault(job.lane, deque()).append(job)
        self._bytes += job.size
        self._waiting += 1
        while self._waiting > MOST_WAITING or self._bytes > MOST_BYTES:
            fullest = max(self._lanes.values(), key=_bytes_of)
            self._remove(oldest := fullest[0])
            oldest.done.set_result(None)

    def _remove(self, job: _Job) -> None:
        """Remove it from its lane, if it is still there."""
        lane = self._lanes.get(job.lane)
        if lane is None or job not in lane:
            return
        lane.remove(job)
        self._bytes -= job.size
        self._waiting -= 1
        if not lane:
            del self._lanes[job.lane]

    def _take(self) -> _Job | None:
        """The next job, if there is one; its lane then waits for its next turn."""
        self._is_busy = bool(self._lanes)
        if not self._lanes:
            return None
        lane = next(iter(self._lanes))
        jobs = self._lanes[lane]
        job = min(jobs, key=lambda each: (not each.urgent, each.size))
        self._remove(job)
        if lane in self._lanes:
            self._lanes[lane] = self._lanes.pop(lane)
        return job

    def _work(self, job: _Job | None) -> None:
        """In the thread: this job and all that wait, without a round of the event loop between."""
        while job is not None:
            job.run()
            with self._lock:
                job = self._take()


def _bytes_of(jobs: deque[_Job]) -> int:
    return sum(job.size for job in jobs)
