"""Inventory: nodes in classes, and facts drawn from those."""

from __future__ import annotations

import pytest

from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Inventory, Node, NodeClass, group, unique_labels
from webhook.core.settings import Taint

PRODUCT = "nvidia.com/gpu.product"
GPU_TAINT, LATE, EARLY = Taint("nvidia.com/gpu"), Taint("z"), Taint("a", "b", "NoExecute")
K80 = NodeClass({PRODUCT: "Tesla-K80", "zone": "a"}, (LATE, GPU_TAINT), {"nvidia.com/gpu": 2})
P100 = NodeClass({PRODUCT: "P100", "disk": "ssd"}, (EARLY,), {"nvidia.com/gpu": 0, "x/gpu": 1})
PLAIN = NodeClass({"zone": "b", "os": "linux"}, (Taint("master"),), {"nvidia.com/gpu": 0})
INVENTORY = Inventory((K80, P100, PLAIN))


def test_a_class_has_gpus_if_it_offers_more_than_none() -> None:
    assert [each.has_gpus for each in INVENTORY.classes] == [True, True, False]


def test_the_values_of_a_label_are_those_of_all_nodes() -> None:
    assert INVENTORY.values(PRODUCT) == {"Tesla-K80", "P100"}
    assert INVENTORY.values("zone") == {"a", "b"}
    assert INVENTORY.values("none") == frozenset()


def test_the_labels_of_gpu_nodes_leave_out_those_of_others() -> None:
    assert INVENTORY.gpu_labels == {PRODUCT, "zone", "disk"}


def test_taints_of_all_nodes_and_of_gpu_nodes() -> None:
    assert INVENTORY.taints == {GPU_TAINT, LATE, EARLY, Taint("master")}
    assert INVENTORY.gpu_taints == (EARLY, GPU_TAINT, LATE)


def test_a_cluster_has_gpus_if_any_class_does() -> None:
    assert INVENTORY.has_gpus
    assert not Inventory((PLAIN,)).has_gpus


def test_an_empty_inventory_knows_nothing() -> None:
    nothing = Inventory()
    assert not nothing.has_gpus
    assert not nothing.gpu_labels | nothing.taints | nothing.values(PRODUCT)
    assert nothing.gpu_taints == ()
    assert not nothing.namespaces
    assert not nothing.runtime_classes


def test_a_published_index_speaks_for_the_classes_that_stayed_behind() -> None:
    published = Inventory((), published=NodeIndex.of(INVENTORY.classes))
    assert published.values(PRODUCT) == INVENTORY.values(PRODUCT)
    assert published.gpu_taints == INVENTORY.gpu_taints
    assert published.taints == INVENTORY.taints
    assert published.gpu_labels == INVENTORY.gpu_labels
    assert published.has_gpus


HOST, SERIAL = "kubernetes.io/hostname", "serial"


def nodes(count: int, *, of_each: int = 1, key: str = SERIAL) -> list[Node]:
    """Nodes of which so many share each value of the label."""
    return [Node(f"n{i:03}", {key: f"v{i // of_each}"}, (), {"x/gpu": 1}) for i in range(count)]


@pytest.mark.parametrize(
    ("given", "unique"),
    [
        pytest.param(nodes(33), {SERIAL}, id="33 nodes, each with its own value"),
        pytest.param(nodes(32), set(), id="32 such nodes may be classes of their own"),
        pytest.param(nodes(66, of_each=2), set(), id="each value on two nodes: a kind of node"),
        pytest.param(nodes(65, of_each=2), {SERIAL}, id="a little more than each second node"),
        pytest.param(nodes(2, key=HOST), {HOST}, id="the name of the host, in any cluster"),
        pytest.param([Node("n", {})], set(), id="no label at all"),
    ],
)
def test_labels_that_nearly_every_node_has_for_itself(given: list[Node], unique: set[str]) -> None:
    assert unique_labels(given) == unique
    assert len(group(given)) == (1 if unique else len({*map(str, (n.labels for n in given))}))


def test_nodes_are_alike_in_labels_taints_and_amounts_and_not_in_what_pods_hold() -> None:
    alike = Node("b", {HOST: "b", "zone": "a"}, (LATE,), {"x/gpu": 2}, {"x/gpu": 1})
    others = [
        Node("a", {HOST: "a", "zone": "a"}, (LATE,), {"x/gpu": 2}),
        Node("c", {HOST: "c", "zone": "b"}, (LATE,), {"x/gpu": 2}),
        Node("d", {HOST: "d", "zone": "a"}, (EARLY,), {"x/gpu": 2}),
        Node("e", {HOST: "e", "zone": "a"}, (LATE,), {"x/gpu": 4}),
    ]
    first, *rest = group([*others, alike])
    assert first == NodeClass(
        {"zone": "a"},
        (LATE,),
        {"x/gpu": 2},
        ("a", "b"),
        ({}, {"x/gpu": 1}),
        ({HOST: "a"}, {HOST: "b"}),
    )
    assert [each.nodes for each in rest] == [("c",), ("d",), ("e",)]
    assert [each.held for each in rest] == [(), (), ()]
    assert first.held_of("x/gpu") == [0, 1]
    assert first.held_of("y/gpu") == [0, 0]
    assert rest[0].held_of("x/gpu") == [0]


@pytest.mark.parametrize(
    ("each", "count"),
    [
        pytest.param(NodeClass({}, nodes=("a", "b")), 2, id="its nodes"),
        pytest.param(NodeClass({}), 1, id="a node without a name"),
        pytest.param(NodeClass({}, declared=7), 7, id="a pool: as many as it may have"),
    ],
)
def test_how_many_nodes_a_class_has(each: NodeClass, count: int) -> None:
    assert each.count == count


def test_a_node_counts_with_the_most_that_it_has_shown() -> None:
    assert Node("n", {}, (), {"nvidia.com/gpu": 8}).counted == {"nvidia.com/gpu": 8}
    node = Node("n", {}, (), {"nvidia.com/gpu": 7, "x/gpu": 1}, most={"nvidia.com/gpu": 8})
    assert node.counted == {"nvidia.com/gpu": 8, "x/gpu": 1}


def test_taints_of_gpu_nodes_are_also_those_of_nodes_that_may_come() -> None:
    pool = NodeClass({}, (Taint("a"),), {"nvidia.com/gpu": 8}, declared=1)
    removed = NodeClass({}, (Taint("b"),), {"nvidia.com/gpu": 8}, removed=1)
    grows = NodeClass({}, (Taint("c"),), open_gpus=True, hint="NodePool c")
    assert Inventory((PLAIN, pool, removed, grows)).gpu_taints == (
        Taint("a"),
        Taint("b"),
        Taint("c"),
    )


@pytest.mark.parametrize(
    ("watched", "whitelists", "is_new"),
    [
        pytest.param(True, {"old": ""}, True, id="the watcher has not received it"),
        pytest.param(True, {"new": ""}, False, id="it has"),
        pytest.param(True, {}, False, id="it may not list namespaces"),
        pytest.param(False, {"old": ""}, False, id="a file may leave namespaces out"),
    ],
)
def test_a_namespace_is_new_until_the_watcher_has_received_it(
    *, watched: bool, whitelists: dict[str, str], is_new: bool
) -> None:
    assert Inventory(watched=watched, whitelists=whitelists).is_new("new") is is_new
