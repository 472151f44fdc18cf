"""What the store makes of events; tests/inventory/test_fold.py draws them at random."""

from __future__ import annotations

from dataclasses import replace
from sys import getrefcount

import pytest

from webhook.capacity.nodes import Node
from webhook.core.settings import Capacity, Taint
from webhook.inventory.lost_gpus import MOST_SHAPES
from webhook.inventory.object_facts import PodFacts
from webhook.inventory.store import Store

GPU = "nvidia.com/gpu"
DAY = 24 * 3600.0
MODEL, ZONE = "nvidia.com/gpu.product", "zone"


def node(name: str, gpus: int | None = None, **labels: str) -> Node:
    return Node(name, labels, (), {} if gpus is None else {GPU: gpus})


def counted(store: Store, now: float) -> dict[str, int]:
    """The GPUs of each node, as they count."""
    return {each.name: each.counted.get(GPU, 0) for each in store.counted(now)}


LOST: dict[str, tuple[list[tuple[float, int | None]], dict[float, int]]] = {
    "the plugin is away: the last amount counts for a day": (
        [(0, 8), (10, 0)],
        {11: 8, 9 + DAY: 8, 10 + DAY: 0},
    ),
    "the amount is missing altogether": ([(0, 8), (10, None)], {11: 8, 10 + DAY: 0}),
    "one device of many": ([(0, 8), (10, 7)], {11: 8, 10 + DAY: 7}),
    "one comes back of all that were lost": (
        [(0, 8), (10, 0), (20, 1)],
        {21: 8, 9 + DAY: 8, 10 + DAY: 1},
    ),
    "each amount has its own day": (
        [(0, 8), (10, 4), (20, 0)],
        {21: 8, 11 + DAY: 4, 20 + DAY: 0},
    ),
    "lost twice: the day begins with the second time": (
        [(0, 8), (10, 0), (20, 8), (30, 0)],
        {29 + DAY: 8, 30 + DAY: 0},
    ),
    "an event that changes nothing does not begin the day again": (
        [(0, 8), (10, 0), (1000, 0), (2000, None)],
        {9 + DAY: 8, 10 + DAY: 0},
    ),
    "it never had any": ([(0, 0), (10, None)], {11: 0}),
}


@pytest.mark.parametrize(("amounts", "expected"), LOST.values(), ids=LOST)
def test_a_node_that_lost_gpus(
    amounts: list[tuple[float, int | None]], expected: dict[float, int]
) -> None:
    store = Store()
    for when, gpus in amounts:
        store.nodes.put("n", node("n", gpus, at=str(when)), when)
    assert {when: counted(store, when)["n"] for when in expected} == expected


def test_a_list_of_known_pods_leaves_none_of_its_texts() -> None:
    """Else 150,000 keys lie between the objects of the pages, whose memory is not given back."""
    store = Store()
    for number in range(2):
        store.pods.begin()
        key = f"team/pod-{number // 2}"
        store.pods.put(key, PodFacts("n", ((GPU, 1),), ()), float(number))
        held = getrefcount(key)  # one of them is its argument
    assert held == 2
    store.pods.end(2.0)
    assert list(store.pods.facts) == ["team/pod-0"]


def classes(store: Store, now: float) -> list[tuple[dict[str, str], dict[str, int], int]]:
    return [
        (dict(each.labels), dict(each.counted), each.removed)
        for each in store.classes(now)
        if each.removed
    ]


def test_nodes_that_went_away_are_remembered_by_what_they_were_like() -> None:
    store = Store()
    for number in range(3):
        labels = {MODEL: "H100", "kubernetes.io/hostname": f"n-{number}"}
        drain = (Taint("ToBeDeletedByClusterAutoscaler"), Taint("gpu"))
        store.nodes.put(f"n-{number}", Node(f"n-{number}", labels, drain, {GPU: 8}), number)
    store.nodes.put("cpu", Node("cpu", {"zone": "a"}), 0)
    for name in ("n-0", "n-1", "n-2", "cpu"):
        store.nodes.drop(name, 100)
    assert classes(store, 101) == [({MODEL: "H100"}, {GPU: 8}, 3)]
    assert store.classes(101)[-1].taints == (Taint("gpu"),), "the one that stays"
    assert classes(store, 99 + DAY) == [({MODEL: "H100"}, {GPU: 8}, 3)]
    assert classes(store, 100 + DAY) == []


def test_a_node_that_goes_is_remembered_with_what_it_had_lost() -> None:
    store = Store()
    store.nodes.put("n", Node("n", {MODEL: "H100", ZONE: "a"}, (), {GPU: 8}), 0)
    store.nodes.put("n", Node("n", {ZONE: "a"}, (), {GPU: 7}), 10)
    store.nodes.drop("n", 20)
    (shape,) = store.classes(21)
    assert (shape.labels, shape.counted) == ({ZONE: "a"}, {GPU: 8})
    assert shape.former == ({MODEL: ("*",)},), "the lost label may have any value"
    assert store.nodes.memory.as_data()["lost"] == {}


def test_a_label_that_was_taken_away_or_changed_counts_with_its_old_value_too() -> None:
    store = Store()
    for when, labels in enumerate(({MODEL: "a"}, {}, {MODEL: "b"}, {MODEL: "a"}, {MODEL: "c"})):
        store.nodes.put("n", Node("n", labels, (), {GPU: 8}), when)
    (node,) = store.counted(5)
    assert node.former == {MODEL: ("a", "b")}
    (node,) = store.counted(3.5 + DAY)
    assert node.former == {MODEL: ("a",)}, "b was taken away earlier"


def test_a_node_with_new_values_all_the_time_is_remembered_with_the_newest_few() -> None:
    store = Store()
    for when in range(100):
        store.nodes.put("n", node("n", 8, serial=f"{when:03}"), when)
    (found,) = store.counted(100)
    assert found.former == {"serial": tuple(f"{when:03}" for when in range(91, 99))}


def test_thousands_of_nodes_that_come_and_go_are_a_few_shapes() -> None:
    store = Store()
    for number in range(3000):
        labels = {MODEL: f"m{number % 3}", "serial": f"s{number}", ZONE: f"z{number % 40}"}
        store.nodes.put(f"n{number}", Node(f"n{number}", labels, (), {GPU: 1 + number % 8}), number)
        store.nodes.drop(f"n{number}", number)
    shapes = [each for each in store.classes(3000) if each.removed]
    assert len(shapes) <= MOST_SHAPES
    assert sum(each.removed for each in shapes) == 3000
    assert {each.labels[MODEL] for each in shapes} == {"m0", "m1", "m2"}
    store.nodes.forget(3000 + DAY)
    assert not store.classes(3000 + DAY)
    store.nodes.put("n", Node("n", {"serial": "x"}, (), {GPU: 1}), 0)
    store.nodes.drop("n", 3001 + DAY)
    assert store.classes(3002 + DAY)[0].labels == {"serial": "x"}, "it tells again"


def test_shapes_that_no_label_tells_apart_are_bounded_too() -> None:
    store = Store()
    for number in range(MOST_SHAPES + 5):
        store.nodes.put("n", node("n", number + 1), number)
        store.nodes.drop("n", number)
    amounts = sorted(each.gpus[GPU] for each in store.classes(1000))
    assert amounts == list(range(6, MOST_SHAPES + 6)), "the oldest ones are forgotten"


def test_nothing_is_remembered_where_the_settings_say_so() -> None:
    store = Store(Capacity(remembered_hours=0))
    store.nodes.put("n", node("n", 8), 0)
    store.nodes.put("n", node("n", 7), 1)
    assert counted(store, 2) == {"n": 7}
    store.nodes.drop("n", 3)
    assert store.classes(4) == ()


NOW = 1_000_000.0
TYPE, EKS = "node.kubernetes.io/instance-type", "eks.amazonaws.com/nodegroup"
YOUNG: dict[str, tuple[Node, bool]] = {
    "it shows no sign of GPUs, but nothing is known of its like": (Node("n", {}), True),
    "its instance type is known to have none": (Node("n", {TYPE: "cpu.large"}), False),
    "one of that type, but a label says GPU": (
        Node("n", {TYPE: "cpu.large", "feature.node.kubernetes.io/pci-10de.present": "true"}),
        True,
    ),
    "a label that says no": (Node("n", {TYPE: "cpu.large", "gpu": "false"}), False),
    "a taint says GPU": (Node("n", {TYPE: "cpu.large"}, (Taint("sku", "gpu"),)), True),
    "it shows some GPUs, and other labels may follow": (
        Node("n", {TYPE: "cpu.large"}, (), {GPU: 1}),
        True,
    ),
    "its instance type is not known": (Node("n", {TYPE: "new.large"}), True),
    "nodes of its type have GPUs": (Node("n", {TYPE: "gpu.large"}), True),
    "nodes of its type that went away had GPUs": (Node("n", {TYPE: "spot.large"}), True),
    "another pool of a known type": (
        Node("n", {TYPE: "cpu.large", "cloud.google.com/gke-nodepool": "t4"}),
        True,
    ),
}


@pytest.mark.parametrize(("node", "joins"), YOUNG.values(), ids=YOUNG)
def test_a_node_that_has_just_joined(node: Node, *, joins: bool) -> None:
    store = Store()
    store.nodes.put("spot", Node("spot", {TYPE: "spot.large"}, (), {GPU: 8}), NOW)
    store.nodes.drop("spot", NOW)
    store.nodes.put("cpu", Node("cpu", {TYPE: "cpu.large"}), NOW)
    store.nodes.put("gpu", Node("gpu", {TYPE: "gpu.large"}, (), {GPU: 8}), NOW)
    store.nodes.put("n", replace(node, created=NOW - 60), NOW)
    version = store.nodes.version
    assert {each.name for each in store.counted(NOW) if each.joining} == ({"n"} if joins else set())
    assert not [each for each in store.counted(NOW + 840) if each.joining], "15 minutes are over"
    assert store.nodes.version > version, "so it is published, though no event came"


LIKE: dict[str, Node] = {
    "its driver has crashed": Node("x", {TYPE: "big.large"}, (), {GPU: 0}),
    "a label of it says GPU": Node("x", {TYPE: "big.large", "nvidia.com/gpu.present": "true"}),
    "a taint of it says GPU": Node("x", {TYPE: "big.large"}, (Taint(GPU),)),
    "its type is one of AWS with GPUs": Node("x", {TYPE: "g4dn.xlarge"}),
    "its type is one of Azure with GPUs": Node("x", {TYPE: "Standard_NC6s_v3"}),
    "its type is one of GCP with GPUs": Node("x", {TYPE: "a2-highgpu-1g"}),
    "its type is one of GCP for L4": Node("x", {TYPE: "g2-standard-4"}),
    "its pool is called so": Node("x", {TYPE: "big.large", EKS: "gpu-a"}),
}


@pytest.mark.parametrize("settled", LIKE.values(), ids=LIKE)
def test_a_node_of_the_same_kind_that_has_settled_is_no_evidence(settled: Node) -> None:
    store = Store()
    store.nodes.put("x", settled, NOW)
    kind = {key: value for key, value in settled.labels.items() if key in (TYPE, EKS)}
    store.nodes.put("n", Node("n", kind, created=NOW - 60), NOW)
    assert [each.name for each in store.counted(NOW) if each.joining] == ["n"]


def test_a_node_that_once_had_gpus_is_no_evidence_however_long_ago_that_is() -> None:
    labels = {TYPE: "big.large"}
    store = Store()
    store.nodes.put("x", Node("x", labels, (), {GPU: 8}), 0)
    store.nodes.put("x", Node("x", labels), 1)

    def joins(of: Store, now: float) -> bool:
        of.nodes.put("n", Node("n", labels, created=now - 60), now)
        return any(each.joining for each in of.counted(now))

    assert joins(store, 3 * DAY), "it has lost them"
    again = Store()
    again.nodes.recall((), store.nodes.memory.as_data())
    again.nodes.begin()
    again.nodes.put("x", Node("x", labels), 4 * DAY)
    again.nodes.end(4 * DAY)
    assert joins(again, 4 * DAY), "so another life of the watcher knows, too"
    again.nodes.drop("x", 5 * DAY)
    again.nodes.put("y", Node("y", labels), 5 * DAY)
    assert not joins(again, 7 * DAY), "it is gone, and others of its kind have none"


@pytest.mark.parametrize(
    ("before", "after", "now", "kept"),
    [
        pytest.param(24, 0, 3, False, id="nothing is to be remembered any more"),
        pytest.param(24, 1, 3, False, id="a shorter time, which is over"),
        pytest.param(24, 5, 3, True, id="a shorter time, which is not over"),
        pytest.param(24, 5, 6, False, id="and which is over later"),
        pytest.param(5, 24, 6, True, id="a longer time"),
        pytest.param(5, 24, 25, False, id="and its end"),
    ],
)
def test_another_time_to_remember_counts_from_the_loss(
    before: int, after: int, now: float, *, kept: bool
) -> None:
    """Hours; the node that is lost another way, and the label, are forgotten with it."""
    first = Store(Capacity(remembered_hours=before))
    first.nodes.put("x", node("x", 8), 0)
    first.nodes.put("y", Node("y", {"zone": "a"}, (), {GPU: 8}), 0)
    first.nodes.drop("x", 0)
    first.nodes.put("y", Node("y", {"zone": "b"}, (), {GPU: 4}), 0)
    then = Store(Capacity(remembered_hours=after))
    then.nodes.recall(first.nodes.facts.values(), first.nodes.memory.as_data())
    classes = then.classes(now * 3600)
    assert any(each.removed for each in classes) is kept
    (there,) = [each for each in classes if not each.removed]
    assert (there.counted, bool(there.former)) == (({GPU: 8}, True) if kept else ({GPU: 4}, False))


def test_a_node_that_went_away_between_two_lives_is_not_kept() -> None:
    store = Store()
    store.nodes.put("x", node("x", 8), 0)
    store.nodes.put("x", node("x", 0), 1)
    store.nodes.forget(3 * DAY)
    again = Store()
    again.nodes.recall((), store.nodes.memory.as_data())
    assert again.nodes.memory.as_data()["lost"]
    again.nodes.begin()
    again.nodes.end(4 * DAY)
    assert not again.nodes.memory.as_data()["lost"]


def test_a_node_that_is_well_again_in_another_life() -> None:
    store = Store()
    store.nodes.put("x", node("x", 8), 0)
    store.nodes.put("x", node("x", 0), 1)
    store.nodes.forget(3 * DAY)
    again = Store()
    again.nodes.recall((), store.nodes.memory.as_data())
    again.nodes.put("x", node("x", 4), 4 * DAY)
    assert counted(again, 4 * DAY) == {"x": 4}
    assert not again.nodes.memory.as_data()["lost"]


def test_no_node_joins_where_the_settings_say_so() -> None:
    store = Store(Capacity(joining_minutes=0))
    store.nodes.put("new", Node("new", {}, created=NOW), NOW)
    store.nodes.recall(store.nodes.facts.values(), store.nodes.memory.as_data())
    assert not [each for each in store.counted(NOW) if each.joining]


def test_a_node_that_is_old_or_does_not_say_so_has_settled() -> None:
    store = Store()
    store.nodes.put("old", Node("old", {}, created=NOW - 901), NOW)
    store.nodes.put("unknown", Node("unknown", {}), NOW)
    assert not [each for each in store.counted(NOW) if each.joining]


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
