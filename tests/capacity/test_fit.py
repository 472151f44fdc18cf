"""Can this pod ever run here: amounts, and who is asked at all."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.capacity import fit
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Inventory, Node, NodeClass, group
from webhook.core.rule import Context
from webhook.core.settings import Capacity
from webhook.kube.pod import Pod

Raw = dict[str, Any]

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
NODES = (
    Node("a", {}, (), {GPU: 4}, {GPU: 3}),
    Node("b", {}, (), {GPU: 8, SLICE: 1}, {GPU: 8}),
    Node("c", {}, (), {SLICE: 7}),
    Node("d", {}),
)
INDEX = NodeIndex.of(group(NODES))


def names(found: int) -> str:
    return "".join(node.name for node in NODES if found & INDEX.named(node.name))


@pytest.mark.parametrize(
    ("amounts", "empty", "now"),
    [
        pytest.param({}, "abcd", "abcd", id="nothing is asked: every node has it"),
        pytest.param({GPU: 1}, "ab", "a", id="what pods hold is not free"),
        pytest.param({GPU: 2}, "ab", "", id="all that have enough are full"),
        pytest.param({GPU: 5}, "b", "", id="one has enough"),
        pytest.param({GPU: 9}, "", "", id="none has enough"),
        pytest.param({SLICE: 1}, "bc", "bc", id="another name"),
        pytest.param({GPU: 1, SLICE: 1}, "b", "", id="both names on one node"),
        pytest.param({"nvidia.com/gpu.shared": 1}, "", "", id="a name that none offers"),
    ],
)
def test_which_nodes_have_enough(amounts: dict[str, int], empty: str, now: str) -> None:
    assert names(fit.enough(amounts, INDEX)) == empty
    assert names(fit.enough_free(amounts, INDEX)) == now


@pytest.mark.parametrize(
    ("of", "below", "expected"),
    [
        pytest.param("a", 5, 4, id="just below"),
        pytest.param("ab", 100, 8, id="far below"),
        pytest.param("d", 3, 0, id="none"),
        pytest.param("d", 1, 0, id="none, and none is the only answer"),
    ],
)
def test_the_most_that_one_node_has(of: str, below: int, expected: int) -> None:
    nodes = sum(INDEX.named(name) for name in of)

    def with_at_least(amount: int) -> int:
        return INDEX.at_least(GPU, amount)

    assert fit.most_on_one(nodes, below, with_at_least) == expected


ONE_OF_EACH = Pod({"spec": {"containers": [{"resources": {"limits": {GPU: 1, SLICE: 1}}}]}})
THERE = Inventory(group(NODES))


@pytest.mark.parametrize(
    ("cx", "expected"),
    [
        pytest.param(Context(inventory=THERE), {GPU: 1, SLICE: 1}, id="a known cluster"),
        pytest.param(Context(), {}, id="nothing is known of the cluster"),
        pytest.param(Context(inventory=THERE, fresh=False), {}, id="what is known is old"),
        pytest.param(Context(inventory=Inventory()), {}, id="there is no node"),
        pytest.param(
            Context(inventory=Inventory(THERE.classes, served_by_dra=frozenset({GPU}))),
            {SLICE: 1},
            id="a device class serves one of the names",
        ),
        pytest.param(
            Context(inventory=Inventory((NodeClass({}, (), {GPU: 1}, declared=3),))),
            {GPU: 1, SLICE: 1},
            id="only declared pools",
        ),
    ],
)
def test_what_the_cluster_can_be_asked(cx: Context, expected: dict[str, int]) -> None:
    assert fit.requested(ONE_OF_EACH, cx) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({}, True, id="a pod"),
        pytest.param({"spec": {"schedulerName": "default-scheduler"}}, True, id="as defaulted"),
        pytest.param({"spec": {"schedulerName": "volcano"}}, False, id="another scheduler's pod"),
        pytest.param({"spec": {"schedulerName": "listed"}}, True, id="a listed scheduler's pod"),
        pytest.param({"spec": {"schedulingGates": [{"name": "q"}]}}, False, id="a gated pod"),
        pytest.param({"spec": {"schedulingGates": []}}, True, id="a pod whose gates are gone"),
        pytest.param({"spec": {"nodeName": "a"}}, False, id="a pod on a node"),
        pytest.param(
            {"metadata": {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}},
            False,
            id="a pod of a DaemonSet",
        ),
        pytest.param(
            {"metadata": {"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}},
            True,
            id="a pod of a ReplicaSet",
        ),
    ],
)
def test_whose_pod_it_is(obj: Raw, expected: bool) -> None:  # noqa: FBT001
    capacity = Capacity(equivalent_schedulers=("listed",))
    assert fit.is_left_to_the_scheduler(Pod(obj), capacity) is expected


def test_where_no_node_is_known_none_would_do() -> None:
    assert not fit.would_do(Pod({"spec": {"containers": []}}), Context())
