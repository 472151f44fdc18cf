"""The inventory: the nodes of the cluster in classes, and facts computed from them once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from webhook.capacity.node_index import OWN_NAMES, NodeIndex

if TYPE_CHECKING:
    from webhook.core.settings import Taint

Former = Mapping[str, tuple[str, ...]]
# GPU Feature Discovery, kubelets and clouds set some labels to another value on each node.
_MANY = 32  # values of one label: with fewer, the label is part of the class


@dataclass(frozen=True, slots=True)
class Node:
    """One node; `gpus` is allocatable by resource name, `held` the GPUs that pods on it requested.

    `others` are names that the settings do not count as GPUs, but that may stand for a GPU or a
    share. Devices and labels may be missing for a while: see NodeClass for the other fields.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    gpus: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    former: Former = field(default_factory=dict)
    joining: bool = False
    created: float = 0.0  # seconds of the epoch; 0.0 if it is not known
    others: tuple[str, ...] = ()
    owner: str = ""  # the owner of its machine, from Cluster API: MachineSet/namespace/name

    @property
    def counted(self) -> Mapping[str, int]:
        """The largest amount of each resource that the node has shown."""
        return {**self.gpus, **self.most} if self.most else self.gpus


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes with the same labels (except those unique to a node), taints and resources.

    `held`, `unique` (labels) and `former` have one entry for each of `nodes`; each may be omitted.
    `most` has the largest amounts that the nodes have shown, if `gpus` has less. `former` has label
    values that a node had a short while ago or may get; ANY stands for any value.

    With `open` labels, a missing label may have any value; with open GPUs, a missing resource may
    have any amount. This holds for nodes that have just joined, and for nodes that may be added.
    The latter may not exist now, and have one number for each class: `declared` nodes of a pool in
    the settings, `removed` nodes that are remembered, and nodes that an autoscaler may add in any
    number: `grows` if their shape is certain, otherwise with a `hint`, which is the text about the
    autoscaler.
    """

    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    gpus: Mapping[str, int] = field(default_factory=dict)  # allocatable, by resource name
    nodes: tuple[str, ...] = ()
    held: tuple[Mapping[str, int], ...] = ()
    unique: tuple[Mapping[str, str], ...] = ()
    declared: int = 0
    most: Mapping[str, int] = field(default_factory=dict)
    former: tuple[Former, ...] = ()
    open_labels: bool = False
    open_gpus: bool = False
    removed: int = 0
    grows: bool = False
    hint: str = ""
    others: tuple[str, ...] = ()

    @property
    def counted(self) -> Mapping[str, int]:
        """The largest amount of each resource that the nodes have shown."""
        return {**self.gpus, **self.most} if self.most else self.gpus

    @property
    def has_gpus(self) -> bool:
        return any(amount > 0 for amount in self.counted.values())

    @property
    def may_come(self) -> bool:
        """Whether these nodes may not exist now."""
        return bool(self.declared or self.removed or self.may_grow)

    @property
    def may_grow(self) -> bool:
        """Whether there may be any number of them."""
        return self.grows or bool(self.hint)

    @property
    def count(self) -> int:
        """The number of existing nodes; a node without a name counts, too."""
        return 0 if self.removed or self.may_grow else self.declared or len(self.nodes) or 1

    def held_of(self, resource: str) -> list[int]:
        """The amount of this resource that pods hold on each node."""
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
        amounts = tuple(tuple(sorted(each.items())) for each in (node.gpus, node.most))
        kind = (labels, node.taints, amounts, node.others, node.joining)
        classes.setdefault(kind, []).append(node)
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
        most=dict(sorted(first.most.items())),
        former=tuple(node.former for node in members) if any(n.former for n in members) else (),
        open_labels=first.joining,
        open_gpus=first.joining,
        others=first.others,
    )


def unique_labels(nodes: Sequence[Node]) -> frozenset[str]:
    """Label keys with another value on nearly every node: each would make a class of its own."""
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
    return frozenset(many | (OWN_NAMES & values.keys()))


@dataclass(frozen=True)
class Inventory:
    """A snapshot of the cluster. Answers come from sets that are computed once."""

    classes: tuple[NodeClass, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # name -> labels
    runtime_classes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # nodeSelector
    served_by_dra: frozenset[str] = frozenset()  # resource names that a device class serves
    whitelists: Mapping[str, str] = field(default_factory=dict)  # of tolerations, by namespace
    node_selectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of namespaces
    watched: bool = False  # `whitelists` has every known namespace; a file may omit some
    # Of runtime classes, as they are written; pods get them as in `runtime_classes`.
    class_tolerations: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    class_overheads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of each pod
    refused: Sequence[str] = ()  # kinds that may mean capacity, and that RBAC forbids to list
    published: NodeIndex | None = None  # computed elsewhere: the classes may then be omitted

    @cached_property
    def index(self) -> NodeIndex:
        """The sets of nodes."""
        return self.published if self.published is not None else NodeIndex.of(self.classes)

    def values(self, label: str) -> frozenset[str]:
        """The values of this label on any node."""
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

    def knows(self, namespace: str) -> bool:
        """Whether its labels and annotations are known.

        A file without namespaces means that it has none.
        """
        return not self.watched or namespace in self.whitelists

    def is_new(self, namespace: str) -> bool:
        """Whether the watcher lists namespaces, but has not received this one yet."""
        return bool(self.whitelists) and not self.knows(namespace)

    def whitelist(self, namespace: str) -> str | None:
        """The namespace's whitelist of tolerations, empty if it has none; None if unknown."""
        return self.whitelists.get(namespace, "") if self.knows(namespace) else None

    def node_selector(self, namespace: str) -> Mapping[str, str] | None:
        """The labels that PodNodeSelector adds to pods of the namespace, if it is on.

        None if unknown.
        """
        return self.node_selectors.get(namespace, {}) if self.knows(namespace) else None

    @cached_property
    def has_gpus(self) -> bool:
        """Whether a node has any, or one with GPUs is certain to be added on request."""
        index = self.index
        certain_to_come = index.grows & ~index.only_hinted
        return bool(certain_to_come) or any(total.nodes for total in index.totals.values())

    @cached_property
    def taints(self) -> frozenset[Taint]:
        """Taints on any node."""
        return frozenset(taint for taints, _ in self.index.taints for taint in taints)

    @cached_property
    def gpu_taints(self) -> tuple[Taint, ...]:
        """Taints of nodes that offer GPUs or may get some, sorted.

        Also of nodes that do not exist now.
        """
        gpus = self.index.with_gpus | self.index.open_gpus
        found = {t for taints, nodes in self.index.taint_sets if nodes & gpus for t in taints}
        return tuple(sorted(found, key=str))

    @cached_property
    def gpu_taints_by_key(self) -> Mapping[tuple[str, str], list[Taint]]:
        """The same by key and effect."""
        found: dict[tuple[str, str], list[Taint]] = {}
        for each in self.gpu_taints:
            found.setdefault((each.key, each.effect), []).append(each)
        return found

    @cached_property
    def lasting_gpu_taints(self) -> tuple[Taint, ...]:
        """Those of them that keep a pod away and are not temporary."""
        return tuple(
            each
            for each in self.gpu_taints
            if not each.goes_away and each.effect != "PreferNoSchedule"
        )

    @cached_property
    def remembered(self) -> dict[Any, Any]:
        """Results computed from this inventory: at most one entry for each of the settings."""
        return {}
