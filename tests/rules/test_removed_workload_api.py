from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.objects import EXTENSIONS, ROAD_2, found, said, workload
from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.kube.pointer import ROOT, Path
from webhook.rules import removed_workload_api as rule

API = ROOT / "apiVersion"
SPEC = ROOT / "spec"
NAMED: Any = {"serviceName": "train"}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(workload("apps/v1", "Deployment"), id="a version of today: untouched"),
        pytest.param(workload("batch/v1", "Job"), id="a Job of today: untouched"),
        pytest.param(workload("kubeflow.org/v1beta1", "TFJob"), id="a kind of others: untouched"),
        pytest.param(
            {"apiVersion": EXTENSIONS, "kind": "Ingress"}, id="no workload: removed-api's"
        ),
        pytest.param({"kind": 7, "spec": []}, id="wrong types: untouched"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("api", "kind", "expected"),
    [
        pytest.param(EXTENSIONS, "Deployment", ("apps/v1", "Deployment"), id="a Deployment"),
        pytest.param("apps/v1beta1", "Deployment", ("apps/v1", "Deployment"), id="of apps, first"),
        pytest.param("apps/v1beta2", "Deployment", ("apps/v1", "Deployment"), id="of apps, later"),
        pytest.param(EXTENSIONS, "DaemonSet", ("apps/v1", "DaemonSet"), id="a DaemonSet"),
        pytest.param("apps/v1beta2", "DaemonSet", ("apps/v1", "DaemonSet"), id="of apps"),
        pytest.param(EXTENSIONS, "ReplicaSet", ("apps/v1", "ReplicaSet"), id="a ReplicaSet"),
        pytest.param("apps/v1beta2", "ReplicaSet", ("apps/v1", "ReplicaSet"), id="one of apps"),
        pytest.param("apps/v1beta1", "StatefulSet", ("apps/v1", "StatefulSet"), id="StatefulSet"),
        pytest.param("apps/v1beta2", "StatefulSet", ("apps/v1", "StatefulSet"), id="a later one"),
        pytest.param("apps/v1alpha1", "PetSet", ("apps/v1", "StatefulSet"), id="a PetSet"),
        pytest.param(EXTENSIONS, "Job", ("batch/v1", "Job"), id="a Job of extensions"),
        pytest.param("batch/v2alpha1", "Job", ("batch/v1", "Job"), id="a Job of v2alpha1"),
        pytest.param("batch/v1beta1", "CronJob", ("batch/v1", "CronJob"), id="a CronJob"),
        pytest.param("batch/v2alpha1", "CronJob", ("batch/v1", "CronJob"), id="an early CronJob"),
        pytest.param("batch/v2alpha1", "ScheduledJob", ("batch/v1", "CronJob"), id="ScheduledJob"),
        pytest.param(
            "apps/v1beta1", "DaemonSet", ("apps/v1", "DaemonSet"), id="a version that never was"
        ),
    ],
)
def test_versions(api: str, kind: str, expected: tuple[str, str]) -> None:
    obj = workload(api, kind, **NAMED)
    assert said(rule, obj) == [("apiVersion", "repaired")]
    assert (obj["apiVersion"], obj["kind"]) == expected


def test_the_whole_finding() -> None:
    message = "Deployment of extensions/v1beta1 was removed in 1.16: write Deployment of apps/v1"
    assert found(rule, workload(EXTENSIONS, "Deployment")) == [
        Finding(rule.CODE, API, message, (Set(API, "apps/v1"),))
    ]


@pytest.mark.parametrize(
    ("kind", "metadata", "spec", "gone"),
    [
        pytest.param(
            "Deployment",
            {},
            {"rollbackTo": {"revision": 3}, "paused": True},
            ["spec.rollbackTo"],
            id="a rollback was an action, not a state",
        ),
        pytest.param(
            "DaemonSet",
            {},
            {"templateGeneration": 7},
            ["spec.templateGeneration"],
            id="the DaemonSet's counter",
        ),
        pytest.param(
            "Deployment",
            {"name": "a", "initializers": {"pending": []}, "clusterName": ""},
            {"uniqueLabelKey": "x"},
            ["spec.uniqueLabelKey", "metadata.initializers", "metadata.clusterName"],
            id="metadata of 1.7-1.23, and a field of 1.1",
        ),
    ],
)
def test_fields_that_only_the_old_version_had(
    kind: str, metadata: Any, spec: Any, gone: list[str]
) -> None:
    obj = workload(EXTENSIONS, kind, metadata, **spec)
    [finding] = found(rule, obj)
    assert finding.message.endswith(f"; delete {', '.join(gone)}")
    assert [edit.at.dotted for edit in finding.edits if isinstance(edit, Remove)] == gone
    assert obj["spec"].keys() - {"template"} == spec.keys() - {gone[0].rpartition(".")[2]}


@pytest.mark.parametrize(
    ("api", "kind"), [("apps/v1alpha1", "PetSet"), ("apps/v1beta1", "StatefulSet")]
)
def test_a_set_without_its_service_is_converted_as_good_as_it_was(api: str, kind: str) -> None:
    obj = workload(api, kind)
    [finding, notice] = found(rule, obj)
    assert (finding.severity, finding.action) == (Severity.REPAIR, "repaired")
    assert (notice.severity, notice.edits) == (Severity.NOTICE, ())
    assert notice.message == (
        f"this {kind} has no serviceName, so its pods get no DNS names of their own; if they need "
        "some, write serviceName: the name of its headless Service"
    )
    assert obj["apiVersion"] == "apps/v1"


@pytest.mark.parametrize(
    ("target", "there"),
    [
        pytest.param((1, 15), EXTENSIONS, id="the target still serves it"),
        pytest.param((1, 16), "apps/v1", id="the first release without it"),
    ],
)
def test_what_the_manifests_are_for_decides(target: tuple[int, int], there: str) -> None:
    obj = workload(EXTENSIONS, "Deployment")
    found(rule, obj, replace(ROAD_2, target=target))
    assert obj["apiVersion"] == there


def test_an_autoscaler_names_its_workload_by_the_version_of_today() -> None:
    target = {"apiVersion": "apps/v1alpha1", "kind": "PetSet", "name": "a"}
    obj = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "spec": {"scaleTargetRef": target},
    }
    at = Path(("spec", "scaleTargetRef"))
    message = "PetSet of apps/v1alpha1 was removed in 1.5: write StatefulSet of apps/v1"
    edits = (Set(at / "apiVersion", "apps/v1"), Set(at / "kind", "StatefulSet"))
    assert found(rule, obj) == [Finding(rule.CODE, at / "apiVersion", message, edits)]


def test_an_owner_is_named_by_the_version_of_today() -> None:
    """What `kubectl get -o json` printed in those days has the owner in its metadata."""
    today = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "1"}
    owner = {**today, "apiVersion": "extensions/v1beta1"}
    obj = {"kind": "Pod", "metadata": {"ownerReferences": [today, owner]}}
    at = Path(("metadata", "ownerReferences", 1, "apiVersion"))
    message = "ReplicaSet of extensions/v1beta1 was removed in 1.16: write ReplicaSet of apps/v1"
    assert found(rule, obj) == [Finding(rule.CODE, at, message, (Set(at, "apps/v1"),))]
    nothings: list[Any] = ["x", [None], [{}], {"apiVersion": "extensions/v1beta1"}]
    for nothing in nothings:
        assert found(rule, {"kind": "Pod", "metadata": {"ownerReferences": nothing}}) == []
