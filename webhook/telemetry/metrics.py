"""Counts in plain Python, and hands the counts over once a second in each worker.

Shared counters of prometheus_client take 2 us for each step, its histogram 4 us, and a review has
many steps: here it takes under 1 us. Importing this module is cheap; prometheus_client is imported
with `families`, when the folder of its files is known.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from webhook.core.findings import Finding
    from webhook.telemetry.families import Families

    Decision = tuple[str, str, str]  # rule, mode, action

OTHER = "other"  # the value of a label for other values: names of tenants are unlimited
# Series of legacy objects: tenants who create namespaces could fill the memory of Prometheus.
MOST_SERIES = 200
# Seconds. A review takes about 0.3 ms; the API server gives up after 1 to 5 s.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics:
    """Made before the workers are forked; each then continues with its own copy.

    No file is made before the first `flush`: the parent, which never calls it, does not count as a
    worker.
    """

    def __init__(
        self,
        directory: Path | None = None,
        expected: Iterable[tuple[str, ...]] = (),
        repairs: Iterable[str] = (),
    ) -> None:
        """`expected` are names of counters with their labels, `repairs` the codes of rules.

        A series must exist before it rises: `increase()` does not see one that starts at 1.
        """
        self._directory = directory
        self._families: Families | None = None
        self._lock = threading.Lock()  # heavy reviews are counted in a thread of their own
        self._counts: dict[tuple[str, ...], int] = defaultdict(int, dict.fromkeys(expected, 0))
        self._legacy: set[tuple[str, str]] = set()
        self._seen: dict[str, float] = {}  # by the namespaces of `_legacy`
        self._repaired = dict.fromkeys(repairs, 0.0)  # a missing value is not zero
        self._seconds: dict[str, list[float]] = defaultdict(_no_observations)
        self._states = {"last_legacy_timestamp_seconds": 0.0}

    def review(self, path: str, outcome: str, seconds: float) -> None:
        """Count one answered review, and the time it took."""
        with self._lock:
            self._counts["reviews", path, outcome] += 1
            observed = self._seconds[path]
            observed[bisect_left(BOUNDS, seconds)] += 1
            observed[-1] += seconds

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Count the result of `decisions_of`."""
        with self._lock:
            for decision in decisions:
                self._counts["decisions", *decision] += 1

    def legacy(self, namespace: str, kind: str) -> None:
        """Count an object that uses a legacy word, by the kind of its owner."""
        with self._lock:
            if len(self._legacy) < MOST_SERIES:
                self._legacy.add((namespace, kind))
            series = (namespace, kind) if (namespace, kind) in self._legacy else (OTHER, OTHER)
            self._counts["legacy_objects", *series] += 1
            now = time.time()
            self._seen[series[0]] = self._states["last_legacy_timestamp_seconds"] = now

    def repaired(self, decisions: Iterable[Decision]) -> None:
        """Record when the rules that changed an object did so."""
        with self._lock:
            now = time.time()
            self._repaired |= {code: now for code, _, action in decisions if action == "repaired"}

    def rule_failed(self, code: str) -> None:
        """Count a rule that raised an exception."""
        with self._lock:
            self._counts["rule_failures", code] += 1

    def tls_failed(self, reason: str) -> None:
        """Count a failed handshake, or a call without the right client certificate."""
        with self._lock:
            self._counts["tls_failures", reason] += 1

    def settings(self, *, ok: bool) -> None:
        """Record that the settings were read, or could not be read."""
        self._states["settings_last_reload_successful"] = float(ok)
        if ok:
            self._states["settings_last_reload_timestamp_seconds"] = time.time()

    def certificate(self, start: float, end: float, *, is_newest: bool) -> None:
        """Record the dates of the pair in service, and whether it is the one in the files."""
        self._states["certificate_not_before_timestamp_seconds"] = start
        self._states["certificate_expiry_timestamp_seconds"] = end
        self._states["certificate_last_reload_successful"] = float(is_newest)

    def inventory_loaded(self) -> None:
        """Record that this process has a new inventory."""
        self._states["inventory_loaded_timestamp_seconds"] = time.time()

    def flush(self) -> None:
        """Hand over the counts: once a second in each worker, and when it ends."""
        if self._directory is None:
            return
        from webhook.telemetry import families  # noqa: PLC0415  # see `counting`

        # Serving continues without its folder.
        with contextlib.suppress(OSError), self._lock:
            self._families = self._families or families.Families()
            self._families.count(self._counts)
            self._families.observe(self._seconds)
            self._families.see(families.SEEN, self._seen)
            self._families.see(families.REPAIRED, self._repaired)
            self._families.state(self._states)

    def ended(self, process: int) -> None:
        """Remove values that were only valid while that worker lived."""
        if self._directory is None:
            return
        from webhook.telemetry.families import forget  # noqa: PLC0415  # see `counting`

        with contextlib.suppress(OSError):
            forget(process, str(self._directory))


def _no_observations() -> list[float]:
    """The number in each bucket, of which the last has no bound; and the sum at the end."""
    return [0] * (len(BOUNDS) + 2)


NONE = Metrics()  # without a metrics page (`--metrics-bind`)


def decisions_of(findings: Iterable[Finding]) -> tuple[Decision, ...]:
    """The counts for these findings, which callers may cache."""
    return tuple((found.code, found.mode.value, found.action) for found in findings)


def counting(
    directory: Path, expected: Iterable[tuple[str, ...]] = (), repairs: Iterable[str] = ()
) -> Metrics:
    """Metrics whose processes share this folder; see `Metrics` for the rest."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)  # read at its import
    from webhook.telemetry import families  # noqa: PLC0415  # so not before

    families.check_shared()
    return Metrics(directory, expected, repairs)
