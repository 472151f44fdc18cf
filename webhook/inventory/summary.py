"""Summarizes the GPUs of a cluster for display: objects of the API server in, table rows out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.inventory import autoscalers
from webhook.inventory.kinds import add, kinds
from webhook.inventory.object_facts import amounts
from webhook.inventory.store import Store
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.capacity.nodes import NodeClass
    from webhook.core.settings import Pool, Settings, Taint
    from webhook.inventory.object_facts import Audit


class Amount(NamedTuple):
    """GPUs of one resource on some nodes. `used` and `free` are None where pods are not known."""

    total: int  # that the nodes have
    allocatable: int  # of these, what pods can get: less than all where some are unhealthy
    used: int | None
    free: int | None
    largest: int  # allocatable on one node


@dataclass(frozen=True, slots=True)
class Row:
    """Nodes that are alike."""

    model: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    nodes: tuple[str, ...]
    count: int
    gpus: Mapping[str, Amount]
    pool: str = ""  # the pool of the settings that declares these nodes
    joining: bool = False  # they may still get GPUs and labels

    @property
    def has_gpus(self) -> bool:
        return any(amount.total > 0 for amount in self.gpus.values())


class Summary:
    """Takes all objects first, as the API server returns them; then its other members are used."""

    def __init__(self, settings: Settings, audit: Audit, now: float = inf) -> None:
        """The age of a node is computed at `now`."""
        self._now = now
        self.settings = settings
        self.pods_known = False  # whether all pods were added; the caller sets it
        self._store = Store(settings.capacity)
        self.kinds = kinds(self._store, settings, audit)
        self._capacity: dict[str, dict[str, int]] = {}

    def add(self, kind: str, raw: dict[str, Any], position: int) -> None:
        """Take one object. Objects that the inventory does not use are ignored."""
        add(self.kinds, kind, raw, position, self._now)
        if kind == "Node":
            name = str(as_map(raw.get("metadata")).get("name", ""))
            capacity = as_map(raw.get("status")).get("capacity")
            self._capacity[name] = dict(amounts(capacity, self.settings))

    @property
    def exposed_pods(self) -> int:
        """How many pods see GPUs that they did not request."""
        return self._store.pods.exposed_pods

    @property
    def exposures(self) -> dict[str, int]:
        """How many pods see such GPUs, by cause."""
        return {by: number for by, number in self._store.pods.exposed.items() if number}

    @property
    def served_by_dra(self) -> frozenset[str]:
        """Resource names that a DeviceClass serves."""
        return self._store.served_by_dra

    def rows(self) -> list[Row]:
        """All classes of nodes, by model, and the declared pools at the end."""
        rows = [self._row(each) for each in self._classes if not each.may_come]
        rows.sort(key=_by_model)
        return [*rows, *(self._declared(pool) for pool in self.settings.capacity.pools)]

    @property
    def joining(self) -> int:
        """How many nodes may still get GPUs and labels that they lack."""
        return sum(each.count for each in self._classes if each.open_gpus and not each.may_come)

    def may_add(self) -> list[str]:
        """The nodes that autoscalers can add, as text; each shape once."""
        may_come = [each for each in self._classes if each.may_come]
        return [autoscalers.in_words(each) for each in may_come if not (each.hint and each.gpus)]

    @property
    def _classes(self) -> tuple[NodeClass, ...]:
        return self._store.classes(self._now)

    def _row(self, each: NodeClass) -> Row:
        nothing: dict[str, int] = {}
        capacities = [self._capacity.get(name, nothing) for name in each.nodes]
        held = [self._store.pods.held.get(name, nothing) for name in each.nodes]
        names = sorted({*each.gpus, *(name for capacity in capacities for name in capacity)})
        return Row(
            each.labels.get(self.settings.models.key, ""),
            each.labels,
            each.taints,
            each.nodes,
            each.count,
            {name: self._amount(name, each.gpus.get(name, 0), capacities, held) for name in names},
            joining=each.open_gpus,
        )

    def _amount(
        self,
        name: str,
        allocatable: int,
        capacities: list[dict[str, int]],
        held: list[dict[str, int]],
    ) -> Amount:
        used = [each.get(name, 0) for each in held]
        return Amount(
            sum(each.get(name, allocatable) for each in capacities),
            allocatable * len(capacities),
            sum(used) if self.pods_known else None,
            sum(max(allocatable - each, 0) for each in used) if self.pods_known else None,
            allocatable,
        )

    def _declared(self, pool: Pool) -> Row:
        """Nodes of a declared pool: they do not exist yet, so nothing on them is in use."""
        labels = dict(pool.labels)
        gpus = {
            name: Amount(amount * pool.nodes, amount * pool.nodes, None, None, amount)
            for name, amount in sorted(pool.gpus.items())
        }
        model = labels.get(self.settings.models.key, "")
        return Row(model, labels, pool.taints, (), pool.nodes, gpus, pool.name)


def _by_model(row: Row) -> tuple[object, ...]:
    """Sorts by model, then the most GPUs first; nodes without a model label are last."""
    total = sum(amount.allocatable for amount in row.gpus.values())
    return not row.model, row.model, -total, row.nodes


def merged(rows: Iterable[Row]) -> list[Row]:
    """The rows with GPUs; rows that look the same in a short table are merged into one."""
    alike: dict[object, list[Row]] = {}
    for row in rows:
        if row.has_gpus:
            each = tuple((name, amount.largest) for name, amount in row.gpus.items())
            alike.setdefault((row.pool, row.model, row.taints, each), []).append(row)
    found = [_sum(members) for members in alike.values()]
    return sorted(found, key=lambda row: (bool(row.pool), _by_model(row)))


def _sum(members: list[Row]) -> Row:
    first = members[0]
    return Row(
        first.model,
        {},
        first.taints,
        tuple(name for row in members for name in row.nodes),
        sum(row.count for row in members),
        totals(members),
        first.pool,
    )


def totals(rows: Iterable[Row]) -> dict[str, Amount]:
    """The sum of these rows, by resource name."""
    found: dict[str, list[Amount]] = {}
    for row in rows:
        for name, amount in row.gpus.items():
            found.setdefault(name, []).append(amount)
    return {name: _added_up(amounts) for name, amounts in sorted(found.items())}


def _added_up(amounts: list[Amount]) -> Amount:
    used = [each.used for each in amounts if each.used is not None]
    free = [each.free for each in amounts if each.free is not None]
    return Amount(
        sum(each.total for each in amounts),
        sum(each.allocatable for each in amounts),
        sum(used) if used else None,
        sum(free) if free else None,
        max(each.largest for each in amounts),
    )
