"""The nodes with a taint, by its key and effect, and then by its value.

A cluster may have a taint for each of a thousand teams, but then with the same key. So the nodes
that keep a pod away are the nodes with the key, without those with a tolerated value.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from webhook.capacity.nodesets import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.core.settings import Taint


def by_key_and_effect(
    taint_sets: Iterable[tuple[tuple[Taint, ...], str]],
) -> dict[tuple[str, str, int], Table]:
    """The tables for these sets of taints, each with its encoded set of nodes.

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
