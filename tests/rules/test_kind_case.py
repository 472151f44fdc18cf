from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import found, said
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.kube.pointer import ROOT
from webhook.rules import kind_case as rule

KIND = [("kind", "repaired")]
BOTH = [("apiVersion", "repaired"), ("kind", "repaired")]


def an(version: Any, kind: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(an("v1", "Pod"), id="a Pod: untouched"),
        pytest.param(an("extensions/v1beta1", "Deployment"), id="a removed version: untouched"),
        pytest.param(an("example.com/v1", "pod"), id="a kind of others: untouched"),
        pytest.param(an("v2", "pod"), id="a version that never was: untouched"),
        pytest.param(an(1, ["pod"]), id="wrong types: untouched"),
        pytest.param({"data": {}}, id="no object: untouched"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("obj", "findings", "expected"),
    [
        pytest.param(an("v1", "pod"), KIND, ("v1", "Pod"), id="a pod"),
        pytest.param(an("v1", "POD"), KIND, ("v1", "Pod"), id="loudly"),
        pytest.param(
            an("extensions/v1beta1", "daemonset"),
            KIND,
            ("extensions/v1beta1", "DaemonSet"),
            id="a version that is removed besides",
        ),
        pytest.param(
            an("Apps/V1", "deployment"), BOTH, ("apps/v1", "Deployment"), id="the version, too"
        ),
        pytest.param(
            an("batch/v1", "cronJob"), KIND, ("batch/v1", "CronJob"), id="one letter of it"
        ),
        pytest.param(an("v1", "list"), KIND, ("v1", "List"), id="a list"),
    ],
)
def test_kinds(obj: Any, findings: Any, expected: tuple[str, str]) -> None:
    assert said(rule, obj) == findings
    assert (obj["apiVersion"], obj["kind"]) == expected


def test_the_whole_finding() -> None:
    at = ROOT / "kind"
    message = "no API server knows kind pod in this spelling: write Pod"
    assert found(rule, an("v1", "pod")) == [Finding(rule.CODE, at, message, (Set(at, "Pod"),))]
