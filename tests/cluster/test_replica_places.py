"""Where the real scheduler places the replicas of the shipped Deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster import nodes
from tests.cluster.client import until
from tests.cluster.scheduling import pods_of
from tests.cluster.webhook import BASE, kustomized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.controlplane import ControlPlane

_ZONE = "topology.kubernetes.io/zone"
_ONLY = "gpu-webhook.test/replicas"


@pytest.fixture
def node(cluster: ControlPlane) -> Iterator[Callable[..., None]]:
    """Give a function that makes a node for the test; "large" is what the scheduler prefers."""
    made: list[str] = []

    def make(name: str, cpu: str, **labels: str) -> None:
        new = nodes.gpu_node(name, 0, labels={_ONLY: "yes", **labels})
        new["status"]["allocatable"]["cpu"] = new["status"]["capacity"]["cpu"] = cpu
        made.extend(nodes.add(cluster.client, [new]))

    yield make
    for name in made:
        cluster.client.delete("Node", name)


def _deployed(cluster: ControlPlane, namespace: str, replicas: int) -> None:
    """Create the shipped Deployment on the nodes of the test, without its own account."""
    (shipped,) = (each for each in kustomized(cluster, BASE) if each["kind"] == "Deployment")
    spec = shipped["spec"]
    pod = {
        **spec["template"]["spec"],
        "serviceAccountName": "default",
        "nodeSelector": {**spec["template"]["spec"]["nodeSelector"], _ONLY: "yes"},
    }
    template = {**spec["template"], "spec": {**pod, "priorityClassName": ""}}
    cluster.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "gpu-webhook"},
            "spec": {**spec, "replicas": replicas, "minReadySeconds": 0, "template": template},
        },
        namespace,
    )


def _places(cluster: ControlPlane, namespace: str, count: int) -> list[str]:
    """Give the nodes of so many replicas, when all have one."""

    def placed() -> list[str] | None:
        found = [each["spec"].get("nodeName") for each in pods_of(cluster.client, namespace, count)]
        return found if all(found) else None

    return sorted(until(placed, "the scheduler"))


def test_each_node_gets_a_replica_where_nodes_have_no_zone(
    cluster: ControlPlane, namespace: str, node: Callable[..., None]
) -> None:
    node("bare-large", "64")
    node("bare-small-1", "1")
    node("bare-small-2", "1")
    _deployed(cluster, namespace, 3)
    assert _places(cluster, namespace, 3) == ["bare-large", "bare-small-1", "bare-small-2"]


def test_each_zone_gets_a_replica(
    cluster: ControlPlane, namespace: str, node: Callable[..., None]
) -> None:
    node("zone-a-1", "64", **{_ZONE: "a"})
    node("zone-a-2", "64", **{_ZONE: "a"})
    node("zone-b", "1", **{_ZONE: "b"})
    _deployed(cluster, namespace, 2)
    first, second = _places(cluster, namespace, 2)
    assert first.startswith("zone-a-")
    assert second == "zone-b"


def test_a_node_with_gpus_is_better_than_a_node_with_a_replica(
    cluster: ControlPlane, namespace: str, node: Callable[..., None]
) -> None:
    node("no-gpus", "64")
    node("gpus-1", "1", **{"nvidia.com/gpu.present": "true"})
    node("gpus-2", "1", **{"nvidia.com/gpu.present": "true"})
    _deployed(cluster, namespace, 2)
    first, second = _places(cluster, namespace, 2)
    assert first.startswith("gpus-")
    assert second == "no-gpus"


def test_no_replica_is_on_a_windows_node(
    cluster: ControlPlane, namespace: str, node: Callable[..., None]
) -> None:
    node("windows", "64", **{"kubernetes.io/os": "windows"})
    node("linux", "1")
    _deployed(cluster, namespace, 2)
    assert _places(cluster, namespace, 2) == ["linux", "linux"]


def test_a_node_whose_replica_is_not_ready_can_be_drained(
    cluster: ControlPlane, namespace: str, node: Callable[..., None]
) -> None:
    node("broken", "1")
    (shipped,) = (
        each for each in kustomized(cluster, BASE) if each["kind"] == "PodDisruptionBudget"
    )
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    cluster.client.demand("POST", budgets, {**shipped, "metadata": {"name": "gpu-webhook"}})
    _deployed(cluster, namespace, 2)
    _places(cluster, namespace, 2)
    names = [each["metadata"]["name"] for each in pods_of(cluster.client, namespace, 2)]
    broken = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    for name in names:
        cluster.client.patch("Pod", name, {"status": broken}, namespace, subresource="status")

    def is_counted() -> bool:
        status = cluster.client.demand("GET", f"{budgets}/gpu-webhook").body.get("status", {})
        return bool(status.get("expectedPods") == 2 and status["disruptionsAllowed"] == 0)

    until(is_counted, "the budget to count both replicas")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": names[0]}}
    pod = f"/api/v1/namespaces/{namespace}/pods/{names[0]}"
    cluster.client.demand("POST", f"{pod}/eviction", eviction)


def test_only_new_replicas_count_during_a_rollout(
    cluster: ControlPlane, namespace: str, node: Callable[..., None]
) -> None:
    """Old replicas on both nodes would make them equal, and the larger one would win twice."""
    node("rollout-large", "64")
    node("rollout-small", "1")
    _deployed(cluster, namespace, 2)
    old = _places(cluster, namespace, 2)
    change = {"spec": {"template": {"metadata": {"annotations": {"changed": "yes"}}}}}
    surge = {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}
    cluster.client.patch("Deployment", "gpu-webhook", surge, namespace)
    cluster.client.patch("Deployment", "gpu-webhook", change, namespace)
    assert (old, _places(cluster, namespace, 4)) == (
        ["rollout-large", "rollout-small"],
        ["rollout-large", "rollout-large", "rollout-small", "rollout-small"],
    )
