"""The families of metrics in prometheus_client, stored in files that the page adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from prometheus_client import Counter, Gauge, Histogram, values
from prometheus_client.multiprocess import mark_process_dead

from webhook.telemetry.metrics import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COUNTERS = {
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
GAUGES = {
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
    "certificate_not_before_timestamp_seconds": (
        "From when the serving certificate is valid, of the worker whose certificate is the oldest."
    ),
    "certificate_last_reload_successful": (
        "1 if the certificate in service is that of the files, 0 if another one is kept."
    ),
    "inventory_loaded_timestamp_seconds": (
        "When the inventory in use was loaded, by the worker that is furthest behind."
    ),
}
SEEN = "namespace_last_legacy_timestamp_seconds"
REPAIRED = "rule_last_repair_timestamp_seconds"
# The label of each, and what it says.
_MOMENTS = {
    SEEN: ("namespace", "When the last object of this namespace came that uses a legacy word."),
    REPAIRED: (
        "rule",
        "When this rule last changed an object; 0: never since this server started.",
    ),
}

# How the page combines the numbers of all workers, if not by the minimum of the living ones.
_WORST: dict[str, Literal["max"]] = {"last_legacy_timestamp_seconds": "max"}


class _Timings(Histogram):
    """A histogram that takes many observations at once."""

    def add(self, observed: Sequence[float]) -> None:
        """Add these numbers to each bucket, and the sum."""
        *counts, total = observed
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            if count:
                bucket.inc(count)


class Families:
    """The metrics that this process hands over."""

    def __init__(self) -> None:
        self._counters = {
            name: Counter(f"gpu_webhook_{name}", text, labels, registry=None)
            for name, (text, labels) in COUNTERS.items()
        }
        self._timings = _Timings(
            "gpu_webhook_review_seconds",
            "Time to judge a review, once it is parsed, in seconds.",
            ("path",),
            buckets=BOUNDS,
            registry=None,
        )
        self._moments = {
            name: Gauge(
                f"gpu_webhook_{name}", text, (label,), registry=None, multiprocess_mode="max"
            )
            for name, (label, text) in _MOMENTS.items()
        }
        self._gauges: dict[str, Gauge] = {}

    def count(self, counted: dict[tuple[str, ...], int]) -> None:
        """Hand over what was counted, and start again."""
        for (name, *labels), number in counted.items():
            self._counters[name].labels(*labels).inc(number)
        counted.clear()

    def observe(self, observed: dict[str, list[float]]) -> None:
        """Hand over what was observed, and start again."""
        for path, numbers in observed.items():
            self._timings.labels(path).add(numbers)
        observed.clear()

    def see(self, name: str, seen: Mapping[str, float]) -> None:
        """Set when something last happened, by the label of this metric."""
        for value, when in seen.items():
            self._moments[name].labels(value).set(when)

    def state(self, states: Mapping[str, float]) -> None:
        """Set the gauges. A gauge is created with its first value: otherwise it would show 0."""
        for name, value in states.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(
                    f"gpu_webhook_{name}",
                    GAUGES[name],
                    registry=None,
                    multiprocess_mode=_WORST.get(name, "livemin"),
                )
            self._gauges[name].set(value)


def forget(process: int, directory: str) -> None:
    """Remove values that were only valid while that process lived."""
    mark_process_dead(process, directory)  # type: ignore[no-untyped-call]


def check_shared() -> None:
    """Raise RuntimeError if the counters of this process are not shared."""
    if not getattr(values.ValueClass, "_multiprocess", False):
        raise RuntimeError("prometheus_client was imported before its folder was set")
