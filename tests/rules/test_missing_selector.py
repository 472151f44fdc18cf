from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.objects import EXTENSIONS, LABELS, ROAD_2, found, said, template, workload
from webhook.rules import missing_selector as rule

SELECTOR = {"matchLabels": LABELS}
UID = {"controller-uid": "3c1d2f5e"}
WRITTEN = [("spec", "repaired")]


def expression(operator: str, key: str = "app", values: Any = ("train",)) -> Any:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(workload("apps/v1", "Deployment", selector=SELECTOR), id="it is there"),
        pytest.param(workload("batch/v1", "Job"), id="a Job without one"),
        pytest.param(
            workload(EXTENSIONS, "Deployment", selector=expression("In")), id="by an expression"
        ),
        pytest.param(
            workload("apps/v1", "Deployment", selector=expression("NotIn", values=["serve"])),
            id="by what it is not",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", selector=expression("Exists", values=[])),
            id="by a name",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", selector=expression("DoesNotExist", "x", [])),
            id="by a name that does not exist",
        ),
        pytest.param(
            workload("batch/v1", "Job", selector=SELECTOR, manualSelector=True),
            id="a Job that says manualSelector",
        ),
        pytest.param(workload("apps/v1", "ControllerRevision"), id="a kind of apps without one"),
        pytest.param(workload("v1", "ReplicationController"), id="it has another selector"),
        pytest.param(workload("kubeflow.org/v1", "TFJob"), id="a kind of others"),
        pytest.param({"apiVersion": "batch/v1", "kind": "CronJob", "spec": None}, id="no spec"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(workload(EXTENSIONS, "Deployment"), SELECTOR, id="a Deployment"),
        pytest.param(workload(EXTENSIONS, "DaemonSet"), SELECTOR, id="a DaemonSet"),
        pytest.param(workload(EXTENSIONS, "ReplicaSet"), SELECTOR, id="a ReplicaSet"),
        pytest.param(workload("apps/v1beta1", "StatefulSet"), SELECTOR, id="a StatefulSet"),
        pytest.param(workload("apps/v1alpha1", "PetSet"), SELECTOR, id="a PetSet"),
        pytest.param(workload("apps/v1", "Deployment"), SELECTOR, id="half migrated"),
        pytest.param(workload(EXTENSIONS, "Deployment", selector=None), SELECTOR, id="null"),
        pytest.param(workload(EXTENSIONS, "Deployment", selector={}), SELECTOR, id="an empty one"),
        pytest.param(
            workload(EXTENSIONS, "Deployment", selector={"matchLabels": {}}),
            SELECTOR,
            id="empty matchLabels",
        ),
    ],
)
def test_it_was_taken_from_the_template(obj: Any, expected: Any) -> None:
    assert said(rule, obj) == WRITTEN
    assert obj["spec"]["selector"] == expected
    assert (
        obj["spec"]["selector"]["matchLabels"] is not obj["spec"]["template"]["metadata"]["labels"]
    )


def test_the_style_of_a_replication_controller() -> None:
    obj = workload(EXTENSIONS, "Deployment", selector=dict(LABELS))
    assert said(rule, obj) == [("spec.selector", "repaired")]
    assert obj["spec"]["selector"] == SELECTOR


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        pytest.param({"made": template(labels=None)}, "spec.template", id="no labels"),
        pytest.param(
            {"made": template(labels={"app": 1})}, "spec.template", id="a label that is no text"
        ),
        pytest.param({"made": {}}, "spec.template", id="an empty template"),
        pytest.param({"selector": "app=train"}, "spec.selector", id="a text"),
        pytest.param({"selector": {"app": "serve"}}, "spec.selector", id="another label, bare"),
        pytest.param(
            {"selector": {"matchLabels": {"app": "serve"}}}, "spec.selector", id="another label"
        ),
        pytest.param({"selector": expression("NotIn")}, "spec.selector", id="the label is barred"),
        pytest.param(
            {"selector": expression("DoesNotExist")}, "spec.selector", id="the name is barred"
        ),
        pytest.param(
            {"selector": expression("Exists", "x")}, "spec.selector", id="a name that is missing"
        ),
        pytest.param({"selector": expression("Like")}, "spec.selector", id="no operator"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            "spec.selector",
            id="In without values",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn"}]}},
            "spec.selector",
            id="NotIn without values",
        ),
    ],
)
def test_a_person_must_look(spec: Any, at: str) -> None:
    obj = workload(EXTENSIONS, "Deployment", **spec)
    assert said(rule, obj) == [(at, "reported")]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            workload(EXTENSIONS, "Job", selector=SELECTOR),
            [("spec.selector", "repaired")],
            id="its own labels: a Job of today makes a better one",
        ),
        pytest.param(
            workload(EXTENSIONS, "Job", autoSelector=True),
            [("spec.autoSelector", "repaired")],
            id="autoSelector",
        ),
        pytest.param(
            workload(EXTENSIONS, "Job", autoSelector=False, selector=SELECTOR),
            [("spec.autoSelector", "repaired"), ("spec.selector", "repaired")],
            id="autoSelector and a selector",
        ),
        pytest.param(
            workload("batch/v1", "Job", selector=SELECTOR, manualSelector=False),
            [("spec.selector", "repaired")],
            id="manualSelector: false",
        ),
        pytest.param(
            workload(
                "batch/v1",
                "Job",
                selector={"matchLabels": UID},
                made=template(labels={**LABELS, **UID}),
            ),
            [("spec.selector", "repaired")],
            id="exported from a cluster: the uid goes from the template, too",
        ),
        pytest.param(
            workload("batch/v1", "Job", selector={"matchLabels": UID}),
            [("spec.selector", "repaired")],
            id="exported, and the template is clean",
        ),
    ],
)
def test_jobs(obj: Any, expected: Any) -> None:
    assert said(rule, obj) == expected
    assert obj["spec"] == {"template": template()}


def test_a_job_that_selects_other_pods_needs_a_person() -> None:
    obj = workload("batch/v1", "Job", selector={"matchLabels": {"app": "serve"}})
    assert said(rule, obj) == [("spec.selector", "reported")]


@pytest.mark.parametrize("kind", ["CronJob", "ScheduledJob"])
def test_no_selector_is_allowed_in_a_cron_job(kind: str) -> None:
    obj = workload("batch/v2alpha1", kind, selector=SELECTOR, manualSelector=True)
    assert said(rule, obj) == [("spec.jobTemplate.spec.selector", "repaired")]
    assert obj["spec"]["jobTemplate"]["spec"] == {"template": template()}


def test_a_version_that_the_target_serves_stays_as_it_is() -> None:
    assert found(rule, workload(EXTENSIONS, "Deployment"), replace(ROAD_2, target=(1, 14))) == []


@pytest.mark.parametrize("made", [{}, template(labels=None), {"metadata": {"annotations": {}}}])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_what_has_neither_labels_nor_a_selector_may_be_a_patch(kind: str, made: Any) -> None:
    obj = workload("apps/v1", kind)
    obj["spec"] = {"template": made}

    assert not said(rule, obj)
    obj["apiVersion"] = EXTENSIONS if kind != "StatefulSet" else "apps/v1beta1"
    assert said(rule, obj) == [("spec.template", "reported")]
