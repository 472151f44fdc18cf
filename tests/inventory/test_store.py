"""What the store makes of events; tests/inventory/test_fold.py draws them at random."""

from __future__ import annotations

import pytest

from webhook.core.nodes import Node
from webhook.inventory.project import PodFacts
from webhook.inventory.store import REMEMBERED_SECONDS, Store

GPU = "nvidia.com/gpu"
HOUR = REMEMBERED_SECONDS


def node(name: str, gpus: int | None = None, **labels: str) -> Node:
    return Node(name, labels, (), {} if gpus is None else {GPU: gpus})


def offers(store: Store, now: float) -> dict[str, int]:
    """The GPUs of each node, as they count."""
    return {each.name: each.gpus.get(GPU, 0) for each in store.counted(now)}


LOST: dict[str, tuple[list[tuple[float, int | None]], dict[float, int]]] = {
    "the plugin is away: the last amount counts for an hour": (
        [(0, 8), (10, 0)],
        {11: 8, 9 + HOUR: 8, 10 + HOUR: 0},
    ),
    "the amount is missing altogether": ([(0, 8), (10, None)], {11: 8, 10 + HOUR: 0}),
    "it comes back with less, and that counts": ([(0, 8), (10, 0), (20, 4)], {21: 4}),
    "a lower amount is no loss": ([(0, 8), (10, 7)], {11: 7}),
    "lost twice: the hour begins with the second time": (
        [(0, 8), (10, 0), (20, 8), (30, 0)],
        {29 + HOUR: 8, 30 + HOUR: 0},
    ),
    "an event that changes nothing does not begin the hour again": (
        [(0, 8), (10, 0), (1000, 0), (2000, None)],
        {9 + HOUR: 8, 10 + HOUR: 0},
    ),
    "it never had any": ([(0, 0), (10, None)], {11: 0}),
}


@pytest.mark.parametrize(("amounts", "expected"), LOST.values(), ids=LOST)
def test_a_node_that_lost_its_gpus(
    amounts: list[tuple[float, int | None]], expected: dict[float, int]
) -> None:
    store = Store()
    for when, gpus in amounts:
        store.nodes.put("n", node("n", gpus, at=str(when)), when)
    assert {when: offers(store, when)["n"] for when in expected} == expected


def test_a_node_made_again_under_its_name_counts_with_what_it_had() -> None:
    store = Store()
    store.nodes.put("n", node("n", 8), 0)
    store.nodes.drop("n", 10)
    assert offers(store, 11) == {}
    store.nodes.put("n", node("n"), 20)
    assert offers(store, 21) == {"n": 8}
    assert offers(store, 10 + HOUR) == {"n": 0}


def test_what_is_remembered_goes_with_the_hour_also_of_nodes_that_are_gone() -> None:
    store = Store()
    store.nodes.put("n", node("n", 8), 0)
    store.nodes.drop("n", 10)
    store.nodes.forget(10 + HOUR)
    assert store.nodes._lost == {}


def held(store: Store) -> dict[str, dict[str, int]]:
    return store.pods.held


def test_what_pods_hold_is_kept_as_they_come_move_and_go() -> None:
    store = Store()
    store.pods.put("x/a", PodFacts("n", ((GPU, 2),), ()), 0)
    store.pods.put("x/b", PodFacts("n", ((GPU, 1),), ()), 0)
    store.pods.put("x/c", PodFacts("unknown", ((GPU, 4),), ()), 0)
    assert held(store) == {"n": {GPU: 3}, "unknown": {GPU: 4}}
    version = store.pods.held_version
    store.pods.put("x/a", PodFacts("n", ((GPU, 2),), ()), 1)
    assert store.pods.held_version == version, "the same again changes nothing"
    store.pods.put("x/a", None, 2)  # it succeeded
    store.pods.put("x/b", PodFacts("m", ((GPU, 1),), ()), 3)  # deleted and made again, elsewhere
    assert held(store) == {"m": {GPU: 1}, "unknown": {GPU: 4}}
    store.pods.drop("x/b", 4)
    store.pods.drop("x/b", 5)
    store.pods.drop("x/c", 6)
    assert held(store) == {}


def test_a_pod_on_an_unknown_node_counts_as_soon_as_the_node_is_there() -> None:
    store = Store()
    store.pods.put("x/a", PodFacts("n", ((GPU, 2),), ()), 0)
    assert store.inventory(0).classes == ()
    store.nodes.put("n", node("n", 8), 1)
    assert store.inventory(1).classes[0].held == ({GPU: 2},)


def test_a_list_leaves_what_it_names() -> None:
    store = Store()
    for name in "abc":
        store.pods.put(f"x/{name}", PodFacts("n", ((GPU, 1),), ()), 0)
    store.pods.begin()
    store.pods.put("x/b", PodFacts("n", ((GPU, 1),), ()), 1)
    store.pods.put("x/c", None, 1)
    assert held(store) == {"n": {GPU: 2}}, "nothing is gone before the list is whole"
    store.pods.begin()  # the first broke off
    store.pods.put("x/a", PodFacts("n", ((GPU, 5),), ()), 2)
    store.pods.end(2)
    assert held(store) == {"n": {GPU: 5}}
    assert list(store.pods.facts) == ["x/a"]


def test_classes_are_made_anew_only_if_nodes_changed() -> None:
    store = Store()
    store.nodes.put("n", node("n", 8), 0)
    classes = store.classes(0)
    store.pods.put("x/a", PodFacts("n", ((GPU, 2),), ()), 0)
    store.nodes.put("n", node("n", 8), 1)  # a heartbeat
    assert store.classes(1) is classes
    store.nodes.put("n", node("n", 8, zone="a"), 2)
    assert store.classes(2) is not classes


def test_exposed_pods_are_counted_and_told_once() -> None:
    store = Store()
    found = PodFacts("", (), ("variable", "host-path"))
    store.pods.put("x/a", found, 0)
    store.pods.put("x/a", found, 1)
    store.pods.put("y/b", PodFacts("", (), ("variable",)), 2)
    assert store.pods.newly_exposed() == [
        ("x/a", ("variable", "host-path")),
        ("y/b", ("variable",)),
    ]
    assert store.pods.newly_exposed() == []
    assert dict(store.pods.exposed) == {"variable": 2, "host-path": 1}
    assert dict(store.pods.exposed_in) == {"x": 1, "y": 1}
    store.pods.drop("x/a", 3)
    assert store.pods.exposed_pods == 1
    assert dict(store.pods.exposed_in) == {"y": 1}
