"""Keeps the facts about the cluster: takes events, returns the inventory.

Pure; callers pass the time. Events of each kind of object are put, drop, or a list between `begin`
and `end`; objects that are not in the list are removed. The result is the same for each legal order
of events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from webhook.capacity.nodes import Inventory, Node, NodeClass, group
from webhook.core.settings import Capacity
from webhook.inventory import autoscalers, cluster_autoscaler, karpenter
from webhook.inventory.cluster_autoscaler import Group, shown
from webhook.inventory.instance_types import known_types
from webhook.inventory.karpenter import NodePool
from webhook.inventory.kind_facts import Data, Hints, KindFacts
from webhook.inventory.lost_gpus import LostGpus
from webhook.inventory.new_nodes import joining, with_unknown_slices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.inventory.object_facts import Amounts, ClassFacts, NamespaceFacts, PodFacts

_CLASSES: TypeAdapter[Data[tuple[str, ...]]] = TypeAdapter(Data[tuple[str, ...]])
_POOLS: TypeAdapter[Data[NodePool]] = TypeAdapter(Data[NodePool])
_GROUPS: TypeAdapter[Data[tuple[Group, ...]]] = TypeAdapter(Data[tuple[Group, ...]])
_NAMES: TypeAdapter[Data[str]] = TypeAdapter(Data[str])

_MINUTE, _HOUR = 60.0, 3600.0
_CAPACITY = Capacity()


class Nodes(KindFacts[Node]):
    """Nodes, those that have just joined, and what they and removed nodes had a while ago."""

    def __init__(self, capacity: Capacity) -> None:
        super().__init__()
        self.memory = LostGpus(capacity.remembered_hours * _HOUR)
        self._joining_seconds = capacity.joining_minutes * _MINUTE
        self._young: dict[str, float] = {}  # by name: until when

    def _changed(self, key: str, before: Node | None, after: Node | None, now: float) -> None:
        self.memory.changed(before, after, now)
        self._young.pop(key, None)
        if after is not None:
            self._note_age(key, after, now)

    def _note_age(self, key: str, node: Node, now: float) -> None:
        until = node.created + self._joining_seconds
        if self._joining_seconds and node.created and until > now:
            self._young[key] = until

    def forget(self, now: float) -> None:
        """Forget what is too old, and let nodes age; there is no event for either."""
        old = [name for name, until in self._young.items() if until <= now]
        for name in old:
            del self._young[name]
        if self.memory.forget(now) or old:
            self.version += 1

    def end(self, now: float) -> None:
        """End of the list: remove every node that it did not contain."""
        super().end(now)
        self.memory.keep_only(self.facts)

    def recall(self, nodes: Iterable[Node], memory: Any) -> None:
        """Start with what an earlier process knew; the first list then brings it up to date."""
        self.memory.recall(memory)
        for node in map(self.memory.as_shown, nodes):
            self.facts[node.name] = node
            self._note_age(node.name, node, 0.0)
        self.version += 1

    def counted(self) -> Iterator[Node]:
        """The nodes with what they have lost."""
        nodes = [with_unknown_slices(self.memory.counted(node)) for node in self.facts.values()]
        if not self._young:
            yield from nodes
            return
        young = [node for node in nodes if node.name in self._young]
        settled = (node for node in nodes if node.name not in self._young)
        joins = joining(young, settled, self.memory.removed(), self.memory.broken)
        for node in nodes:
            yield replace(node, joining=True) if node.name in joins else node


class Pods(KindFacts["PodFacts"]):
    """Pods, the GPUs that they hold on each node, and which pods see GPUs without a request."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, dict[str, int]] = {}  # by node
        self.held_version = 0
        self.exposed: Counter[str] = Counter()  # by cause
        self.exposed_in: Counter[str] = Counter()  # by namespace
        self.exposed_pods = 0
        self._newly_exposed: list[tuple[str, tuple[str, ...]]] = []

    def _changed(
        self, key: str, before: PodFacts | None, after: PodFacts | None, now: float
    ) -> None:
        del now
        was, is_now = (each.exposed if each is not None else () for each in (before, after))
        if before is not None:
            self._hold(before.node, before.gpus, -1)
        if after is not None:
            self._hold(after.node, after.gpus, +1)
        if was != is_now:
            self._expose(key, was, is_now)

    def _expose(self, key: str, was: tuple[str, ...], is_now: tuple[str, ...]) -> None:
        self.exposed.subtract(was)
        self.exposed.update(is_now)
        change = bool(is_now) - bool(was)
        self.exposed_pods += change
        namespace = key.partition("/")[0]
        self.exposed_in[namespace] += change
        if not self.exposed_in[namespace]:
            del self.exposed_in[namespace]
        if is_now:
            self._newly_exposed.append((key, is_now))

    def newly_exposed(self) -> list[tuple[str, tuple[str, ...]]]:
        """Pods that were found since the last call."""
        found, self._newly_exposed = self._newly_exposed, []
        return found

    def _hold(self, node: str, gpus: Amounts, sign: int) -> None:
        if not gpus:
            return
        self.held_version += 1
        held = self.held.setdefault(node, {})
        for resource, amount in gpus:
            left = held.get(resource, 0) + sign * amount
            if left:
                held[resource] = left
            else:
                held.pop(resource, None)
        if not held:
            del self.held[node]


class Store:
    """All that is known about the cluster."""

    def __init__(self, capacity: Capacity = _CAPACITY) -> None:
        self.nodes = Nodes(capacity)
        self.pods = Pods()
        self.namespaces: KindFacts[NamespaceFacts] = KindFacts()
        self.runtime_classes: KindFacts[ClassFacts] = KindFacts()
        seconds = capacity.remembered_hours * _HOUR
        self.device_classes = Hints(seconds, _CLASSES)
        self.node_pools = Hints(seconds, _POOLS)
        self.node_groups = Hints(seconds, _GROUPS)
        self.unlisted = Hints(seconds, _NAMES)  # autoscalers without lists
        self.hints: Mapping[str, Hints[Any]] = {
            "deviceclasses": self.device_classes,
            "nodepools": self.node_pools,
            "configmaps": self.node_groups,
            "autoscalers": self.unlisted,
        }
        self._classes: tuple[NodeClass, ...] = ()
        self._grouped: tuple[int, ...] = ()

    def forget(self, now: float) -> None:
        """Forget what was lost or deleted too long ago."""
        self.nodes.forget(now)
        for each in self.hints.values():
            each.forget(now)

    def classes(self, now: float) -> tuple[NodeClass, ...]:
        """The nodes in classes, without the GPUs that pods hold; computed when nodes change.

        Removed nodes and nodes that may be added are at the end.
        """
        self.forget(now)
        if self._grouped != self._versions:
            nodes = self.counted(now)
            self._classes = self._with_others(group(nodes), nodes, now)
            self._grouped = self._versions
        return self._classes

    @property
    def _versions(self) -> tuple[int, ...]:
        """Changes with everything that the classes depend on."""
        kinds = (self.nodes, self.node_pools, self.node_groups, self.unlisted)
        return tuple(each.version for each in kinds)

    def _with_others(
        self, there: tuple[NodeClass, ...], nodes: list[Node], now: float
    ) -> tuple[NodeClass, ...]:
        """The existing nodes, the removed nodes, and the nodes that autoscalers may add."""
        known = (*there, *self.nodes.memory.removed())
        types = known_types(known)
        pools = sorted(self.node_pools.counted(), key=lambda each: each.name)
        statuses = self.node_groups.counted()
        listed_groups = [each for groups in statuses for each in groups]
        now_shown = shown(listed_groups, nodes) if listed_groups else set()
        ever_shown = self.nodes.memory.groups(now_shown, now)
        grown = (each.classes(ever_shown) for each in listed_groups if each.grows)
        return (
            *known,
            *(each for pool in pools for each in pool.classes(types)),
            *(each for classes in grown for each in classes),
            *(() if all(statuses) else (cluster_autoscaler.UNKNOWN,)),
            *self._of_unlisted(there, now),
        )

    def _of_unlisted(self, there: Iterable[NodeClass], now: float) -> Iterator[NodeClass]:
        """What autoscalers may add whose nodes are there, or were a short while ago."""
        self.unlisted.begin()
        for name in autoscalers.unlisted(there):
            self.unlisted.put(name, name, now)
        self.unlisted.end(now)
        for name in sorted(self.unlisted.counted()):
            yield NodeClass({}, open_labels=True, open_gpus=True, hint=name)

    def holding(self, now: float) -> tuple[NodeClass, ...]:
        """The classes with the GPUs that pods hold, but without names, labels and taints."""
        nothing: Mapping[str, int] = {}
        return tuple(
            NodeClass(
                {},
                gpus=each.gpus,
                nodes=("",) * len(each.nodes),  # the names take more memory than all the rest
                held=tuple(self.pods.held.get(name, nothing) for name in each.nodes),
                most=each.most,
                removed=each.removed,
                declared=each.declared,
                grows=each.grows,
                hint=each.hint,
            )
            for each in self.classes(now)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Changes with everything except what pods hold."""
        kinds: list[KindFacts[Any]] = [self.nodes, self.namespaces, self.runtime_classes]
        kinds += self.hints.values()
        return tuple(each.version for each in kinds)

    def inventory(self, now: float) -> Inventory:
        """A snapshot that shares nothing with the store; for small clusters and tests."""
        nodes = [
            replace(node, held=dict(self.pods.held.get(node.name, {})))
            for node in self.counted(now)
        ]
        return Inventory(self._with_others(group(nodes), nodes, now), **self.lasting())

    def lasting(self) -> dict[str, Any]:
        """What is known besides nodes and pods, by the names of the fields of an Inventory."""
        spaces, classes = self.namespaces.facts.items(), self.runtime_classes.facts.items()
        return {
            "namespaces": {name: each.labels for name, each in spaces if each.labels},
            "whitelists": {name: each.whitelist for name, each in spaces},
            "node_selectors": {n: each.node_selector for n, each in spaces if each.node_selector},
            "runtime_classes": {name: each.node_selector for name, each in classes},
            "class_tolerations": {n: each.tolerations for n, each in classes if each.tolerations},
            "class_overheads": {name: each.overhead for name, each in classes if each.overhead},
            "served_by_dra": self.served_by_dra,
            "refused": [name for name, each in self.hints.items() if each.refused],
        }

    def as_data(self) -> dict[str, Any]:
        """What the next process of the watcher starts with, besides the nodes."""
        hints = {name: each.as_data() for name, each in self.hints.items()}
        return {"nodes": self.nodes.memory.as_data(), "hints": hints}

    def recall(self, nodes: Iterable[Node], data: Mapping[str, Any]) -> None:
        """Start with these nodes and with what `as_data` returned, after JSON."""
        self.nodes.recall(nodes, data["nodes"])
        for name, each in self.hints.items():
            each.recall(data["hints"][name])

    def counted(self, now: float) -> list[Node]:
        """The nodes with what they have lost."""
        self.forget(now)
        pools = [each for each in self.node_pools.counted() if each.startup]
        nodes = self.nodes.counted()
        if not pools:
            return list(nodes)
        return [replace(node, taints=karpenter.started(node, pools)) for node in nodes]

    @property
    def served_by_dra(self) -> frozenset[str]:
        """Resource names that a DeviceClass serves."""
        return frozenset(name for each in self.device_classes.counted() for name in each)
