"""Remembers GPUs and labels that nodes have lost, so that "not now" does not become "never". Pure.

A driver upgrade, a failed device or a restarted plugin removes GPUs for a while; a restart of GPU
Feature Discovery removes labels; a spot market removes whole nodes. For an existing node the lost
values are kept with the node. For removed nodes only their shape is kept: a cluster may remove
thousands a day, but of few shapes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.capacity.node_index import ANY, OWN_NAMES
from webhook.capacity.nodes import Node, NodeClass
from webhook.core.settings import Taint

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping


MOST_SHAPES = 256  # of removed nodes
_MOST_VALUES = 8  # values that one label of one node had

Until = dict[Any, float]  # a value, and the second of the epoch at which it is forgotten
Facts = tuple[
    Any, ...
]  # a group of an autoscaler, and what a node of it shows (cluster_autoscaler.py)


@dataclass
class Lost:
    """What one existing node has shown and no longer shows."""

    gpus: dict[str, Until] = field(default_factory=dict)  # by resource: amounts
    labels: dict[str, Until] = field(default_factory=dict)  # by key: values
    shown: Mapping[str, int] = field(default_factory=dict)  # the amounts that it still shows

    def __bool__(self) -> bool:
        return bool(self.gpus or self.labels or self.broken)

    @property
    def broken(self) -> bool:
        """Whether it has lost all GPUs: that is kept as long as the node exists."""
        return not any(amount > 0 for amount in self.shown.values())

    @property
    def most(self) -> dict[str, int]:
        return {resource: max(amounts) for resource, amounts in self.gpus.items()}

    @property
    def former(self) -> dict[str, tuple[str, ...]]:
        return {key: tuple(sorted(values)) for key, values in self.labels.items()}

    def changed(self, before: Node, after: Node, until: float) -> None:
        """Remember what the node has lost, and forget what it has again."""
        had, has = before.counted, after.counted
        self.shown = has
        for resource in had.keys() | self.gpus.keys():
            amounts, now = self.gpus.get(resource, {}), has.get(resource, 0)
            amounts.setdefault(had.get(resource, 0), until)
            self.gpus[resource] = {each: end for each, end in amounts.items() if each > now}
        for key in before.labels.keys() | self.labels.keys():
            values, value = self.labels.get(key, {}), before.labels.get(key)
            if value is not None and value not in values:
                values[value] = until
            values.pop(after.labels.get(key), None)
            newest = sorted(values, key=lambda each: (-values[each], each))[:_MOST_VALUES]
            self.labels[key] = {each: values[each] for each in newest}
        self._tidy()

    def forget(self, now: float) -> bool:
        """Forget what is too old; return whether anything was forgotten."""
        late = False
        for kept in (self.gpus, self.labels):
            for key, values in kept.items():
                left = {each: until for each, until in values.items() if until > now}
                late = late or len(left) < len(values)
                kept[key] = left
        self._tidy()
        return late

    def _tidy(self) -> None:
        self.gpus = {key: values for key, values in self.gpus.items() if values}
        self.labels = {key: values for key, values in self.labels.items() if values}


class Shape(NamedTuple):
    """The shape of removed nodes; labels in `unsure` may have any value."""

    labels: tuple[tuple[str, str], ...]
    unsure: tuple[str, ...]
    taints: tuple[Taint, ...]
    gpus: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, labels: Mapping[str, str], unsure: frozenset[str], node: Node) -> Shape:
        return cls(
            tuple(sorted(item for item in labels.items() if item[0] not in unsure)),
            tuple(sorted(unsure)),
            tuple(taint for taint in node.taints if not taint.goes_away),
            tuple(sorted(item for item in node.counted.items() if item[1] > 0)),
        )

    def without(self, key: str) -> Shape:
        """The same shape with any value of this label."""
        labels = tuple(item for item in self.labels if item[0] != key)
        return self._replace(labels=labels, unsure=tuple(sorted({*self.unsure, key})))

    def as_class(self, count: int) -> NodeClass:
        former = dict.fromkeys(self.unsure, (ANY,))
        labels, gpus = dict(self.labels), dict(self.gpus)
        return NodeClass(labels, self.taints, gpus, former=(former,), removed=count)


class Memory:
    """What existing nodes have lost, and the shapes of removed nodes."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lost: dict[str, Lost] = {}
        # When it is forgotten, and the number of nodes.
        self._removed: dict[Shape, tuple[float, int]] = {}
        self._merged: set[str] = set()  # labels that were dropped because they made too many shapes
        self._groups: set[Facts] = set()  # what the existing nodes show
        self._left: dict[Facts, float] = {}  # what no node shows any more, and until when it counts
        self._next = inf  # when there may be something to forget

    def changed(self, before: Node | None, after: Node | None, now: float) -> None:
        """A node was added, changed or removed."""
        if before is None and after is not None and after.name in self._lost:
            before = after  # from an earlier process
        if before is None or not self._seconds:
            return
        until = now + self._seconds
        self._next = min(self._next, until)
        lost = self._lost.pop(before.name, None)
        if after is None:
            self._leave(before, lost, until)
        elif lost is not None or _has_gpus(before):
            lost = lost or Lost()
            lost.changed(before, after, until)
            if lost:
                self._lost[before.name] = lost

    def keep_only(self, names: Container[str]) -> None:
        """Only these nodes exist."""
        self._lost = {name: lost for name, lost in self._lost.items() if name in names}

    @property
    def broken(self) -> set[str]:
        """The names of the nodes that once had GPUs and have none now."""
        return {name for name, lost in self._lost.items() if lost.broken}

    def _leave(self, node: Node, lost: Lost | None, until: float) -> None:
        labels = lost.labels if lost is not None else {}
        node = _with(node, lost) if lost is not None else node
        if not _has_gpus(node):
            return
        unsure = frozenset(((OWN_NAMES | self._merged) & node.labels.keys()) | labels.keys())
        self._add(self._removed, Shape.of(node.labels, unsure, node), until, 1)
        while len(self._removed) > MOST_SHAPES:
            self._merge()

    @staticmethod
    def _add(
        removed: dict[Shape, tuple[float, int]], shape: Shape, until: float, count: int
    ) -> None:
        known_until, known = removed.get(shape, (0.0, 0))
        removed[shape] = (max(until, known_until), known + count)

    def _merge(self) -> None:
        """Drop the label that makes the most shapes, or else the oldest shape."""
        values = Counter(
            key for key, _ in {item for shape in self._removed for item in shape.labels}
        )
        if not values:
            del self._removed[min(self._removed, key=lambda each: self._removed[each])]
            return
        key = min(values, key=lambda each: (-values[each], each))
        self._merged.add(key)
        merged: dict[Shape, tuple[float, int]] = {}
        for shape, (until, count) in self._removed.items():
            self._add(merged, shape.without(key), until, count)
        self._removed = merged

    def forget(self, now: float) -> bool:
        """Forget what is too old; return whether anything was forgotten."""
        if now < self._next:
            return False
        late = [name for name, lost in self._lost.items() if lost.forget(now)]
        self._lost = {name: lost for name, lost in self._lost.items() if lost}
        left = {shape: kept for shape, kept in self._removed.items() if kept[0] > now}
        changed = bool(late) or len(left) < len(self._removed)
        self._removed = left
        if not left:
            self._merged.clear()
        groups = {name: until for name, until in self._left.items() if until > now}
        changed = changed or len(groups) < len(self._left)
        self._left = groups
        self._next = min(self._ends(), default=inf)
        return changed

    def _ends(self) -> Iterator[float]:
        yield from (until for until, _ in self._removed.values())
        yield from self._left.values()
        for lost in self._lost.values():
            for kept in (lost.gpus, lost.labels):
                yield from (until for values in kept.values() for until in values.values())

    def counted(self, node: Node) -> Node:
        """The node, with what it has lost."""
        lost = self._lost.get(node.name)
        return node if lost is None else _with(node, lost)

    def as_shown(self, node: Node) -> Node:
        """The node as it was before `counted`."""
        lost = self._lost.get(node.name)
        return node if lost is None else replace(node, gpus=lost.shown, most={}, former={})

    def removed(self) -> Iterator[NodeClass]:
        """The removed nodes, by shape."""
        for shape, (_, count) in sorted(self._removed.items(), key=repr):
            yield shape.as_class(count)

    def groups(self, there: Iterable[Facts], now: float) -> set[Facts]:
        """What the nodes of autoscaler groups have shown; `now` is what they show now."""
        there, until = set(there), now + self._seconds
        self._left |= dict.fromkeys(self._groups - there, until)
        self._left = {facts: until for facts, until in self._left.items() if facts not in there}
        self._groups = there
        self._next = min(self._next, until)
        return there | {facts for facts, until in self._left.items() if until > now}

    # --- kept over a restart of the watcher

    def as_data(self) -> dict[str, Any]:
        """All of it as values that JSON can hold."""
        return {
            "seconds": self._seconds,
            "lost": {
                name: [
                    {resource: list(each.items()) for resource, each in lost.gpus.items()},
                    {key: list(each.items()) for key, each in lost.labels.items()},
                    lost.shown,
                ]
                for name, lost in self._lost.items()
            },
            "removed": [
                [
                    shape.labels,
                    shape.unsure,
                    [astuple(each) for each in shape.taints],
                    shape.gpus,
                    until,
                    count,
                ]
                for shape, (until, count) in self._removed.items()
            ],
            "merged": sorted(self._merged),
            "groups": [
                [tuple(facts) for facts in sorted(self._groups)],
                [(tuple(facts), until) for facts, until in self._left.items()],
            ],
        }

    def recall(self, data: Mapping[str, Any]) -> None:
        """Restore what `as_data` returned; ValueError, TypeError or KeyError for other data.

        If the settings have another time now, it counts from the moment of the loss.
        """
        more = self._seconds - float(data["seconds"])
        for name, (gpus, labels, shown) in data["lost"].items():
            self._lost[name] = Lost(
                {resource: _until(each, more) for resource, each in gpus.items()},
                {key: _until(each, more) for key, each in labels.items()},
                shown,
            )
        for labels, unsure, taints, gpus, until, count in data["removed"]:
            shape = Shape(
                tuple((key, value) for key, value in labels),
                tuple(unsure),
                tuple(Taint(*each) for each in taints),
                tuple((resource, amount) for resource, amount in gpus),
            )
            self._removed[shape] = (until + more, count)
        self._merged.update(data["merged"])
        there, left = data["groups"]
        self._groups.update(_frozen(facts) for facts in there)
        self._left.update((_frozen(facts), until + more) for facts, until in left)
        self._next = 0.0


def _frozen(facts: list[Any]) -> Facts:
    """Turns the lists that JSON returns back into tuples."""
    return tuple(_frozen(each) if isinstance(each, list) else each for each in facts)


def _has_gpus(node: Node) -> bool:
    return any(amount > 0 for amount in node.counted.values())


def _with(node: Node, lost: Lost) -> Node:
    has = node.counted
    most = {name: amount for name, amount in lost.most.items() if amount > has.get(name, 0)}
    return replace(node, most={**node.most, **most}, former=lost.former)


def _until(pairs: Iterable[tuple[Any, float]], more: float) -> Until:
    return {value: until + more for value, until in pairs}
