from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import found, said, template, workload
from tests.rules.pods import LEGACY, container, pod
from webhook.core.findings import Finding, Severity
from webhook.kube.pointer import ROOT
from webhook.rules import unfinished_object as rule

BARE = {"name": "cuda"}


def nameless(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**obj, "metadata": metadata}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(pod(container({LEGACY: 1})), id="a pod with its name: untouched"),
        pytest.param(
            nameless(pod(container({LEGACY: 1})), generateName="train-"), id="a name is made"
        ),
        pytest.param(pod(BARE), id="a patch: it has a name, and says only what it changes"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}, id="no workload"),
        pytest.param(
            {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": None}, id="of others"
        ),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("obj", "places"),
    [
        pytest.param(nameless(pod(container())), [""], id="no metadata at all"),
        pytest.param(
            nameless(pod(BARE, container()), labels={"a": "b"}),
            ["metadata", "spec.containers[0]"],
            id="no name and no image, as in the guide",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", made=template(BARE)),
            ["", "spec.template.spec.containers[0]"],
            id="a Deployment",
        ),
        pytest.param(nameless(pod(container()), name=""), ["metadata"], id="an empty name"),
    ],
)
def test_it_is_reported(obj: Any, places: list[str]) -> None:
    assert said(rule, obj) == [(place, "reported") for place in places]


def test_the_whole_finding() -> None:
    message = "this Pod has no name, and no API server takes it: write metadata.name"
    assert found(rule, nameless(pod(container()))) == [
        Finding(rule.CODE, ROOT, message, severity=Severity.MANUAL)
    ]
