"""What is known of the cluster: a fold of events. Pure; whoever tells it something says when.

Each kind of object is told as put, drop, or a list between `begin` and `end`: what such a list
does not name is gone. The same facts follow from any legal order.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Generic, TypeVar

from webhook.core.nodes import Inventory, Node, NodeClass, group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.inventory.project import Amounts, NamespaceFacts, PodFacts

F = TypeVar("F")

# A driver upgrade, a restarted device plugin or a repaired machine takes the GPUs of a node away
# for minutes. "Never" is not "not now": so long the node counts with what it offered last.
REMEMBERED_SECONDS = 3600.0


class Kept(Generic[F]):
    """The facts of one kind, by key."""

    def __init__(self) -> None:
        self.facts: dict[str, F] = {}
        self.version = 0  # grows whenever a fact changes
        self._listed: set[str] | None = None

    def put(self, key: str, fact: F | None, now: float) -> None:
        """The object is there. No fact: nothing of it is worth keeping."""
        if self._listed is not None and fact is not None:
            self._listed.add(key)
        before = self.facts.get(key)
        if fact == before:
            return
        if fact is None:
            del self.facts[key]
        else:
            self.facts[key] = fact
        self.version += 1
        self._changed(key, before, fact, now)

    def drop(self, key: str, now: float) -> None:
        """The object is gone."""
        self.put(key, None, now)

    def begin(self) -> None:
        """All objects follow. A list that broke off is forgotten: what it told still holds."""
        self._listed = set()

    def end(self, now: float) -> None:
        """That were all."""
        listed, self._listed = self._listed, None
        if listed is not None and len(listed) < len(self.facts):
            for key in [each for each in self.facts if each not in listed]:
                self.drop(key, now)

    def _changed(self, key: str, before: F | None, after: F | None, now: float) -> None:
        """Overridden by kinds that count something along the way."""


class Nodes(Kept[Node]):
    """Nodes, and the GPUs that they had a short while ago."""

    def __init__(self) -> None:
        super().__init__()
        self._lost: dict[str, dict[str, tuple[int, float]]] = {}  # node, resource: amount, until

    def _changed(self, key: str, before: Node | None, after: Node | None, now: float) -> None:
        """Note what the node offers no more; a node of the same name may come back without."""
        lost = self._lost.setdefault(key, {})
        for resource, amount in (before.gpus if before is not None else {}).items():
            if amount > 0:
                lost[resource] = (amount, now + REMEMBERED_SECONDS)
        for resource, amount in (after.gpus if after is not None else {}).items():
            if amount > 0:
                lost.pop(resource, None)
        if not lost:
            del self._lost[key]

    def forget(self, now: float) -> None:
        """Forget what was lost too long ago."""
        for name, lost in list(self._lost.items()):
            late = [resource for resource, (_, until) in lost.items() if until <= now]
            for resource in late:
                del lost[resource]
            if late:
                self.version += 1
            if not lost:
                del self._lost[name]

    def counted(self) -> Iterator[Node]:
        """The nodes as they count."""
        for node in self.facts.values():
            lost = self._lost.get(node.name)
            if lost is None:
                yield node
            else:
                gpus = {**node.gpus, **{resource: amount for resource, (amount, _) in lost.items()}}
                yield Node(node.name, node.labels, node.taints, gpus)


class Pods(Kept["PodFacts"]):
    """Pods, what they hold of each node, and how many of them see GPUs unasked."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, dict[str, int]] = {}  # by node
        self.held_version = 0
        self.exposed: Counter[str] = Counter()  # by what it is that lets them
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
        """Pods that were found since this was asked last."""
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
    """All that is known."""

    def __init__(self) -> None:
        self.nodes = Nodes()
        self.pods = Pods()
        self.namespaces: Kept[NamespaceFacts] = Kept()
        self.runtime_classes: Kept[str] = Kept()
        self.device_classes: Kept[tuple[str, ...]] = Kept()
        self._classes: tuple[NodeClass, ...] = ()
        self._grouped = -1

    def classes(self, now: float) -> tuple[NodeClass, ...]:
        """The nodes in classes, without what pods hold; grouped anew only if nodes changed."""
        self.nodes.forget(now)
        if self._grouped != self.nodes.version:
            self._classes = group(self.nodes.counted())
            self._grouped = self.nodes.version
        return self._classes

    def holding(self, now: float) -> tuple[NodeClass, ...]:
        """The classes again, with what pods hold, but without names, labels and taints."""
        nothing: Mapping[str, int] = {}
        return tuple(
            NodeClass(
                {},
                gpus=each.gpus,
                nodes=("",) * len(each.nodes),  # their names take longer than all the rest
                held=tuple(self.pods.held.get(name, nothing) for name in each.nodes),
            )
            for each in self.classes(now)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Changes whenever anything but what pods hold does."""
        kinds = (self.nodes, self.namespaces, self.runtime_classes, self.device_classes)
        return tuple(each.version for each in kinds)

    def inventory(self, now: float) -> Inventory:
        """A snapshot that shares nothing with the store: small clusters and tests ask for it."""
        with_held = (
            Node(
                node.name,
                node.labels,
                node.taints,
                node.gpus,
                dict(self.pods.held.get(node.name, {})),
            )
            for node in self.counted(now)
        )
        return Inventory(
            group(with_held),
            self.namespace_labels(),
            frozenset(self.runtime_classes.facts),
            self.served_by_dra(),
            whitelists=self.whitelists(),
        )

    def namespace_labels(self) -> dict[str, Mapping[str, str]]:
        """The labels of namespaces that have any."""
        return {name: facts.labels for name, facts in self.namespaces.facts.items() if facts.labels}

    def whitelists(self) -> dict[str, str]:
        """The whitelists of tolerations, by namespace."""
        facts = self.namespaces.facts.items()
        return {name: each.whitelist for name, each in facts if each.whitelist}

    def counted(self, now: float) -> list[Node]:
        """The nodes as they count."""
        self.nodes.forget(now)
        return list(self.nodes.counted())

    def served_by_dra(self) -> frozenset[str]:
        """Resource names that a device class serves."""
        return frozenset(name for each in self.device_classes.facts.values() for name in each)
