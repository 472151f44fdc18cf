"""Updates of pods, and of workloads that are repaired: only what concerns us is changed."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import jsonpatch
import pytest

from tests.admission.test_decide import Journal
from tests.hostile.wire import gpu_pod, review
from webhook.admission.decide import Decider
from webhook.admission.review import dump, parse
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.modes import Mode
from webhook.core.repaired_annotation import REPAIRED
from webhook.core.settings import Policy, Settings, Taint, Workloads
from webhook.evaluation import repair_record
from webhook.kube.walk import walk
from webhook.rules import RULES
from webhook.telemetry.logs import Log

LEGACY, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TEMPLATE = "/spec/template/spec/containers/0/resources/limits"


def answered(before: dict[str, Any], response: dict[str, Any]) -> Any:
    """Give the object as the answer leaves it."""
    assert response["allowed"] is True
    if "patch" not in response:
        return before
    return jsonpatch.apply_patch(before, json.loads(base64.b64decode(response["patch"])))


def repaired(pod: dict[str, Any]) -> Any:
    return answered(pod, Journal().mutate(copy.deepcopy(pod)))


def updated(now: dict[str, Any], stored: Any, **more: Any) -> Any:
    journal = Journal()
    sent = copy.deepcopy(now)
    return answered(now, journal.mutate(sent, operation="UPDATE", oldObject=stored, **more))


def legacy_pod() -> dict[str, Any]:
    return gpu_pod() | {"metadata": {"name": "p", "annotations": {AFFINITY: "{}", "note": "n"}}}


def test_words_that_come_back_are_taken_out_again() -> None:
    stored = repaired(legacy_pod())
    now = copy.deepcopy(stored)
    for section in now["spec"]["containers"][0]["resources"].values():
        section[LEGACY] = "2"  # the API server copies the limit
    now["metadata"]["annotations"][AFFINITY] = "{}"
    assert updated(now, stored) == stored


def test_the_note_stays_where_the_pod_does() -> None:
    """In a second round, beside a LimitRange, a rule may have found nothing left to repair."""
    stored = repaired(legacy_pod())
    assert stored["metadata"]["annotations"][REPAIRED] == "GPU101,GPU106,GPU201"
    stored["metadata"]["annotations"][REPAIRED] = "GPU101"
    now = copy.deepcopy(stored)
    now["spec"]["containers"][0]["resources"]["limits"][LEGACY] = "2"
    assert updated(now, stored) == stored


@pytest.mark.parametrize(
    ("stored", "more"),
    [
        pytest.param(None, {}, id="what is stored is not said"),
        pytest.param([], {}, id="what is stored is no object"),
        pytest.param(gpu_pod(), {"subResource": "status"}, id="a status"),
        pytest.param(gpu_pod(), {"subResource": "resize"}, id="a resize"),
        pytest.param(gpu_pod(), {"subResource": "ephemeralcontainers"}, id="kubectl debug"),
        pytest.param(gpu_pod(), {}, id="stored under the legacy name"),
    ],
)
def test_no_other_update_is_changed(stored: Any, more: Any) -> None:
    now = legacy_pod()
    assert updated(now, stored, **more) == now


def test_a_pod_that_opts_out_is_left_alone() -> None:
    stored = repaired(legacy_pod())
    now = legacy_pod()
    now["metadata"]["labels"] = {"gpu-webhook.dev/ignore": "true"}
    assert updated(now, stored) == now


HOSTILE: list[Any] = [None, 7, "x", [], {}, [7], {"x": 7}, True, 10**30, [{"name": []}]]


@pytest.mark.parametrize("odd", HOSTILE, ids=repr)
@pytest.mark.parametrize("side", ["object", "oldObject"])
def test_whatever_stands_somewhere_in_an_update_nothing_breaks(side: str, odd: Any) -> None:
    now = legacy_pod()
    now["spec"] |= {"tolerations": [{"key": "x"}], "affinity": {"nodeAffinity": {}}}
    now["metadata"]["managedFields"] = [
        {"operation": "Apply", "fieldsV1": {"f:spec": {"f:containers": {}}}}
    ]
    for at in [at for at, _ in walk(now)][1:]:
        sent = {"object": copy.deepcopy(now), "oldObject": repaired(now)}
        holder: Any = sent[side]
        try:
            for step in at[:-1]:
                holder = holder[step]
            holder[at[-1]] = odd
        except (LookupError, TypeError):
            continue  # the repaired pod has no such place
        updated(sent["object"], sent["oldObject"])


def deployment(amount: object) -> dict[str, Any]:
    limits = {LEGACY: amount}
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n"},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [container]}}},
    }


def applied(
    obj: dict[str, Any],
    stored: Any = None,
    rules: Policy | None = None,
    inventory: Inventory | None = None,
) -> Any:
    settings = Settings(workloads=Workloads(repair=True), policy=rules or Policy())
    group, version = obj["apiVersion"].split("/")
    request = {
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "operation": "CREATE" if stored is None else "UPDATE",
        "oldObject": stored,
    }
    asked = parse(dump(review(copy.deepcopy(obj), **request)))
    decider = Decider(RULES, settings, inventory, Log(1))
    return answered(obj, json.loads(decider.answer("/mutate", asked))["response"])


def test_a_workload_notes_what_was_changed_and_follows_its_author() -> None:
    first = applied(deployment("1"))
    assert repair_record.ANNOTATION in first["metadata"]["annotations"]
    assert not first["spec"]["template"]["metadata"]
    now = copy.deepcopy(first)
    limits = now["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits[LEGACY] = "2"
    second = applied(now, first)
    assert second["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {GPU: "2"}
    limits[LEGACY] = "1"
    assert applied(now, first) == first


def test_a_job_gets_the_template_that_is_stored() -> None:
    job = deployment("1") | {"apiVersion": "batch/v1", "kind": "Job"}
    first = applied(job)
    old = copy.deepcopy(first)
    limits = old["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert applied(job, old)["spec"] == first["spec"]
    limits[GPU] = "7"  # whoever else changed it: it is stored
    assert applied(job, old)["spec"]["template"]["spec"]["containers"] != old


def test_a_job_keeps_its_record_where_the_annotations_are_removed() -> None:
    """As the first server-side apply removes the map of annotations that `kubectl apply` made."""
    job = deployment("1") | {"kind": "Job", "apiVersion": "batch/v1"}
    stored = applied(job)
    assert repair_record.ANNOTATION in stored["metadata"]["annotations"]
    again = applied(copy.deepcopy(job), stored)
    assert again["metadata"]["annotations"] == stored["metadata"]["annotations"]
    assert again["spec"] == stored["spec"]
    by_hand = copy.deepcopy(stored)
    del by_hand["metadata"]["annotations"][repair_record.ANNOTATION]
    assert repair_record.ANNOTATION not in applied(by_hand, stored)["metadata"]["annotations"]


def fixed(kind: str) -> dict[str, Any]:
    """Give an object whose template never changes: the API server, or a webhook of its kind."""
    made = deployment("1")
    template = made["spec"]["template"]
    match kind:
        case "batch/v1 Job":
            spec = {"template": template}
        case "batch.volcano.sh/v1alpha1 Job":
            spec = {"tasks": [{"name": "t", "template": template}]}
        case _:
            inside = {"spec": {"template": template}}
            spec = {"replicatedJobs": [{"name": "j", "template": inside}]}
    version, kind = kind.split()
    return made | {"apiVersion": version, "kind": kind, "spec": spec}


@pytest.mark.parametrize(
    "kind", ["batch/v1 Job", "batch.volcano.sh/v1alpha1 Job", "jobset.x-k8s.io/v1alpha2 JobSet"]
)
def test_a_fixed_template_stays_where_only_metadata_change(kind: str) -> None:
    tainted = Inventory((NodeClass({}, (Taint(GPU, "", "NoSchedule"),), {GPU: 8}),))
    made = fixed(kind)
    first = applied(made, rules=Policy(rules={"GPU201": Mode.OFF}), inventory=tainted)
    assert GPU in json.dumps(first["spec"])
    now = copy.deepcopy(first)
    now["metadata"] |= {"labels": {"a": "b"}}
    assert applied(now, first, inventory=tainted) == now
    assert applied(made, first, inventory=tainted)["spec"] == first["spec"]


def test_a_note_without_room_goes() -> None:
    full = deployment("1")
    full["metadata"]["annotations"] = {"a": "b" * 262_000, repair_record.ANNOTATION: "x"}
    assert applied(full)["metadata"]["annotations"].keys() == {"a", REPAIRED}


def test_odd_metadata_are_left_to_the_api_server() -> None:
    odd = deployment("1") | {"metadata": 7}
    assert applied(odd)["metadata"] == 7
