"""Legacy pods as dry runs at a fixed rate, and what became of each."""

from __future__ import annotations

import http.client
import itertools
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.cluster.pods import NVIDIA, alpha, limits_of, named, pod

if TYPE_CHECKING:
    from tests.node.cluster import RealCluster

REPAIRED = "repaired"
UNREPAIRED = "unrepaired"
_FEWEST = 10  # threads; those of half a second more, which calls that time out keep waiting


class Admission(NamedTuple):
    """A pod that was sent to the API server; seconds of the monotonic clock."""

    due: float
    sent: float
    answered: float
    outcome: str  # REPAIRED, UNREPAIRED, or why there is no pod


class Load:
    """Sends a pod at each moment that is due, also while earlier ones wait for their answer."""

    def __init__(self, cluster: RealCluster, rate: float) -> None:
        self._cluster = cluster
        self._rate = rate
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._known = len(cluster.failed_calls())
        self.made: list[Admission] = []
        count = _FEWEST + int(rate / 2)
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(count)]

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._ended = time.monotonic()
        for thread in self._threads:
            thread.join()

    def missed(self) -> list[Admission]:
        """Give those that are not repaired, in the order in which they were sent."""
        return sorted(each for each in self.made if each.outcome != REPAIRED)

    def failed_calls(self, entry: str = "") -> Counter[str]:
        """Give the reasons for which calls have failed meanwhile, by the log of the API server."""
        lines = self._cluster.failed_calls()[self._known :]
        ours = [line for line in lines if f"failing open {entry}" in line]
        return Counter(line.rpartition(": ")[2] for line in ours)

    def kept_its_rate(self) -> bool:
        """Whether at least a third was sent: what a busy machine can do."""
        return len(self.made) > (self._ended - self._started) * self._rate / 3

    def __str__(self) -> str:
        seconds = self._ended - self._started
        waits = sorted(each.answered - each.sent for each in self.made)
        late = sum(each.sent - each.due > 1 for each in self.made)
        middle, slow = (1000 * waits[int(len(waits) * part)] for part in (0.5, 0.99))
        outcomes = _listed(Counter(each.outcome for each in self.made))
        return (
            f"{len(self.made)} admissions in {seconds:.0f} s ({len(self.made) / seconds:.0f} of "
            f"{self._rate:.0f} a second, {late} sent over 1 s late): {outcomes}; {middle:.0f} ms, "
            f"99 % in {slow:.0f} ms, all in {1000 * waits[-1]:.0f} ms; failed calls: "
            f"{_listed(self.failed_calls())}; load of the machine {os.getloadavg()[0]:.1f}"
        )

    def _send(self) -> None:
        while True:
            with self._lock:
                number = next(self._numbers)
            due = self._started + number / self._rate
            if self._stopped.wait(max(due - time.monotonic(), 0)):
                return
            sent = time.monotonic()
            outcome = admit(self._cluster)
            with self._lock:
                self.made.append(Admission(due, sent, time.monotonic(), outcome))


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.most_common()) or "none"


def admit(cluster: RealCluster) -> str:
    """Send one legacy pod, and say what became of it."""
    try:
        made = cluster.client.try_create(named(pod(alpha(1)), "probe"), "default", dry_run=True)
    except (OSError, http.client.HTTPException) as error:
        return f"no answer ({type(error).__name__})"
    if not made.ok:
        return f"refused ({made.status} {made.message})"
    return REPAIRED if limits_of(made.body) == [{NVIDIA: "1"}] else UNREPAIRED
