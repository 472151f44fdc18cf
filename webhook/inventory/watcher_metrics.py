"""Metrics of the watcher and its snapshot: reads the shared folder at each scrape."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook.inventory.publish import STALE_SECONDS, Snapshot
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from prometheus_client.metrics_core import Metric

    from webhook.capacity.node_index import NodeIndex

BEAT_SECONDS = 5.0  # the watcher writes its status four times a second

_GAUGES = {
    "watcher_up": "1 if the watcher wrote its status in the last seconds.",
    "watcher_status_good": (
        "1 if the status file of the watcher can be read, 0 if it is missing or damaged."
    ),
    "watcher_settings_good": (
        "1 if the watcher uses the present settings file, 0 if it keeps its old settings."
    ),
    "watcher_certificates_good": (
        "1 if the watcher can keep the webhook's own certificates, 0 if its log says what is wrong."
    ),
    "watcher_known_until_timestamp_seconds": (
        "Time up to which all changes are known, by kind of object; 0 for never."
    ),
    "watcher_refused": "1 while RBAC forbids listing this kind of object.",
    "inventory_usable": (
        "1 if pods are checked against the inventory: it has nodes and is up to date."
    ),
    "inventory_age_seconds": "Seconds since the inventory was last known to match the cluster.",
    "inventory_nodes": "Nodes of the cluster.",
    "inventory_gpu_nodes": "Nodes of the cluster that have GPUs, or had some recently.",
    "inventory_gpus": ("GPUs of nodes, healthy or not, and of declared pools, by resource."),
    "inventory_held_gpus": "GPUs that pods hold, by resource.",
    "guard_exposures": (
        "Causes by which pods see GPUs that they did not request, by kind; a pod may have several."
    ),
}
_COUNTERS = {  # by the member of a kind's state
    "lists": (
        "watcher_lists",
        "Full lists that were started, by kind of object; many mean a fault.",
    ),
    "watches": ("watcher_watches", "Watches that were started, by kind of object."),
    "events": ("watcher_events", "Watch events that were received, by kind of object."),
    "faults": ("watcher_errors", "Lists and watches that failed, by kind of object."),
    "skipped": ("watcher_skipped_objects", "Objects that could not be read, by kind of object."),
}


class WatcherMetrics(Collector):
    """Reads the folder of the watcher at each scrape."""

    def __init__(self, folder: Path | str) -> None:
        self._snapshot = Snapshot(folder)
        self._nodes = 0  # in the inventory, also nodes that may be added
        self._sizes: list[Metric] = []  # the inventory itself is not kept

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        now = time.time()
        inventory = self._snapshot.refresh()
        status = self._snapshot.status(now)
        if inventory is not None:
            self._nodes, self._sizes = inventory.index.size, list(_sizes(inventory.index))
        age = max(now - status.as_of, 0.0) if status.as_of else None
        usable = age is not None and age <= STALE_SECONDS and self._nodes
        yield _gauge("watcher_up", abs(now - status.beat) <= BEAT_SECONDS)
        yield _gauge("watcher_status_good", not status.fault)
        yield _gauge("inventory_usable", bool(usable))
        if age is not None:
            yield _gauge("inventory_age_seconds", age)
        yield from self._sizes
        if status.content:
            yield from _from_status(status.content)

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering a collector must not read files."""
        yield from ()


def _sizes(index: NodeIndex) -> Iterator[Metric]:
    there = index.everything & ~index.may_come
    yield _gauge("inventory_nodes", index.count(there))
    yield _gauge("inventory_gpu_nodes", index.count(index.with_gpus & there))
    totals = index.totals.items()
    yield _gauges("inventory_gpus", "resource", {name: each.total for name, each in totals})
    yield _gauges("inventory_held_gpus", "resource", {name: each.held for name, each in totals})


def _from_status(content: Mapping[str, Any]) -> Iterator[Metric]:
    """Metrics from the status of the watcher."""
    yield _gauge("watcher_settings_good", "settings_fault" not in content)
    if "certificates" in content:
        yield _gauge("watcher_certificates_good", not as_map(content["certificates"]).get("fault"))
    kinds = {kind: as_map(state) for kind, state in as_map(content.get("kinds")).items()}
    for member, (name, text) in _COUNTERS.items():
        family = CounterMetricFamily(f"gpu_webhook_{name}", text, labels=["kind"])
        yield _filled(family, {kind: state.get(member) for kind, state in kinds.items()})
    alive = {kind: state.get("alive") for kind, state in kinds.items()}
    yield _gauges("watcher_known_until_timestamp_seconds", "kind", alive)
    refused = {kind: state.get("refused") for kind, state in kinds.items()}
    yield _gauges("watcher_refused", "kind", refused)
    yield _gauges("guard_exposures", "by", as_map(content.get("exposed")))


def _gauge(name: str, value: float) -> Metric:
    return GaugeMetricFamily(f"gpu_webhook_{name}", _GAUGES[name], value=float(value))


def _gauges(name: str, label: str, values: Mapping[str, Any]) -> Metric:
    family = GaugeMetricFamily(f"gpu_webhook_{name}", _GAUGES[name], labels=[label])
    return _filled(family, values)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, values: Mapping[str, Any]) -> Metric:
    for label, value in sorted(values.items()):
        if isinstance(value, int | float):
            family.add_metric([label], value)
    return family
