from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.objects import EXTENSIONS, ROAD_2, found, said, workload
from webhook.core.edits import Set
from webhook.core.findings import Finding, Severity
from webhook.kube.pointer import ROOT
from webhook.rules import removed_api as rule

API = ROOT / "apiVersion"
RBAC = "rbac.authorization.k8s.io"
CONVERTED = [("apiVersion", "repaired")]


def an(api: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "a"}, **more}


def ingress(**spec: Any) -> dict[str, Any]:
    return an(EXTENSIONS, "Ingress", spec=spec)


def rule_of(*paths: Any) -> Any:
    return {"host": "a.example", "http": {"paths": list(paths)}}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(an(f"{RBAC}/v1", "Role"), id="a version of today: untouched"),
        pytest.param(an("example.com/v1beta1", "Ingress"), id="a kind of others: untouched"),
        pytest.param(workload(EXTENSIONS, "Deployment"), id="a workload: removed-workload-api's"),
        pytest.param({"kind": "Ingress"}, id="no version: untouched"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("obj", "version"),
    [
        pytest.param(an(f"{RBAC}/v1beta1", "ClusterRole"), f"{RBAC}/v1", id="a role"),
        pytest.param(an(f"{RBAC}/v1alpha1", "RoleBinding"), f"{RBAC}/v1", id="a binding"),
        pytest.param(
            an("policy/v1beta1", "PodDisruptionBudget", spec={"selector": {"matchLabels": {}}}),
            "policy/v1",
            id="a budget",
        ),
        pytest.param(
            an(EXTENSIONS, "NetworkPolicy"), "networking.k8s.io/v1", id="a network policy"
        ),
        pytest.param(
            an("storage.k8s.io/v1beta1", "StorageClass"), "storage.k8s.io/v1", id="a storage class"
        ),
        pytest.param(
            an("scheduling.k8s.io/v1alpha1", "PriorityClass"),
            "scheduling.k8s.io/v1",
            id="a priority class",
        ),
        pytest.param(
            an("autoscaling/v2beta2", "HorizontalPodAutoscaler"),
            "autoscaling/v2",
            id="an autoscaler of the last beta",
        ),
    ],
)
def test_the_same_fields(obj: Any, version: str) -> None:
    assert said(rule, obj) == CONVERTED
    assert obj["apiVersion"] == version


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        pytest.param(
            an("policy/v1beta1", "PodDisruptionBudget", spec={"selector": {}}),
            "write policy/v1; its empty selector meant no pod",
            id="a budget for no pod, which would be one for all",
        ),
        pytest.param(
            an("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
            "write apiextensions.k8s.io/v1; each version needs a schema",
            id="a custom resource definition",
        ),
        pytest.param(
            an("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration"),
            "sideEffects and admissionReviewVersions are required",
            id="a webhook",
        ),
        pytest.param(
            an("autoscaling/v2beta1", "HorizontalPodAutoscaler"),
            "a metric is written as name and target",
            id="an autoscaler of the first betas",
        ),
        pytest.param(
            an("policy/v1beta1", "PodSecurityPolicy"),
            "was removed in 1.25; set the Pod Security labels",
            id="a pod security policy",
        ),
        pytest.param(
            an("settings.k8s.io/v1alpha1", "PodPreset"),
            "was removed in 1.20; write it into the pod templates",
            id="a pod preset",
        ),
        pytest.param(
            ingress(backend={"serviceName": "a"}),
            "a backend names no service, or no port",
            id="an Ingress without a port",
        ),
        pytest.param(
            ingress(rules=[rule_of({"path": "/"})]),
            "a backend names no service, or no port",
            id="an Ingress without a backend",
        ),
    ],
)
def test_a_person_must_look(obj: Any, words: str) -> None:
    before = obj["apiVersion"]
    [finding] = found(rule, obj)
    assert words in finding.message
    assert (finding.severity, finding.edits) == (Severity.MANUAL, ())
    assert obj["apiVersion"] == before


def test_the_whole_finding() -> None:
    version = f"{RBAC}/v1"
    message = f"Role of {RBAC}/v1beta1 was removed in 1.22: write {version}"
    finding = Finding(rule.CODE, API, message, (Set(API, version),))
    assert found(rule, an(f"{RBAC}/v1beta1", "Role")) == [finding]


def test_an_ingress_is_written_as_the_api_server_wrote_it() -> None:
    paths = (
        {"path": "/a", "backend": {"serviceName": "a", "servicePort": 80}},
        {"pathType": "Exact", "backend": {"serviceName": "b", "servicePort": "http"}},
        {"backend": {"resource": {"kind": "Bucket", "name": "c"}}},
    )
    obj = ingress(
        backend={"serviceName": "d", "servicePort": 8080}, rules=[rule_of(*paths), {"host": "b"}]
    )
    assert said(rule, obj) == CONVERTED
    assert obj["apiVersion"] == "networking.k8s.io/v1"
    assert obj["spec"] == {
        "defaultBackend": {"service": {"name": "d", "port": {"number": 8080}}},
        "rules": [
            rule_of(
                {
                    "path": "/a",
                    "backend": {"service": {"name": "a", "port": {"number": 80}}},
                    "pathType": "ImplementationSpecific",
                },
                {
                    "pathType": "Exact",
                    "backend": {"service": {"name": "b", "port": {"name": "http"}}},
                },
                {
                    "backend": {"resource": {"kind": "Bucket", "name": "c"}},
                    "pathType": "ImplementationSpecific",
                },
            ),
            {"host": "b"},
        ],
    }


def test_an_ingress_with_rules_only() -> None:
    path = {"backend": {"serviceName": "a", "servicePort": 80}, "pathType": "Prefix"}
    obj = ingress(rules=[rule_of(path)])
    assert said(rule, obj) == CONVERTED
    assert "defaultBackend" not in obj["spec"]


@pytest.mark.parametrize(
    ("version", "subject", "expected"),
    [
        pytest.param(
            "v1alpha1",
            {"kind": "User", "name": "*"},
            {"kind": "Group", "name": "system:authenticated"},
            id="the user * was everybody who is logged in",
        ),
        pytest.param(
            "v1beta1",
            {"kind": "User", "name": "*"},
            {"kind": "User", "name": "*"},
            id="later it was a user of that name",
        ),
        pytest.param(
            "v1alpha1",
            {"kind": "ServiceAccount", "apiVersion": "v1", "name": "a", "namespace": "b"},
            {"kind": "ServiceAccount", "name": "a", "namespace": "b"},
            id="a subject's version became its group",
        ),
    ],
)
def test_subjects(version: str, subject: Any, expected: Any) -> None:
    obj = an(f"{RBAC}/{version}", "ClusterRoleBinding", subjects=[subject])
    assert said(rule, obj) == CONVERTED
    assert obj["subjects"] == [expected]


def test_attribute_restrictions_go() -> None:
    rules = [{"verbs": ["get"], "attributeRestrictions": None}, {"verbs": ["list"]}]
    obj = an(f"{RBAC}/v1alpha1", "Role", rules=rules)
    assert said(rule, obj) == CONVERTED
    assert obj["rules"] == [{"verbs": ["get"]}, {"verbs": ["list"]}]


@pytest.mark.parametrize(("target", "expected"), [((1, 21), []), ((1, 22), CONVERTED)])
def test_what_the_manifests_are_for_decides(target: tuple[int, int], expected: Any) -> None:
    obj = an(f"{RBAC}/v1beta1", "Role")
    assert said(rule, obj, replace(ROAD_2, target=target)) == expected
