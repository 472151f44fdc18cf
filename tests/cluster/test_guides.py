"""The pods of the guides: Pending for ever as they are, scheduled where they meant with us."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster import nodes
from tests.cluster.scheduling import node_of, why_pending
from tests.cluster.webhook import ROOT

if TYPE_CHECKING:
    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

UNTAINTED = {"gpu-1080ti-1", "gpu-k80-1", "gpu-p100-1"}
TAINTED = {"gpu-v100-1"}
FOR_EVER = 8.0  # seconds; the scheduler gives its verdict within one


@dataclass(frozen=True, slots=True)
class Guide:
    file: str
    meant: set[str]  # the nodes that the guide's author would have expected
    gpus: dict[str, str]  # of each container, after the repair

    @property
    def pod(self) -> Json:
        pod: Json = yaml.safe_load((ROOT / "examples" / self.file).read_text())
        return pod


# Only the tainted V100 node has five GPUs; a K80 and a P100 node have four each.
LEGACY = {
    "two containers ask for 2 + 3 GPUs of one node": Guide(
        "two-containers-five-gpus.yaml",
        TAINTED,
        {"gpu-container-1": "2", "gpu-container-2": "3"},
    ),
    "an annotation requests a K80 or a P100": Guide(
        "affinity-annotation.yaml", {"gpu-k80-1", "gpu-p100-1"}, {"gpu-container-1": "2"}
    ),
    "the driver comes from host paths": Guide(
        "cuda-host-path.yaml", UNTAINTED | TAINTED, {"gpu-container-1": "1"}
    ),
    "the driver comes from an nvidia-docker 1 volume": Guide(
        "nvidia-docker-1-volumes.yaml", UNTAINTED | TAINTED, {"cuda": "2"}
    ),
}
MODERN = {
    "the device plugin's test pod": Guide("device-plugin-test-pod.yaml", TAINTED, {"cuda": "2"}),
    "the pod of the 1.10 plugin": Guide("device-plugin-1.10-pod.yaml", TAINTED, {"cuda": "1"}),
}
legacy = pytest.mark.parametrize("guide", LEGACY.values(), ids=LEGACY)
modern = pytest.mark.parametrize("guide", MODERN.values(), ids=MODERN)


@legacy
def test_a_legacy_pod_is_pending_without(
    guide: Guide, cluster: ControlPlane, namespace: str
) -> None:
    pod = guide.pod
    answer = cluster.client.create(pod, namespace)

    message = why_pending(cluster.client, namespace, pod["metadata"]["name"])

    assert answer.warnings == ()  # nobody tells the user
    assert "Insufficient alpha.kubernetes.io/nvidia-gpu" in message
    assert "Preemption is not helpful for scheduling" in message


def test_legacy_pods_stay_pending_though_gpu_nodes_join(
    cluster: ControlPlane, namespace: str
) -> None:
    pods = [_renamed(guide.pod, f"pod-{n}") for n, guide in enumerate(LEGACY.values())]
    for pod in pods:
        cluster.client.create(pod, namespace)
        why_pending(cluster.client, namespace, pod["metadata"]["name"])
    labels = {"nvidia.com/gpu.product": "Tesla-K80", "nvidia.com/gpu.present": "true"}
    joined = nodes.add(cluster.client, [nodes.gpu_node("joins-later", 16, labels=labels)])
    try:
        time.sleep(FOR_EVER)
        for pod in pods:
            message = why_pending(cluster.client, namespace, pod["metadata"]["name"])
            assert "Insufficient alpha.kubernetes.io/nvidia-gpu" in message
    finally:
        cluster.client.delete("Node", joined[0])


@legacy
def test_a_legacy_pod_is_scheduled_with(
    guide: Guide, cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    pod = guide.pod
    answer = cluster.client.create(pod, namespace)

    assert node_of(cluster.client, namespace, pod["metadata"]["name"]) in guide.meant
    assert _gpus(answer.body) == guide.gpus
    assert answer.warnings
    assert all(warning.startswith(("GPU", "gpu-webhook: ")) for warning in answer.warnings)
    assert "alpha.kubernetes.io" not in str(_meaning(answer.body))
    assert len(webhook.calls(namespace)) == 1


def test_five_gpus_are_counted_as_five(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    """Three of the eight are taken: the pod fits exactly, and a second one does not fit."""
    assert webhook.calls(namespace) == []
    guide = LEGACY["two containers ask for 2 + 3 GPUs of one node"]
    taken = _renamed(MODERN["the pod of the 1.10 plugin"].pod, "takes-three")
    taken["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-v100-1"}
    taken["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "3"
    cluster.client.create(taken, namespace)
    assert node_of(cluster.client, namespace, "takes-three") == "gpu-v100-1"

    cluster.client.create(_renamed(guide.pod, "first"), namespace)
    assert node_of(cluster.client, namespace, "first") == "gpu-v100-1"
    cluster.client.create(_renamed(guide.pod, "second"), namespace)
    message = why_pending(cluster.client, namespace, "second")

    assert "5 Insufficient nvidia.com/gpu" in message


def test_the_third_model_is_never_taken(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    """The K80 and the P100 node have room for four pods; the fifth waits beside free V100s."""
    assert webhook.calls(namespace) == []
    guide = LEGACY["an annotation requests a K80 or a P100"]
    for number in range(4):
        cluster.client.create(_renamed(guide.pod, f"pod-{number}"), namespace)
    placed = [node_of(cluster.client, namespace, f"pod-{number}") for number in range(4)]
    cluster.client.create(_renamed(guide.pod, "one-too-many"), namespace)
    message = why_pending(cluster.client, namespace, "one-too-many")

    assert sorted(placed) == ["gpu-k80-1", "gpu-k80-1", "gpu-p100-1", "gpu-p100-1"]
    assert "didn't match Pod's node affinity/selector" in message
    assert "2 Insufficient nvidia.com/gpu" in message


@modern
@pytest.mark.usefixtures("only_tainted_gpu_nodes")
def test_a_modern_pod_is_pending_without_where_nodes_are_tainted(
    guide: Guide, cluster: ControlPlane, namespace: str
) -> None:
    pod = guide.pod
    cluster.client.create(pod, namespace)

    message = why_pending(cluster.client, namespace, pod["metadata"]["name"])

    assert "untolerated taint" in message


@modern
@pytest.mark.usefixtures("only_tainted_gpu_nodes")
def test_a_modern_pod_is_scheduled_with_where_nodes_are_tainted(
    guide: Guide,
    cluster: ControlPlane,
    namespace: str,
    webhook: Recorder,
) -> None:
    pod = guide.pod
    answer = cluster.client.create(pod, namespace)

    assert node_of(cluster.client, namespace, pod["metadata"]["name"]) in guide.meant
    assert _gpus(answer.body) == guide.gpus
    assert all(warning.startswith(("GPU", "gpu-webhook: ")) for warning in answer.warnings)
    assert len(webhook.calls(namespace)) == 1


def _renamed(pod: Json, name: str) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "name": name}}


def _gpus(pod: Json) -> dict[str, str]:
    """Give the GPU limit of each container, which the request must equal."""
    found = {}
    for container in pod["spec"]["containers"]:
        resources = container["resources"]
        assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"]
        found[container["name"]] = resources["limits"]["nvidia.com/gpu"]
    return found


def _meaning(pod: Json) -> Json:
    """Give what the cluster acts on: not who wrote which field when."""
    metadata = {k: v for k, v in pod["metadata"].items() if k != "managedFields"}
    return {"metadata": metadata, "spec": pod["spec"]}
