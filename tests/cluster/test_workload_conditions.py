"""The CEL of the validating entries on a real API server: accepted, cheap enough, and right.

What is called here answers nothing but yes, so the CEL alone is judged.
"""

from __future__ import annotations

import string
import threading
from typing import TYPE_CHECKING, Self

import orjson
import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import MODEL, NVIDIA, alpha, container, modern, pod, required
from tests.cluster.scheduling import pods_of
from tests.cluster.webhook import Endpoint, pointed_at
from tests.cluster.workloads import DEFINITIONS, definition, made_by
from webhook.core.settings import CustomKind, Settings, Workloads
from webhook.evaluation.match_conditions import (
    pod_policy_match_conditions,
    workload_match_conditions,
    workload_rules,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Answer, Json
    from tests.cluster.controlplane import ControlPlane

TF_JOB = CustomKind("TFJob", "kubeflow.example")
TF_TEMPLATES = ("/spec/tfReplicaSpecs/*/template", "/spec/replicaSpecs/*/template")
SHARDS = CustomKind("Shards", "shards.example", ("/spec/on-racks/*/shards/*/template", "/template"))
GLOBS = tuple(f"vendor-{number}.example/*" for number in range(20))
SETTINGS = Settings(
    gpu_resources=(*Settings().gpu_resources, *GLOBS),
    workloads=Workloads(
        kinds=(CustomKind(TF_JOB.kind, TF_JOB.group, TF_TEMPLATES), SHARDS),
    ),
)
KINDS = (
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
    "PodTemplate",
)
SIZE = 100  # containers
built_in = pytest.mark.parametrize("kind", KINDS)


class Ear:
    """Says yes to every review and remembers what it was about."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._lock = threading.Lock()
        self._heard: list[Json] = []
        self.endpoint = Endpoint(cluster.authority, self._answer, "ear")

    def __enter__(self) -> Self:
        self.endpoint.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.endpoint.__exit__()

    def heard(self, namespace: str) -> list[tuple[str, str]]:
        """Give kind and operation of each call about this namespace."""
        with self._lock:
            return [
                (each["kind"]["kind"], each["operation"])
                for each in self._heard
                if each["namespace"] == namespace
            ]

    def _answer(self, _: str, body: bytes) -> tuple[int, bytes]:
        review = orjson.loads(body)
        with self._lock:
            self._heard.append(review["request"])
        response = {"uid": review["request"]["uid"], "allowed": True}
        return 200, orjson.dumps({**review, "request": None, "response": response})


def entry(name: str, rules: list[Json], conditions: list[dict[str, str]]) -> Json:
    return {
        "name": f"{name}.conditions.example",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "ear", "namespace": "default", "path": "/validate"}},
        "rules": rules,
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "matchConditions": conditions,
    }


POD_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
}
CONFIGURATION: Json = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "conditions"},
    "webhooks": [
        entry("workloads", workload_rules(SETTINGS), workload_match_conditions(SETTINGS)),
        entry("pods", [POD_RULE], pod_policy_match_conditions(SETTINGS)),
    ],
}


@pytest.fixture(scope="module")
def ear(cluster: ControlPlane) -> Iterator[Ear]:
    """Register the configuration; it is in force in this module."""
    client = cluster.client
    names = []
    for custom in (TF_JOB, SHARDS):
        kind = definition(custom.kind, custom.group, _plural(custom))
        made = client.demand("POST", DEFINITIONS, kind).body
        names.append(made["metadata"]["name"])
    with Ear(cluster) as listening:
        configured = pointed_at(CONFIGURATION, listening.endpoint.port, listening.endpoint.bundle)
        client.create(configured)
        try:
            until(lambda: _calls(cluster, listening), "the configuration to be in force")
            until(lambda: _serves_custom_kinds(cluster), "the custom kinds to be served")
            yield listening
        finally:
            client.delete(configured["kind"], configured["metadata"]["name"])
            for name in names:
                client.demand("DELETE", f"{DEFINITIONS}/{name}")


def _calls(cluster: ControlPlane, ear: Ear) -> bool:
    cluster.client.create(made_by("Deployment", pod(alpha())), "default", dry_run=True)
    return bool(ear.heard("default"))


def _serves_custom_kinds(cluster: ControlPlane) -> bool:
    places = [_custom(custom, "default") for custom in (TF_JOB, SHARDS)]
    return all(cluster.client.request("GET", place).ok for place in places)


def _custom(custom: CustomKind, namespace: str) -> str:
    return f"apis/{custom.group}/v1/namespaces/{namespace}/{_plural(custom)}"


def _plural(custom: CustomKind) -> str:
    return f"{custom.kind.lower()}-of-all-sorts"


@pytest.fixture(autouse=True)
def _no_condition_fails(cluster: ControlPlane, ear: Ear) -> Iterator[None]:
    """A condition that cannot be worked out skips the call, and nobody hears of it."""
    assert ear.endpoint.port
    before = _failed(cluster)
    yield
    assert _failed(cluster) == before


def _failed(cluster: ControlPlane) -> list[str]:
    metrics: str = cluster.client.demand("GET", "/metrics").body
    counter = "apiserver_admission_match_condition_evaluation_errors_total{"
    return [line for line in metrics.splitlines() if line.startswith(counter)]


@built_in
@pytest.mark.parametrize(
    "what",
    [
        pytest.param(pod(alpha()), id="legacy GPUs"),
        pytest.param(pod(modern()), id="GPUs of today"),
        pytest.param(pod(container(limits={"nvidia.com/mig-1g.5gb": 1})), id="a slice"),
        pytest.param(pod(initContainers=[alpha(name="init")]), id="an init container's"),
        pytest.param(pod(nodeSelector={MODEL: "K80"}), id="the legacy label"),
        pytest.param(
            pod(affinity=required({"key": MODEL, "operator": "Exists"})), id="in an affinity"
        ),
        pytest.param(
            pod(annotations={"scheduler.alpha.kubernetes.io/affinity": f'{{"{MODEL}": 1}}'}),
            id="in an annotation",
        ),
    ],
)
def test_a_gpu_template_is_told_of(
    kind: str, what: Json, cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    cluster.client.create(made_by(kind, what, 0), namespace, dry_run=True)

    assert ear.heard(namespace) == [(kind, "CREATE")]


@built_in
@pytest.mark.parametrize(
    "what",
    [
        pytest.param(pod(), id="nothing at all"),
        pytest.param(pod(container(limits={"cpu": "1", "amd.com/gpu": 1})), id="other devices"),
        pytest.param(pod(affinity=required({"key": "zone", "operator": "Exists"})), id="a zone"),
        pytest.param(pod(annotations={"note": MODEL}), id="another annotation"),
    ],
)
def test_any_other_template_is_not(
    kind: str, what: Json, cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    cluster.client.create(made_by(kind, what, 0), namespace, dry_run=True)

    assert ear.heard(namespace) == []


SHORT = [f"a/{one}{two}" for one in string.ascii_letters for two in string.ascii_letters]
LAST = modern(name="last")


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(
            pod(
                *(container(f"c{n}", limits=dict.fromkeys(SHORT[:1400], 0)) for n in range(40)),
                LAST,
            ),
            id="56,000 names of other devices",
        ),
        pytest.param(
            pod(
                *(container(f"c{n}", limits=dict.fromkeys(SHORT[:32], 0)) for n in range(63)), LAST
            ),
            id="as many names as are looked at",
        ),
        pytest.param(pod(*(container(f"c{n}") for n in range(5000)), LAST), id="5,000 containers"),
        pytest.param(
            pod(LAST, initContainers=[container(f"c{n}") for n in range(5000)]),
            id="5,000 init containers",
        ),
    ],
)
def test_no_pod_is_too_large_for_the_conditions(
    what: Json, cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    """What CEL may cost is limited; whoever could get beyond it would get by all rules in force."""
    cluster.client.create(what, namespace, dry_run=True)
    cluster.client.create(made_by("Deployment", what, 0), namespace, dry_run=True)

    assert ear.heard(namespace) == [("Pod", "CREATE"), ("Deployment", "CREATE")]


# Templates of Jobs cannot be changed; a suspended one is for its annotations.
@built_in
def test_an_update_is_told_of_where_the_template_changed(
    kind: str, cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    client = cluster.client
    made = made_by(kind, pod(alpha()), 0)
    if kind == "Job":
        made["spec"]["suspend"] = True
    name = made["metadata"]["name"]
    client.create(made, namespace)

    client.patch(kind, name, {"metadata": {"labels": {"a": "b"}}}, namespace)
    if kind not in ("PodTemplate", "CronJob", "DaemonSet"):
        count = "parallelism" if kind == "Job" else "replicas"
        client.patch(kind, name, {"spec": {count: 1}}, namespace)
    # Controllers write too: the status, and a Deployment's revision.
    assert ear.heard(namespace) == [(kind, "CREATE")]

    change: Json = {"metadata": {"annotations": {"restarted": "now"}}}
    for step in {"CronJob": ("template", "spec", "jobTemplate", "spec")}.get(
        kind, ("template",) if kind == "PodTemplate" else ("template", "spec")
    ):
        change = {step: change}
    client.patch(kind, name, change, namespace)
    # Once more where the API server tries again, as a controller wrote in between.
    assert ear.heard(namespace)[0] == (kind, "CREATE")
    assert set(ear.heard(namespace)[1:]) == {(kind, "UPDATE")}


def test_what_controllers_make_is_not_told_of(
    cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    """A Deployment makes a ReplicaSet, a CronJob a Job, and both make pods, which are."""
    cron = made_by("CronJob", pod(modern()))
    cron["spec"]["schedule"] = "* * * * *"
    cluster.client.create(made_by("Deployment", pod(modern())), namespace)
    pods_of(cluster.client, namespace, 2)
    made = cluster.client.create(cron, namespace).body
    by_hand = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "by-hand",
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "CronJob",
                    "name": made["metadata"]["name"],
                    "uid": made["metadata"]["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": made["spec"]["jobTemplate"]["spec"],
    }
    cluster.client.create(by_hand, namespace, dry_run=True)

    heard = ear.heard(namespace)
    assert {each for each in heard if each[0] != "Pod"} == {
        ("Deployment", "CREATE"),
        ("CronJob", "CREATE"),
    }
    assert heard.count(("Pod", "CREATE")) >= 2


@pytest.mark.parametrize(
    ("user", "is_told"),
    [
        pytest.param(["--as=ada"], True, id="a person"),
        pytest.param(["--as=system:admin"], True, id="an administrator"),
        pytest.param(["--as=system:serviceaccount:argocd:server"], True, id="a pipeline"),
        pytest.param(["--as=system:serviceaccount:kube-system:helm"], True, id="K3s for its users"),
        pytest.param(
            ["--as=system:serviceaccount:kube-system:deployment-controller"],
            False,
            id="a controller",
        ),
        pytest.param(["--as=system:kube-controller-manager"], False, id="all controllers"),
        pytest.param(["--as=system:node:gpu-1"], False, id="a node"),
        pytest.param(["--as=gpu-1", "--as-group=system:nodes"], False, id="a node by its group"),
        pytest.param(["--as=system:apiserver"], False, id="the API server"),
    ],
)
def test_who_is_told(
    user: list[str], *, is_told: bool, cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    what = yaml.safe_dump(made_by("Deployment", pod(alpha()), 0))
    group = "--as-group=system:masters"  # they may do so here
    cluster.kubectl("-n", namespace, *user, group, "create", "-f", "-", stdin=what)

    assert ear.heard(namespace) == ([("Deployment", "CREATE")] if is_told else [])


GPUS: Json = {"spec": pod(modern())["spec"]}
NO_GPUS: Json = {"metadata": {}, "spec": pod()["spec"]}


@pytest.mark.parametrize(
    ("custom", "spec", "is_told"),
    [
        pytest.param(
            TF_JOB, {"tfReplicaSpecs": {"PS": {"template": NO_GPUS}, "Worker": {"template": GPUS}}},
            True, id="one member of a map",
        ),
        pytest.param(
            TF_JOB, {"replicaSpecs": [{"template": NO_GPUS}, {"template": GPUS}]},
            True, id="one item of a list",
        ),
        pytest.param(TF_JOB, {"tfReplicaSpecs": {"PS": {"template": NO_GPUS}}}, False, id="none"),
        pytest.param(TF_JOB, {"tfReplicaSpecs": {}}, False, id="an empty map"),
        pytest.param(TF_JOB, {"other": {"template": GPUS}}, False, id="somewhere else"),
        pytest.param(TF_JOB, None, False, id="nothing there"),
        pytest.param(
            SHARDS, {"on-racks": {"a": {"shards": [{"template": GPUS}]}}}, True, id="two deep"
        ),
        pytest.param(
            SHARDS, {"on-racks": [{"shards": {}}, {}, {"shards": {"b": {}}}]}, False,
            id="two deep, nothing there",
        ),
    ],
)  # fmt: skip
def test_custom_kinds(
    custom: CustomKind,
    spec: Json | None,
    *,
    is_told: bool,
    cluster: ControlPlane,
    namespace: str,
    ear: Ear,
) -> None:
    made = _create(cluster, custom, namespace, spec)

    assert made.ok, made.message
    assert ear.heard(namespace) == ([(custom.kind, "CREATE")] if is_told else [])


def test_a_custom_kind_is_told_of_again_where_something_around_its_templates_changes(
    cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    worker = {"replicas": 1, "template": GPUS}
    assert _create(cluster, TF_JOB, namespace, {"tfReplicaSpecs": {"Worker": worker}}).ok
    at = f"{_custom(TF_JOB, namespace)}/custom"
    for change, is_told in (
        ({"metadata": {"labels": {"a": "b"}}}, False),
        ({"status": {"phase": "Running"}}, False),
        ({"spec": {"tfReplicaSpecs": {"Worker": {"template": {"metadata": {"a": "b"}}}}}}, True),
    ):
        before = len(ear.heard(namespace))
        cluster.client.demand("PATCH", at, change, media_type="application/merge-patch+json")
        # A patch of what the API server has cached, and is older, is tried and told once more.
        assert (len(ear.heard(namespace)) > before) is is_told


def _create(cluster: ControlPlane, custom: CustomKind, namespace: str, spec: Json | None) -> Answer:
    what: Json = {
        "apiVersion": f"{custom.group}/v1",
        "kind": custom.kind,
        "metadata": {"name": "custom"},
    }
    if spec is not None:
        what["spec"] = spec
    return cluster.client.request("POST", _custom(custom, namespace), what)


@pytest.mark.parametrize(
    ("what", "is_told"),
    [
        pytest.param(pod(modern()), True, id="a GPU"),
        pytest.param(pod(initContainers=[modern(name="init")]), True, id="an init container's"),
        pytest.param(pod(alpha()), False, id="a legacy GPU: no amount of a node's"),
        pytest.param(pod(nodeSelector={MODEL: "K80"}), False, id="a label alone"),
        pytest.param(pod(), False, id="nothing"),
        pytest.param(pod(modern(), os={"name": "windows"}), True, id="Windows: a limit counts it"),
        pytest.param(
            pod(
                modern(),
                annotations={"kubernetes.io/config.mirror": "a", "kubernetes.io/config.hash": "a"},
                nodeName="gpu-1",
            ),
            True,
            id="a mirror pod that no kubelet makes",
        ),
    ],
)
def test_pods(
    what: Json, *, is_told: bool, cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    cluster.client.create(what, namespace, dry_run=True)

    assert ear.heard(namespace) == ([("Pod", "CREATE")] if is_told else [])


def test_the_largest_templates_are_within_the_cost_that_cel_may_have(
    cluster: ControlPlane, namespace: str, ear: Ear
) -> None:
    """The last of so many containers requests the GPU, so all of them are looked at."""
    others = {f"example.com/device-{n}": 1 for n in range(20)}
    crowd = [container(f"c-{n}", limits=others) for n in range(SIZE)]
    last = container("last", limits={**others, NVIDIA: 1})
    what = made_by("Deployment", pod(*crowd, last), 0)
    assert len(orjson.dumps(what)) > SIZE * 500
    cluster.client.create(what, namespace, dry_run=True)
    cluster.client.create(pod(*crowd, last), namespace, dry_run=True)

    assert ear.heard(namespace) == [("Deployment", "CREATE"), ("Pod", "CREATE")]
