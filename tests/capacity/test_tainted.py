"""Which nodes carry which taint."""

from __future__ import annotations

import pytest

from webhook.capacity import node_sets
from webhook.capacity.node_index import by_key_and_effect
from webhook.core.settings import Taint

ML, WEB = Taint("team", "ml"), Taint("team", "web")
ML_OUT = Taint("team", "ml", "NoExecute")
SETS = (
    ((), node_sets.encode([0])),
    ((ML,), node_sets.encode([1, 2])),
    ((WEB,), node_sets.encode([3])),
    ((ML, ML_OUT), node_sets.encode([4])),
)


@pytest.mark.parametrize(
    ("effect", "value", "expected"),
    [
        pytest.param("NoSchedule", "ml", {1, 2, 4}, id="in several sets of taints"),
        pytest.param("NoSchedule", "web", {3}, id="in one"),
        pytest.param("NoSchedule", "none", set(), id="in none"),
        pytest.param("NoExecute", "ml", {4}, id="with another effect"),
    ],
)
def test_nodes_by_key_effect_and_value(effect: str, value: str, expected: set[int]) -> None:
    tainted = by_key_and_effect(SETS)["team", effect, 0]

    assert tainted.having(value) == node_sets.of(expected)
    assert tainted.having(value) == node_sets.of(expected), "the second time, too"


def test_nodes_by_key_and_effect() -> None:
    tables = by_key_and_effect(SETS)

    assert {key: table.present for key, table in tables.items()} == {
        ("team", "NoSchedule", 0): node_sets.of({1, 2, 3, 4}),
        ("team", "NoExecute", 0): node_sets.of({4}),
    }
    assert list(tables["team", "NoSchedule", 0]) == ["ml", "web"]


def test_a_node_is_in_a_table_once() -> None:
    tables = by_key_and_effect([((ML, WEB, ML), node_sets.encode([7]))])

    assert {number: list(table) for (_, _, number), table in tables.items()} == {
        0: ["ml"],
        1: ["web"],
        2: ["ml"],
    }
