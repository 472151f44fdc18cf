"""Inventory: facts drawn from node classes."""

from __future__ import annotations

from webhook.core.nodes import Inventory, NodeClass
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
    assert not nothing.models
    assert not nothing.namespaces
    assert not nothing.runtime_classes
