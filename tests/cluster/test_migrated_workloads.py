"""Manifests of repaired workloads that become modern, request no GPU, or lose their model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.conftest import until_templates_are_repaired
from tests.cluster.pods import (
    AFFINITY,
    ALPHA,
    MODEL,
    NVIDIA,
    PRODUCT,
    alpha,
    container,
    expression,
    modern,
    pod,
    required,
)
from tests.cluster.workloads import DEFINITIONS, definition, made_by, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

REPAIRED, RECORD = "gpu-webhook.dev/repaired", "gpu-webhook.dev/template-repair"
GPU_TAINT = {"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}
DRIVER = "/usr/lib/nvidia-375"
CUSTOM = "apis/kubeflow.org/v1/namespaces/{}/pytorchjobs"
DEFINITION = definition("PyTorchJob", "kubeflow.org", "pytorchjobs")
sides = pytest.mark.parametrize(
    "side",
    [(), ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")],
    ids=["client side", "server side"],
)


@pytest.fixture(scope="module")
def _repairing(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    cluster.client.demand("POST", DEFINITIONS, DEFINITION)
    kinds = [{"kind": "PyTorchJob", "group": "kubeflow.org"}]
    settings = {"workloads": {"repair": True, "kinds": kinds}}
    try:
        with serving(cluster, tmp_path_factory.mktemp("repairing"), settings):
            until(lambda: cluster.client.request("GET", CUSTOM.format("default")).ok, "the kind")
            until_templates_are_repaired(cluster)
            yield
    finally:
        cluster.client.demand("DELETE", f"{DEFINITIONS}/{DEFINITION['metadata']['name']}")


pytestmark = pytest.mark.usefixtures("_repairing")


def of_kind(kind: str, made: Json) -> Json:
    """Give a workload of this kind; its template tolerates GPU nodes."""
    made["spec"]["tolerations"] = [GPU_TAINT]
    if kind != "PyTorchJob":
        workload = made_by(kind, made, 0)
        metadata = template(workload)["metadata"]
        if not metadata["annotations"]:
            del metadata["annotations"]
        return workload
    worker: Json = {"spec": made["spec"]}
    if made["metadata"].get("annotations"):
        worker["metadata"] = {"annotations": made["metadata"]["annotations"]}
    specs = {"Worker": {"replicas": 1, "template": worker}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "train"},
        "spec": {"pytorchReplicaSpecs": specs},
    }


def template(workload: Json) -> Json:
    spec = workload["spec"]
    if workload["kind"] == "PyTorchJob":
        spec = spec["pytorchReplicaSpecs"]["Worker"]
    elif workload["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    found: Json = spec["template"]
    return found


def annotations_of(workload: Json) -> Json:
    return workload["metadata"].get("annotations") or {}


class Tenant:
    def __init__(self, cluster: ControlPlane, namespace: str, side: tuple[str, ...]) -> None:
        self.cluster, self.namespace, self.side = cluster, namespace, side

    def apply(self, workload: Json) -> Json:
        apply = (f"--namespace={self.namespace}", "apply", *self.side, "-f", "-")
        done = self.cluster.try_kubectl(*apply, stdin=yaml.safe_dump(workload))
        assert done.returncode == 0, done.stderr
        kind, name = workload["kind"], workload["metadata"]["name"]
        if kind == "PyTorchJob":
            at = f"{CUSTOM.format(self.namespace)}/{name}"
            live: Json = self.cluster.client.demand("GET", at).body
            return live
        return self.cluster.client.get(kind, name, self.namespace)


K80 = {"nodeSelector": {MODEL: "Tesla-K80"}}
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an amount": ({}, {}),
    "a model in nodeSelector": (K80, {"nodeSelector": {PRODUCT: "Tesla-K80"}}),
    "a model in affinity": (
        {"affinity": required(expression(MODEL, "In", "Tesla-K80"))},
        {"affinity": required(expression(PRODUCT, "In", "Tesla-K80"))},
    ),
    "a model in the annotation": (
        {"annotations": {AFFINITY: json.dumps(required(expression(MODEL, "In", "Tesla-K80")))}},
        {"affinity": required(expression(PRODUCT, "In", "Tesla-K80"))},
    ),
}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "CronJob", "Job", "PyTorchJob"])
@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS)
@sides
def test_the_annotations_go_where_the_manifest_says_what_is_stored(
    kind: str,
    first: dict[str, Any],
    second: dict[str, Any],
    side: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
) -> None:
    tenant = Tenant(cluster, namespace, side)
    legacy = of_kind(kind, pod(alpha(2), **first))
    repaired = [tenant.apply(legacy) for _ in range(2)]
    migrated = tenant.apply(of_kind(kind, pod(modern(2), **second)))

    for each in repaired:
        assert {REPAIRED, RECORD} <= each["metadata"]["annotations"].keys()
    assert not {REPAIRED, RECORD} & (migrated["metadata"].get("annotations") or {}).keys()
    specs = [template(each)["spec"] for each in (*repaired, migrated)]
    assert specs[0] == specs[1] == specs[2]


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "PyTorchJob"])
@pytest.mark.parametrize(
    "beside",
    [{}, K80, {"affinity": required(expression(MODEL, "NotIn", "Tesla-K80"))}],
    ids=["an amount", "a model", "not that model"],
)
@sides
def test_an_amount_that_becomes_0_rolls_out_once_what_a_new_object_has(
    kind: str,
    beside: dict[str, Any],
    side: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
) -> None:
    def manifest(amount: int, name: str = "train") -> Json:
        mounts = [{"name": "driver", "mountPath": DRIVER}]
        volumes = [{"name": "driver", "hostPath": {"path": DRIVER}}]
        main = container(limits={ALPHA: amount}, volumeMounts=mounts)
        made = of_kind(kind, pod(main, volumes=volumes, **beside))
        made["metadata"]["name"] = name
        return made

    tenant = Tenant(cluster, namespace, side)
    tenant.apply(manifest(2))
    once, twice = tenant.apply(manifest(0)), tenant.apply(manifest(0))

    assert template(once) == template(twice) == template(tenant.apply(manifest(0, "new")))
    assert once["metadata"]["generation"] == twice["metadata"]["generation"] == 2


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "PyTorchJob"])
@pytest.mark.parametrize("first", ["amount", "driver", "model"])
@sides
def test_where_one_word_is_migrated_first_the_next_apply_changes_nothing(
    kind: str, first: str, side: tuple[str, ...], cluster: ControlPlane, namespace: str
) -> None:
    def manifest(migrated: str) -> Json:
        mounts: list[Json] = []
        volumes: list[Json] = []
        if migrated != "driver":
            mounts = [{"name": "driver", "mountPath": DRIVER}]
            volumes = [{"name": "driver", "hostPath": {"path": DRIVER}}]
        main = container(limits={NVIDIA if migrated == "amount" else ALPHA: 2}, volumeMounts=mounts)
        choice = {PRODUCT if migrated == "model" else MODEL: "Tesla-K80"}
        return of_kind(kind, pod(main, volumes=volumes, nodeSelector=choice))

    tenant = Tenant(cluster, namespace, side)
    tenant.apply(manifest(""))
    once, twice = tenant.apply(manifest(first)), tenant.apply(manifest(first))

    assert once["metadata"]["generation"] == twice["metadata"]["generation"]
    for each in (REPAIRED, RECORD):
        assert annotations_of(once).get(each) == annotations_of(twice).get(each)
    assert template(once) == template(twice)


def part_of(kind: str, **spec: Any) -> Json:
    """Give a manifest of a second manager, which applies only this of the template."""
    made: Json = {"template": {"spec": spec}}
    if kind == "CronJob":
        made = {"jobTemplate": {"spec": made}}
    whole = of_kind(kind, pod(alpha(1)))
    return {**{key: whole[key] for key in ("apiVersion", "kind", "metadata")}, "spec": made}


CHOICES: dict[str, dict[str, Any]] = {
    "nodeSelector": K80,
    "In": {"affinity": required(expression(MODEL, "In", "Tesla-K80"))},
    "NotIn": {"affinity": required(expression(MODEL, "NotIn", "Tesla-K80"))},
}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "CronJob"])
@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("beside", ["driver", "driver of another container", "empty affinity"])
def test_where_one_manager_migrates_neither_takes_from_the_other(
    kind: str, choice: dict[str, Any], beside: str, cluster: ControlPlane, namespace: str
) -> None:
    def manifest(resource: str) -> Json:
        mounts = [{"name": "driver", "mountPath": DRIVER}]
        spec: dict[str, Any] = {"volumes": [{"name": "driver", "hostPath": {"path": DRIVER}}]}
        main = container(limits={resource: 1}, volumeMounts=mounts)
        containers = [main]
        if beside == "driver of another container":
            containers = [alpha(1), container(limits={NVIDIA: 1}, volumeMounts=mounts, name="b")]
            if resource == NVIDIA:
                containers[0] = modern(1)
        if beside == "empty affinity":
            containers, spec = [container(limits={resource: 1})], {"affinity": {}}
        return of_kind(kind, pod(*containers, **spec))

    def manager(name: str) -> Tenant:
        return Tenant(cluster, namespace, ("--server-side", f"--field-manager={name}"))

    flux, platform, part = manager("flux"), manager("platform"), part_of(kind, **choice)
    flux.apply(manifest(ALPHA))
    placed = template(platform.apply(part))["spec"]
    migrated = flux.apply(manifest(NVIDIA))
    turn = [platform.apply(part), flux.apply(manifest(NVIDIA)), platform.apply(part)]

    assert [template(each) for each in turn] == [template(migrated)] * 3
    assert {each["metadata"]["generation"] for each in turn} == {migrated["metadata"]["generation"]}
    spec = template(migrated)["spec"]
    assert [spec.get(each) for each in ("nodeSelector", "affinity")] == [
        placed.get(each) for each in ("nodeSelector", "affinity")
    ]
    assert PRODUCT in str(spec)
    assert bool(spec.get("volumes")) is (beside != "empty affinity")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "CronJob", "PyTorchJob"])
@sides
def test_an_empty_affinity_stays_where_another_model_needs_none(
    kind: str, side: tuple[str, ...], cluster: ControlPlane, namespace: str
) -> None:
    def manifest(model: str) -> Json:
        return of_kind(kind, pod(alpha(1), nodeSelector={MODEL: model}, affinity={}))

    tenant = Tenant(cluster, namespace, side)
    first = template(tenant.apply(manifest("Tesla-P100")))
    once, twice = tenant.apply(manifest("Tesla-K80")), tenant.apply(manifest("Tesla-K80"))

    assert "nodeAffinity" in first["spec"]["affinity"]
    assert template(once)["spec"]["affinity"] == {}
    assert template(once) == template(twice)
    assert once["metadata"]["generation"] == twice["metadata"]["generation"] == 2


@pytest.mark.parametrize("words", [K80, PAIRS["a model in the annotation"][0]])
@sides
def test_a_model_goes_from_a_suspended_job(
    words: dict[str, Any], side: tuple[str, ...], cluster: ControlPlane, namespace: str
) -> None:
    def manifest(**words: Any) -> Json:
        made = of_kind("Job", pod(alpha(1), **words))
        made["spec"]["suspend"] = True
        return made

    tenant = Tenant(cluster, namespace, side)
    first = template(tenant.apply(manifest(**words)))["spec"]
    second = template(tenant.apply(manifest()))["spec"]

    assert "nodeSelector" in first or "affinity" in first
    assert "nodeSelector" not in second
    assert "affinity" not in second
