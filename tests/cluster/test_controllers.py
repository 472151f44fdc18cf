"""What `report --cluster` tries, beside what the real controllers make."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster import nodes
from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.cluster.pods import named, pod
from tests.cluster.workloads import made_by
from webhook.cluster import controllers, made_pods
from webhook.kube.pointer import Path as Place
from webhook.kube.pointer import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json

TEAM = "made"
TEMPLATE, OF_JOBS = Place(("spec", "template")), Place(("spec", "jobTemplate", "spec", "template"))
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def workload(kind: str, **more: Any) -> Json:
    made = made_by(kind, pod(tolerations=[{"key": "a", "operator": "Exists"}]), 1)
    made["metadata"] |= {"annotations": {"of": "the workload"}, "labels": {"its": "own"}}
    made["spec"] |= more
    return made


WORKLOADS: dict[str, Json] = {
    "deployment": workload("Deployment", minReadySeconds=3),
    "replica-set": workload("ReplicaSet"),
    "replication-controller": workload("ReplicationController"),
    "job": workload("Job"),
    "indexed": workload("Job", completionMode="Indexed", backoffLimitPerIndex=1),
    "cron-job": workload("CronJob", schedule="* * * * *"),
    "stateful-set": workload("StatefulSet", volumeClaimTemplates=[CLAIM]),
    "fifth": workload("StatefulSet", ordinals={"start": 5}),
    "daemon-set": workload("DaemonSet"),
}
BETWEEN = {"deployment": ("ReplicaSet", made_pods.SETS), "cron-job": ("Job", made_pods.JOBS)}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        nodes.add(running.client, [gpu_node("a", 8)])
        running.make_namespace(TEAM)
        for name, each in WORKLOADS.items():
            running.client.create(named(each, name), TEAM)
        yield running


def of(plane: ControlPlane, kind: str, name: str) -> Json:
    """The first object of this kind whose name begins so."""

    def found() -> Json | None:
        there = plane.client.list(kind, TEAM)
        return next((e for e in there if e["metadata"]["name"].startswith(f"{name}-")), None)

    return until(found, f"a {kind} of {name}", 80)


# What is another one each time: a word stands for it.
WORDS = (
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID"),
    (r"kube-api-access-\w+", "TOKEN"),
    (r"20\d\d-\d\d-\d\dT[\d:]+Z", "TIME"),
    (r"cron-job-\d{8}", "cron-job-MINUTE"),
    (r'((stateful-set|fifth)-)\d"', r'\1N"'),
    (r'(pod-index": )"\d"', r'\1"N"'),
    (r"((deployment|stateful-set|fifth)-)[bcdf-hj-np-tv-z2456789]{8,10}\b", r"\1HASH"),
    (r'(-hash": )"[bcdf-hj-np-tv-z2456789]{8,10}"', r'\1"HASH"'),
)


def told(made: Json) -> list[str]:
    """The lines of what its author sent."""
    kept = ["generateName", "labels", "annotations", "finalizers", "ownerReferences"]
    kept += [] if "generateName" in made["metadata"] else ["name"]
    metadata = {name: made["metadata"][name] for name in kept if name in made["metadata"]}
    spec = {name: value for name, value in made["spec"].items() if name != "nodeName"}
    text = json.dumps({"metadata": metadata, "spec": spec}, sort_keys=True, indent=1)
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return text.splitlines()


NODE = ['-  "operator": "In",', '+  "operator": "NotIn",', '-  "a"', f'+  "{controllers.HASH}"']


def differences(real: Json, tried: Json) -> list[str]:
    lines = difflib.ndiff(told(real), told(tried))
    return [each for each in lines if each[0] in "-+"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_is_tried_as_its_controller_makes_it(plane: ControlPlane, name: str) -> None:
    real = of(plane, "Pod", name)
    stored = plane.client.get(WORKLOADS[name]["kind"], name, TEAM)
    template = value_at(stored, OF_JOBS if stored["kind"] == "CronJob" else TEMPLATE)
    tried = controllers.pod(stored, template)
    got = plane.client.create(tried, TEAM, dry_run=True).body
    found = differences(real, got)
    if name == "daemon-set":  # which node is not known, so one is excluded that is not there
        assert [*map(str.split, found)] == [*map(str.split, NODE)]
    else:
        assert not found, "\n".join(found)


@pytest.mark.parametrize("name", BETWEEN)
def test_what_makes_the_pods_is_tried_as_its_controller_makes_it(
    plane: ControlPlane, name: str
) -> None:
    kind, resource = BETWEEN[name]
    real = of(plane, kind, name)
    stored = plane.client.get(WORKLOADS[name]["kind"], name, TEAM)
    at = OF_JOBS if stored["kind"] == "CronJob" else TEMPLATE
    ((where, tried),) = made_pods.may_make_pods(stored, at)
    assert where == resource
    got = plane.client.create(tried, TEAM, dry_run=True).body
    found = differences(real, got)
    assert not found, "\n".join(found)
