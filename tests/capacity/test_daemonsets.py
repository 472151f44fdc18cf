"""What the DaemonSet controller makes of a template, as it is written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.pods import GPU, LABEL, PRODUCT, container, pod
from webhook.capacity.daemonsets import Outcome, chooses_nodes, outcome
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.edits import Append, Set
from webhook.core.rule import Context
from webhook.core.settings import Taint
from webhook.kube.pod import REQUIRED, Pod
from webhook.kube.pointer import Path

V100 = {PRODUCT: "Tesla-V100"}
TAINTED = (Taint(GPU, "present"),)
TOLERATES = {"tolerations": [{"key": GPU, "operator": "Exists"}]}
OLD = {"nodeSelector": {LABEL: "Tesla-V100"}}
NEW = {"nodeSelector": V100}


def nodes(*classes: NodeClass, fresh: bool = True) -> Context:
    return Context(inventory=Inventory(classes), fresh=fresh)


def gpu_node(name: str, taints: tuple[Taint, ...] = (), **more: Any) -> NodeClass:
    return NodeClass(V100, taints, {GPU: 4}, (name,), **more)


CPU = NodeClass({}, (), {}, ("cpu",))
MIXED = nodes(gpu_node("v"), CPU)


def affinity(*terms: list[tuple[str, str]]) -> dict[str, Any]:
    """Required node affinity: terms of keys with operators."""
    made = [
        {"matchExpressions": [{"key": key, "operator": operator} for key, operator in term]}
        for term in terms
    ]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": made}}}}


@pytest.mark.parametrize(
    ("written", "repaired", "cx", "expected"),
    [
        pytest.param(OLD, NEW, MIXED, Outcome(True, True, False), id="a label of then: no pod"),
        pytest.param(NEW, NEW, MIXED, Outcome(), id="a label of today"),
        pytest.param({}, {}, MIXED, Outcome(pending=True), id="no choice: also nodes without"),
        pytest.param({}, {}, nodes(gpu_node("v")), Outcome(), id="no choice, GPUs on every node"),
        pytest.param(
            {}, NEW, MIXED, Outcome(pending=True), id="a choice that only the repair makes"
        ),
        pytest.param(
            {},
            TOLERATES,
            nodes(gpu_node("v", TAINTED), CPU),
            Outcome(True, True, True),
            id="only tainted nodes have GPUs",
        ),
        pytest.param(
            {},
            TOLERATES,
            nodes(gpu_node("v", TAINTED), gpu_node("w")),
            Outcome(too_few=True),
            id="some nodes with GPUs are tainted",
        ),
        pytest.param(
            {"nodeName": "v"}, {"nodeName": "v"}, MIXED, Outcome(), id="nodeName: only this node"
        ),
        pytest.param(
            {"nodeName": "cpu"},
            {"nodeName": "cpu"},
            MIXED,
            Outcome(pending=True),
            id="nodeName: a node without GPUs",
        ),
        pytest.param(
            {"nodeName": "v"},
            {"nodeName": "v", **TOLERATES},
            nodes(gpu_node("v", TAINTED)),
            Outcome(True, True, False),
            id="nodeName: the taint of that node counts all the same",
        ),
        pytest.param(
            {},
            {},
            nodes(gpu_node("v"), NodeClass({"pool": "later"}, declared=2)),
            Outcome(),
            id="a pool without GPUs that is not there now",
        ),
        pytest.param(
            OLD, NEW, nodes(CPU), Outcome(no_pod=True), id="no node could run it, and none gets it"
        ),
        pytest.param({}, {}, nodes(CPU), Outcome(pending=True), id="no node could run it"),
        # Without nodes only the words count.
        pytest.param(OLD, NEW, Context(), Outcome(no_pod=True), id="unknown nodes: a label"),
        pytest.param(OLD, NEW, nodes(), Outcome(no_pod=True), id="no nodes: the same"),
        pytest.param(
            OLD, NEW, nodes(CPU, fresh=False), Outcome(no_pod=True), id="an old inventory: the same"
        ),
        pytest.param(
            OLD, OLD, Context(), Outcome(), id="unknown nodes: a label that is not repaired"
        ),
        pytest.param({}, {}, Context(), Outcome(pending=True), id="unknown nodes: no choice"),
        pytest.param(NEW, NEW, Context(), Outcome(), id="unknown nodes: a choice"),
        pytest.param(
            {"nodeName": "v"}, {"nodeName": "v"}, Context(), Outcome(), id="unknown nodes: nodeName"
        ),
        pytest.param(
            affinity([(LABEL, "Exists")], [("zone", "Exists"), (LABEL, "In")]),
            affinity([(PRODUCT, "Exists")]),
            Context(),
            Outcome(no_pod=True),
            id="unknown nodes: every term requests the label",
        ),
        pytest.param(
            affinity([(LABEL, "Exists")], [("zone", "Exists")]),
            affinity([(PRODUCT, "Exists")], [("zone", "Exists")]),
            Context(),
            Outcome(),
            id="unknown nodes: one term of two requests the label",
        ),
        pytest.param(
            affinity([(LABEL, "NotIn")]),
            affinity([(PRODUCT, "NotIn")]),
            Context(),
            Outcome(),
            id="unknown nodes: the label is excluded",
        ),
    ],
)
def test_outcome(written: Any, repaired: Any, cx: Context, expected: Outcome) -> None:
    asking = [container({GPU: "1"})]
    assert outcome(Pod(pod(*asking, **written)), Pod(pod(*asking, **repaired)), cx) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        pytest.param(("spec", "nodeSelector", "zone"), True, id="nodeSelector"),
        pytest.param(("spec", "tolerations"), True, id="tolerations"),
        pytest.param(("spec", "affinity", "nodeAffinity", REQUIRED), True, id="node affinity"),
        pytest.param(("spec", "affinity", "podAffinity"), False, id="pod affinity"),
        pytest.param(("spec", "affinity"), False, id="all affinity: no rule writes that"),
        pytest.param(("spec", "containers", 0), False, id="a container"),
        pytest.param(("metadata", "annotations", "tolerations"), False, id="an annotation"),
        pytest.param((), False, id="the whole template"),
    ],
)
def test_what_its_controller_goes_by(place: tuple[str | int, ...], *, expected: bool) -> None:
    template = Path(("spec", "template"))
    at = Path((*template, *place))
    assert chooses_nodes(Set(at, 1), template) is expected
    assert chooses_nodes(Append(at, 1), template) is expected
