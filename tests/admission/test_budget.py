"""What is too large, or comes too late, to be judged: refused by rules in force, else told."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.admission.test_policy import SETTINGS, STRICT, USUAL, Court, asking, deployment
from tests.admission.test_told import Desk, legacy
from tests.hostile.wire import review
from webhook.admission.review import HEAD_BYTES, dump, glance, parse
from webhook.core.object_size import MOST_ENTRIES, MOST_TEMPLATES
from webhook.evaluation import repair_record

OVER = f"it has more than {MOST_ENTRIES} fields and list items; make it smaller"
LATE = "too many large objects came at the same time; send it again"
DENIED = "gpu-webhook: GPU304 is in force here and could not check this pod: "
UNSAFE = DENIED.replace("GPU304", "GPU303")
PATHS = {"refuse": "/guard/refuse"}
UNJUDGED = "gpu-webhook: this object was admitted without checks: "
UNREPAIRED = "gpu-webhook: this object was admitted without repair: "


def bomb() -> dict[str, Any]:
    pod = asking(9)
    pod["spec"]["tolerations"] = [{}] * (MOST_ENTRIES + 1)
    return pod


@pytest.mark.parametrize(
    ("road", "namespace", "denial", "warning", "outcome"),
    [
        pytest.param("validate", STRICT, DENIED, "", "unfinished", id="a limit in force"),
        pytest.param("validate", USUAL, "", UNJUDGED, "unfinished", id="a limit that warns"),
        pytest.param("validate", "silent", "", "", "unfinished", id="a limit that is only counted"),
        pytest.param("validate", "nothing", "", "", "passed", id="no limit"),
        pytest.param("validate", "left-alone", "", "", "passed", id="the namespace opted out"),
        pytest.param("mutate", STRICT, "", UNREPAIRED, "unfinished", id="a repair never refuses"),
        pytest.param("mutate", "nothing", "", "", "passed", id="no repair"),
        pytest.param("guard", STRICT, UNSAFE, "", "unfinished", id="a guard in force"),
        pytest.param("refuse", STRICT, UNSAFE, "", "unfinished", id="its other half"),
        pytest.param("refuse", USUAL, "", "", "unfinished", id="which says nothing elsewhere"),
        pytest.param("guard", USUAL, "", "", "unfinished", id="a guard that only counts"),
    ],
)
@pytest.mark.parametrize("late", [False, True], ids=["over the budget", "late"])
def test_a_pod_that_is_not_judged(
    road: str,
    namespace: str,
    denial: str,
    warning: str,
    outcome: str,
    late: bool,  # noqa: FBT001
) -> None:
    court, why = Court(), LATE if late else OVER
    if late:
        seen = glance(dump(review(asking(9), namespace=namespace)))
        assert seen is not None
        answer = json.loads(court.late(PATHS.get(road, f"/{road}"), seen))["response"]
    else:
        answer = getattr(court, road)(bomb(), namespace)
    assert answer["allowed"] is not bool(denial)
    if denial:
        assert answer["status"]["message"] == denial + why
    assert answer.get("warnings", []) == ([warning + why] if warning else [])
    assert court.metrics.reviews == [(PATHS.get(road, f"/{road}"), outcome)]


def test_a_pod_over_the_budget_without_gpus_passes() -> None:
    court, pod = Court(), bomb()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"example.com/device": 1}}
    answer = court.validate(pod, STRICT)
    assert (answer["allowed"], "warnings" in answer) == (True, False)
    assert court.metrics.reviews == [("/validate", "passed")]


def test_a_workload_over_the_budget_is_not_refused() -> None:
    court = Court()
    obj, request = deployment(bomb())
    answer = court.validate(obj, STRICT, **request)
    assert answer["allowed"] is True
    assert answer["warnings"] == [UNJUDGED + OVER]


@pytest.mark.parametrize("road", ["validate", "mutate"])
def test_a_workload_of_very_many_templates_is_not_judged_however_short_it_is(road: str) -> None:
    court = Court(settings=f"{SETTINGS}\nworkloads: {{repair: true}}")
    groups: list[dict[str, Any]] = [{"template": {}}] * (MOST_TEMPLATES + 1)
    obj = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "r"},
        "spec": {"workerGroupSpecs": groups},
    }
    kind = {"group": "ray.io", "version": "v1", "kind": "RayCluster"}
    answer = getattr(court, road)(obj, USUAL, kind=kind)
    assert answer["allowed"] is True
    why = f"it has more than {MOST_TEMPLATES} pod templates; make it smaller"
    told = {"validate": UNJUDGED, "mutate": UNREPAIRED}[road]
    assert answer["warnings"] == [told + why]


def test_an_update_of_what_is_stored_over_the_budget_is_not_repaired() -> None:
    """It got there while nobody looked, or as it was let in unrepaired."""
    told = [f"{UNREPAIRED}in the object that is stored: {OVER}"]
    court = Court(settings=f"{SETTINGS}\nworkloads: {{repair: true}}")
    obj, request = deployment(asking(1))
    old, _ = deployment(bomb())
    for now, stored, more in ((asking(1), bomb(), {}), (obj, old, request)):
        answer = court.mutate(now, USUAL, operation="UPDATE", oldObject=stored, **more)
        assert answer["allowed"] is True
        assert answer["warnings"] == told


def test_a_late_workload_is_not_refused() -> None:
    obj, request = deployment(asking(9))
    seen = glance(dump(review(obj, namespace=STRICT, **request)))
    assert seen is not None
    answer = json.loads(Court().late("/validate", seen))["response"]
    assert answer["allowed"] is True
    assert answer["warnings"] == [UNJUDGED + LATE]


def test_a_glance_sees_all_but_the_objects() -> None:
    body = dump(review(asking(1, annotations={"a": ',"object":{}'})))
    seen, whole = glance(body), parse(body)
    assert seen is not None
    assert seen.uid == whole.uid
    before = list(whole.request)[: list(whole.request).index("object")]
    assert seen.request == {name: whole.request[name] for name in before}


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"extra": {"a": [], "object": []}}, id="a field `object` in it"),
        pytest.param({"groups": ["g"] * HEAD_BYTES}, id="many groups"),
        pytest.param({"username": "u" * HEAD_BYTES}, id="a long name"),
    ],
)
def test_who_asks_does_not_stand_in_the_way_of_a_glance(user: dict[str, Any]) -> None:
    seen = glance(dump(review({}, userInfo=user))[: 2 * HEAD_BYTES])
    assert seen is not None
    assert list(seen.request)[-1] == "operation"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"kind":"AdmissionReview","request":{}}', id="no object"),
        pytest.param(dump(review({}, uid="a" * HEAD_BYTES)), id="a long text before it"),
    ],
)
def test_what_no_api_server_sends_is_not_glanced_at(body: bytes) -> None:
    assert glance(body) is None


NEVER_SAFE = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
DEEP = "DEEP"


def nested(levels: int, *others: Any, **request: Any) -> bytes:
    """A review of the first object, with managedFields of so many levels in each of them."""
    for each in others:
        each["metadata"]["managedFields"] = [{"manager": "x", "fieldsV1": DEEP}]
    fields = b'{"f:a":' * levels + b"{}" + b"}" * levels
    return dump(review(others[0], **request)).replace(b'"DEEP"', fields)


@pytest.mark.parametrize("levels", [500, 900, 960, 980, 1000, 1010, 1015])
@pytest.mark.parametrize("road", ["mutate", "guard"])
def test_no_depth_of_managed_fields_keeps_a_pod_from_being_repaired(road: str, levels: int) -> None:
    """They are the one place of a pod with JSON of any shape, and no rule changes them."""
    pod = legacy()
    pod["spec"]["containers"][0]["env"] = [NEVER_SAFE]
    sent = parse(nested(levels, pod, namespace=STRICT))
    answer = json.loads(Desk().decider.answer(f"/{road}", sent))["response"]
    assert answer["allowed"] is True
    assert "patch" in answer


@pytest.mark.parametrize("levels", [500, 980, 1000, 1015])
def test_nor_a_workload(levels: int) -> None:
    obj, request = deployment(legacy())
    sent = parse(nested(levels, obj, namespace=USUAL, **request))
    desk = Desk(f"{SETTINGS}\nworkloads: {{repair: true}}")
    assert "patch" in json.loads(desk.decider.answer("/mutate", sent))["response"]


@pytest.mark.parametrize("levels", [500, 980, 1015])
def test_nor_fails_the_update_of_a_workload_on_it(levels: int) -> None:
    obj, request = deployment(legacy())
    obj["metadata"]["annotations"] = {repair_record.ANNOTATION: "{}"}
    old = copy.deepcopy(obj)
    more = request | {"operation": "UPDATE", "oldObject": old}
    sent = parse(nested(levels, obj, old, namespace=USUAL, **more))
    desk = Desk(f"{SETTINGS}\nworkloads: {{repair: true}}")
    assert json.loads(desk.decider.answer("/mutate", sent))["response"]["allowed"] is True


@pytest.mark.parametrize("namespace", [STRICT, "careful"])
@pytest.mark.parametrize("error", [RecursionError, ValueError])
def test_a_pod_that_the_guard_cannot_make_safe_is_refused_where_it_is_in_force(
    namespace: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr("webhook.admission.outcome.flaw", fail)
    pod = asking(0)
    pod["spec"]["containers"][0]["env"] = [NEVER_SAFE]
    desk = Desk()
    answer = desk.ask("guard", pod, namespace)
    assert "patch" not in answer
    assert answer["allowed"] is (namespace != STRICT)
    if namespace == STRICT:
        assert answer["status"]["message"].startswith(UNSAFE)
        (line,) = desk.lines()
        assert line["level"] == ("error" if error is ValueError else "warning")
