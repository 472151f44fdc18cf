"""What the guard answers when a pod that is stored is changed."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import jsonpatch
import pytest

from tests.admission.test_policy import STRICT, asking
from tests.admission.test_told import SETTINGS, Desk
from tests.hostile.wire import review
from webhook.admission.review import dump, parse

VARIABLE = "NVIDIA_VISIBLE_DEVICES"
VOID = {"name": VARIABLE, "value": "void"}
ALL = {"name": VARIABLE, "value": "all"}
HOME = {"name": "HOME", "value": "/root"}


def pod(*env: dict[str, str], **metadata: Any) -> dict[str, Any]:
    obj = asking(0, **metadata)
    obj["spec"]["containers"][0]["env"] = list(env)
    return obj


def update(sent: Any, stored: Any, namespace: str = STRICT) -> tuple[dict[str, Any], Any]:
    """The answer, and the pod with its patch."""
    desk = Desk()
    more = {"operation": "UPDATE", "oldObject": stored}
    answer = desk.ask("guard", copy.deepcopy(sent), namespace, **more)
    return answer, desk.mutated(copy.deepcopy(sent), namespace, road="guard", **more)


@pytest.mark.parametrize(
    ("sent", "stored", "namespace", "expected"),
    [
        pytest.param(pod(HOME, ALL), pod(HOME, VOID), STRICT, True, id="the author's value again"),
        pytest.param(pod(HOME), pod(HOME, VOID), STRICT, True, id="the author sends no variable"),
        pytest.param(pod(ALL), pod(HOME, VOID), STRICT, False, id="and another change"),
        pytest.param(pod(ALL), pod(ALL), STRICT, False, id="a pod from before the guard"),
        pytest.param(pod(VOID), pod(ALL), STRICT, False, id="a change that the guard would like"),
        pytest.param(pod(VOID), pod(VOID), STRICT, False, id="nothing changes"),
        pytest.param(pod(ALL), pod(VOID), "careful", False, id="nothing is changed in this mode"),
        pytest.param(pod(ALL), {"spec": None}, STRICT, False, id="a stored pod of an odd type"),
    ],
)
def test_the_stored_spec_is_sent_if_the_guard_makes_the_same(
    sent: Any, stored: Any, namespace: str, *, expected: bool
) -> None:
    answer, after = update(sent, stored, namespace)
    assert answer["allowed"] is True
    assert ("patch" in answer) is expected
    assert after["spec"] == (stored if expected else sent)["spec"]
    assert expected or "warnings" not in answer


def with_more(pod: dict[str, Any], *more: dict[str, Any], **spec: Any) -> Any:
    """The pod with members of its first container changed, and further containers."""
    first, *others = pod["spec"]["containers"]
    containers = [first | (more[0] if more else {}), *others, *more[1:]]
    made = {**pod, "spec": {**pod["spec"], "containers": containers, **spec}}
    return json.loads(json.dumps(made))  # nothing stands in two places


NEW = {"image": "example.com/i:2"}
SIDE = {"name": "side", "image": "i"}


@pytest.mark.parametrize(
    ("sent", "stored", "expected"),
    [
        pytest.param(
            with_more(pod(ALL), NEW), pod(VOID), with_more(pod(VOID), NEW), id="another image"
        ),
        pytest.param(with_more(pod(), NEW), pod(VOID), with_more(pod(VOID), NEW), id="no variable"),
        pytest.param(
            with_more(pod(ALL), activeDeadlineSeconds=9),
            pod(VOID),
            with_more(pod(VOID), activeDeadlineSeconds=9),
            id="a deadline",
        ),
        pytest.param(
            with_more(pod(ALL), NEW, SIDE | {"env": [ALL, HOME]}),
            with_more(pod(VOID), {}, SIDE | {"env": [VOID, HOME]}),
            with_more(pod(VOID), NEW, SIDE | {"env": [VOID, HOME]}),
            id="the image of one of two containers",
        ),
        pytest.param(
            with_more(pod(ALL), NEW, SIDE | {"env": [ALL]}),
            with_more(pod(VOID), {}, SIDE | {"env": [VOID, HOME]}),
            with_more(pod(VOID), NEW, SIDE | {"env": [ALL]}),
            id="another variable of the other one: the API server says so",
        ),
        pytest.param(
            with_more(pod(ALL), initContainers=[SIDE | NEW | {"env": [ALL]}]),
            with_more(pod(VOID), initContainers=[SIDE | {"env": [VOID]}]),
            with_more(pod(VOID), initContainers=[SIDE | NEW | {"env": [VOID]}]),
            id="the image of an init container",
        ),
    ],
)
def test_only_the_variable_is_as_it_is_stored(sent: Any, stored: Any, expected: Any) -> None:
    answer, after = update(sent, stored)
    assert answer["allowed"] is True
    assert after["spec"] == expected["spec"]


def test_an_update_that_is_too_large_is_never_refused() -> None:
    large = pod(ALL, *({"name": f"V{number}", "value": "x" * 900} for number in range(2500)))
    answer, after = update(large, pod(VOID))
    assert answer["allowed"] is True
    assert after == large


def test_an_update_that_comes_too_late_to_be_judged_is_never_refused() -> None:
    sent = review(pod(ALL), namespace=STRICT, operation="UPDATE", oldObject=pod(VOID))
    answer = json.loads(Desk().decider.late("/guard", "too late", parse(dump(sent))))["response"]
    assert answer["allowed"] is True


EXEMPTING = f"{SETTINGS}\nguard: {{exempt: [{{labels: {{app: dcgm}}}}]}}"
BY_MAP = {"name": VARIABLE, "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}
FRACTION: dict[str, Any] = {"annotations": {"gpu-fraction": "0.5"}}


def debugged(road: str, stored: Any, env: Any = ALL, **sent: Any) -> tuple[dict[str, Any], Any]:
    """The answer to who adds an ephemeral container, and sends these fields with it."""
    pod = copy.deepcopy(stored)
    pod["metadata"] |= sent.pop("metadata", {})
    pod["spec"] |= sent | {"ephemeralContainers": [{"name": "d", "image": "i", "env": [HOME, env]}]}
    more = {"operation": "UPDATE", "subResource": "ephemeralcontainers", "oldObject": stored}
    answer = Desk(EXEMPTING).ask(road, copy.deepcopy(pod), STRICT, **more)
    if "patch" in answer:
        pod = jsonpatch.apply_patch(pod, base64.b64decode(answer["patch"]))
    return answer, pod


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"os": {"name": "windows"}}, id="that the pod is for Windows"),
        pytest.param(
            {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
            id="that it is a mirror pod",
        ),
        pytest.param(
            {"metadata": FRACTION, "schedulerName": "kai-scheduler", "env": BY_MAP},
            id="that it has a part of a GPU",
        ),
        pytest.param({"metadata": {"labels": {"app": "dcgm"}}}, id="the label of an exempt pod"),
        pytest.param({"containers": []}, id="no containers"),
    ],
)
def test_of_an_update_of_ephemeral_containers_nothing_else_is_believed(sent: Any) -> None:
    """The API server drops the rest of what is sent, but after it has asked."""
    stored = asking(0)
    answer, pod = debugged("guard", stored, **sent)
    assert answer["allowed"] is True
    assert pod["spec"]["ephemeralContainers"][0]["env"] == [HOME, VOID]
    answer, _ = debugged("refuse", stored, **sent)
    assert answer["allowed"] is False


def test_what_is_stored_is_believed() -> None:
    windows = asking(0)
    windows["spec"]["os"] = {"name": "windows"}
    in_part = asking(0, **FRACTION)
    in_part["spec"]["schedulerName"] = "kai-scheduler"
    for stored, env in ((windows, ALL), (in_part, BY_MAP)):
        answer, _ = debugged("guard", stored, env=env)
        assert "patch" not in answer
        answer, _ = debugged("refuse", stored, env=env)
        assert answer["allowed"] is True
