from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.engine import run
from tests.rules.pods import GPU, LEGACY, LONGEST_WARNING, container, found, legacy_pod, pod
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import Settings, Workloads
from webhook.kube.pointer import ROOT
from webhook.rules import RULES
from webhook.rules import queued_template as rule

KUEUE = "kueue.x-k8s.io/queue-name"
VOLCANO = "scheduling.volcano.sh/queue-name"
JOBS = "batch/v1"
APPS = "apps/v1"
IN_KUEUE = {"labels": {KUEUE: "team-a"}}


def workload(kind: str, api: str, labels: Any = None, annotations: Any = None, **spec: Any) -> Any:
    metadata = {"name": "train", "labels": labels, "annotations": annotations}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def inside(kind: str, api: str, **more: Any) -> Context:
    return Context(template=True, workload=workload(kind, api, **more))


def repairing(mode: Mode) -> Context:
    settings = Settings(workloads=Workloads(repair=True))
    cx = inside("Job", JOBS, **IN_KUEUE)
    return replace(cx, settings=settings, modes=Modes(rules={"GPU101": mode}))


def labelled(obj: dict[str, Any], labels: Any) -> dict[str, Any]:
    obj["metadata"]["labels"] = labels
    return obj


def too_late(queue: str, legacy: str = LEGACY, new: str = GPU) -> Finding:
    message = (
        f"{queue} counts GPUs in this template, and a pod is repaired too late for it: ask for "
        f"{new} here instead of {legacy}, which no quota knows"
    )
    return Finding(rule.CODE, ROOT, message, severity=Severity.MANUAL)


def in_time(queue: str) -> Finding:
    message = (
        f"{queue} counts GPUs in the pods as they are made, so only in repaired ones; ask for "
        f"{GPU} in the template, and it never depends on the repair"
    )
    return Finding(rule.CODE, ROOT, message, severity=Severity.NOTICE)


IN_VOLCANO = {"annotations": {VOLCANO: "team-a"}}
KUEUE_SAID = too_late("Kueue (queue team-a)")
VOLCANO_SAID = too_late("Volcano (queue team-a)")


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        # Kueue
        pytest.param(legacy_pod(), inside("Job", JOBS, **IN_KUEUE), [KUEUE_SAID], id="a Job"),
        pytest.param(
            legacy_pod(),
            inside("CronJob", JOBS, jobTemplate={"metadata": IN_KUEUE}),
            [KUEUE_SAID],
            id="a CronJob whose Jobs go through a queue",
        ),
        pytest.param(
            legacy_pod(),
            inside("JobSet", "jobset.x-k8s.io/v1alpha2", **IN_KUEUE),
            [KUEUE_SAID],
            id="a JobSet",
        ),
        pytest.param(
            legacy_pod(),
            inside("StatefulSet", APPS, **IN_KUEUE),
            [KUEUE_SAID],
            id="a StatefulSet, which Kueue of today counts by its template",
        ),
        pytest.param(
            legacy_pod(),
            inside("Deployment", APPS, **IN_KUEUE),
            [in_time("Kueue (queue team-a)")],
            id="a Deployment's pods are queued one by one, repaired: a notice",
        ),
        pytest.param(
            labelled(legacy_pod(), {KUEUE: "team-a"}),
            inside("ReplicaSet", APPS),
            [in_time("Kueue (queue team-a)")],
            id="the label on the template alone: pods are queued one by one",
        ),
        pytest.param(
            legacy_pod(), inside("Job", JOBS, labels={KUEUE: ""}), [], id="an empty queue is none"
        ),
        pytest.param(
            legacy_pod(),
            inside("Job", JOBS, annotations={KUEUE: "team-a"}),
            [],
            id="Kueue reads no annotation",
        ),
        # Volcano
        pytest.param(
            legacy_pod(),
            inside("Job", "batch.volcano.sh/v1alpha1", queue="team-a"),
            [VOLCANO_SAID],
            id="Volcano's own Job",
        ),
        pytest.param(
            legacy_pod(),
            inside("Job", "batch.volcano.sh/v1alpha1"),
            [too_late("Volcano (queue default)")],
            id="Volcano's own Job without a queue",
        ),
        pytest.param(
            legacy_pod(),
            inside("TFJob", "kubeflow.org/v1", **IN_VOLCANO),
            [VOLCANO_SAID],
            id="a TFJob with Volcano's annotation",
        ),
        pytest.param(
            legacy_pod({"volcano.sh/queue-name": "team-a"}),
            inside("MPIJob", "kubeflow.org/v1"),
            [VOLCANO_SAID],
            id="the annotation on the template, in its short form",
        ),
        pytest.param(
            legacy_pod(schedulerName="volcano"),
            inside("PyTorchJob", "kubeflow.org/v1"),
            [too_late("Volcano")],
            id="only the scheduler is named",
        ),
        pytest.param(
            legacy_pod(),
            inside("RayCluster", "ray.io/v1", labels={"ray.io/scheduler-name": "volcano"}),
            [too_late("Volcano")],
            id="KubeRay's label for the scheduler",
        ),
        pytest.param(
            legacy_pod(),
            inside("RayCluster", "ray.io/v1", labels={"volcano.sh/queue-name": "a"}),
            [too_late("Volcano (queue a)")],
            id="KubeRay's label for the queue",
        ),
        pytest.param(
            legacy_pod({"scheduling.k8s.io/group-name": "gang"}),
            inside("TFJob", "kubeflow.org/v1"),
            [too_late("Volcano")],
            id="only the gang is named",
        ),
        pytest.param(
            legacy_pod({VOLCANO: "of-the-template"}),
            inside("TFJob", "kubeflow.org/v1", **IN_VOLCANO),
            [VOLCANO_SAID],
            id="the workload's own queue counts more than the template's",
        ),
        pytest.param(
            legacy_pod(schedulerName="volcano"),
            inside("Deployment", APPS),
            [in_time("Volcano")],
            id="a Deployment under Volcano: it counts the pods",
        ),
        pytest.param(
            legacy_pod(),
            inside("Job", JOBS, **IN_VOLCANO),
            [in_time("Volcano (queue team-a)")],
            id="the Job of Kubernetes: it counts the pods",
        ),
        # both, and what the amounts say
        pytest.param(
            legacy_pod(schedulerName="volcano"),
            inside("MPIJob", "kubeflow.org/v1", **IN_KUEUE),
            [KUEUE_SAID, too_late("Volcano")],
            id="both: each says its own",
        ),
        pytest.param(
            pod(container({GPU: 1}), initContainers=[container(requests={LEGACY: 1})]),
            inside("Job", JOBS, **IN_KUEUE),
            [KUEUE_SAID],
            id="only an init container's request",
        ),
        pytest.param(
            pod(container({LEGACY: 0})), inside("Job", JOBS, **IN_KUEUE), [], id="no GPU asked for"
        ),
        pytest.param(
            pod(container({GPU: 1})),
            inside("Job", JOBS, **IN_KUEUE),
            [],
            id="a template that was migrated",
        ),
        pytest.param(legacy_pod(), inside("Job", JOBS), [], id="no queue"),
        pytest.param(
            legacy_pod(schedulerName="default-scheduler"),
            inside("Job", JOBS, labels={"a": "b"}),
            [],
            id="another scheduler and another label",
        ),
        pytest.param(
            legacy_pod(),
            Context(workload=workload("Job", JOBS, **IN_KUEUE)),
            [],
            id="a pod, and no template: it is repaired before it is counted",
        ),
        pytest.param(legacy_pod(), repairing(Mode.ENFORCE), [], id="templates are repaired too"),
        pytest.param(
            legacy_pod(),
            repairing(Mode.WARN),
            [KUEUE_SAID],
            id="they would be, but the repair only warns",
        ),
        pytest.param(
            legacy_pod(schedulerName="volcano"),
            Context(template=True),
            [too_late("Volcano")],
            id="a template of which nothing else is known",
        ),
        pytest.param(
            pod(container({"old/gpu": 1})),
            Context(
                Settings(legacy_resources=("old/gpu",), gpu_resource="new/gpu"),
                template=True,
                workload=workload("Job", JOBS, **IN_KUEUE),
            ),
            [too_late("Kueue (queue team-a)", "old/gpu", "new/gpu")],
            id="names of the settings",
        ),
    ],
)
def test_queued_template(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"kind": ["Job"], "spec": 7, "metadata": {"labels": []}}, id="wrong types"),
        pytest.param({"kind": "Job", "metadata": None, "spec": {"jobTemplate": 7}}, id="null"),
        pytest.param(
            {"metadata": {"labels": {"ray.io/scheduler-name": {}}}}, id="a map as a label"
        ),
    ],
)
def test_a_broken_workload_is_in_no_queue(broken: Any) -> None:
    assert found(rule, legacy_pod(), Context(template=True, workload=broken)) == []


def test_a_queue_s_long_name_is_cut() -> None:
    cx = inside("TFJob", "kubeflow.org/v1", annotations={VOLCANO: "q" * 300})
    [finding] = found(rule, legacy_pod(), cx)
    assert len(f"{finding.code}: {finding.message}") <= LONGEST_WARNING
    assert f"(queue {'q' * 63})" in finding.message


def test_a_file_with_amounts_of_today_gets_a_notice() -> None:
    """A second run over that file says nothing of it."""
    cx = inside("Job", JOBS, **IN_KUEUE)
    for in_manifest, rules, severity in (
        (True, RULES, Severity.NOTICE),
        (True, [rule], Severity.MANUAL),
        (False, RULES, Severity.MANUAL),
    ):
        said = run(rules, legacy_pod(), replace(cx, in_manifest=in_manifest)).findings
        assert [each.severity for each in said if each.code == rule.CODE] == [severity]
