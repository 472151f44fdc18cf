"""Counts in each worker, into files that the page's process adds up.

prometheus_client's own counters take 2 us a step where processes share them, its histogram 4 us,
and a review is many steps. So they are added up in plain Python (under 1 us a review), and handed
over once a second.
"""

from __future__ import annotations

import contextlib
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.multiprocess import mark_process_dead

from webhook.telemetry.metrics import OTHER, Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from webhook.telemetry.metrics import Decision

# Seconds. A review takes about 0.3 ms; the API server gives up after 1 to 5 s.
# Of legacy objects; whoever makes namespaces could fill the memory of whoever scrapes this.
MOST_SERIES = 200
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Counting(Metrics):
    """Made before the workers are forked off; each then goes on with its own copy.

    No file is made before the first `flush`: the parent, which never calls it, has no part in what
    is said of the workers.
    """

    __slots__ = (
        "_decisions",
        "_directory",
        "_failures",
        "_files",
        "_legacy",
        "_legacy_series",
        "_lock",
        "_reviews",
        "_seconds",
        "_states",
        "_tls_failures",
    )

    def __init__(
        self,
        directory: Path,
        codes: Iterable[str] = (),
        reviews: Iterable[tuple[str, str]] = (),
        tls_failures: Iterable[str] = (),
    ) -> None:
        """`codes` are the rules that may fail, `reviews` the paths and outcomes that there are.

        `tls_failures` are the reasons.

        A series must be there before it rises: `increase()` does not see one that is born at 1.
        """
        if not getattr(values.ValueClass, "_multiprocess", False):
            raise RuntimeError("prometheus_client was imported before it was told its folder")
        self._directory = directory
        self._lock = threading.Lock()  # heavy reviews are counted in a thread of their own
        self._files: _Files | None = None
        self._decisions: dict[Decision, int] = defaultdict(int)
        self._failures: dict[tuple[str], int] = {(code,): 0 for code in codes}
        self._legacy: dict[tuple[str, str], int] = defaultdict(int)
        self._legacy_series: set[tuple[str, str]] = set()
        self._reviews = defaultdict(int, dict.fromkeys(reviews, 0))
        self._seconds: dict[str, list[float]] = defaultdict(_no_observations)
        self._tls_failures: dict[tuple[str], int] = {(reason,): 0 for reason in tls_failures}
        self._states = {"last_legacy_timestamp_seconds": 0.0}  # what is not there is not zero

    def review(self, path: str, outcome: str, seconds: float) -> None:
        """Count one answered review, and the time it took."""
        with self._lock:
            self._reviews[path, outcome] += 1
            observed = self._seconds[path]
            observed[bisect_left(BOUNDS, seconds)] += 1
            observed[-1] += seconds

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Count what `decisions_of` gave."""
        with self._lock:
            for decision in decisions:
                self._decisions[decision] += 1

    def legacy(self, namespace: str, kind: str) -> None:
        """Count an object that uses a legacy word, by the kind of what made it."""
        series = namespace, kind
        with self._lock:
            if series not in self._legacy_series:
                if len(self._legacy_series) < MOST_SERIES:
                    self._legacy_series.add(series)
                else:
                    series = OTHER, OTHER
            self._legacy[series] += 1
            self._states["last_legacy_timestamp_seconds"] = time.time()

    def rule_failed(self, code: str) -> None:
        """Count a rule that raised."""
        with self._lock:
            self._failures[code,] = self._failures.get((code,), 0) + 1

    def tls_failed(self, reason: str) -> None:
        """Count a handshake that failed, or a call without the right client certificate."""
        with self._lock:
            self._tls_failures[reason,] = self._tls_failures.get((reason,), 0) + 1

    def settings(self, *, ok: bool) -> None:
        """Note that the settings were read (again), or could not be."""
        self._states["settings_last_reload_successful"] = float(ok)
        if ok:
            self._states["settings_last_reload_timestamp_seconds"] = time.time()

    def certificate(self, end: float, *, is_newest: bool) -> None:
        """Note when the pair in service expires, and whether it is what the files hold."""
        self._states["certificate_expiry_timestamp_seconds"] = end
        self._states["certificate_last_reload_successful"] = float(is_newest)

    def inventory_loaded(self) -> None:
        """Note that this process has a new inventory."""
        self._states["inventory_loaded_timestamp_seconds"] = time.time()

    def flush(self) -> None:
        """Hand over what was counted: once a second in each worker, and when it ends."""
        # Without its folder serving goes on.
        with contextlib.suppress(OSError), self._lock:
            if self._files is None:
                self._files = _Files()
            self._files.count("decisions", self._decisions)
            self._files.count("legacy_objects", self._legacy)
            self._files.count("rule_failures", self._failures)
            self._files.count("reviews", self._reviews)
            self._files.count("tls_failures", self._tls_failures)
            self._files.observe(self._seconds)
            self._files.state(self._states)

    def ended(self, process: int) -> None:
        """Forget what was only true while that worker lived."""
        with contextlib.suppress(OSError):
            mark_process_dead(process, str(self._directory))  # type: ignore[no-untyped-call]


def _no_observations() -> list[float]:
    """How many in each bucket, the last of which has no bound; and at the end their sum."""
    return [0] * (len(BOUNDS) + 2)


_COUNTERS = {
    "decisions": (
        "Findings, by rule, by its mode in the namespace, and by what came of them.",
        ("rule", "mode", "action"),
    ),
    "legacy_objects": (
        "Objects that use a legacy word, by namespace and by the kind of what made them.",
        ("namespace", "kind"),
    ),
    "reviews": ("Admission reviews, by path and by outcome.", ("path", "outcome")),
    "rule_failures": (
        "Errors inside a rule, which then did nothing while the others went on. A bug: report it.",
        ("rule",),
    ),
    "tls_failures": (
        "TLS handshakes that failed, and calls without the right client certificate, by reason.",
        ("reason",),
    ),
}
_GAUGES = {
    "last_legacy_timestamp_seconds": (
        "When the last object came that uses a legacy word; 0: none since this server started."
    ),
    "settings_last_reload_successful": (
        "1 if the settings file was good when it was last read, 0 if the old settings are kept."
    ),
    "settings_last_reload_timestamp_seconds": (
        "When the settings in force were read, by the worker that is furthest behind."
    ),
    "certificate_expiry_timestamp_seconds": (
        "When the serving certificate expires, of the worker whose certificate does so first."
    ),
    "certificate_last_reload_successful": (
        "1 if the certificate in service is that of the files, 0 if another one is kept."
    ),
    "inventory_loaded_timestamp_seconds": (
        "When the inventory in use was loaded, by the worker that is furthest behind."
    ),
}


# How the page makes one number of those of all workers, where that is not the least of the living.
_WORST: dict[str, Literal["max"]] = {"last_legacy_timestamp_seconds": "max"}


class _Timings(Histogram):
    """A histogram that takes many observations at once."""

    def add(self, observed: Sequence[float]) -> None:
        """Take so many more in each bucket, and at the end their sum."""
        *counts, total = observed
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            if count:
                bucket.inc(count)


class _Files:
    """What this process hands over, as prometheus_client keeps it."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"gpu_webhook_{name}", text, labels, registry=self._registry)
            for name, (text, labels) in _COUNTERS.items()
        }
        self._timings = _Timings(
            "gpu_webhook_review_seconds",
            "Time to judge a review, once it is parsed, in seconds.",
            ("path",),
            buckets=BOUNDS,
            registry=self._registry,
        )
        self._gauges: dict[str, Gauge] = {}

    def count(self, name: str, counted: dict[Any, int]) -> None:
        """Hand over what was counted, and begin again."""
        for labels, number in counted.items():
            self._counters[name].labels(*labels).inc(number)
        counted.clear()

    def observe(self, observed: dict[str, list[float]]) -> None:
        """Hand over what was observed, and begin again."""
        for path, numbers in observed.items():
            self._timings.labels(path).add(numbers)
        observed.clear()

    def state(self, states: Mapping[str, float]) -> None:
        """Say how things are. A gauge is made when there is something to say: it would say 0."""
        for name, value in states.items():
            gauge = self._gauges.get(name)
            if gauge is None:
                gauge = self._gauges[name] = Gauge(
                    f"gpu_webhook_{name}",
                    _GAUGES[name],
                    registry=self._registry,
                    multiprocess_mode=_WORST.get(name, "livemin"),
                )
            gauge.set(value)
