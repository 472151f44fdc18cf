from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import found, said
from tests.rules.pods import GPU, LABEL, LEGACY, PRODUCT
from webhook.core.findings import Finding, Severity
from webhook.kube.pointer import Path
from webhook.rules import node_objects as rule

TAINTS = "scheduler.alpha.kubernetes.io/taints"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def node(metadata: Any = None, status: Any = None) -> Any:
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(
            node({"labels": {PRODUCT: "Tesla-K80"}}, {"capacity": {GPU: "4"}}), id="a node of today"
        ),
        pytest.param(node(), id="an empty node"),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {LABEL: "a"}}}, id="a pod"
        ),
        pytest.param(
            {"apiVersion": "x.example/v1", "kind": "Node", "metadata": {"labels": {LABEL: "a"}}},
            id="a Node of others",
        ),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        pytest.param(
            node({"labels": {LABEL: "Tesla-K80"}}), f"metadata.labels[{LABEL}]", id="the label"
        ),
        pytest.param(
            node({"annotations": {TAINTS: "[]"}}), f"metadata.annotations[{TAINTS}]", id="taints"
        ),
        pytest.param(
            node({"annotations": {AVOID: "{}"}}), f"metadata.annotations[{AVOID}]", id="avoidance"
        ),
        pytest.param(
            node(status={"capacity": {LEGACY: 4}}), f"status.capacity[{LEGACY}]", id="capacity"
        ),
        pytest.param(
            node(status={"allocatable": {LEGACY: 4}}),
            f"status.allocatable[{LEGACY}]",
            id="allocatable",
        ),
    ],
)
def test_it_is_reported(obj: Any, place: str) -> None:
    assert said(rule, obj) == [(place, "reported")]


def test_the_whole_finding() -> None:
    message = f"current nodes do not offer {LEGACY}: its device plugin reports {GPU}"
    at = Path(("status", "capacity", LEGACY))
    assert found(rule, node(status={"capacity": {LEGACY: 4}})) == [
        Finding(rule.CODE, at, message, severity=Severity.MANUAL)
    ]
