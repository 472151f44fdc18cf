from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, SPEC, container, found, pod
from webhook.capacity.nodes import Inventory, Node, NodeClass, group
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode
from webhook.core.rule import Context
from webhook.core.settings import Taint
from webhook.rules import workload_too_large as rule

SLICE = "nvidia.com/mig-1g.5gb"
THERE = Inventory(group([Node(f"n{i}", {}, (), {GPU: 8}) for i in range(4)]))
CX = Context(inventory=THERE, template=True)

warned = partial(Finding, rule.CODE, SPEC, severity=Severity.MANUAL, mode=Mode.WARN)


def of(amount: int, name: str = GPU, cx: Context = CX) -> Context:
    return replace(cx, workload_gpus={name: amount})


def grown(each: NodeClass) -> Context:
    inventory = replace(THERE, classes=(*THERE.classes, each))
    return of(40, cx=replace(CX, inventory=inventory))


FORTY = warned(
    "all pods of this workload together ask for 40 nvidia.com/gpu; the whole cluster has 32 on 4 "
    "nodes, so not all can run at once. Run fewer at a time, or ask for fewer GPUs."
)


@pytest.mark.parametrize(
    ("gpus", "cx", "expected"),
    [
        pytest.param(8, CX, [], id="a pod of no workload: untouched"),
        pytest.param(8, of(32), [], id="just what there is: untouched"),
        pytest.param(8, of(40), [FORTY], id="more than there is"),
        pytest.param(33, of(40), [], id="one pod is too much already: another rule's"),
        pytest.param(8, of(40, SLICE), [], id="a name that no node offers: another rule's"),
        pytest.param(8, of(40, cx=Context()), [], id="no inventory: nothing is said"),
        pytest.param(8, of(40, cx=replace(CX, fresh=False)), [], id="a stale one: the same"),
        pytest.param(
            8,
            of(40, cx=replace(CX, inventory=replace(THERE, served_by_dra=frozenset({GPU})))),
            [],
            id="a device class serves the name: the same",
        ),
        pytest.param(
            8, grown(NodeClass({}, (), {GPU: 8}, grows=True)), [], id="such nodes can be added"
        ),
        pytest.param(
            8,
            grown(NodeClass({}, (), {GPU: 4}, grows=True)),
            [FORTY],
            id="smaller ones can be added: they are not counted either",
        ),
        pytest.param(
            8,
            grown(NodeClass({}, (), {GPU: 0}, open_gpus=True, open_labels=True, hint="group g")),
            [],
            id="a group can grow that brings what is there",
        ),
        pytest.param(
            8,
            grown(NodeClass({}, (Taint("x"),), {}, open_gpus=True, hint="NodePool p")),
            [FORTY],
            id="nodes can be added that the pod does not tolerate",
        ),
    ],
)
def test_workload_too_large(gpus: int, cx: Context, expected: list[Finding]) -> None:
    obj: Any = pod(container({GPU: str(gpus)}))
    assert found(rule, obj, cx) == expected


def test_nodes_can_be_added_that_the_class_of_the_pods_tolerates() -> None:
    cx = grown(NodeClass({}, (Taint("x"),), {}, open_gpus=True, hint="NodePool p"))
    assert cx.inventory is not None
    tolerant = replace(cx.inventory, class_tolerations={"x": [{"key": "x", "operator": "Exists"}]})
    obj: Any = pod(container({GPU: "8"}), runtimeClassName="x")
    assert found(rule, obj, replace(cx, inventory=tolerant)) == []


def test_a_template_without_gpus_beside_one_with_gpus_is_not_what_is_too_large() -> None:
    assert found(rule, pod(container({"cpu": "1"})), of(40)) == []
