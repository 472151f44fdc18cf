from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.objects import ROAD_2, found, said, template, workload
from tests.rules.pods import container
from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding
from webhook.kube.pointer import Path
from webhook.rules import critical_pod as rule

KEY = "scheduler.alpha.kubernetes.io/critical-pod"
SYSTEM = {"namespace": "kube-system"}
CLASS = {"priorityClassName": "system-cluster-critical"}
AT = Path(("spec", "template", "metadata", "annotations", KEY))


def critical(metadata: Any, value: Any = "", **spec: Any) -> Any:
    made = template(container(), annotations={KEY: value}, **spec)
    return workload("apps/v1", "DaemonSet", metadata, made=made)


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(workload("apps/v1", "DaemonSet", dict(SYSTEM)), id="no annotation: untouched"),
        pytest.param(
            workload(
                "apps/v1", "DaemonSet", dict(SYSTEM), made=template(annotations={"a": "b"}, **CLASS)
            ),
            id="a class: untouched",
        ),
        pytest.param(critical({}), id="no namespace: ignored-annotations reports it"),
        pytest.param(critical({}, "true"), id="no namespace, and a value: the same"),
        *(
            pytest.param(critical({"namespace": each}, value), id=f"nobody knows {each!r}: {value}")
            for each in ("{{ .Release.Namespace }}", "\ua000" * 9, "a-\ua000", "${NS}", "<ns>", 7)
            for value in ("", "true")
        ),
        pytest.param({"kind": "ConfigMap", "metadata": 7}, id="no workload: untouched"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("obj", "spec"),
    [
        pytest.param(critical(dict(SYSTEM)), CLASS, id="where it counted: a class"),
        pytest.param(
            critical(dict(SYSTEM), priorityClassName="system-node-critical"),
            {"priorityClassName": "system-node-critical"},
            id="a class is there: it wins",
        ),
        pytest.param(
            critical(dict(SYSTEM), priority=7), {"priority": 7}, id="a priority is there: it wins"
        ),
        pytest.param(critical(dict(SYSTEM), "true"), {}, id="a value: it never counted"),
        pytest.param(critical({"namespace": "team-a"}), {}, id="elsewhere: it never counted"),
        pytest.param(critical({}, None), {}, id="null on purpose"),
    ],
)
def test_it_goes(obj: Any, spec: Any) -> None:
    assert said(rule, obj) == [(AT.dotted, "repaired")]
    assert obj["spec"]["template"]["spec"] == {"containers": [container()], **spec}
    assert "annotations" not in obj["spec"]["template"]["metadata"]


def test_the_whole_finding() -> None:
    message = (
        f"the annotation {KEY} has no effect today: "
        "write priorityClassName: system-cluster-critical"
    )
    edit = Set(Path(("spec", "template", "spec", "priorityClassName")), "system-cluster-critical")
    assert found(rule, critical(dict(SYSTEM))) == [
        Finding(rule.CODE, AT, message, (edit, Remove(AT)))
    ]


def test_where_kubectl_would_put_it_is_not_what_the_manifest_says() -> None:
    assert found(rule, critical({}), replace(ROAD_2, namespace="kube-system")) == []
