"""What is known of the cluster: its nodes in classes, and facts drawn from them once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from webhook.core.node_index import NodeIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.core.settings import Models, Taint

# GPU Feature Discovery, kubelets and clouds give every node its own value of some labels.
_ALWAYS_UNIQUE = frozenset({"kubernetes.io/hostname"})
_MANY = 32  # values of one label: below this, a label is worth a class of its own


@dataclass(frozen=True, slots=True)
class Node:
    """One node; `gpus` is allocatable by resource name, `held` what pods on it asked for."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    gpus: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that are alike in labels (but those unique to a node), taints and GPU amounts.

    `held` and `unique` (labels) are per node, in the order of `nodes`; both may be left out.
    `declared` nodes are of a pool in the settings: none of them may be there now.
    """

    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    gpus: Mapping[str, int] = field(default_factory=dict)  # allocatable, by resource name
    nodes: tuple[str, ...] = ()
    held: tuple[Mapping[str, int], ...] = ()
    unique: tuple[Mapping[str, str], ...] = ()
    declared: int = 0

    @property
    def has_gpus(self) -> bool:
        return any(amount > 0 for amount in self.gpus.values())

    @property
    def count(self) -> int:
        """How many nodes; one without a name is one too."""
        return self.declared or len(self.nodes) or 1

    def held_of(self, resource: str) -> list[int]:
        """What pods hold of this resource on each node."""
        if not self.held:
            return [0] * max(len(self.nodes), 1)
        return [each.get(resource, 0) for each in self.held]


def group(nodes: Iterable[Node]) -> tuple[NodeClass, ...]:
    """The classes of these nodes, always in the same order."""
    nodes = sorted(nodes, key=lambda each: each.name)
    unique = unique_labels(nodes)
    classes: dict[object, list[Node]] = {}
    for node in nodes:
        labels = tuple(sorted(item for item in node.labels.items() if item[0] not in unique))
        gpus = tuple(sorted(node.gpus.items()))
        classes.setdefault((labels, node.taints, gpus), []).append(node)
    return tuple(_class(members, unique) for members in classes.values())


def _class(members: Sequence[Node], unique: frozenset[str]) -> NodeClass:
    first = members[0]
    return NodeClass(
        {key: value for key, value in sorted(first.labels.items()) if key not in unique},
        first.taints,
        dict(sorted(first.gpus.items())),
        tuple(node.name for node in members),
        tuple(dict(node.held) for node in members) if any(n.held for n in members) else (),
        tuple({k: v for k, v in node.labels.items() if k in unique} for node in members),
    )


def unique_labels(nodes: Sequence[Node]) -> frozenset[str]:
    """Label keys whose value nearly every node has for itself: they would make classes of one."""
    carriers: dict[str, int] = {}
    values: dict[str, set[str]] = {}
    for node in nodes:
        for key, value in node.labels.items():
            carriers[key] = carriers.get(key, 0) + 1
            values.setdefault(key, set()).add(value)
    many = {
        key
        for key, found in values.items()
        if len(found) > _MANY and len(found) * 2 > carriers[key]
    }
    return frozenset(many | (_ALWAYS_UNIQUE & values.keys()))


@dataclass(frozen=True)
class Inventory:
    """A snapshot of the cluster. Questions are answered from sets that are made once."""

    classes: tuple[NodeClass, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # name -> labels
    runtime_classes: frozenset[str] = frozenset()
    served_by_dra: frozenset[str] = frozenset()  # resource names that a device class serves
    whitelists: Mapping[str, str] = field(default_factory=dict)  # of tolerations, by namespace
    published: NodeIndex | None = None  # made elsewhere: the classes may then be left out

    @cached_property
    def index(self) -> NodeIndex:
        """Which nodes have what."""
        return self.published if self.published is not None else NodeIndex.of(self.classes)

    def values(self, label: str) -> frozenset[str]:
        """The values that any node carries under this label."""
        known = self._values.get(label)
        if known is None:
            known = self._values[label] = frozenset(self.index.label(label))
        return known

    @cached_property
    def _values(self) -> dict[str, frozenset[str]]:
        return {}

    @property
    def gpu_labels(self) -> frozenset[str]:
        """The label keys of nodes that offer GPUs."""
        return self.index.gpu_labels

    @property
    def has_gpus(self) -> bool:
        return bool(self.index.totals)

    @cached_property
    def taints(self) -> frozenset[Taint]:
        """Taints that any node carries."""
        return frozenset(taint for taints, _ in self.index.taints for taint in taints)

    @cached_property
    def gpu_taints(self) -> tuple[Taint, ...]:
        """Taints of nodes that offer GPUs, sorted."""
        gpus = self.index.with_gpus
        found = {t for taints, nodes in self.index.taint_sets if nodes & gpus for t in taints}
        return tuple(sorted(found, key=str))

    @cached_property
    def models(self) -> dict[tuple[Models, str], tuple[str, ...]]:
        """Remembers which real values stand for a legacy one, by settings and legacy value."""
        return {}
