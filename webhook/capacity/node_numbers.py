"""Numbers the nodes for the index: classes of nodes in, tables of these numbers out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.capacity import node_sets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.capacity.nodes import NodeClass
    from webhook.core.settings import Taint

    Steps = list[tuple[int, str]]  # amount -> nodes with at least so much, ascending


@dataclass(frozen=True, slots=True)
class Total:
    """The sums over all existing nodes for one resource."""

    nodes: int  # that have any
    total: int
    largest: int  # on one node, also on one that does not exist now
    held: int  # by pods


def texts(table: Mapping[str, list[int]]) -> dict[str, str]:
    """The sets of a table as texts."""
    return {value: node_sets.encode(numbers) for value, numbers in table.items()}


def steps(amounts: Mapping[int, list[int]]) -> Steps:
    """From nodes by exact amount to nodes by minimum amount."""
    found: Steps = []
    there: list[int] = []
    for amount in sorted(amounts, reverse=True):
        there = sorted([*there, *amounts[amount]])
        found.append((amount, node_sets.encode(there)))
    return found[::-1]


class Numbers:
    """Gives each node of each class its number, and collects its tables."""

    def __init__(self) -> None:
        self.size = 0
        self.labels: dict[str, dict[str, list[int]]] = {}
        self.names: dict[str, list[int]] = {}
        self.taints: dict[tuple[Taint, ...], list[int]] = {}
        self.allocatable: dict[str, dict[int, list[int]]] = {}
        self.free: dict[str, dict[int, list[int]]] = {}
        self.gpu_labels: set[str] = set()
        self.former: dict[str, dict[str, list[int]]] = {}
        self.open_labels: list[int] = []
        self.open_gpus: list[int] = []
        self.may_come: list[int] = []
        self.grows: list[int] = []
        self.hints: dict[str, list[int]] = {}
        self.offered: dict[str, list[int]] = {}
        self._nodes: dict[str, int] = {}
        self._sums: dict[str, int] = {}
        self._held: dict[str, int] = {}

    def add(self, each: NodeClass) -> None:
        """Number the nodes of a class."""
        # A declared pool adds one number, however many nodes it has.
        numbers = range(self.size, self.size + (1 if each.may_come else each.count))
        self.size = numbers.stop
        for key, value in each.labels.items():
            self.labels.setdefault(key, {}).setdefault(value, []).extend(numbers)
        for number, unique in zip(numbers, each.unique, strict=False):
            for key, value in unique.items():
                self.labels.setdefault(key, {}).setdefault(value, []).append(number)
        for number, name in zip(numbers, each.nodes, strict=False):
            self.names.setdefault(name, []).append(number)
        self.taints.setdefault(each.taints, []).extend(numbers)
        for resource in (*each.gpus, *each.others):
            self.offered.setdefault(resource, []).extend(numbers)
        for resource, amount in each.counted.items():
            if amount > 0:
                self._amounts(each, resource, amount, numbers)
        if each.has_gpus:
            self.gpu_labels.update(each.labels, *each.unique)
        self._unsure(each, numbers)

    def _unsure(self, each: NodeClass, numbers: range) -> None:
        """Record the facts of these nodes that are not certain."""
        for number, former in zip(numbers, each.former, strict=False):
            for key, values in former.items():
                for value in values:
                    self.former.setdefault(key, {}).setdefault(value, []).append(number)
        self.open_labels += numbers if each.open_labels else ()
        self.open_gpus += numbers if each.open_gpus else ()
        self.may_come += numbers if each.may_come else ()
        self.grows += numbers if each.may_grow else ()
        if each.hint:
            self.hints.setdefault(each.hint, []).extend(numbers)

    def _amounts(self, each: NodeClass, resource: str, amount: int, numbers: range) -> None:
        self.allocatable.setdefault(resource, {}).setdefault(amount, []).extend(numbers)
        free, now = self.free.setdefault(resource, {}), each.gpus.get(resource, 0)
        for number, held in zip(numbers, each.held_of(resource), strict=False):
            if now > held and not (each.removed or each.hint):
                free.setdefault(now - held, []).append(number)
        self._nodes[resource] = self._nodes.get(resource, 0) + each.count
        self._sums[resource] = self._sums.get(resource, 0) + amount * each.count
        self._held[resource] = self._held.get(resource, 0) + sum(each.held_of(resource))

    def total(self, resource: str) -> Total:
        """The sums for one resource, which some node has."""
        return Total(
            self._nodes[resource],
            self._sums[resource],
            max(self.allocatable[resource]),
            self._held[resource],
        )
