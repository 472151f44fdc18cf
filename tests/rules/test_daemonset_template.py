from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.engine import run
from tests.rules.pods import (
    GPU,
    LABEL,
    LEGACY,
    LONGEST_WARNING,
    PRODUCT,
    SPEC,
    container,
    found,
    legacy_pod,
    modern_pod,
    pod,
)
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import Settings, Taint, Workloads
from webhook.kube.pod import REQUIRED
from webhook.kube.pointer import Path
from webhook.rules import RULES
from webhook.rules import daemonset_template as rule


def owned(obj: dict[str, Any], kind: str = "DaemonSet", **more: Any) -> dict[str, Any]:
    owner = {"kind": kind, "name": "trainer", "controller": True, **more}
    obj["metadata"]["ownerReferences"] = [{"kind": "Node", "name": "other"}, owner]
    return obj


MIGRATE = Finding(
    rule.CODE,
    Path(("metadata",)),
    "the DaemonSet trainer makes such a pod on every node, and without these GPUs it stays Pending "
    "there: migrate the DaemonSet's template",
    severity=Severity.MANUAL,
)
ALL = Context(Settings(scope="all-legacy"))


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(legacy_pod(), Context(), [], id="a pod by hand: untouched"),
        pytest.param(
            owned(legacy_pod(), "ReplicaSet"), Context(), [], id="a ReplicaSet: untouched"
        ),
        pytest.param(owned(modern_pod()), Context(), [], id="a DaemonSet that was migrated"),
        pytest.param(owned(modern_pod()), ALL, [], id="the same in scope all-legacy"),
        pytest.param(
            owned(pod(container({LEGACY: 0, GPU: 1}))), Context(), [], id="it wants no legacy GPU"
        ),
        pytest.param(
            owned(legacy_pod(), controller=False), Context(), [], id="it owns, but does not control"
        ),
        pytest.param(owned(legacy_pod()), Context(), [MIGRATE], id="a legacy DaemonSet"),
        pytest.param(owned(legacy_pod()), ALL, [MIGRATE], id="the same in scope all-legacy, too"),
    ],
)
def test_daemonset_template(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected


DAEMONS = Context(template=True, workload={"kind": "DaemonSet"})
CHOOSES = {"nodeSelector": {"gpu": "true"}}
PENDING = Finding(
    rule.CODE,
    SPEC,
    "the DaemonSet controller makes a pod on each node that this template allows; without these "
    "GPUs it stays Pending there: write a nodeSelector for nodes with these GPUs into the template",
    severity=Severity.MANUAL,
)


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(legacy_pod(), DAEMONS, [PENDING], id="it chooses no nodes"),
        pytest.param(legacy_pod(**CHOOSES), DAEMONS, [], id="it chooses nodes"),
        pytest.param(modern_pod(), DAEMONS, [], id="a template of today"),
        pytest.param(
            legacy_pod(),
            Context(template=True, workload={"kind": "Deployment"}),
            [],
            id="a Deployment",
        ),
    ],
)
def test_template(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected


NO_POD = (
    "the DaemonSet controller reads this template, not the repaired pods, and by it no node with "
    "these GPUs gets a pod: write today's {} into the template"
)
TOO_FEW = NO_POD.replace("no node", "some nodes").replace("gets a pod", "get none")
MODEL = {"nodeSelector": {LABEL: "Tesla-V100"}}
V100 = {PRODUCT: "Tesla-V100"}
TAINTED = (Taint(GPU, "present"),)
AS_NODES: dict[str, Any] = {
    "annotations": {
        "scheduler.alpha.kubernetes.io/tolerations": '[{"key": "nvidia.com/gpu"}]',
        "scheduler.alpha.kubernetes.io/affinity": json.dumps(
            {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "pool", "operator": "In", "values": ["gpu"]}
                                ]
                            }
                        ]
                    }
                }
            }
        ),
    }
}


def nodes(*taints: tuple[Taint, ...], **labels: str) -> Inventory:
    """GPU nodes with these taints, one a tuple, and a node without GPUs."""
    gpus = (NodeClass({**V100, **labels}, each, {GPU: 4}, (str(each),)) for each in taints)
    return Inventory((*gpus, NodeClass({}, (), {}, ("cpu",))))


@pytest.mark.parametrize(
    ("obj", "inventory", "expected"),
    [
        pytest.param(
            legacy_pod(**MODEL),
            nodes(()),
            [NO_POD.format("nodeSelector, affinity and tolerations")],
            id="the label of then: no pod at all",
        ),
        pytest.param(
            legacy_pod(nodeSelector=V100),
            nodes(TAINTED),
            [NO_POD.format("tolerations")],
            id="the nodes are tainted, and the toleration is only in the pod",
        ),
        pytest.param(
            legacy_pod(nodeSelector=V100),
            nodes(TAINTED, ()),
            [TOO_FEW.format("tolerations")],
            id="some of the nodes are tainted",
        ),
        pytest.param(
            legacy_pod(),
            nodes(TAINTED),
            [NO_POD.format("tolerations"), PENDING.message],
            id="tainted GPU nodes get no pods, and others do",
        ),
        pytest.param(
            legacy_pod(**AS_NODES),
            nodes(TAINTED, pool="gpu"),
            [NO_POD.format("affinity and tolerations"), PENDING.message],
            id="annotations are not read",
        ),
        pytest.param(legacy_pod(nodeSelector=V100), nodes(()), [], id="it is right as it is"),
    ],
)
def test_what_the_repair_of_pods_comes_too_late_for(
    obj: Any, inventory: Inventory, expected: list[str]
) -> None:
    cx = replace(DAEMONS, inventory=inventory)
    said = run(RULES, copy.deepcopy(obj), cx).findings
    assert [each.message for each in said if each.code == rule.CODE] == expected
    assert all(len(f"{rule.CODE}: {each}") <= LONGEST_WARNING for each in expected)

    # Where the template itself is repaired, what is left is what the repair does not bring.
    left = [PENDING.message] if obj == legacy_pod() else []
    repairing = Settings(workloads=Workloads(repair=True))
    for repaired in (replace(cx, in_manifest=True), replace(cx, settings=repairing)):
        said = run(RULES, copy.deepcopy(obj), repaired).findings
        assert [each.message for each in said if each.code == rule.CODE] == left


@pytest.mark.parametrize(
    ("obj", "cx"),
    [
        pytest.param(legacy_pod(), DAEMONS, id="a template that selects no nodes"),
        pytest.param(owned(legacy_pod()), Context(), id="a pod of a DaemonSet"),
    ],
)
def test_a_file_with_amounts_of_today_gets_a_notice(obj: Any, cx: Context) -> None:
    """A second run over that file says nothing of it."""
    for in_manifest, renamed, severity in (
        (True, RULES, Severity.NOTICE),
        (True, [rule], Severity.MANUAL),
        (False, RULES, Severity.MANUAL),
    ):
        said = run(renamed, copy.deepcopy(obj), replace(cx, in_manifest=in_manifest)).findings
        assert [each.severity for each in said if each.code == rule.CODE] == [severity]
