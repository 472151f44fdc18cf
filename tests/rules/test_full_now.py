from __future__ import annotations

from typing import Any

import pytest

from tests.rules.pods import GPU, SPEC, container, found, pod
from webhook.capacity.nodes import Inventory, Node, NodeClass, group
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode
from webhook.core.rule import Context
from webhook.core.settings import Taint
from webhook.rules import full_now as rule

SLICE = "nvidia.com/mig-1g.5gb"
NODES = (
    Node("a", {"zone": "a"}, (), {GPU: 8, SLICE: 7}, {GPU: 7}),
    Node("b", {"zone": "b"}, (), {GPU: 8}, {GPU: 4}),
    Node("c", {"zone": "c"}, (Taint("dedicated"),), {GPU: 8}),
    Node("small", {"zone": "d"}, (), {GPU: 2}),
)
CX = Context(inventory=Inventory(group(NODES)))
OF_TEAM = Context(
    inventory=Inventory(
        group(NODES),
        runtime_classes={"other": {"zone": "b"}},
        class_tolerations={"team": [{"key": "dedicated", "operator": "Exists"}]},
    )
)


def asks(amount: int, name: str = GPU, **spec: Any) -> Any:
    return pod(container({name: str(amount)}), **spec)


def notice(message: str) -> Finding:
    return Finding(rule.CODE, SPEC, message, severity=Severity.NOTICE, mode=Mode.WARN)


WAITS = "It waits until pods end or are preempted."
RETURN = "devices are not healthy, or their device plugin is away. It waits until they are back."


def grown(each: NodeClass) -> Context:
    return Context(inventory=Inventory((*group(NODES), each)))


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(asks(4), CX, [], id="a node has room: untouched"),
        pytest.param(asks(9), CX, [], id="it never fits: another rule's"),
        pytest.param(
            asks(5, runtimeClassName="team", nodeSelector={"zone": "c"}),
            OF_TEAM,
            [],
            id="its class tolerates the taint of a node with room",
        ),
        pytest.param(
            asks(5, runtimeClassName="other"),
            OF_TEAM,
            [
                notice(
                    f"requests 5 nvidia.com/gpu: the only node for it is full now (4 free). {WAITS}"
                )
            ],
            id="its class leaves it a node without room",
        ),
        pytest.param(asks(1, "cpu"), CX, [], id="it requests no GPU"),
        pytest.param(
            asks(9),
            Context(inventory=Inventory((*group(NODES), NodeClass({}, (), {GPU: 16}, removed=1)))),
            [],
            id="only a node that went away would do: no pod holds it",
        ),
        pytest.param(
            asks(9),
            Context(inventory=Inventory(group([*NODES, Node("new", {}, joining=True)]))),
            [],
            id="a node that joins may have room",
        ),
        pytest.param(
            asks(5),
            CX,
            [
                notice(
                    "requests 5 nvidia.com/gpu: all 2 nodes for it are full now (the emptiest has "
                    f"4 free). {WAITS}"
                )
            ],
            id="the nodes for it are full; one that it may not use is not",
        ),
        pytest.param(
            asks(2, nodeSelector={"zone": "a"}),
            CX,
            [
                notice(
                    f"requests 2 nvidia.com/gpu: the only node for it is full now (1 free). {WAITS}"
                )
            ],
            id="the one node that it selects is full",
        ),
        pytest.param(
            pod(container({GPU: "2", SLICE: "1"})),
            CX,
            [
                notice(
                    "requests 2 nvidia.com/gpu and 1 nvidia.com/mig-1g.5gb: the only node for it "
                    f"is full now. {WAITS}"
                )
            ],
            id="of two names one is used up",
        ),
        pytest.param(
            asks(8),
            Context(inventory=Inventory(group([Node("x", {}, (), {GPU: 0}, most={GPU: 8})]))),
            [
                notice(
                    "requests 8 nvidia.com/gpu: the only node for it has too few now (0 free): "
                    f"{RETURN}"
                )
            ],
            id="its device plugin is away, and no pod has anything to do with it",
        ),
        pytest.param(
            asks(8),
            Context(
                inventory=Inventory(
                    group([Node(name, {}, (), {GPU: 7}, most={GPU: 8}) for name in "xy"])
                )
            ),
            [
                notice(
                    "requests 8 nvidia.com/gpu: all 2 nodes for it have too few now (the emptiest "
                    f"has 7 free): {RETURN}"
                )
            ],
            id="a device of each node is not healthy",
        ),
        pytest.param(
            pod(container({GPU: "8", SLICE: "1"})),
            Context(
                inventory=Inventory(
                    group([Node("x", {}, (), {GPU: 7}, most={GPU: 8}, joining=True)])
                )
            ),
            [
                notice(
                    "requests 8 nvidia.com/gpu and 1 nvidia.com/mig-1g.5gb: the only node for it "
                    f"has too few now: {RETURN}"
                )
            ],
            id="a node that joins, with one name to come",
        ),
        pytest.param(
            pod(container({GPU: "8", SLICE: "1"})),
            Context(
                inventory=Inventory(group([Node("x", {}, (), {GPU: 7, SLICE: 1}, most={GPU: 8})]))
            ),
            [
                notice(
                    "requests 8 nvidia.com/gpu and 1 nvidia.com/mig-1g.5gb: the only node for it "
                    f"has too few now: {RETURN}"
                )
            ],
            id="of two names one is not healthy",
        ),
        pytest.param(
            asks(5, tolerations=[{"operator": "Exists"}]), CX, [], id="it may use the empty node"
        ),
        pytest.param(asks(5, nodeName="a"), CX, [], id="it waits for no node"),
        pytest.param(asks(5), Context(), [], id="no inventory: nothing is said"),
        pytest.param(
            asks(5), Context(inventory=CX.inventory, fresh=False), [], id="a stale one: the same"
        ),
        pytest.param(
            asks(5),
            Context(
                inventory=Inventory((*group(NODES), NodeClass({}, (), {GPU: 8}, declared=1))),
            ),
            [],
            id="a declared pool can grow",
        ),
        pytest.param(
            asks(5, nodeSelector={"zone": "a"}),
            grown(NodeClass({}, (), {GPU: 0}, open_gpus=True, open_labels=True, hint="group g")),
            [
                notice(
                    "requests 5 nvidia.com/gpu: the only node for it is full now (1 free). "
                    f"{WAITS[:-1]}, or group g adds a node that fits."
                )
            ],
            id="a group that has such nodes can grow",
        ),
        pytest.param(
            asks(5, nodeSelector={"zone": "a"}),
            grown(NodeClass({"zone": "b"}, (), {}, open_gpus=True, hint="group g")),
            [
                notice(
                    f"requests 5 nvidia.com/gpu: the only node for it is full now (1 free). {WAITS}"
                )
            ],
            id="a group of other nodes can grow",
        ),
        pytest.param(
            asks(5, nodeSelector={"zone": "a"}),
            grown(NodeClass({"zone": "a"}, (), {GPU: 8}, grows=True)),
            [],
            id="a type that is known can be added",
        ),
        pytest.param(
            asks(8),
            Context(
                inventory=Inventory(
                    (
                        *group([Node("x", {}, (), {GPU: 7}, most={GPU: 8})]),
                        NodeClass({}, (), {}, open_gpus=True, open_labels=True, hint="group g"),
                    )
                )
            ),
            [
                notice(
                    "requests 8 nvidia.com/gpu: the only node for it has too few now (7 free): "
                    f"{RETURN[:-1]}, or group g adds a node that fits."
                )
            ],
            id="a device is not healthy, and a group can grow",
        ),
    ],
)
def test_full_now(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected


@pytest.mark.parametrize(
    ("zone", "template", "expected"),
    [
        pytest.param("b", True, [], id="its nodes have room"),
        pytest.param(
            "a",
            True,
            [
                notice(
                    "requests 4 nvidia.com/gpu: with the node selector of the namespace, the only "
                    f"node for it is full now (1 free). {WAITS}"
                )
            ],
            id="its nodes are full",
        ),
        pytest.param("d", True, [], id="its nodes never fit: another rule's"),
        pytest.param("a", False, [], id="a pod, which would have it already"),
    ],
)
def test_a_template_is_held_against_the_node_selector_of_its_namespace(
    zone: str,
    template: Any,
    expected: list[Finding],
) -> None:
    known = Inventory(group(NODES), node_selectors={"lab": {"zone": zone}})
    cx = Context(inventory=known, namespace="lab", template=template)
    assert found(rule, asks(4), cx) == expected
