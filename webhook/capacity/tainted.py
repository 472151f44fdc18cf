"""The nodes with a taint, by its key and effect, and then by its value.

A cluster may have a taint for each of a thousand teams, but then with the same key. So the nodes
that keep a pod away are the nodes with the key, without those with a tolerated value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import nodesets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from webhook.capacity.nodesets import NodeSet
    from webhook.core.settings import Taint


_REMEMBERED = 256  # values of one key whose nodes stay decoded


class Tainted:
    """The nodes with a taint of one key and effect."""

    __slots__ = ("_decoded", "_texts", "present")

    def __init__(self) -> None:
        self.present: NodeSet = 0
        self._texts: dict[str, list[str]] = {}  # by value: encoded sets; no node is in two of them
        self._decoded: dict[str, NodeSet] = {}

    def __iter__(self) -> Iterator[str]:
        """All values."""
        return iter(self._texts)

    def add(self, value: str, text: str, nodes: NodeSet) -> None:
        self.present |= nodes
        self._texts.setdefault(value, []).append(text)

    def having(self, value: str) -> NodeSet:
        """The nodes with this value."""
        found = self._decoded.get(value)
        if found is None:
            found = 0
            for text in self._texts.get(value, ()):
                found |= nodesets.decode(text)
            if value in self._texts and len(self._decoded) < _REMEMBERED:
                self._decoded[value] = found
        return found

    def having_any(self, values: AbstractSet[str]) -> NodeSet:
        """The nodes with one of these values; loops over the smaller of the two sets of values."""
        found = 0
        for value in self._texts.keys() & values:
            found |= self.having(value)
        return found


def by_key_and_effect(
    taint_sets: Iterable[tuple[tuple[Taint, ...], str]],
) -> dict[tuple[str, str, int], Tainted]:
    """The tables for these sets of taints, each with its encoded set of nodes.

    The API server allows only one taint of a key and effect on a node, but a file may have two: the
    second is in a table of its own, so that each node is in a table only once.
    """
    tables: dict[tuple[str, str, int], Tainted] = {}
    for taints, text in taint_sets:
        nodes = nodesets.decode(text)
        for position, taint in enumerate(taints):
            alike = [(each.key, each.effect) for each in taints[:position]]
            key = (taint.key, taint.effect, alike.count((taint.key, taint.effect)))
            if key not in tables:
                tables[key] = Tainted()
            tables[key].add(taint.value, text, nodes)
    return tables
