"""Road 1: whatever goes wrong with a rule or a patch, the pod gets in."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tests.admission.kept_lines import KeptLines
from tests.admission.test_response import MORE
from tests.cases import MadeRule
from tests.hostile.wire import MODERN, gpu_pod, review
from webhook.admission.decide import Decider
from webhook.admission.endpoint import Endpoint
from webhook.admission.review import dump, parse
from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.repaired_annotation import REPAIRED
from webhook.core.rule import Facts, Stage
from webhook.core.settings import Settings
from webhook.kube.pointer import ROOT
from webhook.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from webhook.core.rule import Context
    from webhook.kube.pod import Pod

    Check = Callable[[Pod, Context], Iterator[Finding]]


class Journal:
    """Decisions of these rules, and the lines that they left in the log."""

    def __init__(self, *checks: Check) -> None:
        rules = [
            MadeRule(NAME="r", CODE=f"GPU90{n}", FACTS=Facts(Stage.REPAIR), check=check)
            for n, check in enumerate(checks)
        ]
        self._kept = KeptLines()
        self._decider = Decider(rules or RULES, Settings(), None, self._kept.log)
        self.endpoint = Endpoint(self._decider, lambda: "")

    def mutate(self, pod: Any = None, **request: Any) -> dict[str, Any]:
        body = dump(review(pod or gpu_pod(), **request))
        answer: dict[str, Any] = json.loads(self._decider.answer("/mutate", parse(body)))
        response: dict[str, Any] = answer["response"]
        return response

    def lines(self) -> list[dict[str, Any]]:
        return self._kept.lines()


def patch_of(response: dict[str, Any]) -> Any:
    return json.loads(base64.b64decode(response["patch"]))


def raising(_: Pod, __: Context) -> Iterator[Finding]:
    raise KeyError("hunter2")
    yield


def labelling(_: Pod, __: Context) -> Iterator[Finding]:
    edit = Set(ROOT / "metadata" / "labels" / "a", "b")
    yield Finding("GPU901", ROOT / "metadata", "labelled", (edit,))


def reporting(_: Pod, __: Context) -> Iterator[Finding]:
    yield Finding("GPU902", ROOT / "spec", "look at it", severity=Severity.MANUAL)


def denying(_: Pod, __: Context) -> Iterator[Finding]:
    yield Finding("GPU903", ROOT / "spec", "must not run", severity=Severity.DENY)


def emptying(_: Pod, __: Context) -> Iterator[Finding]:
    yield Finding("GPU904", ROOT / "spec", "emptied", (Remove(ROOT / "spec" / "containers"),))


def unsayable(_: Pod, __: Context) -> Iterator[Finding]:
    edit = Set(ROOT / "metadata" / "labels" / "a", object())
    yield Finding("GPU905", ROOT / "metadata", "no JSON", (edit,))


def test_a_repair_is_logged_in_one_line() -> None:
    journal = Journal()
    pod = gpu_pod()
    owner = {"kind": "ReplicaSet", "name": "r", "controller": True}
    pod["metadata"] = {"generateName": "r-", "ownerReferences": [owner]}
    journal.mutate(pod, uid="u", namespace="n")
    (line,) = journal.lines()
    assert line.pop("milliseconds") > 0
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "message": "pod patched",
        "uid": "u",
        "namespace": "n",
        "name": "r-",
        "owner": {"kind": "ReplicaSet", "name": "r"},
        "user": "admin",
        "legacy": True,
        "codes": ["GPU101", "GPU201"],
        "actions": ["GPU101 enforce: repaired", "GPU201 enforce: repaired"],
        "outcome": "patched",
    }


def test_a_pod_that_is_none_of_our_business_leaves_no_line() -> None:
    journal = Journal()
    assert "patch" not in journal.mutate(gpu_pod(containers=[{"name": "c"}]))
    assert journal.lines() == []


def test_a_rule_that_raises_is_logged_and_the_rest_acts() -> None:
    journal = Journal(raising, labelling)
    response = journal.mutate()
    assert patch_of(response) == [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "add", "path": "/metadata/annotations", "value": {REPAIRED: "GPU901"}},
    ]
    failed, patched = journal.lines()
    assert (failed["level"], failed["codes"]) == ("error", ["GPU900"])
    assert failed["error"].startswith("KeyError in test_decide.py:")
    assert "hunter2" not in json.dumps(failed)
    assert patched["outcome"] == "patched"


def test_a_finding_without_edits_is_a_warning_only() -> None:
    journal = Journal(reporting)
    assert journal.mutate() == {
        "uid": "8f0b2d54-0000-4000-8000-00000000000a",
        "allowed": True,
        "warnings": ["GPU902: look at it [enforce: reported]", MORE],
        "auditAnnotations": {"gpu902": "enforce: reported"},
    }
    assert [line["outcome"] for line in journal.lines()] == ["reported"]


def test_mutate_never_denies() -> None:
    response = Journal(denying).mutate()
    assert response["allowed"] is True
    assert response["warnings"] == ["GPU903: must not run [enforce: reported]", MORE]


def test_a_patch_that_is_no_json_is_not_sent() -> None:
    journal = Journal(unsayable)
    response = journal.mutate()
    assert "patch" not in response
    assert "without repair" in response["warnings"][0]
    (line,) = journal.lines()
    assert (line["level"], line["outcome"]) == ("error", "refused")


def test_a_patch_that_fails_its_test_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(labelling)
    wrong = b'[{"op":"remove","path":"/spec/nothing"}]'
    monkeypatch.setattr("webhook.admission.outcome.dump", lambda _: wrong)
    response = journal.mutate()
    assert "patch" not in response
    assert response["warnings"][0].startswith(
        "gpu-webhook: this object was admitted without repair"
    )
    (line,) = journal.lines()
    assert (line["level"], line["outcome"]) == ("error", "refused")
    assert "ValueError in verify.py" in line["error"]


def test_a_failure_outside_the_rules_lets_the_pod_in(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(emptying)

    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr("webhook.evaluation.evaluate.run", explode)
    body = dump(review(gpu_pod()))
    answer = journal.endpoint.post("/mutate", "application/json", "", body)
    assert answer.status == 200
    response = json.loads(answer.body)["response"]
    assert response["allowed"] is True
    assert "patch" not in response
    (line,) = journal.lines()
    assert (line["level"], line["error"]) == ("error", "RuntimeError")


def test_the_rules_see_the_namespace_of_the_request() -> None:
    seen = []

    def look(_: Pod, cx: Context) -> Iterator[Finding]:
        seen.append(cx.namespace)
        yield from ()

    Journal(look).mutate(namespace="team-a")
    assert seen == ["team-a"]


def test_all_default_rules_take_a_modern_pod_as_it_is() -> None:
    pod = gpu_pod(
        containers=[{"name": "c", "resources": {"limits": {MODERN: 1}, "requests": {MODERN: 1}}}],
        tolerations=[{"key": MODERN, "operator": "Exists", "effect": "NoSchedule"}],
    )
    journal = Journal()
    response = journal.mutate(pod)
    assert "patch" not in response
    assert "warnings" not in response
