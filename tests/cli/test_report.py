"""`gpu-webhook report --cluster`: what it takes from the scan, the metrics and Events."""

from __future__ import annotations

import base64
import copy
import itertools
import json
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
import yaml

from tests.cli.test_scan_cluster import Cluster, owner
from tests.doctor.installation import (
    HEALTHY,
    changed,
    configuration,
    foreign,
    having,
    namespace,
    tried,
)
from webhook.cli import report_templates
from webhook.cluster import controllers, made_pods
from webhook.cluster.client import Client, Fault, Refused
from webhook.cluster.made_pods import RESTRICTED
from webhook.core.settings import Settings
from webhook.doctor import facts, legacy_counts
from webhook.doctor.legacy_counts import Counted
from webhook.inventory.events import event_of
from webhook.kube.pointer import Path as Place
from webhook.settings.file import parse

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from tests.cli.conftest import Command
    from webhook.doctor.facts import Facts
    from webhook.doctor.other_admission import OtherAdmission

DAY = 86_400.0
NOW = HEALTHY.now
EVENTS, LIMIT_RANGES, METRICS = "/api/v1/events", "/api/v1/limitranges", "/metrics"
SAFE, ERROR, UNKNOWN, LEFT = 0, 1, 2, 3
REFUSE = "validating/gpu-webhook-guard-refuse"
REPAIRED = {"gpu-webhook.dev/repaired": "GPU101"}
LABEL = "gpu-webhook.dev/guard"
UNTRIED = "whether pods need what the webhook adds: no dry run of pods of"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Where nothing legacy came for 45 days, and all of that is known."""
    known = Counted(NOW - 45 * DAY, "a started")
    monkeypatch.setattr(facts, "read", lambda *_: HEALTHY)
    monkeypatch.setattr(legacy_counts, "read", lambda *_: known)
    with Cluster() as running:
        for path in (EVENTS, LIMIT_RANGES):
            running.say_json(path, {"items": []})
        running.say(METRICS, 200, b"", Content_Type="text/plain")
        yield running


@pytest.fixture
def report(cluster: Cluster, tmp_path: Path, gpu_webhook: Command) -> Any:
    def run(*words: str) -> tuple[int, Any]:
        config = f"--kubeconfig={cluster.kubeconfig(tmp_path)}"
        ran = gpu_webhook("report", "--cluster", config, "-o", "json", *words)
        return ran.code, json.loads(ran.out) if ran.out else ran.err

    return run


def created(days: float) -> str:
    return datetime.fromtimestamp(NOW - days * DAY, UTC).isoformat()


def owners(found: Any) -> list[tuple[str, str, int, list[str]]]:
    return [(e["kind"], e["name"], e["objects"], e["codes"]) for e in found["owners"]]


def test_an_empty_cluster_is_safe(report: Any) -> None:
    code, found = report()
    assert (code, found["verdict"]) == (SAFE, "safe")
    assert found["answer"] == "Nothing legacy for 45 days: safe to remove"


def test_days_are_those_of_the_rarest_job(report: Any) -> None:
    code, found = report("--days=60")
    assert (code, found["verdict"]) == (UNKNOWN, "unknown")


def test_each_owner_is_one_row(cluster: Cluster, report: Any) -> None:
    """Two pods of a controller that is no kind of the API server; a Deployment, and its pods."""
    made = cluster.have("Deployment", "train")
    uid = made["metadata"]["uid"]
    replica = cluster.have("ReplicaSet", "train-1", owner("train", "Deployment", "apps/v1", uid))
    uid = replica["metadata"]["uid"]
    cluster.have("Pod", "train-1-x", owner("train-1", "ReplicaSet", "apps/v1", uid))
    for name in ("ray-1", "ray-2"):
        cluster.have("Pod", name, owner("ray", "RayCluster", "ray.io/v1"))
    code, found = report()
    assert code == LEFT
    assert owners(found) == [
        ("Deployment", "train", 1, ["GPU101"]),
        ("RayCluster", "ray", 2, ["GPU101"]),
    ]
    changes = [each["change"] for each in found["owners"]]
    assert changes == ["Deployment/train", "RayCluster/ray: legacy in Pod/ray-1 and 1 more"]
    assert found["checked"] == 5


@pytest.mark.parametrize(
    ("days", "phase", "code"),
    [
        pytest.param(3, "Succeeded", LEFT, id="finished lately"),
        pytest.param(31, "Succeeded", SAFE, id="finished, and older than the time that counts"),
        pytest.param(31, "Running", LEFT, id="old, and still running"),
    ],
)
def test_a_pod_that_was_repaired_names_who_sent_it(
    days: float, phase: str, code: int, cluster: Cluster, report: Any
) -> None:
    modern = {"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    metadata = {"name": "airflow-1", "namespace": "team", "annotations": REPAIRED}
    metadata["creationTimestamp"] = created(days)
    cluster.list_has("Pod", {"metadata": metadata, "spec": modern, "status": {"phase": phase}})
    said, found = report()
    assert said == code
    assert owners(found) == ([("Pod", "airflow-1", 1, ["GPU101"])] if code == LEFT else [])
    if code == LEFT:
        assert found["owners"][0]["newest"][:10] == created(days)[:10]


MODERN = {"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
LEGACY = {
    "containers": [{"name": "m", "resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": "1"}}}]
}


def pod_of(spec: Any, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def made_from(spec: Any, **more: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"template": {"spec": spec}, **more}}


def record_of_a_repair() -> dict[str, str]:
    """As the controller of a Deployment copies it to its ReplicaSets, where it stays."""
    at = "/spec/containers/0/resources/limits"
    old, new = f"{at}/alpha.kubernetes.io~1nvidia-gpu", f"{at}/nvidia.com~1gpu"
    text = json.dumps({"/spec/template": {old: ["1", None], new: [None, "1"]}})
    return {"gpu-webhook.dev/template-repair": text, **REPAIRED}


def done(kind: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"}]}


OLD: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "a pod of the revision before the partition": (
        "StatefulSet",
        "Pod",
        pod_of(MODERN, annotations=REPAIRED),
        1,
    ),
    "a pod that came while the webhook was down": ("StatefulSet", "Pod", pod_of(LEGACY), 1),
    "a pod that finished": (
        "StatefulSet",
        "Pod",
        pod_of(MODERN, "Failed", annotations=REPAIRED),
        0,
    ),
    "a pod that the rollout deletes": (
        "StatefulSet",
        "Pod",
        pod_of(MODERN, annotations=REPAIRED, deletionTimestamp="2026-06-01T00:00:00Z"),
        0,
    ),
    "a modern pod": ("StatefulSet", "Pod", pod_of(MODERN), 0),
    "a suspended Job": ("CronJob", "Job", made_from(LEGACY, suspend=True), 1),
    "a Job that runs": (
        "CronJob",
        "Job",
        made_from(LEGACY) | {"status": {"conditions": [{"type": "Complete", "status": "False"}]}},
        1,
    ),
    "a Job that is complete": (
        "CronJob",
        "Job",
        made_from(LEGACY) | {"status": done("Complete")},
        0,
    ),
    "a Job that failed": ("CronJob", "Job", made_from(LEGACY) | {"status": done("Failed")}, 0),
    "a ReplicaSet of a paused Deployment": (
        "Deployment",
        "ReplicaSet",
        made_from(LEGACY, replicas=2),
        1,
    ),
    "a ReplicaSet of the history": (
        "Deployment",
        "ReplicaSet",
        made_from(LEGACY, replicas=0),
        0,
    ),
    "a repaired ReplicaSet whose Deployment was migrated": (
        "Deployment",
        "ReplicaSet",
        made_from(MODERN, replicas=2) | {"metadata": {"annotations": record_of_a_repair()}},
        0,
    ),
}


@pytest.mark.parametrize(("by", "kind", "obj", "left"), OLD.values(), ids=OLD)
def test_what_a_migrated_owner_made_before_counts_for_it(
    by: str, kind: str, obj: dict[str, Any], left: int, cluster: Cluster, report: Any
) -> None:
    """A controller goes on making pods from it. Its own pods add no row and no object."""
    version = "batch/v1" if by == "CronJob" else "apps/v1"
    template = {"template": {"spec": MODERN}}
    spec = {"jobTemplate": {"spec": template}} if by == "CronJob" else template
    metadata = {"name": "top", "namespace": "team", "uid": "top"}
    cluster.list_has(by, {"metadata": metadata, "spec": spec})
    of_top = [owner("top", by, version, "top")]
    own = {"name": "old", "namespace": "team", "uid": "old", "ownerReferences": of_top}
    cluster.list_has(kind, obj | {"metadata": obj["metadata"] | own})
    if kind != "Pod":
        of_old = [owner("old", kind, version, "old")]
        notes = REPAIRED if obj["spec"]["template"]["spec"] is LEGACY else {}
        below = {"name": "old-x", "namespace": "team", "uid": "x", "ownerReferences": of_old}
        cluster.list_has("Pod", {"metadata": below | {"annotations": notes}, "spec": MODERN})
    code, found = report()
    assert code == (LEFT if left else SAFE)
    assert owners(found) == [(by, "top", 1, ["GPU101"])] * left


RUNS: dict[str, tuple[str, str, list[str]]] = {
    "a toleration": ("GPU201", "Running", ["GPU201"]),
    "a toleration and a runtime class": ("GPU201,GPU202", "Running", ["GPU201", "GPU202"]),
    "a limit, in a pod that finished lately": ("GPU103", "Succeeded", ["GPU103"]),
    "legacy, and a toleration": ("GPU101,GPU201", "Running", ["GPU101"]),
    "the guard, which no pod needs to run": ("GPU303", "Running", []),
}


@pytest.mark.parametrize("is_made", [pytest.param(True, id="made"), pytest.param(False, id="lone")])
@pytest.mark.parametrize(("note", "phase", "codes"), RUNS.values(), ids=RUNS)
def test_a_modern_pod_that_runs_with_what_the_webhook_added_needs_it(
    note: str,
    phase: str,
    codes: list[str],
    is_made: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    made = pod_of(MODERN, phase, annotations={"gpu-webhook.dev/repaired": note})
    made["metadata"] |= {"name": "x", "namespace": "team", "creationTimestamp": created(1)}
    if is_made:
        metadata = {"name": "x", "namespace": "team", "uid": "top"}
        spec = {"template": {"spec": MODERN}}
        cluster.list_has("StatefulSet", {"metadata": metadata, "spec": spec})
        made["metadata"]["ownerReferences"] = [owner("x", "StatefulSet", "apps/v1", "top")]
    cluster.list_has("Pod", made)
    code, found = report()
    assert code == (LEFT if codes else SAFE)
    kind = "StatefulSet" if is_made else "Pod"
    assert owners(found) == ([(kind, "x", 1, codes)] if codes else [])
    if codes and "GPU101" not in codes:
        assert found["answer"] == "Not yet: 1 owner of modern pods that run only repaired"
        added = f"it runs with what the webhook added ({', '.join(codes)}): "
        says = f"write that into its manifest (`gpu-webhook explain {codes[0]}`)"
        assert found["owners"][0]["change"] == f"{kind}/x: {added}{says}"


def test_a_finished_job_of_a_modern_cron_job_needs_what_its_pod_got(
    cluster: Cluster, report: Any
) -> None:
    """The next one would be Pending. The history of the CronJob is not looked at otherwise."""
    template = {"spec": {"template": {"spec": MODERN}}}
    metadata = {"name": "monthly", "namespace": "team", "uid": "c"}
    cluster.list_has("CronJob", {"metadata": metadata, "spec": {"jobTemplate": template}})
    of_cron = [owner("monthly", "CronJob", "batch/v1", "c")]
    metadata = {"name": "j", "namespace": "team", "uid": "j", "ownerReferences": of_cron}  # type: ignore[dict-item]
    cluster.list_has("Job", {"metadata": metadata, "status": done("Complete"), **template})
    notes = {"gpu-webhook.dev/repaired": "GPU201"}
    for name, days in (("new", 3), ("old", 31)):
        made = pod_of(MODERN, "Succeeded", name=name, namespace="team", annotations=notes)
        of_job = [owner("j", "Job", "batch/v1", "j")]
        made["metadata"] |= {"creationTimestamp": created(days), "ownerReferences": of_job}
        cluster.list_has("Pod", made)
    code, found = report()
    assert (code, owners(found)) == (LEFT, [("CronJob", "monthly", 1, ["GPU201"])])


OLD_IMAGE = "nvidia/cuda:9.0-runtime"  # GPU133, which has nothing to do with the words
ALPHA = "alpha.kubernetes.io/nvidia-gpu"
BOTH = {ALPHA: "1", "nvidia.com/gpu": "1"}  # what `kubectl create` and then `apply` leave
APPLIED: dict[str, tuple[dict[str, str], dict[str, str], str, bool]] = {
    "migrated, stored under both names": ({"nvidia.com/gpu": "1"}, BOTH, "i", True),
    "the same with another finding": ({"nvidia.com/gpu": "1"}, BOTH, OLD_IMAGE, True),
    "applied with 0 under the legacy name": ({ALPHA: "0"}, {ALPHA: "1"}, "i", True),
    "without GPUs, stored with one": ({}, {ALPHA: "1"}, OLD_IMAGE, True),
    "legacy, stored legacy": ({ALPHA: "1"}, {ALPHA: "1"}, OLD_IMAGE, True),
    "modern, stored so, with another finding": (
        {"nvidia.com/gpu": "1"},
        {"nvidia.com/gpu": "1"},
        OLD_IMAGE,
        False,
    ),
}


@pytest.mark.parametrize(("applied", "stored", "image", "left"), APPLIED.values(), ids=APPLIED)
def test_what_is_stored_makes_the_pods_whatever_was_applied(
    applied: dict[str, str],
    stored: dict[str, str],
    image: str,
    left: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    def template(limits: dict[str, str]) -> dict[str, Any]:
        container = {"name": "m", "image": image, "resources": {"limits": limits}}
        return {"template": {"spec": {"containers": [container]}}}

    metadata = {"name": "a", "namespace": "team"}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    sent = json.dumps(kind | {"metadata": metadata, "spec": template(applied)})
    notes = {"kubectl.kubernetes.io/last-applied-configuration": sent}
    metadata |= {"uid": "u", "annotations": notes}  # type: ignore[dict-item]
    cluster.list_has("Deployment", {"metadata": metadata, "spec": template(stored)})
    code, found = report()
    assert code == (LEFT if left else SAFE)
    assert owners(found) == [("Deployment", "a", 1, ["GPU101"])] * left


TOLERANT: dict[str, Any] = {
    **MODERN,
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
}
OTHER = [{"key": "team", "operator": "Exists"}]
NUMBERED = {"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
LATE = {**MODERN, "schedulerName": "default-scheduler", "dnsPolicy": "ClusterFirst"}
CLASSED = {**MODERN, "runtimeClassName": "nvidia"}
# What was applied (None: nobody knows), what is stored, the codes on it, those that are left.
TEMPLATES: dict[str, tuple[Any, Any, str, list[str]]] = {
    "a toleration that was not applied": (MODERN, TOLERANT, "GPU201", ["GPU201"]),
    "a runtime class that was not applied": (MODERN, CLASSED, "GPU202", ["GPU202"]),
    "one of two that were not applied": (
        MODERN,
        {**TOLERANT, "runtimeClassName": "nvidia"},
        "GPU201,GPU202",
        ["GPU201", "GPU202"],
    ),
    "a template that was legacy, too, and is migrated but for the toleration": (
        MODERN,
        TOLERANT,
        "GPU101,GPU201",
        ["GPU201"],
    ),
    "a manifest that nobody knows": (None, TOLERANT, "GPU201", ["GPU201"]),
    "a manifest that has it now": (TOLERANT, TOLERANT, "GPU201", []),
    "defaults of the API server": (TOLERANT, {**LATE, **TOLERANT}, "GPU201", []),
    "an amount that was applied as a number": ({**TOLERANT, **NUMBERED}, TOLERANT, "GPU201", []),
    "a toleration beside another one": (
        {**MODERN, "tolerations": OTHER},
        {**MODERN, "tolerations": [*OTHER, *TOLERANT["tolerations"]]},
        "GPU201",
        ["GPU201"],
    ),
    "a template that nobody repaired": (MODERN, TOLERANT, "", []),
    "a template that was legacy and is migrated": (MODERN, MODERN, "GPU101", []),
}


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
@pytest.mark.parametrize(("applied", "stored", "note", "codes"), TEMPLATES.values(), ids=TEMPLATES)
def test_a_modern_template_with_what_the_webhook_added_needs_it(
    applied: Any, stored: Any, note: str, codes: list[str], kind: str, cluster: Cluster, report: Any
) -> None:
    """Its pods carry no note: without the webhook, the next object of this manifest lacks it."""

    def spec(pod: Any) -> dict[str, Any]:
        made = {"template": {"spec": pod}}
        return made if kind == "Deployment" else {"jobTemplate": {"spec": made}}

    named = {"name": "a", "namespace": "team"}
    notes = {"gpu-webhook.dev/repaired": note} if note else {}
    if applied is not None:
        version = "apps/v1" if kind == "Deployment" else "batch/v1"
        sent = {"apiVersion": version, "kind": kind, "metadata": named, "spec": spec(applied)}
        notes["kubectl.kubernetes.io/last-applied-configuration"] = json.dumps(sent)
    cluster.list_has(
        kind, {"metadata": {**named, "uid": "u", "annotations": notes}, "spec": spec(stored)}
    )
    if kind == "Deployment":  # its controller copies the codes
        of_top = [owner("a", kind, "apps/v1", "u")]
        copied: Any = {"name": "a-1", "namespace": "team", "ownerReferences": of_top, "uid": "r"}
        copied |= {"annotations": {"gpu-webhook.dev/repaired": note}}
        cluster.list_has("ReplicaSet", {"metadata": copied, "spec": spec(stored)})
    code, found = report()
    assert code == (LEFT if codes else SAFE)
    assert owners(found) == ([(kind, "a", 1, codes)] if codes else [])
    if codes:
        assert found["answer"] == "Not yet: 1 owner of modern pods that run only repaired"
        added = f"its template has what the webhook added ({', '.join(codes)}): write that into its"
        assert added in found["owners"][0]["change"]


NO_GPU = {"containers": [{"name": "m"}]}
BETA = {"pod.beta.kubernetes.io/init-containers": "[]"}
# The version that was applied, the template, its annotations, and the codes of its owner.
ELSE: dict[str, tuple[str, Any, dict[str, str], list[str]]] = {
    "a version that is not served any more": ("extensions/v1beta1", NO_GPU, {}, []),
    "a version that is not served any more, of GPU pods": ("apps/v1beta1", MODERN, {}, []),
    "such a version, and a legacy name": ("apps/v1beta1", LEGACY, {}, ["GPU101"]),
    "an annotation that the API server drops": ("apps/v1", NO_GPU, BETA, []),
    "such a version, and what the webhook added": (
        "extensions/v1beta1",
        MODERN,
        {"gpu-webhook.dev/repaired": "GPU202"},
        ["GPU202"],
    ),
}


@pytest.mark.parametrize(("version", "spec", "notes", "codes"), ELSE.values(), ids=ELSE)
def test_what_is_legacy_for_other_reasons_needs_no_webhook(
    version: str, spec: Any, notes: dict[str, str], codes: list[str], cluster: Cluster, report: Any
) -> None:
    """Any software of that time has it; `scan --cluster` finds it."""
    template = {"metadata": {"labels": {"a": "b"}, "annotations": notes}, "spec": spec}
    obj = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    named = {"name": "d", "namespace": "team"}
    sent = {"apiVersion": version, "kind": "Deployment", "metadata": named, "spec": obj}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(sent)}
    stored = copy.deepcopy(obj)
    if "GPU202" in codes:
        stored["template"]["spec"] = CLASSED
    metadata = {**named, "annotations": {**applied, **notes}}
    cluster.list_has("Deployment", {"metadata": metadata, "spec": stored})
    code, found = report()
    assert owners(found) == ([("Deployment", "d", 1, codes)] if codes else [])
    assert code == (LEFT if codes else SAFE)


PODS = "/api/v1/namespaces/team/pods"
CLASSES = "drivers: {profile: runtime-class, runtimeClass: nvidia, assumeRuntimeClass: true}\n"
PLACES = "placement: {enabled: true, label: accelerator, value: nvidia}\n"
OFF = "policy: {rules: {GPU202: off}}\n"
OFF_THERE = "policy: {overrides: [{namespaces: [team], rules: {GPU202: off}}]}\n"
PLACED = {**MODERN, "nodeSelector": {"accelerator": "nvidia"}}
# What the settings are, the template, and the codes of its owner.
ADDED: dict[str, tuple[str, Any, list[str]]] = {
    "a runtime class that all pods get": (CLASSES, MODERN, ["GPU202"]),
    "a runtime class that is written": (CLASSES, CLASSED, []),
    "a runtime class that is written, and labels of nodes": (PLACES, CLASSED, ["GPU203"]),
    "labels of nodes that are written": (PLACES, PLACED, []),
    "a rule that is off": (CLASSES + OFF, MODERN, []),
    "a rule that is off in the namespace": (CLASSES + OFF_THERE, MODERN, []),
    "a template without GPUs": (CLASSES, {"containers": [{"name": "m"}]}, []),
    "nothing is added": ("{}", MODERN, []),
}


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "Pod"])
@pytest.mark.parametrize(("text", "spec", "codes"), ADDED.values(), ids=ADDED)
def test_a_modern_template_without_pods_needs_what_the_settings_add(
    text: str,
    spec: Any,
    codes: list[str],
    kind: str,
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pod that came before does not: its annotation would name what it got."""
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=parse(text)))
    obj: dict[str, Any] = {"spec": spec} if kind == "Pod" else made_from(spec, replicas=0)
    obj["apiVersion"] = {"Deployment": "apps/v1", "CronJob": "batch/v1", "Pod": "v1"}[kind]
    obj["kind"] = kind
    notes = {"gpu-webhook.dev/repaired": ",".join(codes)} if codes else {}
    said = {"Warning": f'299 - "{",".join(codes)}: write it [enforce: repaired]"'}
    cluster.refusals[PODS] = (201, json.dumps(pod_of(spec, annotations=notes)).encode(), said)
    if kind == "CronJob":
        obj |= {"spec": {"suspend": True, "jobTemplate": {"spec": obj["spec"]}}}
    cluster.list_has(kind, obj | {"metadata": {"name": "yearly", "namespace": "team"}})
    code, found = report()
    left = codes if kind != "Pod" else []
    assert owners(found) == ([(kind, "yearly", 1, left)] if left else [])
    assert code == (LEFT if left else SAFE)
    if left:
        assert found["answer"] == "Not yet: 1 owner of modern pods that run only repaired"
        assert found["owners"][0]["change"] == f"{kind}/yearly: write it"


SLICED = {"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}]}
EQUAL = [{"key": "nvidia.com/gpu", "value": "present"}]
WITHOUT_VALUE = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
REFUSED = b'{"message": "exceeded quota: q"}'
# The template, what became of a pod of it, the exit code.
TAINTED: dict[str, tuple[Any, tuple[int, dict[str, str]], int]] = {
    "it gets the toleration": (MODERN, (201, {"gpu-webhook.dev/repaired": "GPU201"}), LEFT),
    "a slice of a GPU gets it": (SLICED, (201, {"gpu-webhook.dev/repaired": "GPU201"}), LEFT),
    "another value than that of the taint": (
        {**MODERN, "tolerations": EQUAL},
        (201, {"gpu-webhook.dev/repaired": "GPU201"}),
        LEFT,
    ),
    "no value, where the taint has one": (
        {**MODERN, "tolerations": WITHOUT_VALUE},
        (201, {"gpu-webhook.dev/repaired": "GPU201"}),
        LEFT,
    ),
    "a taint that is named as a slice is": (
        {**SLICED, "tolerations": TOLERANT["tolerations"]},
        (201, {"gpu-webhook.dev/repaired": "GPU201"}),
        LEFT,
    ),
    "its namespace was just deleted": (MODERN, (404, {}), SAFE),
    "the API server adds it, or no node that the webhook knows has the taint": (
        MODERN,
        (201, {}),
        SAFE,
    ),
    "none can be tried": (MODERN, (403, {}), UNKNOWN),
    "it has the toleration": (TOLERANT, (403, {}), SAFE),
}


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
@pytest.mark.parametrize(("spec", "tried", "code"), TAINTED.values(), ids=TAINTED)
def test_a_modern_template_without_pods_needs_the_toleration_of_gpu_nodes(
    spec: Any,
    tried: tuple[int, dict[str, str]],
    code: int,
    kind: str,
    cluster: Cluster,
    report: Any,
) -> None:
    """A Deployment that an autoscaler has scaled to 0, a CronJob that runs once a year.

    The webhook alone knows which nodes have the taint: it remembers those whose GPUs are away,
    and knows those that Karpenter may add.
    """
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team")]})
    pod = json.dumps(pod_of(spec, annotations=tried[1])).encode()
    cluster.refusals[PODS] = (tried[0], pod if tried[0] == 201 else REFUSED, {})
    obj = made_from(spec, replicas=0)
    if kind == "CronJob":
        obj = {"spec": {"suspend": True, "jobTemplate": obj}}
    metadata = {"name": "yearly", "namespace": "team"}
    version = "batch/v1" if kind == "CronJob" else "apps/v1"
    cluster.list_has(kind, {"apiVersion": version, "kind": kind, **obj, "metadata": metadata})
    said, found = report()
    left = [(kind, "yearly", 1, ["GPU201"])] if code == LEFT else []
    assert (said, owners(found)) == (code, left)
    untried = f"{UNTRIED} team/{kind}/yearly: 403: exceeded quota: q"
    assert found["gaps"] == ([untried] if code == UNKNOWN else [])
    assert [(path, body["spec"]) for path, body in cluster.posted] == [(PODS, spec)] * (
        spec is not TOLERANT
    )


def test_a_template_may_need_a_runtime_class_of_nodes_that_are_away(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it asks for; what the webhook knows of nodes decides."""
    settings = parse("drivers: {profile: runtime-class, runtimeClass: nvidia}\n")
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=settings))
    scheduling = {"nodeSelector": {"runtime": "nvidia"}}
    made = {"metadata": {"name": "nvidia"}, "handler": "nvidia", "scheduling": scheduling}
    cluster.say_json("/apis/node.k8s.io/v1/runtimeclasses", {"items": [made]})
    eight = {"name": "m", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {**TOLERANT, "containers": [eight], "nodeSelector": {"zone": "a"}}
    notes = {"gpu-webhook.dev/repaired": "GPU202"}
    cluster.refusals[PODS] = (201, json.dumps(pod_of(spec, annotations=notes)).encode(), {})
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", **made_from(spec, replicas=0)}
    cluster.list_has("Deployment", obj | {"metadata": {"name": "a", "namespace": "team"}})
    code, found = report()
    assert (code, owners(found)) == (LEFT, [("Deployment", "a", 1, ["GPU202"])])


def of_image(image: str, spec: Any = None) -> dict[str, Any]:
    """A Deployment that is called as its image is."""
    held = spec or MODERN
    held = {**held, "containers": [{**held["containers"][0], "image": image}]}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", **made_from(held, replicas=0)}
    return obj | {"metadata": {"name": image, "namespace": "team"}}


def test_no_template_stands_for_another_one(cluster: Cluster, report: Any) -> None:
    """A policy may refuse one image only, or the pods of one owner."""
    for name in ("a", "b"):
        cluster.list_has("Deployment", of_image(name))
    cluster.list_has("Deployment", of_image("b") | {"metadata": {"name": "c", "namespace": "team"}})
    gets(cluster)
    code, found = report()
    assert (code, len(found["owners"]), len(cluster.posted)) == (LEFT, 3, 3)


@pytest.mark.parametrize("spec", ["none", "tolerant"])
def test_others_may_decide_by_the_image(
    spec: str, cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy gives a GPU to some images, or takes a toleration away, and refuses other ones."""
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others())
    for image in ("bad", "good", "nvcr.io"):
        cluster.list_has("Deployment", of_image(image, NO_GPU if spec == "none" else TOLERANT))

    def dry_run(_self: Any, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        image = pod["spec"]["containers"][0]["image"]
        if image == "bad":
            raise BY_POLICY
        notes = {"gpu-webhook.dev/repaired": "GPU201"} if image == "nvcr.io" else {}
        return json.dumps(pod_of(MODERN, annotations=notes)).encode(), []

    monkeypatch.setattr(Client, "dry_run", dry_run)
    code, found = report()
    assert (code, owners(found)) == (LEFT, [("Deployment", "nvcr.io", 1, ["GPU201"])])
    assert len(found["gaps"]) == (0 if spec == "none" else 1)


GROUP = "/apis/admissionregistration.k8s.io"
RULES = [{"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}]
ELSEWHERE = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
LABELLED = {"objectSelector": {"matchLabels": {"inject": "true"}}}


def webhook_of_others(**entry: Any) -> Any:
    found = foreign("istio")
    found["mutating/istio"]["webhooks"][0] |= entry
    return having(found)


def have_policies(cluster: Cluster, policies: Any, bindings: Any, no_answer: str = "") -> None:
    groups = orjson.loads(cluster.answers["/apis"][1])["groups"]
    version = {"name": GROUP.rpartition("/")[2], "preferredVersion": {"version": "v1"}}
    cluster.say_json("/apis", {"groups": [*groups, version]})
    kinds = {"MutatingAdmissionPolicy": policies, "MutatingAdmissionPolicyBinding": bindings}
    plurals = {"MutatingAdmissionPolicy": "policies", "MutatingAdmissionPolicyBinding": "bindings"}
    listed = [
        {"name": plurals[kind], "kind": kind, "namespaced": False, "verbs": ["list"]}
        for kind in kinds
    ]
    cluster.say_json(f"{GROUP}/v1", {"resources": listed})
    for kind, items in kinds.items():
        cluster.say_json(f"{GROUP}/v1/{plurals[kind]}", {"items": items})
    if no_answer:
        cluster.say(no_answer, 503)


def policy(rules: Any = RULES, selectors: Any = None) -> Any:
    constraints = {"resourceRules": rules, **(selectors or {})}
    return [{"metadata": {"name": "p"}, "spec": {"matchConstraints": constraints}}]


def binding(selectors: Any = None, name: str = "p") -> Any:
    spec = {"policyName": name, "matchResources": selectors}
    return [{"metadata": {"name": "b"}, "spec": spec}]


# What changes pods, the labels of the template, and whether it may change its pods.
OTHERS: dict[str, tuple[Any, dict[str, str], bool]] = {
    "nothing": (lambda _: HEALTHY, {}, False),
    "a webhook": (lambda _: webhook_of_others(), {}, True),
    "a webhook on Services": (lambda _: having(foreign("x", "services")), {}, False),
    "a webhook of other namespaces": (lambda _: webhook_of_others(**ELSEWHERE), {}, False),
    "a webhook of labelled pods": (lambda _: webhook_of_others(**LABELLED), {}, False),
    "a webhook of pods with this label": (
        lambda _: webhook_of_others(**LABELLED),
        {"inject": "true"},
        True,
    ),
    "a policy": (lambda c: have_policies(c, policy(), binding()), {}, True),
    "a policy without a binding": (lambda c: have_policies(c, policy(), []), {}, False),
    "a binding without a policy": (lambda c: have_policies(c, [], binding()), {}, False),
    "a binding of another policy": (
        lambda c: have_policies(c, policy(), binding(name="q")),
        {},
        False,
    ),
    "a policy on Services": (
        lambda c: have_policies(c, policy([{"resources": ["services"]}]), binding()),
        {},
        False,
    ),
    "a policy of other namespaces": (
        lambda c: have_policies(c, policy(selectors=ELSEWHERE), binding()),
        {},
        False,
    ),
    "a binding to other namespaces": (
        lambda c: have_policies(c, policy(), binding(ELSEWHERE)),
        {},
        False,
    ),
    "policies that cannot be listed": (
        lambda c: have_policies(c, [], [], f"{GROUP}/v1/policies"),
        {},
        True,
    ),
    "an API without an answer": (
        lambda c: have_policies(c, [], [], f"{GROUP}/v1"),
        {},
        True,
    ),
}


@pytest.mark.parametrize(("others", "labels", "is_changed"), OTHERS.values(), ids=OTHERS)
def test_what_others_may_change_is_tried_whatever_it_requests(
    others: Any,
    labels: dict[str, str],
    is_changed: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may give GPUs, or take tolerations away, and decide that by the image."""
    found = others(cluster) or HEALTHY
    monkeypatch.setattr(facts, "read", lambda *_: found)
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team")]})
    for shape, spec in (("none", NO_GPU), ("one", MODERN), ("tolerant", TOLERANT)):
        for name, image in (("a", "x"), ("b", "y"), ("c", "y")):
            held = {**spec, "containers": [{**spec["containers"][0], "image": image}]}
            obj = {"apiVersion": "apps/v1", "kind": "Deployment", **made_from(held, replicas=0)}
            own = {**labels, "pod-template-hash": name}
            obj["spec"]["template"]["metadata"] = {"labels": own}
            metadata = {"name": f"{shape}-{name}", "namespace": "team"}
            cluster.list_has("Deployment", obj | {"metadata": metadata})
    gets(cluster)
    code, said = report()
    assert code == LEFT
    assert len(said["owners"]) == (9 if is_changed else 3)
    pods = [path for path, _ in cluster.posted if path == PODS]
    assert len(pods) == (9 if is_changed else 3)


def with_label(name: str) -> dict[str, Any]:
    return {"objectSelector": {"matchExpressions": [{"key": name, "operator": "Exists"}]}}


# The labels that built-in controllers add, by the kind of the object.
OF_CONTROLLERS = {
    "Deployment": ("pod-template-hash",),
    "StatefulSet": ("apps.kubernetes.io/pod-index", "controller-revision-hash"),
    "Job": ("job-name", "batch.kubernetes.io/controller-uid"),
    "CronJob": ("controller-uid", "batch.kubernetes.io/job-name"),
}


@pytest.mark.parametrize("kind", OF_CONTROLLERS)
def test_others_may_select_pods_by_labels_that_only_controllers_add(
    kind: str, cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    obj = made_from(TOLERANT)
    obj = obj if kind != "CronJob" else {"spec": {"jobTemplate": obj}}
    cluster.list_has(kind, obj | {"metadata": {"name": "a", "namespace": "team"}})
    gets(cluster)
    for name, code in ((each, LEFT) for each in OF_CONTROLLERS[kind]):
        found = webhook_of_others(**with_label(name))
        monkeypatch.setattr(facts, "read", lambda *_, found=found: found)
        assert report()[0] == code
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others(**with_label("else")))
    assert report()[0] == SAFE


OF_TEAM = "namespaces/team"
CHANGES_JOBS = [{"apiGroups": ["batch"], "resources": ["jobs"], "operations": ["CREATE"]}]
CHANGES_SETS = [{"apiGroups": ["apps"], "resources": ["replicasets"], "operations": ["*"]}]
SOLD = {"labels": {"kueue.x-k8s.io/queue-name": "a"}, "annotations": {"a": "b"}}
# What others may change, what makes the pods, and what is tried.
BETWEEN: dict[str, tuple[Any, str, list[str]]] = {
    "Jobs of a CronJob": (CHANGES_JOBS, "CronJob", [f"/apis/batch/v1/{OF_TEAM}/jobs", PODS]),
    "Jobs, and a Deployment makes none": (CHANGES_JOBS, "Deployment", []),
    "ReplicaSets of a Deployment": (
        CHANGES_SETS,
        "Deployment",
        [f"/apis/apps/v1/{OF_TEAM}/replicasets", PODS],
    ),
    "Jobs that are there": (CHANGES_JOBS, "Job", []),
}


@pytest.mark.parametrize(("rules", "kind", "tried"), BETWEEN.values(), ids=BETWEEN)
def test_what_others_change_in_what_makes_the_pods_is_tried(
    rules: Any,
    kind: str,
    tried: list[str],
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A CronJob tolerates the taint, and a webhook on Jobs takes the toleration away."""
    found = webhook_of_others(rules=rules)
    monkeypatch.setattr(facts, "read", lambda *_: found)
    obj = made_from(TOLERANT, selector={"matchLabels": {"a": "b"}})
    if kind == "CronJob":
        obj = {"spec": {"jobTemplate": {"metadata": SOLD, "spec": made_from(TOLERANT)["spec"]}}}
    else:
        obj["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    cluster.list_has(kind, obj | {"metadata": {"name": "a", "namespace": "team"}})
    metadata = {"name": "a-x7k2p", "uid": "u"}
    changed = {"apiVersion": "batch/v1", "kind": "Job", **made_from(MODERN), "metadata": metadata}
    for path in tried[:-1]:
        cluster.refusals[path] = (201, json.dumps(changed).encode(), {})
    gets(cluster)
    code, said = report()
    assert said["gaps"] == []
    assert [path for path, _ in cluster.posted] == tried
    assert code == (LEFT if tried else SAFE)
    assert [name for _, name, _, _ in owners(said)] == (["a"] if tried else [])
    if kind == "CronJob":
        _, job = cluster.posted[0]
        metadata = of_owner("batch/v1", "CronJob", "a")
        begins = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2065-01-24T05:19:00Z"}
        notes = {**SOLD["annotations"], **begins}
        assert job["metadata"] == {**SOLD, **metadata, "annotations": notes, "name": "a-49999999"}
        assert job["spec"] == made_from(TOLERANT)["spec"]
        assert cluster.posted[1][1]["metadata"]["ownerReferences"][0]["name"] == "a-x7k2p"


JOBS, REPLICA_SETS = f"/apis/batch/v1/{OF_TEAM}/jobs", f"/apis/apps/v1/{OF_TEAM}/replicasets"
STATEFUL = f"/apis/apps/v1/{OF_TEAM}/statefulsets"
CHANGES_ALL = [{"apiGroups": ["*"], "resources": ["*"], "operations": ["CREATE"]}]
OLD_NAME = {**TOLERANT, **LEGACY}
# What others may change, the template, what they make of which objects, and what is tried.
WAYS: dict[str, tuple[Any, Any, dict[str, Any], list[str], int]] = {
    "Jobs, of which nothing that matters": (CHANGES_JOBS, TOLERANT, {}, [JOBS, PODS], SAFE),
    "Jobs, which lose the toleration": (CHANGES_JOBS, TOLERANT, {JOBS: MODERN}, [JOBS, PODS], LEFT),
    "Jobs, which get the legacy name": (
        CHANGES_JOBS,
        TOLERANT,
        {JOBS: OLD_NAME},
        [JOBS, PODS],
        LEFT,
    ),
    "Jobs, which cannot be tried": (CHANGES_JOBS, TOLERANT, {JOBS: None}, [JOBS], UNKNOWN),
    "Jobs, while pods need it anyway": (CHANGES_JOBS, MODERN, {JOBS: None}, [JOBS, PODS], LEFT),
    "Jobs, which get the legacy name while a quota is full": (
        CHANGES_JOBS,
        TOLERANT,
        {JOBS: OLD_NAME, PODS: None},
        [JOBS, PODS],
        UNKNOWN,
    ),
    "Jobs, of which nothing that matters while a quota is full": (
        CHANGES_JOBS,
        TOLERANT,
        {PODS: None},
        [JOBS, PODS, PODS],
        SAFE,
    ),
    "ReplicaSets, of which nothing that matters": (
        CHANGES_SETS,
        TOLERANT,
        {},
        [REPLICA_SETS, PODS],
        SAFE,
    ),
    "ReplicaSets, which lose the toleration": (
        CHANGES_SETS,
        TOLERANT,
        {REPLICA_SETS: MODERN},
        [REPLICA_SETS, PODS],
        LEFT,
    ),
    "all objects, but only StatefulSets lose the toleration": (
        CHANGES_ALL,
        TOLERANT,
        {STATEFUL: MODERN},
        [JOBS, REPLICA_SETS, STATEFUL, PODS, PODS, PODS, PODS],
        LEFT,
    ),
    "pods, of which those of Jobs, ReplicaSets and StatefulSets may differ": (
        RULES,
        TOLERANT,
        {},
        [PODS] * 4,
        SAFE,
    ),
    "Jobs, of a template without GPUs": (CHANGES_JOBS, NO_GPU, {}, [], SAFE),
}


@pytest.mark.parametrize(("rules", "spec", "made", "tried", "code"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("kind", ["JobSet", "Job"])
def test_each_way_in_which_a_custom_kind_may_make_its_pods_is_tried(
    rules: Any,
    spec: Any,
    made: dict[str, Any],
    tried: list[str],
    code: int,
    kind: str,
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its controller may make Jobs, or pods, or anything else; Jobs of Volcano are one, too."""
    found = webhook_of_others(rules=rules)
    monkeypatch.setattr(facts, "read", lambda *_: found)
    group = "jobset.x-k8s.io" if kind == "JobSet" else "batch.volcano.sh"
    serve(cluster, kind, of_custom_kind(kind, spec), group=group)
    for path, held in made.items():
        changed = {**made_from(held), "metadata": {"name": "a-x7k2p", "uid": "u"}}
        status, text = (201, json.dumps(changed).encode()) if held else (403, REFUSED)
        cluster.refusals[path] = (status, text, {})
    sent = gets_if_it_lacks(monkeypatch)
    answered, said = report()
    assert answered == code
    assert sorted(path for path, _ in sent) == sorted(tried)
    assert [name for _, name, _, _ in owners(said)] == (["a"] if code == LEFT else [])
    why = f"{UNTRIED} team/{kind}/a: 403: exceeded quota: q"
    is_gap = code == UNKNOWN or made.get(JOBS, MODERN) is None
    assert said["gaps"] == ([why] if is_gap else [])


@pytest.mark.parametrize(
    ("labels", "is_tried"),
    [
        pytest.param({}, True, id="it has none, and gets those of its template"),
        pytest.param({"other": "x"}, False, id="it has others"),
    ],
)
def test_others_may_select_the_job_of_a_cron_job_by_labels_of_its_template(
    labels: dict[str, str],
    is_tried: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = webhook_of_others(rules=CHANGES_JOBS, **LABELLED)
    monkeypatch.setattr(facts, "read", lambda *_: found)
    job = made_from(TOLERANT) | {"metadata": {"labels": labels}}
    job["spec"]["template"]["metadata"] = {"labels": {"inject": "true"}}
    metadata = {"name": "a", "namespace": "team"}
    cluster.list_has("CronJob", {"metadata": metadata, "spec": {"jobTemplate": job}})
    assert report()[0] == SAFE
    assert [path for path, _ in cluster.posted] == ([JOBS, PODS] if is_tried else [])


def test_the_replica_set_of_a_deployment_is_tried_as_its_controller_makes_it(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name, by which policies select, the labels of the template and a hash."""
    found = webhook_of_others(rules=CHANGES_SETS, **with_label("pod-template-hash"))
    monkeypatch.setattr(facts, "read", lambda *_: found)
    obj = made_from(TOLERANT, replicas=3, selector={"matchLabels": {"a": "b"}}, minReadySeconds=9)
    obj["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    notes = {"own": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    notes |= {"deployment.kubernetes.io/revision": "7"}
    metadata = {"name": "a", "namespace": "team", "annotations": notes}
    cluster.list_has("Deployment", obj | {"metadata": metadata})
    gets(cluster)
    assert report()[0] == LEFT
    (path, made), (last, _) = cluster.posted
    labels = {"a": "b", "pod-template-hash": HASH}
    counts = {"desired-replicas": "3", "max-replicas": "4", "revision": "7"}
    counts = {f"deployment.kubernetes.io/{key}": value for key, value in counts.items()}
    assert (path, last) == (REPLICA_SETS, PODS)
    assert made["metadata"] == {
        "name": f"a-{HASH}",
        "labels": labels,
        "annotations": {"own": "x", **counts},
        **of_owner("apps/v1", "Deployment", "a"),
    }
    assert made["spec"] == {
        "replicas": 3,
        "minReadySeconds": 9,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": TOLERANT},
    }


def test_the_legacy_name_in_the_job_of_a_cron_job_that_tolerates_the_taint(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tolerations say nothing of what a webhook on Jobs gives it."""
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others(rules=CHANGES_JOBS))
    spec = {"jobTemplate": {"spec": made_from(TOLERANT)["spec"]}}
    cluster.list_has("CronJob", {"metadata": {"name": "a", "namespace": "team"}, "spec": spec})
    changed = {**made_from(OLD_NAME), "metadata": {"name": "a-x7k2p"}}
    cluster.refusals[JOBS] = (201, json.dumps(changed).encode(), {})
    gets_if_it_lacks(monkeypatch)
    assert owners(report()[1]) == [("CronJob", "a", 1, ["GPU101"])]


def gets_if_it_lacks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Each pod gets the toleration unless it has one, and the current name. All that is sent."""
    sent: list[tuple[str, Any]] = []
    real = Client.dry_run

    def dry_run(api: Client, path: str, obj: Any) -> tuple[bytes, list[str]]:
        sent.append((path, obj))
        text, warnings = real(api, path, obj)
        is_old = b"alpha" in orjson.dumps(obj)
        if path == PODS and (is_old or "tolerations" not in obj["spec"]):
            notes = {"gpu-webhook.dev/repaired": "GPU101" if is_old else "GPU201"}
            text = json.dumps(pod_of(MODERN, annotations=notes)).encode()
        return text, warnings

    monkeypatch.setattr(Client, "dry_run", dry_run)
    return sent


def of_custom_kind(kind: str, spec: Any, name: str = "a", **of_jobs: Any) -> dict[str, Any]:
    """A JobSet, or a Job of Volcano."""
    template = made_from(spec)["spec"]["template"]
    metadata = {"name": name, "namespace": "team"}
    if kind == "Job":
        return {"metadata": metadata, "spec": {"tasks": [{"name": "t", "template": template}]}}
    job = {"metadata": of_jobs, "spec": {"template": template, "parallelism": 2}}
    return {"metadata": metadata, "spec": {"replicatedJobs": [{"name": "j", "template": job}]}}


# The template, and what the API server accepts in a Job, and in sets.
RESTARTS: dict[str, tuple[Any, Any, Any]] = {
    "never": (
        {"restartPolicy": "Never", "activeDeadlineSeconds": 9},
        {"restartPolicy": "Never", "activeDeadlineSeconds": 9},
        {"restartPolicy": "Always"},
    ),
    "on failure": (
        {"restartPolicy": "OnFailure"},
        {"restartPolicy": "OnFailure"},
        {"restartPolicy": "Always"},
    ),
    "by default": ({}, {"restartPolicy": "Never"}, {"restartPolicy": "Always"}),
}


@pytest.mark.parametrize("labels", [{}, {"a": "b"}], ids=["no labels", "labels"])
@pytest.mark.parametrize(("own", "in_job", "in_sets"), RESTARTS.values(), ids=RESTARTS)
def test_what_a_custom_kind_may_make_is_accepted_by_the_api_server(
    own: Any, in_job: Any, in_sets: Any, labels: dict[str, str]
) -> None:
    """Only Jobs may restart their pods on failure, and sets select the labels of their pods."""
    template = {"metadata": {"name": "x", "labels": labels}, "spec": {**TOLERANT, **own}}
    metadata = {"name": "a", "namespace": "team", "uid": "of-a"}
    obj = {"apiVersion": "x.org/v1", "kind": "Team", "metadata": metadata, "template": template}
    job, *sets = [made for _, made in made_pods.may_make_pods(obj, Place(("template",)))]
    by = {"name": f"a-{HASH}", **of_owner("x.org/v1", "Team", "a", "of-a")}
    assert job == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": by | ({"labels": labels} if labels else {}),
        "spec": {"template": {"metadata": {"labels": labels}, "spec": {**TOLERANT, **in_job}}},
    }
    selected = {**labels, "pod-template-hash": HASH}
    spec = {
        "selector": {"matchLabels": selected},
        "template": {"metadata": {"labels": selected}, "spec": {**TOLERANT, **in_sets}},
    }
    kinds = [("ReplicaSet", spec), ("StatefulSet", spec | {"serviceName": "pods"})]
    assert [(each["kind"], each["spec"]) for each in sets] == kinds
    assert [each["metadata"] for each in sets] == [by | {"labels": selected}] * 2


def test_a_replica_set_of_a_rollout_has_its_label() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": TOLERANT}
    metadata = {"name": "a.b", "namespace": "team"}
    obj = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata}
    obj |= {"spec": {"template": template}}
    at = Place(("spec", "template"))
    made = [each for _, each in made_pods.may_make_pods(obj, at)]
    labels = {"a": "b", "rollouts-pod-template-hash": HASH}
    assert [each["metadata"]["name"] for each in made] == [f"a-b-{HASH}"] * 3
    assert made[1]["spec"]["selector"] == {"matchLabels": labels}


def test_what_a_webhook_says_stays_in_the_gap(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the name of the pod is left out, which is another one each time."""
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others())
    said = 'admission webhook "w" denied the request: image "x" is forbidden'
    said = f"{said} in this namespace, and more that is cut off"
    for image in ("a", "bbbbbbbbbb"):
        cluster.list_has("Deployment", of_image(image))

    def dry_run(_self: Any, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        begins = pod["metadata"]["generateName"]
        raise Refused(403, f'pods "{begins}x7k2p" is forbidden: {said}'[:150])

    monkeypatch.setattr(Client, "dry_run", dry_run)
    (gap,) = report()[1]["gaps"]
    names = "team/Deployment/a, team/Deployment/bbbbbbbbbb"
    assert gap.startswith(f'{UNTRIED} {names}: 403: pods "..." is forbidden: {said[:80]}')


def test_the_jobs_of_a_job_set_are_as_it_says(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook may select Jobs by labels that are not those of the pods."""
    labelled = {"objectSelector": {"matchLabels": SOLD["labels"]}}
    found = webhook_of_others(rules=CHANGES_JOBS, **labelled)
    monkeypatch.setattr(facts, "read", lambda *_: found)
    both = [of_custom_kind("JobSet", TOLERANT), of_custom_kind("JobSet", TOLERANT, "b", **SOLD)]
    serve(cluster, "JobSet", *both, group="jobset.x-k8s.io")
    assert report()[0] == SAFE
    (path, job), (last, _) = cluster.posted
    assert (path, last, job["spec"]["parallelism"]) == (JOBS, PODS, 2)
    owner_of_it = of_owner("jobset.x-k8s.io/v1", "JobSet", "b")
    assert job["metadata"] == {**SOLD, "name": f"b-{HASH}", **owner_of_it}


def test_the_pods_of_unknown_namespaces_may_be_changed(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others(**ELSEWHERE))
    cluster.say_json("/api/v1/namespaces", {"items": []})
    obj = made_from(TOLERANT) | {"metadata": {"name": "a", "namespace": "team"}}
    cluster.list_has("Deployment", obj)
    gets(cluster)
    assert report()[0] == LEFT


# The template, whether the plain pod is refused, too, and the exit code.
PRIVILEGED = {
    "serviceAccountName": "missing",
    "containers": [{"name": "m", "image": "i", "securityContext": {"privileged": True}}],
    "tolerations": [{"key": "a"}],
    "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
}
FULL = Refused(403, "exceeded quota")
RIGHT = Refused(403, 'User "ann" cannot create resource "pods" in API group ""')
OWNER = Refused(
    403,
    'pods "a-x7k2p" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a '
    "resource you can't set finalizers on",
)
DOWN = Refused(500, "failed calling webhook")
BY_WEBHOOK = Refused(400, 'admission webhook "a.example.com" denied the request: no limits')
BY_POLICY = Refused(
    422,
    "pods \"a-x7k2p\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' "
    "denied request: no limits",
)
BUSY = 'admission webhook "a.example.com" denied the request: the registry does not answer'
LATER = Refused(503, BUSY)
TOO_MANY = Refused(429, BUSY)
REFUSALS: dict[str, tuple[Any, list[Refused], int]] = {
    "of a template without GPUs, once": (PRIVILEGED, [FULL], SAFE),
    "of a template without GPUs, twice": (PRIVILEGED, [FULL, FULL], SAFE),
    "for want of a right": (PRIVILEGED, [RIGHT, RIGHT], UNKNOWN),
    "by a webhook that is down": (PRIVILEGED, [FULL, DOWN], UNKNOWN),
    "by a webhook with another status": (PRIVILEGED, [BY_WEBHOOK, BY_WEBHOOK], SAFE),
    "by a ValidatingAdmissionPolicy": (PRIVILEGED, [BY_POLICY, BY_POLICY], SAFE),
    "by a webhook that may accept it later": (PRIVILEGED, [FULL, LATER], UNKNOWN),
    "by a webhook that is busy": (PRIVILEGED, [TOO_MANY, TOO_MANY], UNKNOWN),
    "by a webhook for now, and of the plain pod for good": (
        PRIVILEGED,
        [LATER, BY_POLICY],
        UNKNOWN,
    ),
    "by a webhook for now, but not of the plain pod": (PRIVILEGED, [LATER], SAFE),
    "for want of a right to the owner": (PRIVILEGED, [OWNER, OWNER], UNKNOWN),
    "of a template with GPUs": (MODERN, [FULL], UNKNOWN),
}


@pytest.mark.parametrize(("spec", "refusals", "code"), REFUSALS.values(), ids=REFUSALS)
def test_a_pod_without_gpus_is_tried_once_more_without_what_is_refused(
    spec: Any,
    refusals: list[Refused],
    code: int,
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its ServiceAccount may be missing, or Pod Security may forbid it."""
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others())
    cluster.list_has(
        "Deployment", made_from(spec) | {"metadata": {"name": "a", "namespace": "team"}}
    )
    sent: list[Any] = []

    def dry_run(_self: Any, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        sent.append(pod)
        if len(sent) <= len(refusals):
            raise refusals[len(sent) - 1]
        return json.dumps(pod).encode(), []

    monkeypatch.setattr(Client, "dry_run", dry_run)
    assert report()[0] == code
    assert len(sent) == (1 if spec is MODERN else 2)
    if spec is PRIVILEGED:
        (container,) = sent[1]["spec"].pop("containers")
        assert sent[1]["spec"] == {"tolerations": [{"key": "a"}]}
        assert container == {"name": "m", "image": "i", "securityContext": RESTRICTED}


# Why a pod with GPUs is refused at the moment. It may be accepted when the cause is removed.
GPU = "nvidia.com/gpu"
FORBIDDEN = 'pods "a-5f4bd6c7d8-x7k2p" is forbidden'
CAUSES = {
    "the quota of GPUs is full": (403, f"{FORBIDDEN}: exceeded quota: q, requested: {GPU}=1"),
    "the quota of pods is full": (403, f"{FORBIDDEN}: exceeded quota: q, requested: pods=1"),
    "a webhook denies with 503": (503, BUSY),
    "a webhook denies with 404": (404, BUSY),
    "a webhook denies with 400": (400, BUSY),
    "no ServiceAccount": (403, f"{FORBIDDEN}: error looking up service account team/later"),
    "no PriorityClass": (403, f"{FORBIDDEN}: no PriorityClass with name later was found"),
    "no RuntimeClass": (403, f'{FORBIDDEN}: pod rejected: RuntimeClass "later" not found'),
    "a LimitRange": (403, f"{FORBIDDEN}: maximum memory usage per Container is 1Gi"),
    "a policy": (
        422,
        f"{FORBIDDEN}: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: x",
    ),
}


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
@pytest.mark.parametrize("is_given", [False, True], ids=["in the template", "of a LimitRange"])
def test_a_tolerant_template_with_gpus_that_is_refused_now_is_a_gap(
    cause: tuple[int, str],
    is_given: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others may take its toleration away when a pod of it is accepted."""
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others())
    if is_given:
        limits = {"metadata": {"namespace": "team"}, "spec": {"limits": [{"default": {GPU: "1"}}]}}
        cluster.say_json("/api/v1/limitranges", {"items": [limits]})
    spec = {**NO_GPU, "tolerations": TOLERANT["tolerations"]} if is_given else TOLERANT
    cluster.list_has(
        "Deployment", made_from(spec) | {"metadata": {"name": "a", "namespace": "team"}}
    )
    sent: list[Any] = []

    def dry_run(_self: Any, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        sent.append(pod)
        if len(sent) == 1:
            raise Refused(*cause)
        return json.dumps(pod).encode(), []

    monkeypatch.setattr(Client, "dry_run", dry_run)
    code, found = report()
    assert (code, owners(found)) == (UNKNOWN, [])
    said = cause[1].replace("a-5f4bd6c7d8-x7k2p", "...")
    assert found["gaps"] == [f"{UNTRIED} team/Deployment/a: {cause[0]}: {said}"]


def test_a_pod_that_is_tried_once_more_keeps_extended_resources_and_probes(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may give it GPUs for its amount of their memory, and policies ask for probes."""
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others())
    probe = {"tcpSocket": {"port": 1}}
    amounts = {"cpu": "64", "memory": "1Ti", "hugepages-2Mi": "2Mi", "example.com/gpumem": "3"}
    container = {
        "name": "m",
        "image": "i",
        "livenessProbe": probe,
        "resources": {"limits": amounts},
    }
    cluster.list_has(
        "Deployment",
        made_from({"containers": [container]}) | {"metadata": {"name": "a", "namespace": "team"}},
    )
    sent: list[Any] = []

    def dry_run(_self: Any, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        sent.append(pod)
        if len(sent) == 1:
            raise FULL
        return json.dumps(pod).encode(), []

    monkeypatch.setattr(Client, "dry_run", dry_run)
    assert report()[0] == SAFE
    (plain,) = sent[1]["spec"]["containers"]
    assert plain["livenessProbe"] == probe
    assert plain["resources"] == {"limits": {"example.com/gpumem": "3"}}


@pytest.mark.parametrize(
    ("tolerations", "is_changed", "left"),
    [
        pytest.param([{"operator": "Exists"}], True, True, id="its pods are on all nodes"),
        pytest.param([{"key": "nvidia.com/gpu"}], True, True, id="its pods are on GPU nodes"),
        pytest.param([{"key": "other"}], True, False, id="it has no pods on GPU nodes"),
        pytest.param([{"key": "nvidia.com/gpu"}], False, False, id="nothing else changes them"),
    ],
)
def test_others_may_take_the_tolerations_of_a_daemon_set_away(
    tolerations: Any,
    is_changed: bool,  # noqa: FBT001
    left: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = webhook_of_others() if is_changed else HEALTHY
    monkeypatch.setattr(facts, "read", lambda *_: found)
    have_daemon_set(cluster, {**MODERN, "tolerations": tolerations})
    gets(cluster)
    assert report()[0] == (LEFT if left else SAFE)


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        pytest.param(0.09, [], id="quick"),
        pytest.param(31.0, [f"{UNTRIED} team/Deployment/c: a minute has passed"], id="slow"),
    ],
)
def test_quick_answers_take_none_of_the_minute(
    seconds: float, why: list[str], cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster with a mesh may have thousands of templates that others may change."""
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others())
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) * seconds)
    monkeypatch.setattr(report_templates, "time", clock)
    monkeypatch.setattr(report_templates, "_SECONDS", 60.0)
    monkeypatch.setattr(report_templates, "_AT_ONCE", 1)
    for name in ("a", "b", "c"):
        obj = made_from({**TOLERANT, "hostname": name})
        cluster.list_has("Deployment", obj | {"metadata": {"name": name, "namespace": "team"}})
    cluster.refusals[PODS] = (201, json.dumps(pod_of(MODERN)).encode(), {})
    assert report()[1]["gaps"] == why


def test_trials_of_different_templates_run_at_once(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a webhook of 0.3 s, a thousand in turn would take five minutes, and had no answer."""
    monkeypatch.setattr(report_templates, "_SECONDS", 2.5)
    monkeypatch.setattr(facts, "read", lambda *_: webhook_of_others())
    names = [f"n{number:02}" for number in range(40)]
    for name in names:
        obj = made_from({**MODERN, "hostname": name})
        cluster.list_has("Deployment", obj | {"metadata": {"name": name, "namespace": "team"}})
    running: list[int] = [0]
    most: list[int] = []

    def dry_run(_self: Any, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        running[0] += 1
        most.append(running[0])
        time.sleep(0.3)
        running[0] -= 1
        if pod["spec"]["hostname"] == "n07":
            raise RIGHT
        notes = {"gpu-webhook.dev/repaired": "GPU201"}
        return json.dumps(pod_of(MODERN, annotations=notes)).encode(), []

    monkeypatch.setattr(Client, "dry_run", dry_run)
    began = time.monotonic()
    code, said = report()
    assert time.monotonic() - began < 40 * 0.3 / 2
    assert (code, max(most)) == (LEFT, report_templates._AT_ONCE)
    assert [name for _, name, _, _ in owners(said)] == [each for each in names if each != "n07"]
    assert said["gaps"] == [f"{UNTRIED} team/Deployment/n07: {RIGHT}"]


def trials(monkeypatch: pytest.MonkeyPatch, tried: list[str]) -> report_templates.Trials:
    def dry_run(_path: str, pod: Any) -> tuple[bytes, list[str]]:
        tried.append(pod["spec"]["hostname"])
        time.sleep(0.2)
        return json.dumps(pod_of(MODERN)).encode(), []

    monkeypatch.setattr(report_templates, "_AT_ONCE", 1)
    others = cast("OtherAdmission", SimpleNamespace(may_change=lambda *_: False))
    api = cast("Client", SimpleNamespace(dry_run=dry_run))
    return report_templates.Trials(api, HEALTHY, (), {}, others)


def hosts(number: int) -> Iterator[dict[str, Any]]:
    for each in range(number):
        metadata = {"name": f"n{each}", "namespace": "team"}
        yield {**made_from({**MODERN, "hostname": f"n{each}"}), "kind": "Job", "metadata": metadata}


def test_what_came_before_a_list_failed_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed() -> Iterator[dict[str, Any]]:
        yield from hosts(3)
        raise Fault("gone")

    ahead = trials(monkeypatch, []).ahead(listed())
    assert [next(ahead)["metadata"]["name"] for _ in range(3)] == ["n0", "n1", "n2"]
    with pytest.raises(Fault, match="gone"):
        next(ahead)


def test_after_an_interrupt_no_more_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    ahead = cast("Generator[Any]", trials(monkeypatch, tried).ahead(hosts(200)))
    next(ahead)
    ahead.close()
    time.sleep(0.5)
    assert len(tried) <= 2


def have_daemon_set(cluster: Cluster, spec: Any) -> None:
    path = "/apis/apps/v1"
    resources = orjson.loads(cluster.answers[path][1])["resources"]
    served = {"name": "daemonsets", "kind": "DaemonSet", "namespaced": True, "verbs": ["list"]}
    cluster.say_json(path, {"resources": [*resources, served]})
    obj = made_from(spec) | {"metadata": {"name": "a", "namespace": "team"}}
    cluster.say_json(f"{path}/daemonsets", {"items": [obj]})


def gets(cluster: Cluster, codes: str = "GPU201") -> None:
    """Each pod of team, as a dry run, is changed by these rules if it tolerates nothing."""
    notes = {"gpu-webhook.dev/repaired": codes}
    cluster.refusals[PODS] = (201, json.dumps(pod_of(MODERN, annotations=notes)).encode(), {})


RANGE = {"metadata": {"name": "r", "namespace": "team"}}
# The amounts of a LimitRange, and whether a pod is tried.
GIVEN: dict[str, tuple[dict[str, Any], bool]] = {
    "a default": ({"default": {"nvidia.com/gpu": "1"}}, True),
    "a maximum, which is a default, too": ({"max": {"nvidia.com/mig-1g.5gb": "1"}}, True),
    "0": ({"default": {"nvidia.com/gpu": "0"}}, False),
    "something else": ({"default": {"cpu": "1"}}, False),
}


@pytest.mark.parametrize(("item", "is_tried"), GIVEN.values(), ids=GIVEN)
def test_a_template_without_gpus_may_get_them_from_a_limit_range(
    item: dict[str, Any],
    is_tried: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    cluster.say_json(LIMIT_RANGES, {"items": [{**RANGE, "spec": {"limits": [item]}}]})
    metadata = {"name": "a", "namespace": "team"}
    cluster.list_has("Deployment", made_from(NO_GPU, replicas=0) | {"metadata": metadata})
    gets(cluster)
    code, found = report()
    assert (code, len(cluster.posted)) == ((LEFT, 1) if is_tried else (SAFE, 0))
    assert owners(found) == ([("Deployment", "a", 1, ["GPU201"])] if is_tried else [])


@pytest.mark.parametrize(
    ("by", "kind", "old", "left"),
    [
        pytest.param("CronJob", "Job", made_from(MODERN, suspend=True), True, id="a queued Job"),
        pytest.param(
            "CronJob",
            "Job",
            made_from(MODERN) | {"status": done("Complete")},
            False,
            id="a Job that is complete",
        ),
        pytest.param(
            "Deployment", "ReplicaSet", made_from(MODERN, replicas=0), True, id="a paused one"
        ),
        pytest.param(
            "StatefulSet", "ReplicaSet", made_from(MODERN, replicas=0), False, id="the history"
        ),
    ],
)
def test_what_a_modern_owner_made_before_is_tried_as_it_is(
    by: str,
    kind: str,
    old: Any,
    left: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    """The owner has the toleration by now; what it made lacks it, and still makes pods."""
    version = "batch/v1" if by == "CronJob" else "apps/v1"
    template: dict[str, Any] = {"template": {"spec": TOLERANT}}
    spec: dict[str, Any] = template | {"paused": True}
    spec = {"jobTemplate": {"spec": template}} if by == "CronJob" else spec
    by = "Deployment" if by == "StatefulSet" else by
    if not left and by == "Deployment":
        spec["paused"] = False
    metadata = {"name": "top", "namespace": "team", "uid": "top"}
    cluster.list_has(by, {"metadata": metadata, "spec": spec})
    of_top = [owner("top", by, version, "top")]
    own = {"name": "old", "namespace": "team", "uid": "old", "ownerReferences": of_top}
    cluster.list_has(kind, {**old, "metadata": own})
    gets(cluster)
    code, found = report()
    assert (code, owners(found)) == ((LEFT, [(by, "top", 1, ["GPU201"])]) if left else (SAFE, []))
    if left:
        assert "is modern: finish its rollout" in found["owners"][0]["change"]


def test_a_pod_is_tried_as_its_controller_makes_it(cluster: Cluster, report: Any) -> None:
    """Of the metadata it takes labels and annotations; a StatefulSet adds the volumes of claims."""
    spec = {**MODERN, "volumes": [{"name": "data", "emptyDir": {}}, {"name": "more"}]}
    claims = [{"metadata": {"name": "data"}}]
    obj = made_from(spec, replicas=0, serviceName="s", volumeClaimTemplates=claims)
    written = {"namespace": "other", "labels": {"a": "b"}, "name": "x", "uid": "y"}
    obj["spec"]["template"]["metadata"] = written
    cluster.list_has("StatefulSet", obj | {"metadata": {"name": "a", "namespace": "team"}})
    gets(cluster)
    assert report()[0] == LEFT
    ((path, tried_pod),) = cluster.posted
    labels = {
        "a": "b",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": f"a-{HASH}",
        "statefulset.kubernetes.io/pod-name": "a-0",
    }
    assert (path, tried_pod["metadata"]) == (
        PODS,
        {"name": "a-0", "labels": labels, **made_by("apps/v1", "StatefulSet", "a")},
    )
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-a-0"}}]
    of_set = {"hostname": "a-0", "subdomain": "s", "volumes": [*volumes, {"name": "more"}]}
    assert tried_pod["spec"] == {**spec, **of_set}


def test_a_pod_of_a_stateful_set_that_is_still_there_is_no_gap(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was scaled down, until that pod has ended."""
    obj = made_from(MODERN, replicas=2) | {"metadata": {"name": "a", "namespace": "team"}}
    cluster.list_has("StatefulSet", obj)
    sent: list[Any] = []

    def dry_run(_self: Any, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        sent.append(pod["metadata"])
        if pod["metadata"].get("name") == "a-2":
            raise Refused(409, 'pods "a-2" already exists')
        notes = {"gpu-webhook.dev/repaired": "GPU201"}
        return json.dumps(pod_of(MODERN, annotations=notes)).encode(), []

    monkeypatch.setattr(Client, "dry_run", dry_run)
    code, found = report()
    assert (code, found["gaps"]) == (LEFT, [])
    assert {**sent[1], "name": "a-2"} == sent[0]


HASH, MINUTE = controllers.HASH, "49999999"
NO_UID = "00000000-0000-4000-8000-000000000000"


def of_owner(version: str, kind: str, name: str, uid: str = NO_UID) -> dict[str, Any]:
    by = {"controller": True, "blockOwnerDeletion": True}
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, **by}
    return {"ownerReferences": [owner]}


def made_by(version: str, kind: str, name: str, uid: str = NO_UID) -> dict[str, Any]:
    return {"generateName": f"{name}-", **of_owner(version, kind, name, uid)}


def of_job(name: str, uid: str = NO_UID) -> dict[str, Any]:
    names = {"job-name": name, "controller-uid": uid}
    labels = {**names, **{f"batch.kubernetes.io/{key}": value for key, value in names.items()}}
    return {
        **made_by("batch/v1", "Job", name, uid),
        "labels": labels,
        "finalizers": ["batch.kubernetes.io/job-tracking"],
    }


INDEX = "batch.kubernetes.io/job-completion-index"
OF_JOB = of_job("a", "of-a")
INDEXED = {
    **OF_JOB,
    "generateName": "a-0-",
    "labels": {**OF_JOB["labels"], INDEX: "0"},
    "annotations": {INDEX: "0"},
}
OF_SET = {"labels": {"pod-template-hash": HASH}, **made_by("apps/v1", "ReplicaSet", f"a-{HASH}")}
OF_DAEMON_SET = {
    "labels": {"controller-revision-hash": HASH, "pod-template-generation": "1"},
    **made_by("apps/v1", "DaemonSet", "a", "of-a"),
}
OF_ROLLOUT = {**OF_SET, "labels": {"rollouts-pod-template-hash": HASH}}
OF_CONFIG = {
    "labels": {"deployment": f"a-{MINUTE}", "deploymentconfig": "a"},
    **made_by("v1", "ReplicationController", f"a-{MINUTE}"),
}
# What makes the pods, its spec, and the metadata that they have from it.
MAKERS: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "a Deployment": ("apps/v1", "Deployment", {}, OF_SET),
    "a Rollout": ("argoproj.io/v1alpha1", "Rollout", {}, OF_ROLLOUT),
    "a DeploymentConfig": ("apps.openshift.io/v1", "DeploymentConfig", {}, OF_CONFIG),
    "a ReplicaSet": ("apps/v1", "ReplicaSet", {}, made_by("apps/v1", "ReplicaSet", "a", "of-a")),
    "a DaemonSet": ("apps/v1", "DaemonSet", {}, OF_DAEMON_SET),
    "a Job": ("batch/v1", "Job", {}, OF_JOB),
    "an indexed Job": ("batch/v1", "Job", {"completionMode": "Indexed"}, INDEXED),
    "a Job whose author chose the labels": (
        "batch/v1",
        "Job",
        {"manualSelector": True},
        {key: value for key, value in OF_JOB.items() if key != "labels"},
    ),
    "a CronJob": ("batch/v1", "CronJob", {}, of_job(f"a-{MINUTE}")),
    "a Job of Volcano": (
        "batch.volcano.sh/v1alpha1",
        "Job",
        {},
        made_by("batch.volcano.sh/v1alpha1", "Job", "a", "of-a"),
    ),
    "a custom kind": ("x.org/v1", "Team", {}, made_by("x.org/v1", "Team", "a", "of-a")),
    "a PodTemplate, which makes none": ("v1", "PodTemplate", {}, {"generateName": "a-"}),
    "nobody": ("v1", "Pod", {}, {"name": f"a-{HASH}"}),
}


@pytest.mark.parametrize(("version", "kind", "spec", "metadata"), MAKERS.values(), ids=MAKERS)
def test_a_pod_that_is_tried_has_what_its_controller_gives_it(
    version: str, kind: str, spec: Any, metadata: dict[str, Any]
) -> None:
    """Policies decide by it: many leave DaemonSets alone, or refuse pods of nobody."""
    own = {"name": "a", "namespace": "team", "uid": "of-a"}
    obj = {"apiVersion": version, "kind": kind, "metadata": own, "spec": spec}
    assert controllers.pod(obj, {})["metadata"] == metadata


def test_a_pod_of_a_daemon_set_is_for_any_node_that_its_template_allows() -> None:
    """Its controller writes which one. The report does not know the nodes."""
    here = {"key": "pool", "operator": "In", "values": ["a"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    of_nodes = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spec = {**TOLERANT, "affinity": {"nodeAffinity": of_nodes}, "hostNetwork": True}
    obj = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a"}}
    made = controllers.pod(obj, {"spec": spec})["spec"]
    ((_, found),) = made["affinity"]["nodeAffinity"].items()
    nowhere = {"key": "metadata.name", "operator": "NotIn", "values": [HASH]}
    assert found == {"nodeSelectorTerms": [{"matchExpressions": [here], "matchFields": [nowhere]}]}
    assert made["tolerations"][0] == TOLERANT["tolerations"][0]
    assert {"key": "node.kubernetes.io/network-unavailable"}.items() <= made["tolerations"][
        -1
    ].items()


LONG = f"{'a' * 40}.{'b' * 40}"


def test_names_that_are_made_are_also_those_of_labels_and_hosts() -> None:
    assert controllers.beside(LONG) == f"{'a' * 40}-{'b' * 9}-{HASH}"
    assert controllers.beside(f"{'a' * 49}.b") == f"{'a' * 49}-{HASH}"


def test_a_pod_that_was_made_keeps_its_owner() -> None:
    owner = made_by("batch/v1", "Job", "b", "of-b")["ownerReferences"][0]
    metadata = {"name": "b-x7k2p", "generateName": "b-", "ownerReferences": [owner]}
    made = controllers.pod({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, {})
    assert made["metadata"] == made_by("batch/v1", "Job", "b", "of-b")


def test_templates_of_kinds_that_policies_may_tell_apart_are_each_tried(
    cluster: Cluster, report: Any
) -> None:
    for kind in ("Deployment", "StatefulSet"):
        metadata = {"name": "a", "namespace": "team"}
        cluster.list_has(kind, made_from(MODERN) | {"metadata": metadata})
    gets(cluster)
    assert report()[0] == LEFT
    kinds = [pod["metadata"]["ownerReferences"][0]["kind"] for _, pod in cluster.posted]
    assert kinds == ["ReplicaSet", "StatefulSet"]


@pytest.mark.parametrize(
    ("codes", "left"), [("GPU201", []), ("GPU201,GPU202", ["GPU202"])], ids=["one", "two"]
)
def test_a_daemon_set_makes_no_pods_for_nodes_that_it_does_not_tolerate(
    codes: str, left: list[str], cluster: Cluster, report: Any
) -> None:
    """So no pod of it ever needs the toleration."""
    have_daemon_set(cluster, MODERN)
    gets(cluster, codes)
    code, found = report()
    assert code == (LEFT if left else SAFE)
    assert owners(found) == ([("DaemonSet", "a", 1, left)] if left else [])
    assert len(cluster.posted) == 1


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": {"gpu-webhook.dev/ignore": "true"}}, id="it is left alone"),
        pytest.param({"deletionTimestamp": created(0)}, id="it is being deleted"),
    ],
)
def test_nothing_is_tried_in_a_namespace_that_gets_nothing_from_the_webhook(
    metadata: Any, cluster: Cluster, report: Any
) -> None:
    spaces = [{"metadata": {"name": "team", **metadata}}]
    cluster.say_json("/api/v1/namespaces", {"items": spaces})
    metadata = {"name": "a", "namespace": "team"}
    cluster.list_has("Deployment", made_from(MODERN) | {"metadata": metadata})
    gets(cluster)
    assert report()[0] == SAFE
    assert cluster.posted == []


def test_an_object_that_is_nested_too_deeply_is_a_gap_with_its_name(
    cluster: Cluster, report: Any
) -> None:
    """A custom kind may have fields of any depth; the others are judged all the same."""
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    held = []
    for name, spec in (("deep", {**MODERN, "zz": deep}), ("other", MODERN)):
        metadata = {"name": name, "namespace": "team"}
        sent = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        sent = json.dumps(sent | made_from(MODERN) | {"metadata": metadata})  # type: ignore[assignment]
        notes = {"kubectl.kubernetes.io/last-applied-configuration": sent}
        held.append(made_from(spec) | {"metadata": metadata | {"annotations": notes}})
    text = json.dumps({"items": held}).encode()
    cluster.say("/apis/apps/v1/deployments", 200, text)
    gets(cluster)
    code, found = report()
    assert (code, [each["name"] for each in found["owners"]]) == (LEFT, ["other"])
    (gap,) = found["gaps"]
    assert "team/Deployment/deep" in gap


@pytest.mark.parametrize(
    ("seconds", "found", "why"),
    [
        pytest.param(-1.0, HEALTHY, "a minute has passed", id="other webhooks may hang"),
        pytest.param(
            60.0, replace(HEALTHY, trial=tried()), "the webhook repairs nothing", id="an outage"
        ),
        pytest.param(
            60.0,
            replace(HEALTHY, trial=tried({}, refusal="422: no")),
            "the legacy pod of `doctor` was refused, so the webhook may not answer",
            id="a policy refuses the trial pod",
        ),
    ],
)
def test_it_is_not_known_what_templates_need_of_which_no_pod_is_tried(
    seconds: float,
    found: Facts,
    why: str,
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The API server counts calls that fail, also those of dry runs."""
    monkeypatch.setattr(report_templates, "_SECONDS", seconds)
    monkeypatch.setattr(facts, "read", lambda *_: found)
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team")]})
    cluster.list_has(
        "Deployment", made_from(MODERN) | {"metadata": {"name": "a", "namespace": "team"}}
    )
    code, said = report()
    assert (code, owners(said)) == (UNKNOWN, [])
    assert said["gaps"] == [f"{UNTRIED} team/Deployment/a: {why}"]
    assert cluster.posted == []


@pytest.mark.parametrize("kind", ["limitranges", "namespaces"])
def test_what_templates_lack_is_a_gap_without_the_right(
    kind: str, cluster: Cluster, report: Any
) -> None:
    cluster.say(f"/api/v1/{kind}", 403, b'{"message": "no"}')
    code, found = report()
    what = {
        "limitranges": "which modern templates get GPUs from a LimitRange",
        "namespaces": "what is guarded, and what the webhook leaves alone",
    }[kind]
    assert code == UNKNOWN
    assert found["gaps"] == [f"{what}: {kind}: 403: no"]


# Of the namespace: its name, its labels, the entry of the webhook, and whether it is left alone.
SPACES: dict[str, tuple[str, dict[str, str], dict[str, Any], bool]] = {
    "any": ("team", {}, {}, False),
    "one that opts out": ("team", {"gpu-webhook.dev/ignore": "true"}, {}, True),
    "one with another value of that label": ("team", {"gpu-webhook.dev/ignore": "no"}, {}, False),
    "kube-system": ("kube-system", {}, {}, True),
    "the namespace of the webhook": ("gpu-webhook", {}, {}, True),
    "one that the administrator left out": (
        "team",
        {},
        {"namespaceSelector": {"matchLabels": {"gpu-repair": "enabled"}}},
        True,
    ),
    "one that the administrator chose": (
        "team",
        {"gpu-repair": "enabled"},
        {"namespaceSelector": {"matchLabels": {"gpu-repair": "enabled"}}},
        False,
    ),
    "any, with an entry for all": ("kube-system", {}, {"namespaceSelector": None}, False),
}


@pytest.mark.parametrize(("name", "labels", "entry", "alone"), SPACES.values(), ids=SPACES)
def test_what_is_legacy_where_nothing_comes_to_the_webhook_does_not_need_it(
    name: str,
    labels: dict[str, str],
    entry: dict[str, Any],
    alone: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(facts, "read", lambda *_: changed("mutating/gpu-webhook", **entry))
    cluster.say_json("/api/v1/namespaces", {"items": [namespace(name, **labels)]})
    cluster.have("Deployment", "plugin", namespace=name)
    code, found = report()
    assert (code, len(found["owners"])) == ((SAFE, 0) if alone else (LEFT, 1))
    note = f"namespaces that the webhook leaves alone: {name}"
    assert (note in found["notes"]) is alone


@pytest.mark.parametrize(
    ("labels", "code"), [({}, UNKNOWN), ({"gpu-webhook.dev/ignore": "true"}, SAFE)]
)
def test_an_object_that_is_too_large_is_a_gap_where_it_comes_to_the_webhook(
    labels: dict[str, str], code: int, cluster: Cluster, report: Any
) -> None:
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team", **labels)]})
    many = {"containers": [{"name": f"c{n}"} for n in range(1001)]}
    metadata = {"name": "a", "namespace": "team"}
    cluster.list_has("Deployment", made_from(many) | {"metadata": metadata})
    said, found = report()
    assert (said, len(found["gaps"])) == (code, code == UNKNOWN)


def test_another_configuration_may_send_what_ours_leaves_out(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a second one for a few namespaces first."""
    chosen = {"namespaceSelector": {"matchLabels": {"gpu-repair": "enabled"}}}
    ours = changed("mutating/gpu-webhook", **chosen)
    canary = {"mutating/gpu-webhook-canary": HEALTHY.configurations["mutating/gpu-webhook"]}
    both = replace(ours, configurations={**ours.configurations, **canary})
    monkeypatch.setattr(facts, "read", lambda *_: both)
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team")]})
    cluster.have("Deployment", "train")
    assert report()[0] == LEFT


@pytest.mark.parametrize("is_ending", [True, False])
def test_nothing_makes_pods_in_a_namespace_that_is_being_deleted(
    is_ending: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    """Finalizers may keep its objects for days. The API server refuses new ones there."""
    named: Any = {"name": "team", **({"deletionTimestamp": created(0)} if is_ending else {})}
    cluster.say_json("/api/v1/namespaces", {"items": [{"metadata": named}]})
    cluster.have("Deployment", "a", deletionTimestamp=created(0), finalizers=["x/y"])
    cluster.have("Pod", "b")
    serve(cluster, "Notebook", custom({"limits": {ALPHA: 1}}))
    code, found = report()
    note = "namespaces that are being deleted, which get no pods: team"
    assert (code, note in found["notes"]) == ((SAFE, True) if is_ending else (LEFT, False))
    assert (len(found["owners"]), len(found["gaps"])) == ((0, 0) if is_ending else (2, 1))


@pytest.mark.parametrize(
    ("kind", "notes", "left"),
    [
        pytest.param("Pod", {"kubernetes.io/config.mirror": "x"}, False, id="a static pod"),
        pytest.param("Pod", {}, True, id="a pod whose author names a node as its owner"),
        pytest.param("Deployment", {}, True, id="a Deployment whose author does"),
    ],
)
def test_a_static_pod_never_comes_to_the_webhook(
    kind: str,
    notes: dict[str, str],
    left: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    cluster.have(kind, "plugin-a", owner("a", "Node", "v1"), annotations=notes)
    assert report()[0] == (LEFT if left else SAFE)


def test_an_owner_of_the_whole_cluster_has_objects_in_many_namespaces(
    cluster: Cluster, report: Any
) -> None:
    """Where nothing comes to the webhook, and elsewhere."""
    spaces = [namespace("kube-system"), namespace("team")]
    cluster.say_json("/api/v1/namespaces", {"items": spaces})
    serve(cluster, "Tenant")
    served = {"name": "tenants", "kind": "Tenant", "namespaced": False, "verbs": ["list"]}
    cluster.say_json("/apis/example.org/v1", {"resources": [served]})
    of_tenant = owner("t", "Tenant", "example.org/v1")
    cluster.say_json("/apis/example.org/v1/tenants/t", {"metadata": {"name": "t", "uid": "u"}})
    cluster.have("Deployment", "a", of_tenant, namespace="kube-system")
    assert report()[0] == SAFE
    cluster.have("Deployment", "b", of_tenant, namespace="team")
    code, found = report()
    assert (code, owners(found)) == (LEFT, [("Tenant", "t", 1, ["GPU101"])])


AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
APART = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
ANTI = {
    AFFINITY: json.dumps(
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}
    )
}
MODELS = {
    AFFINITY: json.dumps(
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {
                                    "key": "alpha.kubernetes.io/nvidia-gpu-name",
                                    "operator": "In",
                                    "values": ["Tesla-K80"],
                                }
                            ]
                        }
                    ]
                }
            }
        }
    )
}
TOLERATED = {TOLERATIONS: json.dumps([{"key": "team", "operator": "Exists"}])}
MALFORMED = {TOLERATIONS: "not JSON"}
SCHEDULER = {"scheduler.alpha.kubernetes.io/name": "default-scheduler"}
CRITICAL = {"scheduler.alpha.kubernetes.io/critical-pod": ""}
DRIVER = "/usr/lib/nvidia-384"


def driven(spec: Any, *env: str) -> dict[str, Any]:
    """With the driver of an old node."""
    mount = {"name": "driver", "mountPath": "/usr/local/nvidia/lib"}
    path = {"name": "LD_LIBRARY_PATH", "value": f"{DRIVER}:/lib"}
    added = {"volumeMounts": [mount], "env": [path, *({"name": e, "value": DRIVER} for e in env)]}
    containers = [each | added for each in spec["containers"]]
    volume = {"name": "driver", "hostPath": {"path": DRIVER}}
    return {**spec, "containers": containers, "volumes": [volume]}


ALL = "scope: all-legacy"
ZERO = {"containers": [{"name": "m", "resources": {"limits": {ALPHA: "0"}}}]}
OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-x"
ANNOTATED = {"containers": [{"name": "m", "env": [{"name": "NOTE", "value": AFFINITY}]}]}
OF_AMOUNT = {"containers": [{"name": "m", "args": [f"--resource={ALPHA}"]}]}
SELECTING = {**NO_GPU, "nodeSelector": {f"{ALPHA}-name": "Tesla-K80"}}
WINDOWS = {**LEGACY, "nodeSelector": {"kubernetes.io/os": "windows"}}
# The settings, the annotations of the pods, their spec, and whether the webhook is needed.
ALONE: dict[str, tuple[str, dict[str, str], Any, bool]] = {
    "an affinity annotation without GPUs": ("{}", ANTI, NO_GPU, False),
    "one of GPU pods that run": ("{}", ANTI, TOLERANT, False),
    "one of legacy pods": ("{}", ANTI, LEGACY, True),
    "one that the settings include": (ALL, ANTI, NO_GPU, True),
    "one that names a model": ("{}", MODELS, NO_GPU, False),
    "a label of models": ("{}", {}, SELECTING, True),
    "a tolerations annotation without GPUs": ("{}", TOLERATED, NO_GPU, False),
    "a malformed one without GPUs, which the API server refuses": ("{}", MALFORMED, NO_GPU, False),
    "one of GPU pods, which get its tolerations": ("{}", TOLERATED, TOLERANT, True),
    "a malformed one of GPU pods, which are accepted without it": ("{}", MALFORMED, TOLERANT, True),
    "another annotation without GPUs": ("{}", SCHEDULER, NO_GPU, False),
    "another one of GPU pods that run": ("{}", SCHEDULER, TOLERANT, False),
    "another one that the settings include": (ALL, SCHEDULER, NO_GPU, True),
    "one that is only reported, which the settings include": (ALL, CRITICAL, NO_GPU, False),
    "one that is only reported, of GPU pods": ("{}", CRITICAL, TOLERANT, False),
    "a driver without GPUs": ("{}", {}, driven(NO_GPU), False),
    "a driver in GPU pods that run": ("{}", {}, driven(TOLERANT), False),
    "a driver in legacy pods": ("{}", {}, driven(LEGACY), True),
    "a driver that the settings include": (ALL, {}, driven(TOLERANT), True),
    "a driver without GPUs, which the settings include": (ALL, {}, driven(NO_GPU), False),
    "a driver that a program is given, which may make pods": (
        "{}",
        {},
        driven(NO_GPU, "DRIVER"),
        True,
    ),
    "a name that a program is given": ("{}", {}, OF_AMOUNT, True),
    "the same beside an annotation": ("{}", ANTI, OF_AMOUNT, True),
    "an annotation that a program is given": ("{}", {}, ANNOTATED, True),
    "0 GPUs under the legacy name, and an annotation": ("{}", ANTI, ZERO, False),
    "a resource of alpha releases that the webhook does not know": (
        "{}",
        {},
        {"containers": [{"name": "m", "resources": {"limits": {OPAQUE: "1"}}}]},
        False,
    ),
    "legacy pods for Windows, which the webhook leaves alone": ("{}", {}, WINDOWS, False),
    "a rule that is off": ("policy: {rules: {GPU107: off}}", TOLERATED, TOLERANT, False),
    "a rule that only warns": ("policy: {rules: {GPU107: warn}}", TOLERATED, TOLERANT, True),
}


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "Pod"])
@pytest.mark.parametrize(("text", "notes", "spec", "needed"), ALONE.values(), ids=ALONE)
def test_what_the_webhook_leaves_as_it_is_does_not_need_it(
    text: str,
    notes: dict[str, str],
    spec: Any,
    needed: bool,  # noqa: FBT001
    kind: str,
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rules report it, and admission makes no edit."""
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=parse(text)))
    template = {"metadata": {"annotations": notes}, "spec": spec}
    obj = {
        "Pod": template,
        "Deployment": {"spec": {"template": template}},
        "CronJob": {"spec": {"jobTemplate": {"spec": {"template": template}}}},
    }[kind]
    metadata = {**obj.get("metadata", {}), "name": "d", "namespace": "team"}
    cluster.list_has(kind, {**obj, "metadata": metadata})
    code, found = report()
    assert (code, [e["name"] for e in found["owners"]]) == ((LEFT, ["d"]) if needed else (SAFE, []))
    said = [e.rpartition(": ")[2] for e in found["notes"] if "leaves as they are" in e]
    assert said == [f"team/{kind}/d"] * (not needed and "off" not in text)


def annotated(spec: Any, **more: Any) -> dict[str, Any]:
    """With an annotation that has no effect."""
    template = {"metadata": {"annotations": ANTI}, "spec": spec}
    return {"metadata": {}, "spec": {"template": template, **more}}


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        ("ReplicaSet", made_from(LEGACY, replicas=1)),
        ("Pod", pod_of(LEGACY)),
        ("Pod", pod_of(MODERN, annotations=REPAIRED)),
    ],
    ids=["an older template", "a pod", "a repaired pod"],
)
def test_an_owner_that_is_left_as_it_is_hides_nothing_that_it_made(
    kind: str, obj: dict[str, Any], cluster: Cluster, report: Any
) -> None:
    top = {"name": "top", "namespace": "team", "uid": "top"}
    by = "Deployment" if kind == "ReplicaSet" else "StatefulSet"
    cluster.list_has(by, annotated(TOLERANT) | {"metadata": top})
    of_top = [owner("top", by, "apps/v1", "top")]
    own = {"name": "old", "namespace": "team", "uid": "old", "ownerReferences": of_top}
    cluster.list_has(kind, obj | {"metadata": obj["metadata"] | own})
    code, found = report()
    assert (code, owners(found)) == (LEFT, [(by, "top", 1, ["GPU101"])])


def test_what_such_an_owner_made_is_not_named_as_well(cluster: Cluster, report: Any) -> None:
    top = {"name": "top", "namespace": "team", "uid": "top"}
    cluster.list_has("Deployment", annotated(TOLERANT) | {"metadata": top})
    of_top = [owner("top", "Deployment", "apps/v1", "top")]
    own = {"name": "set", "namespace": "team", "uid": "set", "ownerReferences": of_top}
    cluster.list_has("ReplicaSet", annotated(TOLERANT, replicas=1) | {"metadata": own})
    of_set = [owner("set", "ReplicaSet", "apps/v1", "set")]
    for name in ("a", "b"):
        notes = {"name": name, "namespace": "team", "ownerReferences": of_set, "annotations": ANTI}
        cluster.list_has("Pod", {"metadata": notes, "spec": TOLERANT})
    code, found = report()
    assert code == SAFE
    (note,) = [each for each in found["notes"] if "leaves as they are" in each]
    assert note.endswith(": team/Deployment/top")


def test_an_apply_that_left_a_legacy_name_counts_beside_such_an_annotation(
    cluster: Cluster, report: Any
) -> None:
    named = {"name": "a", "namespace": "team"}
    version = {"apiVersion": "apps/v1", "kind": "Deployment"}
    sent = json.dumps(version | annotated(TOLERANT) | {"metadata": named})
    notes = {"kubectl.kubernetes.io/last-applied-configuration": sent}
    cluster.list_has(
        "Deployment", annotated(LEGACY) | {"metadata": {**named, "annotations": notes}}
    )
    code, found = report()
    assert (code, [each["name"] for each in found["owners"]]) == (LEFT, ["a"])


TEMPLATE = {"spec": LEGACY}
GAP = (
    "whether pods get the legacy names or driver paths in {}: {}: migrate them, or delete what is "
    "not used"
)


def serve(cluster: Cluster, kind: str, *items: dict[str, Any], group: str = "example.org") -> None:
    """One more kind, with these objects."""
    groups = json.loads(cluster.answers["/apis"][1])["groups"]
    groups.append({"name": group, "preferredVersion": {"version": "v1"}})
    cluster.say_json("/apis", {"groups": groups})
    plural = f"{kind.lower()}s"
    served = {"name": plural, "kind": kind, "namespaced": True, "verbs": ["list"]}
    cluster.say_json(f"/apis/{group}/v1", {"resources": [served]})
    cluster.say(f"/apis/{group}/v1/{plural}", 200, json.dumps({"items": items}).encode())


def custom(spec: Any, name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", **metadata}, "spec": spec}


def noted(key: str) -> dict[str, Any]:
    return custom({}, annotations={key: json.dumps(TEMPLATE)})


HELD: dict[str, tuple[dict[str, Any], bool]] = {
    "a template, wherever it is": (custom({"worker": [TEMPLATE]}), True),
    "a container that is no pod": (custom({"steps": LEGACY["containers"]}), True),
    "a text": (custom({"values": f"limits: {{{ALPHA}: 1}}\n"}), True),
    "a JSON Patch": (custom({"path": f"/limits/{ALPHA.replace('/', '~1')}"}), True),
    "a JSON text with escaped slashes": (
        custom({"json": json.dumps(LEGACY).replace("/", r"\/")}),
        True,
    ),
    "a JSON text in another one": (
        custom({"json": json.dumps(json.dumps(LEGACY).replace("/", r"\u002f"))}),
        True,
    ),
    "a parameter of Helm, with escaped dots": (
        custom({"parameters": [{"name": f"limits.{ALPHA.replace('.', chr(92) + '.')}"}]}),
        True,
    ),
    "a parameter of Helm in a JSON text": (
        custom({"json": json.dumps(f"--set=limits.{ALPHA.replace('.', chr(92) + '.')}=1")}),
        True,
    ),
    "a driver of an old node, which the webhook takes from pods": (
        custom({"path": "/var/lib/nvidia-docker/volumes/nvidia_driver/384.90"}),
        True,
    ),
    "a driver of an old node beside its libraries": (
        custom({"json": json.dumps("/usr/lib64/nvidia-384/lib").replace("/", r"\/")}),
        True,
    ),
    "the libraries of a current node": (custom({"path": "/usr/lib/nvidia/lib64"}), False),
    "a name with other characters for the dots": (
        custom({"name": ALPHA.replace(".", "-")}),
        False,
    ),
    "a model": (custom({"nodeSelector": {f"{ALPHA}-name": "Tesla-K80"}}), True),
    "an annotation of templates": (
        custom({"annotations": {"scheduler.alpha.kubernetes.io/tolerations": "[]"}}),
        True,
    ),
    "current annotations of namespaces": (
        custom(
            {
                "annotations": {
                    "scheduler.alpha.kubernetes.io/tolerationsWhitelist": "[]",
                    "scheduler.alpha.kubernetes.io/defaultTolerations": "[]",
                }
            }
        ),
        False,
    ),
    "an annotation of a user": (noted("example.org/template"), True),
    "no spec": ({"metadata": {"name": "a", "namespace": "team"}, "data": {"x": ALPHA}}, True),
    "more levels than can be searched": (
        custom(json.loads('{"a":' * 300 + "1" + "}" * 300)),
        True,
    ),
    "modern names": (custom({"template": {"spec": MODERN}}), False),
    "the status": (custom({}) | {"status": TEMPLATE}, False),
    "what was applied once": (noted("kubectl.kubernetes.io/last-applied-configuration"), False),
    "the record of a repair": (noted("gpu-webhook.dev/template-repair"), False),
    "managedFields": (custom({}, managedFields=[{"fieldsV1": {f"f:{ALPHA}": {}}}]), False),
}


@pytest.mark.parametrize(("obj", "is_gap"), HELD.values(), ids=HELD)
def test_a_legacy_name_in_an_object_of_a_kind_that_nobody_knows_is_a_gap(
    obj: dict[str, Any],
    is_gap: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    serve(cluster, "Notebook", obj)
    code, found = report()
    gap = GAP.format("Notebooks (example.org)", "team/a")
    assert (code, found["gaps"]) == ((UNKNOWN, [gap]) if is_gap else (SAFE, []))


KNOWN: dict[str, tuple[str, str, str, list[str]]] = {
    "a copy that Kueue keeps of a Job": ("Workload", "kueue.x-k8s.io", "team", []),
    "a kind that the settings name": ("Named", "example.org", "team", []),
    "a kind of the same name in another group": (
        "Workload",
        "example.org",
        "team",
        [GAP.format("Workloads (example.org)", "team/a")],
    ),
    "a ConfigMap": ("ConfigMap", "", "team", [GAP.format("ConfigMaps", "team/a")]),
    "another ConfigMap beside the webhook": (
        "ConfigMap",
        "",
        HEALTHY.namespace,
        [GAP.format("ConfigMaps", f"{HEALTHY.namespace}/a")],
    ),
    "the ConfigMap of its settings": ("ConfigMap", "", f"{HEALTHY.namespace}/settings", []),
    "a ConfigMap of that name elsewhere": (
        "ConfigMap",
        "",
        "team/settings",
        [GAP.format("ConfigMaps", "team/settings")],
    ),
    "a policy that changes objects": (
        "MutatingAdmissionPolicy",
        "admissionregistration.k8s.io",
        "/a",
        [GAP.format("MutatingAdmissionPolicies (admissionregistration.k8s.io)", "a")],
    ),
    "a policy that only refuses": (
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io",
        "/a",
        [],
    ),
    "the entries of webhooks": (
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        "/a",
        [],
    ),
}


@pytest.mark.parametrize(("kind", "group", "space", "gaps"), KNOWN.values(), ids=KNOWN)
def test_copies_and_kinds_that_are_judged_are_no_gap(
    kind: str,
    group: str,
    space: str,
    gaps: list[str],
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = parse("workloads: {kinds: [{kind: Named, templates: [/spec/other]}]}")
    own = {"metadata": {"name": "settings", "namespace": HEALTHY.namespace}}
    found = replace(HEALTHY, settings=settings, settings_map=own)
    monkeypatch.setattr(facts, "read", lambda *_: found)
    space, _, name = space.partition("/")
    obj = custom({"x": TEMPLATE}) | {"metadata": {"name": name or "a", "namespace": space}}
    if group:
        serve(cluster, kind, obj, group=group)
    else:
        cluster.list_has(kind, obj)
    assert report()[1]["gaps"] == gaps


BINARY = {
    "a template": (yaml.safe_dump(TEMPLATE).encode(), True),
    "a template in other bytes": (b"\xff\x00" + json.dumps(TEMPLATE).encode(), True),
    "a modern one": (yaml.safe_dump(MODERN).encode(), False),
}


@pytest.mark.parametrize(("data", "is_gap"), BINARY.values(), ids=BINARY)
def test_binary_data_of_a_config_map_is_decoded(
    data: bytes, *, is_gap: bool, cluster: Cluster, report: Any
) -> None:
    held = {"binaryData": {"pod.yaml": base64.b64encode(data).decode()}}
    cluster.list_has("ConfigMap", {"metadata": {"name": "a", "namespace": "team"}} | held)
    assert report()[1]["gaps"] == [GAP.format("ConfigMaps", "team/a")] * is_gap


REVISIONS = {"currentRevision": "web-1", "updateRevision": "web-2"}
HALFWAY: dict[str, tuple[Any, Any, Any, str]] = {
    "pods of two revisions": ({}, REVISIONS, LEGACY, "is legacy"),
    "pods of two revisions, both of them modern": ({}, REVISIONS, MODERN, ""),
    "an older revision that the webhook leaves as it is": ({}, REVISIONS, driven(MODERN), ""),
    "an older revision that is not there": ({}, REVISIONS, None, "is not there"),
    "an older revision that may not be read": ({}, REVISIONS, 403, "cannot be read: 403: no"),
    "an older revision that is too large to be judged": (
        {},
        REVISIONS,
        {"containers": [{"name": f"c{number}"} for number in range(1001)]},
        "is not checked: it has more than 1000 containers",
    ),
    "one revision": ({}, {"currentRevision": "web-2", "updateRevision": "web-2"}, None, ""),
    "its controller has not seen it": ({}, {}, None, ""),
    "pods that are replaced when they are deleted: the roll-out never ends": (
        {"updateStrategy": {"type": "OnDelete"}},
        REVISIONS,
        LEGACY,
        "",
    ),
    "pods below a partition": (
        {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
        REVISIONS,
        LEGACY,
        "is legacy",
    ),
}


@pytest.mark.parametrize(("more", "status", "older", "which"), HALFWAY.values(), ids=HALFWAY)
def test_a_stateful_set_that_still_makes_pods_from_an_older_template(
    more: Any, status: Any, older: Any, which: str, cluster: Cluster, report: Any
) -> None:
    """Even without pods: it may be scaled."""
    obj = made_from(MODERN, replicas=0, **more)
    obj |= {"metadata": {"name": "web", "namespace": "team"}, "status": status}
    cluster.list_has("StatefulSet", obj)
    path = "/apis/apps/v1/namespaces/team/controllerrevisions/web-1"
    if isinstance(older, dict):
        template = {"spec": older, "$patch": "replace"}
        cluster.say_json(path, {"data": {"spec": {"template": template}}, "revision": 1})
    else:
        cluster.say(path, older or 404, b'{"message": "no"}')
    code, found = report()
    assert code == (UNKNOWN if which else SAFE)
    text = "its roll-out has not ended (`partition: 0` ends it), and its older template"
    (gap,) = found["gaps"] or [""]
    assert gap.startswith(which and f"team/StatefulSet/web: {text} {which}")


@pytest.mark.parametrize(
    ("paused", "older", "code"),
    [
        pytest.param(True, LEGACY, LEFT, id="it is paused, and has an older template"),
        pytest.param(True, MODERN, SAFE, id="it is paused, and all of its templates are modern"),
        pytest.param(False, LEGACY, SAFE, id="the older template is history"),
    ],
)
def test_a_deployment_that_would_scale_its_older_template(
    paused: bool,  # noqa: FBT001 - of a table
    older: Any,
    code: int,
    cluster: Cluster,
    report: Any,
) -> None:
    obj = made_from(MODERN, replicas=0, paused=paused)
    obj |= {"metadata": {"name": "web", "namespace": "team", "uid": "d"}}
    cluster.list_has("Deployment", obj)
    of_it = [owner("web", "Deployment", "apps/v1", "d")]
    metadata = {"name": "web-1", "namespace": "team", "uid": "r", "ownerReferences": of_it}
    cluster.list_has("ReplicaSet", made_from(older, replicas=0) | {"metadata": metadata})
    said, found = report()
    assert (said, found["gaps"]) == (code, [])
    assert owners(found) == ([("Deployment", "web", 1, ["GPU101"])] if code == LEFT else [])


@pytest.mark.parametrize(
    ("days", "state", "code"),
    [
        pytest.param(40, "Complete", SAFE, id="it was sent before the time that counts, and ended"),
        pytest.param(40, "Failed", SAFE, id="it was sent before the time that counts, and failed"),
        pytest.param(3, "Complete", LEFT, id="it was sent lately"),
        pytest.param(40, "Suspended", LEFT, id="it is suspended"),
    ],
)
def test_a_finished_job_of_nobody(
    days: float, state: str, code: int, cluster: Cluster, report: Any
) -> None:
    job = made_from(LEGACY) | {"status": done(state)}
    metadata = {"name": "train", "namespace": "team", "creationTimestamp": created(days)}
    cluster.list_has("Job", job | {"metadata": metadata})
    assert report()[0] == code


def test_quotas_with_legacy_names_need_no_webhook(cluster: Cluster, report: Any) -> None:
    """No quota has ever counted them: GPU128."""
    listed = [{"name": "resourcequotas", "kind": "ResourceQuota", "namespaced": True}]
    cluster.say_json("/api/v1", {"resources": [each | {"verbs": ["list"]} for each in listed]})
    hard = {"requests.alpha.kubernetes.io/nvidia-gpu": "0"}
    quota = {"metadata": {"name": "gpus", "namespace": "team"}, "spec": {"hard": hard}}
    cluster.say_json("/api/v1/resourcequotas", {"items": [quota]})
    code, found = report()
    assert (code, found["owners"]) == (SAFE, [])
    assert found["notes"][-1] == (
        "quotas with legacy names, which count nothing with or without the webhook: team/gpus"
    )


RANGES: dict[str, tuple[dict[str, Any], bool]] = {
    "a default of 0, which asks for nothing": ({"default": {ALPHA: "0"}}, False),
    "all of them 0": ({each: {ALPHA: 0} for each in ("default", "defaultRequest", "max")}, False),
    "a default": ({"default": {ALPHA: "1"}}, True),
    "a maximum, which is a default": ({"max": {ALPHA: "2"}}, True),
    "a request beside a default of 0": (
        {"default": {ALPHA: "0"}, "defaultRequest": {ALPHA: "1"}},
        True,
    ),
    "no legacy name": ({"default": {"nvidia.com/gpu": "1"}}, False),
}


@pytest.mark.parametrize(("limits", "needed"), RANGES.values(), ids=RANGES)
def test_a_limit_range_that_gives_legacy_gpus_to_pods(
    limits: dict[str, Any],
    needed: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    listed = {"name": "limitranges", "kind": "LimitRange", "namespaced": True, "verbs": ["list"]}
    cluster.say_json("/api/v1", {"resources": [listed]})
    metadata = {"name": "gpus", "namespace": "team"}
    obj = {"metadata": metadata, "spec": {"limits": [{"type": "Container", **limits}]}}
    cluster.say_json("/api/v1/limitranges", {"items": [obj]})
    code, found = report()
    assert (code, owners(found)) == (
        (LEFT, [("LimitRange", "gpus", 1, ["GPU128"])]) if needed else (SAFE, [])
    )


GUARD = configuration("guard/webhook.yaml")
BOTH_GUARDS = {**GUARD, **configuration("guard-refuse/webhook.yaml")}


def renamed(obj: dict[str, Any], entry: str = "", service: str = "") -> dict[str, Any]:
    """A copy that an administrator made, with another name of the entry or the Service."""
    made = copy.deepcopy(obj)
    for each in made["webhooks"]:
        each["name"] = entry or each["name"]
        each["clientConfig"]["service"]["name"] = service or "gpu-webhook"
    return made


def at_url(obj: dict[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(obj)
    made["webhooks"][0]["clientConfig"] = {"url": "https://192.0.2.1/gpu/guard"}
    return made


FOR_ALL: dict[str, Any] = {"webhooks": [{"name": "guard.gpu-webhook.dev"}]}
# The configurations, the mode of the rule, the labels of the namespace, and what ends.
GUARDS: dict[str, tuple[dict[str, Any], str, dict[str, str], str]] = {
    "both entries": (
        BOTH_GUARDS,
        "enforce",
        {LABEL: "enabled"},
        "hides GPUs from and refuses GPUs to",
    ),
    "the entry that refuses, alone": (
        {REFUSE: BOTH_GUARDS[REFUSE]},
        "enforce",
        {LABEL: "enabled"},
        "refuses GPUs to",
    ),
    "the entry that changes pods, alone": (
        GUARD,
        "enforce",
        {LABEL: "enabled"},
        "hides GPUs from",
    ),
    "an entry that refuses in a configuration of another name": (
        {"validating/mine": renamed(BOTH_GUARDS[REFUSE])},
        "enforce",
        {LABEL: "enabled"},
        "refuses GPUs to",
    ),
    "an entry of another name that calls the Service": (
        {"mutating/mine": renamed(GUARD["mutating/gpu-webhook-guard"], "guard.example.com")},
        "enforce",
        {LABEL: "enabled"},
        "hides GPUs from",
    ),
    "an entry with a URL": (
        {"mutating/mine": at_url(GUARD["mutating/gpu-webhook-guard"])},
        "enforce",
        {LABEL: "enabled"},
        "hides GPUs from",
    ),
    "an entry of other software": (
        {"mutating/mine": renamed(GUARD["mutating/gpu-webhook-guard"], "a.example.com", "other")},
        "enforce",
        {LABEL: "enabled"},
        "",
    ),
    "an entry that an administrator changed to select all": (
        {"mutating/gpu-webhook-guard": FOR_ALL},
        "enforce",
        {},
        "hides GPUs from",
    ),
    "a namespace that opts out": (
        GUARD,
        "enforce",
        {LABEL: "enabled", "gpu-webhook.dev/ignore": "true"},
        "",
    ),
    "a namespace without the label": (GUARD, "enforce", {}, ""),
    "another value of the label": (GUARD, "enforce", {LABEL: "true"}, ""),
    "a configuration without entries": (
        {"mutating/gpu-webhook-guard": {"webhooks": []}},
        "enforce",
        {LABEL: "enabled"},
        "",
    ),
    "no entry": ({}, "enforce", {LABEL: "enabled"}, ""),
    "a rule that only warns": (BOTH_GUARDS, "warn", {LABEL: "enabled"}, ""),
}


@pytest.mark.parametrize(("entries", "mode", "labels", "does"), GUARDS.values(), ids=GUARDS)
def test_the_guard_ends_with_the_webhook(
    entries: dict[str, Any],
    mode: str,
    labels: dict[str, str],
    does: str,
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = parse(f"policy: {{rules: {{GPU303: {mode}}}}}")
    monkeypatch.setattr(facts, "read", lambda *_: replace(having(entries), settings=settings))
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team", **labels)]})
    code, said = report()
    text = f"the guard {does} pods that requested none, in team"
    assert (code, said["policies"]) == ((LEFT, {"GPU303": text}) if does else (SAFE, {}))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("policy: {rules: {GPU301: enforce, GPU302: enforce, GPU305: enforce}}", {"GPU301"}),
        ("policy: {mode: enforce}", {"GPU301"}),
        ("policy: {overrides: [{namespaces: [team], rules: {GPU301: enforce}}]}", {"GPU301"}),
        ("policy: {rules: {GPU301: warn}}", set()),
        ("policy: {rules: {GPU304: enforce}}", set()),
        (
            "policy: {rules: {GPU304: enforce}}\ncapacity: {limits: [{gpus: {nvidia.com/gpu: 2}}]}",
            {"GPU304"},
        ),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_what_is_denied_by_capacity_ends_with_the_webhook(
    text: str, rules: set[str], report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only these two rules deny pods. Without the webhook, a mistake is found when nothing runs."""
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=parse(text)))
    code, found = report()
    assert (code, {*found["policies"]}) == (LEFT if rules else SAFE, rules)


# The replicas of a legacy ReplicaSet and of a modern one of the same owner, and what is left.
SETS: dict[str, tuple[int, int | None, bool]] = {
    "the one without pods is the history": (0, 2, False),
    "an unfinished rollout": (1, 1, True),
    "both without pods: either may get some": (0, 0, True),
    "it is the only one": (0, None, True),
}


@pytest.mark.parametrize("is_there", [True, False], ids=["its owner is there", "it is not"])
@pytest.mark.parametrize(("legacy", "modern", "left"), SETS.values(), ids=SETS)
def test_the_history_of_a_custom_owner_makes_no_pods(
    legacy: int,
    modern: int | None,
    left: bool,  # noqa: FBT001
    is_there: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    """A Rollout of Argo keeps ten ReplicaSets, as a Deployment does."""
    group = "argoproj.io"
    serve(cluster, "Rollout", custom({"template": {"spec": TOLERANT}}, uid="d"), group=group)
    of_rollout = [owner("a", "Rollout", f"{group}/v1", "d")]
    if is_there:
        rollout = {"metadata": {"name": "a", "namespace": "team", "uid": "d"}}
        cluster.say_json(f"/apis/{group}/v1/namespaces/team/rollouts/a", rollout)
    else:
        cluster.say_json(f"/apis/{group}/v1/namespaces/team/rollouts/a", {"metadata": {}})
    for name, spec, replicas in (("a-1", LEGACY, legacy), ("a-2", MODERN, modern)):
        if replicas is not None:
            metadata = {"name": name, "namespace": "team", "ownerReferences": of_rollout}
            cluster.list_has(
                "ReplicaSet", made_from(spec, replicas=replicas) | {"metadata": metadata}
            )
    assert report()[0] == (LEFT if left or not is_there else SAFE)


# A status of a kind, and whether it says that no more pods are made.
ENDS: dict[str, tuple[str, str, Any, bool]] = {
    "a JobSet": ("JobSet", "jobset.x-k8s.io", done("Completed"), True),
    "a suspended JobSet": ("JobSet", "jobset.x-k8s.io", done("Suspended"), False),
    "a job of Kubeflow": ("PyTorchJob", "kubeflow.org", done("Succeeded"), True),
    "one that failed": ("MPIJob", "kubeflow.org", done("Failed"), True),
    "one that runs": ("TFJob", "kubeflow.org", done("Running"), False),
    "a RayJob": ("RayJob", "ray.io", {"jobDeploymentStatus": "Complete"}, True),
    "a RayJob that is tried again": (
        "RayJob",
        "ray.io",
        {"jobDeploymentStatus": "Retrying"},
        False,
    ),
    "a RayCluster, which ends never": ("RayCluster", "ray.io", done("Succeeded"), False),
    "a Job of Volcano": ("Job", "batch.volcano.sh", {"state": {"phase": "Completed"}}, True),
    "one that may go on": ("Job", "batch.volcano.sh", {"state": {"phase": "Aborted"}}, False),
    "one without a status": ("Job", "batch.volcano.sh", None, False),
}


@pytest.mark.parametrize(("kind", "group", "status", "ends"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("days", [3, 31], ids=["lately", "long ago"])
def test_finished_jobs_of_known_custom_kinds_count_as_long_as_jobs(
    days: int,
    kind: str,
    group: str,
    status: Any,
    ends: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = f"workloads: {{kinds: [{{kind: {kind}, group: {group}, templates: [/spec/a]}}]}}"
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=parse(named)))
    obj = custom({"a": {"spec": LEGACY}}) | {"status": status}
    obj["metadata"]["creationTimestamp"] = created(days)
    serve(cluster, kind, obj, group=group)
    assert report()[0] == (SAFE if ends and days > 30 else LEFT)


NOTE = "gpu-webhook.dev/repaired"


def sent_with(note: str) -> dict[str, Any]:
    """The metadata of a pod whose author, or whose controller from its template, sent the codes."""
    fields: Any = {"f:metadata": {"f:annotations": {".": {}, f"f:{NOTE}": {}}}}
    fields["f:spec"] = {"f:tolerations": {}, "f:containers": {'k:{"name":"m"}': {"f:name": {}}}}
    limits: Any = {"f:limits": {"f:nvidia.com/gpu": {}}}
    fields["f:spec"]["f:containers"]['k:{"name":"m"}'] |= {"f:resources": limits}
    binding = {"operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
    entry = {"manager": "x", "operation": "Update", "fieldsV1": fields}
    return {"annotations": {NOTE: note}, "managedFields": [entry, binding]}


# The codes in the template of an owner and on its pod, and those for which the owner is left.
COPIED: dict[str, tuple[str, str, list[str]]] = {
    "a template that was copied from a repaired pod": ("GPU101,GPU201", "GPU101,GPU201", []),
    "the codes of a toleration, which the template has": ("GPU201", "GPU201", []),
    "a template without codes": ("", "GPU101", ["GPU101"]),
}


@pytest.mark.parametrize(("template", "pod", "left"), COPIED.values(), ids=COPIED)
def test_the_codes_that_a_template_has_are_no_repairs_of_its_pods(
    template: str, pod: str, left: list[str], cluster: Cluster, report: Any
) -> None:
    """To write into a manifest what its pods have, people copy a pod."""
    for kind, name, by in (("Deployment", "a", None), ("ReplicaSet", "a-1", "Deployment")):
        made = made_from(TOLERANT, replicas=1)
        made["spec"]["template"]["metadata"] = {"annotations": {NOTE: template}}
        of = [owner("a", by, "apps/v1", "a")] if by else []
        metadata = {"name": name, "namespace": "team", "uid": name, "ownerReferences": of}
        cluster.list_has(kind, {**made, "apiVersion": "apps/v1", "metadata": metadata})
    noted = sent_with(pod) if template else {"annotations": {NOTE: pod}}
    of_set = [owner("a-1", "ReplicaSet", "apps/v1", "a-1")]
    named = {"name": "a-1-x", "namespace": "team", "ownerReferences": of_set, **noted}
    cluster.list_has("Pod", {"metadata": named, "spec": TOLERANT})
    code, found = report()
    assert (code, [each["codes"] for each in found["owners"]]) == (
        (LEFT, [left]) if left else (SAFE, [])
    )


NARROW = {**MODERN, "tolerations": EQUAL}
ADDS = "GPU201"
# The codes and the spec of a template, what came back of it, and the codes of its owner.
NOTED: dict[str, tuple[str, Any, str, list[str]]] = {
    "nothing is added": (ADDS, NARROW, "", []),
    "something is added": (ADDS, NARROW, ADDS, ["GPU201"]),
    "all is tolerated": (ADDS, TOLERANT, ADDS, []),
    "it leaves the pod alone": ("GPU101,GPU201", MODERN, "", []),
}


@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
@pytest.mark.parametrize(("note", "spec", "comes", "codes"), NOTED.values(), ids=NOTED)
def test_what_comes_back_decides_and_not_the_codes_that_were_sent(
    note: str, spec: Any, comes: str, codes: list[str], kind: str, cluster: Cluster, report: Any
) -> None:
    """Who writes into a manifest what a pod has may copy its annotations, too."""
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team")]})
    metadata = {"name": "a", "namespace": "team"}
    of_template = {"annotations": {"a": "b", NOTE: note}}
    obj = {"metadata": metadata, "spec": {"template": {"metadata": of_template, "spec": spec}}}
    if kind == "Pod":
        obj = {"metadata": metadata | sent_with(note), "spec": {**spec, "nodeName": "n"}}
    cluster.list_has(kind, obj)
    gets(cluster, comes)
    code, found = report()
    assert owners(found) == ([(kind, "a", 1, codes)] if codes else [])
    assert code == (LEFT if codes else SAFE)
    kept = {"a": "b"} if kind == "Deployment" else {}
    assert [each["metadata"]["annotations"] for _, each in cluster.posted] == (
        [] if spec is TOLERANT else [kept]
    )
    assert all(each["spec"] == spec for _, each in cluster.posted)


# The spec of a pod whose author sent codes, those, its owner, and the codes that it is left for.
ALONE_WITH_CODES: dict[str, tuple[Any, str, Any, list[str]]] = {
    "a bare pod without GPUs": (NO_GPU, "GPU201", None, []),
    "a bare pod with the code of a legacy word": (TOLERANT, "GPU101", None, []),
    "a pod of an unknown owner with the code of a legacy word": (
        TOLERANT,
        "GPU101",
        owner("ray", "RayCluster", "ray.io/v1"),
        ["GPU101"],
    ),
    "a pod of an unknown owner without GPUs": (
        NO_GPU,
        "GPU201",
        owner("ray", "RayCluster", "ray.io/v1"),
        [],
    ),
}


@pytest.mark.parametrize(
    ("spec", "note", "by", "codes"), ALONE_WITH_CODES.values(), ids=ALONE_WITH_CODES
)
def test_the_codes_that_the_author_of_a_pod_sent_are_no_repairs(
    spec: Any, note: str, by: Any, codes: list[str], cluster: Cluster, report: Any
) -> None:
    metadata = {"name": "x", "namespace": "team", "ownerReferences": [by] if by else []}
    cluster.list_has("Pod", {"metadata": metadata | sent_with(note), "spec": spec})
    gets(cluster)
    code, found = report()
    assert code == (LEFT if codes else SAFE)
    assert [each["codes"] for each in found["owners"]] == ([codes] if codes else [])


def test_a_toleration_that_was_not_sent_with_the_codes_was_added(
    cluster: Cluster, report: Any
) -> None:
    """Its owner has copied the codes only. So the pod is tried without the toleration."""
    noted = sent_with("GPU201")
    del noted["managedFields"][0]["fieldsV1"]["f:spec"]["f:tolerations"]
    of = [owner("ray", "RayCluster", "ray.io/v1")]
    metadata = {"name": "x", "namespace": "team", "ownerReferences": of, **noted}
    cluster.list_has("Pod", {"metadata": metadata, "spec": TOLERANT})
    gets(cluster)
    code, found = report()
    assert (code, owners(found)) == (LEFT, [("RayCluster", "ray", 1, ["GPU201"])])
    assert [each["spec"] for _, each in cluster.posted] == [MODERN]


@pytest.mark.parametrize(("replicas", "code"), [(0, SAFE), (1, LEFT)])
def test_the_history_of_a_deployment_config_makes_no_pods(
    replicas: int, code: int, cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = parse("workloads: {kinds: [{kind: DeploymentConfig, templates: [/spec/template]}]}")
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=settings))
    group = "apps.openshift.io"
    config = custom({"template": {"spec": TOLERANT}}, uid="d")
    serve(cluster, "DeploymentConfig", config, group=group)
    of_config = [owner("a", "DeploymentConfig", f"{group}/v1", "d")]
    metadata = {"name": "a-1", "namespace": "team", "uid": "r", "ownerReferences": of_config}
    spec = made_from(LEGACY, replicas=replicas)
    cluster.list_has("ReplicationController", spec | {"metadata": metadata})
    assert report()[0] == code


def test_the_names_of_the_settings_are_searched(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(Settings(), legacy_resources=("example.com/old-gpu",))
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=settings))
    objects = [custom({"limits": {"example.com/old-gpu": 1}}, str(n)) for n in range(1207)]
    serve(cluster, "Notebook", *objects)
    names = "team/0, team/1, team/2, team/3, team/4 and 1,202 more"
    assert report()[1]["gaps"] == [GAP.format("Notebooks (example.org)", names)]


@pytest.mark.parametrize(
    ("path", "is_gap"),
    [
        pytest.param("/opt/nv-384/cuda-8.0", True, id="one that the settings remove"),
        pytest.param("x:/opt/nv-384/cuda-8.0:/y", True, id="one in a search path"),
        pytest.param("/srv/nv-1", True, id="one whose first segment is a *"),
        pytest.param("/environment/nv", False, id="another one of a single segment"),
        pytest.param("/opt/a/b/cuda-8.0", False, id="another one: a * stays within a segment"),
        pytest.param("/opt/gpu/cuda-8x0", False, id="another one: a dot is a dot"),
    ],
)
def test_the_driver_paths_of_the_settings_are_searched(
    path: str,
    is_gap: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = replace(
        Settings(), drivers=replace(Settings().drivers, remove=("/opt/*/cuda-8.0", "/*/nv-*"))
    )
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=settings))
    serve(cluster, "Notebook", custom({"hostPath": {"path": path}}))
    gap = GAP.format("Notebooks (example.org)", "team/a")
    assert report()[1]["gaps"] == [gap] * is_gap


@pytest.mark.parametrize(
    ("path", "status", "gaps"),
    [
        pytest.param(
            "/apis/example.org/v1/notebooks",
            403,
            [
                "whether Notebooks (example.org) have legacy names: their list failed: 403: no",
                "whether Others (other.example) have legacy names: their list failed: 403: no",
            ],
            id="a kind that may not be listed",
        ),
        pytest.param(
            "/apis/example.org/v1/notebooks",
            404,
            ["whether Others (other.example) have legacy names: their list failed: 403: no"],
            id="a kind that was just deleted",
        ),
        pytest.param(
            "/apis/example.org/v1",
            503,
            [
                "the kinds of the API example.org/v1, which does not answer: 503: no",
                "whether Others (other.example) have legacy names: their list failed: 403: no",
            ],
            id="an aggregated API that does not answer",
        ),
    ],
)
def test_a_kind_that_cannot_be_listed_is_a_gap(
    path: str, status: int, gaps: list[str], cluster: Cluster, report: Any
) -> None:
    serve(cluster, "Notebook")
    serve(cluster, "Other", group="other.example")
    cluster.say("/apis/other.example/v1/others", 403, b'{"message": "no"}')
    cluster.say(path, status, b'{"message": "no"}')
    code, found = report()
    assert (code, found["gaps"]) == (UNKNOWN, gaps)


def event(pod: dict[str, Any], *codes: str, minutes: float = 1) -> dict[str, Any]:
    """As the API server stored it so long ago."""
    found = dict(event_of(pod, codes, Settings(), NOW - 60 * minutes).body)
    stamp = created(minutes / 1440)
    return found | {"metadata": {**found["metadata"], "creationTimestamp": stamp}}


def came(monkeypatch: pytest.MonkeyPatch, since: float, **repairs: float) -> None:
    """The last legacy object of the namespace `team`, and repairs, so many minutes ago."""
    times = {key: NOW - 60 * minutes for key, minutes in repairs.items()}
    last = {key: when for key, when in times.items() if not key.startswith("GPU")}
    codes = {key: when for key, when in times.items() if key.startswith("GPU")}
    known = Counted(NOW - since * DAY, "a started", last, repairs=codes)
    monkeypatch.setattr(legacy_counts, "read", lambda *_: known)


def test_events_name_the_owners_of_pods_that_were_deleted(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    came(monkeypatch, 45, team=2, GPU201=2)
    made = cluster.have("Job", "nightly")  # it is still there, with its own row
    metadata = {"name": "nightly-x", "namespace": "team", "uid": "p"}
    of_job = owner("nightly", "Job", "batch/v1", made["metadata"]["uid"])
    lone = {"metadata": {**metadata, "name": "lone"}}
    foreign = event(lone, "GPU101") | {"source": {"component": "x"}}
    cluster.say_json(
        EVENTS,
        {
            "items": [
                event({"metadata": {**metadata, "ownerReferences": [of_job]}}, "GPU101", "GPU109"),
                event(lone, "GPU106", "GPU201"),
                event({"metadata": {**metadata, "name": "modern"}}, "GPU201"),
                event({"metadata": {**metadata, "name": "guarded"}}, "GPU303"),
                foreign | {"involvedObject": {"kind": "Pod", "name": "foreign"}},
                {},
            ]
        },
    )
    code, found = report()
    assert code == LEFT
    assert owners(found) == [
        ("Job", "nightly", 1, ["GPU101", "GPU109"]),
        ("Pod", "lone", 0, ["GPU106", "GPU201"]),
        ("Pod", "modern", 0, ["GPU201"]),
    ]
    assert found["owners"][0]["change"] == "Job/nightly"
    asked = [query for _, path, query in cluster.asked if path == EVENTS]
    assert asked[0]["fieldSelector"] == "reason=PodRepaired"


FORGED: dict[str, tuple[float, dict[str, float], list[str], bool]] = {
    "no server counted one": (45, {}, ["GPU101"], False),
    "the last one of the namespace came long before": (45, {"team": 200}, ["GPU101"], False),
    "one of another namespace came then": (45, {"a": 1}, ["GPU101"], False),
    "no server counted such a repair": (45, {"GPU202": 1}, ["GPU201"], False),
    "one came then": (45, {"team": 2}, ["GPU101"], True),
    "one came then to a namespace without a name": (45, {"other": 2}, ["GPU101"], True),
    "such a repair was made then": (45, {"GPU201": 2}, ["GPU201"], True),
    "nobody counted then": (0.0, {}, ["GPU101"], True),
    "a newer server made a repair that is not known here": (45, {"GPU299": 2}, ["GPU299"], True),
}


@pytest.mark.parametrize(("since", "repairs", "codes", "counts"), FORGED.values(), ids=FORGED)
def test_an_event_that_a_user_of_the_namespace_may_have_written(
    since: float,
    repairs: dict[str, float],
    codes: list[str],
    counts: bool,  # noqa: FBT001 - of a table
    cluster: Cluster,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It counts if the servers counted such a repair, whatever times its author wrote."""
    came(monkeypatch, since, **repairs)
    written = event({"metadata": {"name": "lone", "namespace": "team", "uid": "p"}}, *codes)
    for when in ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"):
        cluster.say_json(EVENTS, {"items": [written | {"lastTimestamp": when}]})
        assert bool(owners(report()[1])) is counts


def test_without_the_right_to_events_the_rest_is_known(cluster: Cluster, report: Any) -> None:
    cluster.say(EVENTS, 403, b'{"message": "no"}')
    code, found = report()
    assert code == SAFE
    assert found["notes"][-1] == (
        "owners of pods that were deleted in the last hour: Events: 403: no"
    )


def test_what_the_scan_could_not_read_is_a_gap(cluster: Cluster, report: Any) -> None:
    cluster.say("/apis/apps/v1/deployments", 403, b'{"message": "no"}')
    code, found = report()
    assert (code, found["verdict"]) == (UNKNOWN, "unknown")
    why = "deployments: Deployments are not checked: the API server answered 403: no"
    assert found["gaps"] == [why]


def test_what_the_metrics_do_not_name_is_noted(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Counted(NOW - 45 * DAY, "a started", {"other": NOW - DAY}, gaps=["x"])
    monkeypatch.setattr(legacy_counts, "read", lambda *_: known)
    code, found = report()
    assert (code, found["verdict"], found["gaps"]) == (LEFT, "left", ["x"])
    assert found["notes"][-1].startswith("which namespaces are `other`")
    assert cluster.asked


def test_the_settings_of_the_installation_decide_what_is_legacy(
    cluster: Cluster, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(Settings(), legacy_resources=("example.com/old-gpu",))
    monkeypatch.setattr(facts, "read", lambda *_: replace(HEALTHY, settings=settings))
    container = {"name": "m", "resources": {"limits": {"example.com/old-gpu": "1"}}}
    metadata = {"name": "a", "namespace": "team", "uid": "u"}
    cluster.list_has("Pod", {"metadata": metadata, "spec": {"containers": [container]}})
    code, found = report()
    assert (code, owners(found)) == (LEFT, [("Pod", "a", 1, ["GPU101"])])


@pytest.mark.parametrize(
    ("before", "after", "gaps"),
    [
        pytest.param(
            {"x.io": 2}, {"x.io": 2}, [], id="older ones: legacy_counts has those of ours"
        ),
        pytest.param({"x.io": 2}, {}, [], id="the API server has started again"),
        pytest.param(
            {"x.io": 2},
            {"x.io": 5, "y.io": 1},
            [
                "what pods lack: 3 calls of the webhook x.io failed while pods were tried",
                "what pods lack: 1 calls of the webhook y.io failed while pods were tried",
            ],
            id="some while pods were tried",
        ),
        pytest.param(
            None, {"x.io": 1}, ["what pods lack: 1 calls of the webhook x.io"], id="unknown before"
        ),
        pytest.param(
            {},
            None,
            ["whether calls of webhooks failed while pods were tried: 403"],
            id="unknown after",
        ),
    ],
)
def test_calls_that_fail_while_pods_are_tried_are_a_gap(
    before: Any, after: Any, gaps: list[str], report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([before, after])

    def failed_open(_api: object) -> Counter[str]:
        found = next(answers)
        if found is None:
            raise Fault("403")
        return Counter(found)

    monkeypatch.setattr(legacy_counts, "failed_open", failed_open)
    code, found = report()
    assert code == (UNKNOWN if gaps else SAFE)
    assert len(found["gaps"]) == len(gaps)
    for said, gap in zip(found["gaps"], gaps, strict=True):
        assert said.startswith(gap)


def test_the_page_also_goes_into_files(report: Any, tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    code, found = report(f"--output-file=html={html}", "--output-file=text=page.txt")
    assert code == SAFE
    assert found["answer"] in html.read_text()
    assert (tmp_path / "page.txt").read_text().startswith(found["answer"])


@pytest.mark.parametrize(
    ("word", "said"),
    [
        pytest.param("--output-file=sarif=x", "the formats are text, json, yaml, html", id="sarif"),
        pytest.param("--output-file=html=no/x", "there is no folder no", id="no folder"),
        pytest.param("--days=0", "0 is not in the range", id="no days"),
        pytest.param(
            "--pod-namespace=a/b",
            "'a/b' is not the name of a namespace",
            id="a path as a namespace",
        ),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_bad_usage_is_found_before_the_work(word: str, said: str, gpu_webhook: Command) -> None:
    code, out, err = gpu_webhook("report", "--cluster", word)
    assert (code, out) == (ERROR, "")
    assert said in err


def test_without_an_answer_nothing_can_be_said(
    report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Fault("connection refused", away=True)

    monkeypatch.setattr(facts, "read", away)
    code, err = report()
    assert code == ERROR
    assert "no answer from the API server: connection refused" in err


@pytest.mark.parametrize("is_alone", [True, False])
def test_custom_objects_where_the_webhook_is_not_called_are_no_gaps(
    is_alone: bool,  # noqa: FBT001
    cluster: Cluster,
    report: Any,
) -> None:
    """Others may read a ConfigMap, such as an injector that is in `kube-system`."""
    labels = {"gpu-webhook.dev/ignore": "true"} if is_alone else {}
    cluster.say_json("/api/v1/namespaces", {"items": [namespace("team", **labels)]})
    for each in ("Step", "ConfigMap"):
        held = {"metadata": {"name": "a", "namespace": "team"}, "data": {"x": ALPHA}}
        if each == "Step":
            serve(cluster, each, held)
        else:
            cluster.list_has(each, held)
    code, found = report()
    assert code == UNKNOWN
    assert ["ConfigMaps" in each for each in found["gaps"]] == [True, False][: 1 + (not is_alone)]
