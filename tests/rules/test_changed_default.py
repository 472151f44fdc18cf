from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.objects import EXTENSIONS, ROAD_2, found, template, workload
from webhook.core.findings import Finding, Severity
from webhook.kube.pointer import ROOT
from webhook.rules import changed_default as rule

NAMED = {"labels": {"app": "train"}}
ON_DELETE = {"type": "OnDelete"}
ONE_BY_ONE = {"maxSurge": 1, "maxUnavailable": 1}
KEPT: Any = {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(workload("apps/v1", "Deployment"), id="a version of today: untouched"),
        pytest.param(workload("apps/v1beta2", "StatefulSet"), id="it had today's defaults"),
        pytest.param(
            workload(EXTENSIONS, "DaemonSet", NAMED, updateStrategy={"type": "RollingUpdate"}),
            id="a DaemonSet says it",
        ),
        pytest.param(
            workload(
                EXTENSIONS,
                "Deployment",
                NAMED,
                **KEPT,
                strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}},
            ),
            id="a Deployment says all of it",
        ),
        pytest.param(
            workload(EXTENSIONS, "Deployment", NAMED, **KEPT, strategy={"type": "Recreate"}),
            id="a Deployment that does not roll",
        ),
        pytest.param(
            workload(EXTENSIONS, "Job", backoffLimit=1, made=template(labels=None)),
            id="a Job says it, and there are no labels to take",
        ),
        pytest.param(workload("batch/v2alpha1", "Job", backoffLimit=1), id="a Job of v2alpha1"),
        pytest.param(workload("batch/v1beta1", "CronJob"), id="v1beta1 had today's limits"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj) == []


@pytest.mark.parametrize(
    ("api", "kind", "spec", "expected"),
    [
        pytest.param(
            EXTENSIONS, "DaemonSet", {}, {"updateStrategy": ON_DELETE}, id="a DaemonSet waited"
        ),
        pytest.param(
            EXTENSIONS,
            "DaemonSet",
            {"updateStrategy": {"type": ""}},
            {"updateStrategy": ON_DELETE},
            id="an empty type is none",
        ),
        pytest.param(
            "apps/v1beta1",
            "StatefulSet",
            {},
            {"updateStrategy": ON_DELETE},
            id="a StatefulSet waited",
        ),
        pytest.param(
            "apps/v1alpha1", "PetSet", {}, {"updateStrategy": ON_DELETE}, id="a PetSet waited"
        ),
        pytest.param(
            EXTENSIONS,
            "Deployment",
            KEPT,
            {**KEPT, "strategy": {"rollingUpdate": ONE_BY_ONE}},
            id="a Deployment rolled one by one",
        ),
        pytest.param(
            EXTENSIONS,
            "Deployment",
            {**KEPT, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}},
            {
                **KEPT,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1},
                },
            },
            id="what the file says stays",
        ),
    ],
)
def test_the_update_strategy_is_written(api: str, kind: str, spec: Any, expected: Any) -> None:
    obj = workload(api, kind, NAMED, **spec)
    assert [each.action for each in found(rule, obj)] == ["repaired"]
    assert obj["spec"] == {"template": template(), **expected}


def test_the_whole_finding() -> None:
    [finding] = found(rule, workload(EXTENSIONS, "Deployment", NAMED, **KEPT))
    assert finding.message == (
        "a Deployment of extensions/v1beta1 rolled one pod at a time, today's rolls by 25 %: "
        "write 1 as maxSurge and maxUnavailable of strategy.rollingUpdate"
    )


@pytest.mark.parametrize(
    ("obj", "changed"),
    [
        pytest.param(
            workload(EXTENSIONS, "Deployment", NAMED, strategy={"type": "Recreate"}),
            "revisionHistoryLimit: 2147483647 (now 10); "
            "progressDeadlineSeconds: 2147483647 (now 600)",
            id="a Deployment of extensions",
        ),
        pytest.param(
            workload("apps/v1beta1", "Deployment", NAMED),
            "revisionHistoryLimit: 2 (now 10)",
            id="a Deployment of apps/v1beta1",
        ),
        pytest.param(
            workload("batch/v2alpha1", "ScheduledJob"),
            "successfulJobsHistoryLimit: 2147483647 (now 3); "
            "failedJobsHistoryLimit: 2147483647 (now 1)",
            id="a ScheduledJob",
        ),
        pytest.param(
            workload(EXTENSIONS, "Job", NAMED),
            "backoffLimit: 2147483647 (now 6)",
            id="a Job",
        ),
        pytest.param(
            workload(EXTENSIONS, "ReplicaSet"),
            "the template's labels as metadata.labels (now none)",
            id="an object without labels",
        ),
    ],
)
def test_other_defaults_are_told(obj: Any, changed: str) -> None:
    message = f"to keep the defaults of {obj['apiVersion']}, write {changed}"
    at = ROOT / "apiVersion"
    assert found(rule, obj) == [Finding(rule.CODE, at, message, severity=Severity.NOTICE)]


def test_limits_that_the_cron_job_says_are_not_told() -> None:
    obj = workload("batch/v2alpha1", "CronJob")
    obj["spec"] |= {"successfulJobsHistoryLimit": 5, "failedJobsHistoryLimit": 5}
    assert found(rule, obj) == []


def test_a_version_that_the_target_serves_keeps_its_defaults() -> None:
    assert found(rule, workload(EXTENSIONS, "DaemonSet"), replace(ROAD_2, target=(1, 15))) == []
