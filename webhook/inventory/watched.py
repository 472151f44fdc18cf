"""What the metrics page says of the watcher and of what it published."""

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
    from webhook.inventory.publish import Status

BEAT_SECONDS = 5.0  # the watcher says every second that it lives

_PREFIX = "gpu_webhook_"
_OF_A_KIND = {  # member of a kind's state: metric, and what it counts
    "lists": ("watcher_lists", "Full lists that were begun, by kind of object; many mean trouble."),
    "watches": ("watcher_watches", "Watches that were begun, by kind of object."),
    "events": ("watcher_events", "Events that watches brought, by kind of object."),
    "faults": ("watcher_errors", "Lists and watches that failed or broke off, by kind of object."),
    "skipped": ("watcher_skipped_objects", "Objects that could not be read, by kind of object."),
}


class Watched(Collector):
    """Reads the folder that the watcher publishes into, at each scrape."""

    def __init__(self, folder: Path | str) -> None:
        self._snapshot = Snapshot(folder)
        self._sizes: _Sizes | None = None  # the inventory itself is not kept

    def collect(self) -> Iterator[Metric]:
        """All that there is to say."""
        now = time.time()
        inventory = self._snapshot.refresh()
        status = self._snapshot.status(now)
        if inventory is not None:
            self._sizes = _Sizes(inventory.index)
        age = max(now - status.as_of, 0.0) if status.as_of else None
        usable = age is not None and age <= STALE_SECONDS and bool(self._sizes and self._sizes.all)
        yield _gauge(
            "watcher_up",
            "1 if the watcher said in the last seconds that it lives.",
            float(abs(now - status.beat) <= BEAT_SECONDS),
        )
        yield _gauge(
            "watcher_status_good",
            "1 if what the watcher wrote of itself can be used, 0 if it is missing or damaged.",
            float(not status.fault),
        )
        yield _gauge(
            "inventory_usable",
            "1 if pods may be held against the inventory: it knows nodes and is not behind.",
            float(usable),
        )
        if age is not None:
            yield _gauge(
                "inventory_age_seconds",
                "How long ago the inventory was surely equal to the cluster.",
                age,
            )
        if self._sizes is not None:
            yield from self._sizes.metrics()
        if status.told:
            yield from _told(status)

    def describe(self) -> Iterator[Metric]:
        """Nothing: to be registered is no reason to read files."""
        yield from ()


class _Sizes:
    """What is kept of an inventory."""

    def __init__(self, index: NodeIndex) -> None:
        self.all = index.size
        self._there = index.count(index.everything & ~index.may_come)
        self._with_gpus = index.count(index.with_gpus & ~index.may_come)
        self._totals = dict(index.totals)

    def metrics(self) -> Iterator[Metric]:
        yield _gauge(
            "inventory_nodes",
            "Nodes that are there.",
            self._there,
        )
        yield _gauge(
            "inventory_gpu_nodes",
            "Nodes that are there and have GPUs, or had some a while ago.",
            self._with_gpus,
        )
        offered = GaugeMetricFamily(
            f"{_PREFIX}inventory_gpus",
            "GPUs that nodes have, healthy or not, and declared pools may have, by resource.",
            labels=["resource"],
        )
        held = GaugeMetricFamily(
            f"{_PREFIX}inventory_held_gpus",
            "GPUs that pods hold, by resource.",
            labels=["resource"],
        )
        for resource, total in self._totals.items():
            offered.add_metric([resource], total.total)
            held.add_metric([resource], total.held)
        yield from (offered, held)


def _told(status: Status) -> Iterator[Metric]:
    """What only the watcher knows."""
    yield _gauge(
        "watcher_settings_good",
        "1 if the watcher follows the settings file as it is, 0 if it keeps its old settings.",
        float("settings_fault" not in status.told),
    )
    kinds = as_map(status.told.get("kinds"))
    for member, (name, text) in _OF_A_KIND.items():
        family = CounterMetricFamily(_PREFIX + name, text, labels=["kind"])
        _add(family, {kind: as_map(state).get(member) for kind, state in kinds.items()})
        yield family
    known = GaugeMetricFamily(
        f"{_PREFIX}watcher_known_until_timestamp_seconds",
        "Up to when all that happened is known, by kind of object; 0 for never.",
        labels=["kind"],
    )
    _add(known, {kind: as_map(state).get("alive") for kind, state in kinds.items()})
    yield known
    exposures = GaugeMetricFamily(
        f"{_PREFIX}guard_exposures",
        "What lets pods see GPUs that they did not ask for, by the kind of it; a pod may have "
        "several.",
        labels=["by"],
    )
    _add(exposures, as_map(status.told.get("exposed")))
    yield exposures


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(_PREFIX + name, text, value=value)


def _add(family: CounterMetricFamily | GaugeMetricFamily, values: Mapping[str, Any]) -> None:
    for label, value in sorted(values.items()):
        if isinstance(value, int | float):
            family.add_metric([label], value)
