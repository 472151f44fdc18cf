from __future__ import annotations

from typing import Any

import pytest

from tests.rules.objects import UNSAFE, found, template, workload
from tests.rules.pods import FIRST, GPU, LEGACY, container, pod
from webhook.core.edits import Remove
from webhook.core.findings import Finding, Safety, Severity
from webhook.rules import privileged_container as rule

ALL = {"privileged": True}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(pod(container({LEGACY: 1})), id="no rights: untouched"),
        pytest.param(pod(container(securityContext=ALL)), id="no GPU: untouched"),
        pytest.param(pod(container({LEGACY: 0}, securityContext=ALL)), id="no GPU of it"),
        pytest.param(
            pod(container({LEGACY: 1}, securityContext={"privileged": False})), id="explicitly not"
        ),
        pytest.param(pod(container({"cpu": 1}, securityContext=ALL)), id="only a processor"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj, UNSAFE) == []


def test_the_whole_finding_which_changes_nothing_unasked() -> None:
    at = FIRST / "securityContext" / "privileged"
    message = (
        "container cuda is privileged and sees all GPUs of its node: delete privileged, the device "
        "plugin gives it those that it requests"
    )
    obj = pod(container({LEGACY: 1}, securityContext=dict(ALL)))
    finding = Finding(
        rule.CODE, at, message, (Remove(at),), severity=Severity.NOTICE, safety=Safety.UNSAFE
    )
    assert found(rule, obj) == [finding]
    assert obj == pod(container({LEGACY: 1}, securityContext=dict(ALL)))


@pytest.mark.parametrize(
    ("rights", "left"),
    [
        pytest.param(ALL, None, id="nothing is left of it"),
        pytest.param({**ALL, "runAsUser": 0}, {"runAsUser": 0}, id="the rest stays"),
    ],
)
@pytest.mark.parametrize("name", [LEGACY, GPU])
def test_on_request(name: str, rights: Any, left: Any) -> None:
    made = template(container(requests={name: 1}, securityContext=dict(rights)))
    obj = workload("apps/v1", "Deployment", made=made)
    assert [each.action for each in found(rule, obj, UNSAFE)] == ["repaired"]
    assert made["spec"]["containers"][0].get("securityContext") == left
