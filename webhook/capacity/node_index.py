"""Finds the nodes that match a selector, as bit sets, without a loop over the nodes.

`NodeIndex.of(classes)` makes the tables. For another process (`as_data`, `from_data`) they are JSON
texts inside the JSON, and each is decoded only when a pod uses that label.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from webhook.capacity import node_sets
from webhook.capacity.node_numbers import Numbers, Total, steps, texts
from webhook.capacity.node_sets import NOTHING, NodeSet, Table
from webhook.core.settings import Taint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from webhook.capacity.nodes import NodeClass

    Steps = list[tuple[int, str]]  # amount -> nodes with at least so much, ascending

ANY = "*"  # in place of a former value: any value; no label can have this one
# Labels with another value on each node: a new node never has the value of another node.
OWN_NAMES = frozenset({"kubernetes.io/hostname"})
_SETS = ("open_labels", "open_gpus", "may_come", "grows")


@dataclass(frozen=True)
class NodeIndex:
    """The nodes of a cluster, each a number.

    Nodes that may be added have one number for each class.
    """

    size: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)  # key -> a table, as JSON
    names: str = "{}"  # a table, as JSON
    taints: tuple[tuple[tuple[Taint, ...], str], ...] = ()
    allocatable: Mapping[str, Steps] = field(default_factory=dict)
    free: Mapping[str, Steps] = field(default_factory=dict)
    totals: Mapping[str, Total] = field(default_factory=dict)
    gpu_labels: frozenset[str] = frozenset()  # keys of labels on nodes with GPUs
    former: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # key -> a table
    open_labels: NodeSet = 0  # nodes that may get labels which they lack
    open_gpus: NodeSet = 0  # nodes that may get GPUs of a resource of which they show none
    may_come: NodeSet = 0  # nodes that may not exist now
    grows: NodeSet = 0  # nodes that autoscalers may add in any number
    # Nodes that an autoscaler may add and that are only partly known, as text.
    hinted: tuple[tuple[str, NodeSet], ...] = ()
    # Names that may stand for a GPU -> the nodes that have them, even with the amount 0: a kubelet
    # runs a pod with resources that its node does not name at all.
    offered: Mapping[str, NodeSet] = field(default_factory=dict)
    loads: Callable[[str], Any] = json.loads

    @cached_property
    def everything(self) -> NodeSet:
        """All nodes."""
        return (1 << self.size) - 1

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {}

    @cached_property
    def as_shown(self) -> NodeIndex:
        """The same nodes with only the labels that they show now."""
        return replace(self, former={}, open_labels=0)

    def label(self, key: str) -> Table:
        """The nodes by their value of this label."""
        table = self._tables.get(key)
        if table is None:
            text = self.labels.get(key)
            if text is None:
                return NOTHING
            table = self._tables[key] = Table(self.loads(text))
        return table

    def may_be(self, key: str, values: Collection[str] | None = None) -> NodeSet:
        """The nodes whose label may still get one of these values, or any value.

        The own name of an existing node never belongs to another node.
        """
        former, label = self._former.get(key, NOTHING), self.label(key)
        if key in OWN_NAMES and values and all(label.having(value) for value in values):
            return 0
        found = self.open_labels & ~(label.present | former.present)
        return found | (former.present if values is None else former.having_any((ANY, *values)))

    @cached_property
    def _former(self) -> dict[str, Table]:
        return {key: Table(texts) for key, texts in self.former.items()}

    @cached_property
    def only_hinted(self) -> NodeSet:
        """Nodes that an autoscaler may add and that are only partly known."""
        found = 0
        for _, nodes in self.hinted:
            found |= nodes
        return found

    @cached_property
    def _names(self) -> Table:
        return Table(self.loads(self.names))

    def named(self, name: str) -> NodeSet:
        """The node of this name."""
        return self._names.having(name)

    def all_names(self) -> dict[int, str]:
        """The names of all existing nodes, by their numbers."""
        names = self._names
        return {number: name for name in names for number in node_sets.numbers(names.having(name))}

    @cached_property
    def taint_sets(self) -> tuple[tuple[tuple[Taint, ...], NodeSet], ...]:
        """The nodes by their taints."""
        return tuple((taints, node_sets.decode(text)) for taints, text in self.taints)

    @cached_property
    def tainted(self) -> Mapping[tuple[str, str, int], Table]:
        """The nodes by key and effect of their taints.

        See by_key_and_effect for the last number.
        """
        return by_key_and_effect(self.taints)

    def at_least(self, resource: str, amount: int) -> NodeSet:
        """The nodes that can give so much to one pod when they are empty and healthy."""
        return self._step("allocatable", resource, amount) | self._unknown(resource)

    def free_at_least(self, resource: str, amount: int) -> NodeSet:
        """The nodes that can give so much to one pod now."""
        return self._step("free", resource, amount) | self._unknown(resource) & ~self.may_come

    def _unknown(self, resource: str) -> NodeSet:
        """The nodes that show none of the resource, but may get any amount of it.

        Nodes that an autoscaler may add and that have it with 0 are known to get none.
        """
        if not self.open_gpus:
            return 0
        known = self.only_hinted and self.only_hinted & self.offers(resource)
        return self.open_gpus & ~known & ~self._step("allocatable", resource, 1)

    def may_add(self, resource: str, amount: int) -> NodeSet:
        """Sources of more nodes with so much, or with GPUs that no node shows yet.

        If new nodes are known to have no more than existing ones, they only need to have the
        resource.
        """
        as_there = self.offers(resource) & ~self._step("allocatable", resource, 1)
        return self.grows & (self.at_least(resource, amount) | as_there) | self._unknown(resource)

    def offers(self, resource: str) -> NodeSet:
        """The nodes that have this resource, with any amount."""
        return self.offered.get(resource, 0)

    @cached_property
    def _decoded(self) -> dict[tuple[str, str, int], NodeSet]:
        return {}

    def _step(self, table: str, resource: str, amount: int) -> NodeSet:
        if amount <= 0:
            return self.everything
        steps: Steps = getattr(self, table).get(resource, [])
        position = bisect_left(steps, amount, key=itemgetter(0))
        if position == len(steps):
            return 0
        key = (table, resource, position)
        if key not in self._decoded:
            self._decoded[key] = node_sets.decode(steps[position][1])
        return self._decoded[key]

    @cached_property
    def with_gpus(self) -> NodeSet:
        """The nodes that offer GPUs under any name."""
        found = 0
        for resource in self.allocatable:
            found |= self._step("allocatable", resource, 1)
        return found

    @staticmethod
    def count(nodes: NodeSet) -> int:
        """How many nodes are in the set."""
        return nodes.bit_count()

    @classmethod
    def of(
        cls, classes: Iterable[NodeClass], dumps: Callable[[Any], str] = json.dumps
    ) -> NodeIndex:
        """The index of these classes; `dumps` may be a faster json.dumps."""
        numbers = Numbers()
        for each in classes:
            numbers.add(each)
        return cls(
            size=numbers.size,
            labels={key: dumps(texts(table)) for key, table in numbers.labels.items()},
            names=dumps(texts(numbers.names)),
            taints=tuple((t, node_sets.encode(found)) for t, found in numbers.taints.items()),
            allocatable={r: steps(amounts) for r, amounts in numbers.allocatable.items()},
            free={r: steps(amounts) for r, amounts in numbers.free.items()},
            totals={r: numbers.total(r) for r in numbers.allocatable},
            gpu_labels=frozenset(numbers.gpu_labels),
            former={key: texts(table) for key, table in numbers.former.items()},
            open_labels=node_sets.of(numbers.open_labels),
            open_gpus=node_sets.of(numbers.open_gpus),
            may_come=node_sets.of(numbers.may_come),
            grows=node_sets.of(numbers.grows),
            hinted=tuple((words, node_sets.of(found)) for words, found in numbers.hints.items()),
            offered={r: node_sets.of(found) for r, found in numbers.offered.items()},
        )

    def as_data(self) -> dict[str, Any]:
        """The index as values for JSON, for another process."""
        return {
            "size": self.size,
            "labels": dict(self.labels),
            "names": self.names,
            "taints": [
                [[[t.key, t.value, t.effect] for t in taints], text] for taints, text in self.taints
            ],
            "allocatable": dict(self.allocatable),
            "free": dict(self.free),
            "totals": {
                name: [each.nodes, each.total, each.largest, each.held]
                for name, each in self.totals.items()
            },
            "gpuLabels": sorted(self.gpu_labels),
            "former": dict(self.former),
            **{name: f"{getattr(self, name):x}" for name in _SETS},
            "hinted": [[words, f"{nodes:x}"] for words, nodes in self.hinted],
            "offered": {name: f"{nodes:x}" for name, nodes in self.offered.items()},
        }

    @classmethod
    def from_data(
        cls, data: Mapping[str, Any], loads: Callable[[str], Any] = json.loads
    ) -> NodeIndex:
        """The index from `as_data`; `loads` may be a faster json.loads."""
        return cls(
            size=data["size"],
            labels=data["labels"],
            names=data["names"],
            taints=tuple(
                (tuple(Taint(*each) for each in taints), text) for taints, text in data["taints"]
            ),
            allocatable=_steps_of(data["allocatable"]),
            free=_steps_of(data["free"]),
            totals={name: Total(*numbers) for name, numbers in data["totals"].items()},
            gpu_labels=frozenset(data["gpuLabels"]),
            former=data["former"],
            **{name: int(data[name], 16) for name in _SETS},
            hinted=tuple((words, int(text, 16)) for words, text in data["hinted"]),
            offered={name: int(text, 16) for name, text in data["offered"].items()},
            loads=loads,
        )


def _steps_of(data: Mapping[str, Any]) -> dict[str, Steps]:
    return {name: [(amount, text) for amount, text in listed] for name, listed in data.items()}


def by_key_and_effect(
    taint_sets: Iterable[tuple[tuple[Taint, ...], str]],
) -> dict[tuple[str, str, int], Table]:
    """The nodes with a taint, by its key and effect, and then by its value.

    A cluster may have a taint for each of a thousand teams, but then with the same key. So the
    nodes that keep a pod away are those with the key, without those with a tolerated value. Each
    set of taints comes with its encoded set of nodes.

    The API server allows only one taint of a key and effect on a node, but a file may have two: the
    second is in a table of its own, so that each node is in a table only once.
    """
    tables: dict[tuple[str, str, int], dict[str, list[str]]] = defaultdict(dict)
    for taints, text in taint_sets:
        for position, taint in enumerate(taints):
            alike = [(each.key, each.effect) for each in taints[:position]]
            key = (taint.key, taint.effect, alike.count((taint.key, taint.effect)))
            tables[key].setdefault(taint.value, []).append(text)
    return {
        key: Table({value: ",".join(texts) for value, texts in table.items()})
        for key, table in tables.items()
    }
