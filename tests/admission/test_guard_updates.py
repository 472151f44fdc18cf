"""What the guard answers when a pod that is stored is changed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.admission.test_policy import STRICT, asking
from tests.admission.test_told import Desk
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


def test_an_update_that_is_too_large_is_never_refused() -> None:
    large = pod(ALL, *({"name": f"V{number}", "value": "x" * 900} for number in range(2500)))
    answer, after = update(large, pod(VOID))
    assert answer["allowed"] is True
    assert after == large


def test_an_update_that_comes_too_late_to_be_judged_is_never_refused() -> None:
    sent = review(pod(ALL), namespace=STRICT, operation="UPDATE", oldObject=pod(VOID))
    answer = json.loads(Desk().decider.late("/guard", "too late", parse(dump(sent))))["response"]
    assert answer["allowed"] is True
