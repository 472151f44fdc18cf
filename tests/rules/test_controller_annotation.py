from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import EXTENSIONS, found, said, template, workload
from tests.rules.pods import LEGACY, container, pod
from webhook.core.edits import Remove
from webhook.core.findings import Finding
from webhook.kube.pointer import Path
from webhook.rules import controller_annotation as rule

TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
INIT = "pod.beta.kubernetes.io/init-containers"
CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
DEAD = {"annotations": {TOLERATIONS: "[]"}}
LIVE = {
    "annotations": {
        "scheduler.alpha.kubernetes.io/defaultTolerations": "[]",
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist": "[]",
        "scheduler.alpha.kubernetes.io/node-selector": "a=b",
        TOLERATIONS: "[]",
    }
}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(
            workload("apps/v1", "Deployment", {"annotations": {"a": "b"}}),
            id="other annotations: untouched",
        ),
        pytest.param(
            pod(container({LEGACY: 1}), annotations={TOLERATIONS: "[]"}),
            id="a pod: tolerations-annotation's",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", made=template(annotations={TOLERATIONS: "[]"})),
            id="in the template: tolerations-annotation's",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": LIVE},
            id="on a Namespace they are alive",
        ),
        pytest.param(
            workload("kubeflow.org/v1", "TFJob", dict(DEAD)), id="an operator may read them"
        ),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize("key", [TOLERATIONS, INIT, CRITICAL])
@pytest.mark.parametrize(
    ("api", "kind"),
    [(EXTENSIONS, "DaemonSet"), ("v1", "ReplicationController"), ("apps/v1", "StatefulSet")],
)
def test_it_goes_and_is_never_moved(api: str, kind: str, key: str) -> None:
    obj = workload(api, kind, {"annotations": {key: "[]", "a": "b"}})
    assert said(rule, obj) == [(f"metadata.annotations[{key}]", "repaired")]
    assert obj["metadata"]["annotations"] == {"a": "b"}
    assert obj["spec"] == {"template": template()}


def test_the_whole_finding() -> None:
    at = Path(("metadata", "annotations", TOLERATIONS))
    message = (
        f"the annotation {TOLERATIONS} is not in the pod template and never had an effect: delete "
        "it; what is wanted of the pods today is a field of the template's spec"
    )
    obj = workload("apps/v1", "Deployment", {"annotations": {TOLERATIONS: "[]"}})
    assert found(rule, obj) == [Finding(rule.CODE, at, message, (Remove(at),))]


def test_on_the_jobs_of_a_cron_job() -> None:
    obj = workload("batch/v1", "CronJob")
    obj["spec"]["jobTemplate"]["metadata"] = {"annotations": {TOLERATIONS: "[]"}}
    place = f"spec.jobTemplate.metadata.annotations[{TOLERATIONS}]"
    assert said(rule, obj) == [(place, "repaired")]
    assert "annotations" not in obj["spec"]["jobTemplate"]["metadata"]
