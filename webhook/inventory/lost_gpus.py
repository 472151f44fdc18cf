"""Remembers GPUs and labels that nodes have lost, so that "not now" does not become "never". Pure.

A driver upgrade, a failed device or a restarted plugin removes GPUs for a while; a restart of GPU
Feature Discovery removes labels; a spot market removes whole nodes. For an existing node the lost
values are kept with the node. For removed nodes only their shape is kept: a cluster may remove
thousands a day, but of few shapes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import TypeAdapter

from webhook.capacity.node_index import ANY, OWN_NAMES
from webhook.capacity.nodes import Node, NodeClass
from webhook.core.settings import Taint  # noqa: TC001  # pydantic reads it, and Shown
from webhook.inventory.cluster_autoscaler import Shown  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping


MOST_SHAPES = 256  # of removed nodes
_MOST_VALUES = 8  # values that one label of one node had

T = TypeVar("T")

# Times are seconds of the epoch: when a value, a node or what it shows was lost.


@dataclass
class Lost:
    """What one existing node has shown and no longer shows."""

    gpus: dict[str, dict[int, float]] = field(default_factory=dict)  # by resource: amounts
    labels: dict[str, dict[str, float]] = field(default_factory=dict)  # by key: values
    shown: dict[str, int] = field(default_factory=dict)  # the amounts that it still shows

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

    def changed(self, before: Node, after: Node, now: float) -> None:
        """Remember what the node has lost, and forget what it has again."""
        had, has = before.counted, after.counted
        self.shown = {**has}
        for resource in had.keys() | self.gpus.keys():
            amounts, present = self.gpus.get(resource, {}), has.get(resource, 0)
            amounts.setdefault(had.get(resource, 0), now)
            self.gpus[resource] = {each: at for each, at in amounts.items() if each > present}
        for key in before.labels.keys() | self.labels.keys():
            values, value = self.labels.get(key, {}), before.labels.get(key)
            if value is not None and value not in values:
                values[value] = now
            values.pop(after.labels.get(key, ""), None)
            newest = sorted(values, key=lambda each: (-values[each], each))[:_MOST_VALUES]
            self.labels[key] = {each: values[each] for each in newest}
        self._tidy()

    def forget(self, since: float) -> bool:
        """Forget what was lost until then; return whether anything was forgotten."""
        count = len(self.times())
        self.gpus = {name: _later(amounts, since) for name, amounts in self.gpus.items()}
        self.labels = {key: _later(values, since) for key, values in self.labels.items()}
        self._tidy()
        return len(self.times()) < count

    def times(self) -> list[float]:
        """When each value was lost."""
        kept: list[Mapping[Any, float]] = [*self.gpus.values(), *self.labels.values()]
        return [at for values in kept for at in values.values()]

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


@dataclass(slots=True)
class _Kept:
    """A memory, for the next process of the watcher."""

    lost: dict[str, Lost]
    removed: list[tuple[Shape, float, int]]
    merged: set[str]
    groups: set[Shown]
    left: list[tuple[Shown, float]]


_DATA = TypeAdapter(_Kept)


class LostGpus:
    """What existing nodes have lost, and the shapes of removed nodes."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lost: dict[str, Lost] = {}
        # When the last of them was removed, and the number of nodes.
        self._removed: dict[Shape, tuple[float, int]] = {}
        self._merged: set[str] = set()  # labels that were dropped because they made too many shapes
        self._groups: set[Shown] = set()  # what the existing nodes show
        self._left: dict[Shown, float] = {}  # what no node shows any more, and since when
        self._next = inf  # when there may be something to forget

    def changed(self, before: Node | None, after: Node | None, now: float) -> None:
        """A node was added, changed or removed."""
        if before is None and after is not None and after.name in self._lost:
            before = after  # from an earlier process
        if before is None or not self._seconds:
            return
        self._next = min(self._next, now + self._seconds)
        lost = self._lost.pop(before.name, None)
        if after is None:
            self._leave(before, lost, now)
        elif lost is not None or _has_gpus(before):
            lost = lost or Lost()
            lost.changed(before, after, now)
            if lost:
                self._lost[before.name] = lost

    def keep_only(self, names: Container[str]) -> None:
        """Only these nodes exist."""
        self._lost = {name: lost for name, lost in self._lost.items() if name in names}

    @property
    def broken(self) -> set[str]:
        """The names of the nodes that once had GPUs and have none now."""
        return {name for name, lost in self._lost.items() if lost.broken}

    def _leave(self, node: Node, lost: Lost | None, now: float) -> None:
        labels = lost.labels if lost is not None else {}
        node = _with(node, lost) if lost is not None else node
        if not _has_gpus(node):
            return
        unsure = frozenset(((OWN_NAMES | self._merged) & node.labels.keys()) | labels.keys())
        self._add(self._removed, Shape.of(node.labels, unsure, node), now, 1)
        while len(self._removed) > MOST_SHAPES:
            self._merge()

    @staticmethod
    def _add(removed: dict[Shape, tuple[float, int]], shape: Shape, at: float, count: int) -> None:
        before, known = removed.get(shape, (0.0, 0))
        removed[shape] = (max(at, before), known + count)

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
        for shape, (at, count) in self._removed.items():
            self._add(merged, shape.without(key), at, count)
        self._removed = merged

    def forget(self, now: float) -> bool:
        """Forget what is too old; return whether anything was forgotten."""
        if now < self._next:
            return False
        since = now - self._seconds
        late = [name for name, lost in self._lost.items() if lost.forget(since)]
        self._lost = {name: lost for name, lost in self._lost.items() if lost}
        removed = {shape: kept for shape, kept in self._removed.items() if kept[0] > since}
        if not removed:
            self._merged.clear()
        left = _later(self._left, since)
        changed = bool(late) or len(removed) < len(self._removed) or len(left) < len(self._left)
        self._removed, self._left = removed, left
        times = [at for lost in self._lost.values() for at in lost.times()]
        times += [*(at for at, _ in removed.values()), *left.values()]
        self._next = min(times, default=inf) + self._seconds
        return changed

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

    def groups(self, there: set[Shown], now: float) -> set[Shown]:
        """What the nodes of autoscaler groups have shown; `now` is what they show now."""
        self._left |= dict.fromkeys(self._groups - there, now)
        self._left = {shown: at for shown, at in self._left.items() if shown not in there}
        self._groups = there
        self._next = min(self._next, now + self._seconds)
        return there | _later(self._left, now - self._seconds).keys()

    # --- kept over a restart of the watcher

    def as_data(self) -> Any:
        """All of it as values that JSON can hold."""
        removed = [(shape, at, count) for shape, (at, count) in self._removed.items()]
        kept = _Kept(self._lost, removed, self._merged, self._groups, [*self._left.items()])
        return _DATA.dump_python(kept, mode="json")

    def recall(self, data: Any) -> None:
        """Restore what `as_data` returned; ValueError for other data."""
        kept = _DATA.validate_python(data)
        self._lost, self._merged, self._groups = kept.lost, kept.merged, kept.groups
        self._removed = {shape: (at, count) for shape, at, count in kept.removed}
        self._left = dict(kept.left)
        self._next = 0.0


def _later(times: Mapping[T, float], since: float) -> dict[T, float]:
    """What was lost after that moment."""
    return {each: at for each, at in times.items() if at > since}


def _has_gpus(node: Node) -> bool:
    return any(amount > 0 for amount in node.counted.values())


def _with(node: Node, lost: Lost) -> Node:
    has = node.counted
    most = {name: amount for name, amount in lost.most.items() if amount > has.get(name, 0)}
    return replace(node, most={**node.most, **most}, former=lost.former)
