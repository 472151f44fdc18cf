"""Pods that the real controllers make from templates which nobody has migrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.scheduling import node_of, pods_of, why_pending
from tests.cluster.webhook import ROOT
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

ALPHA = "alpha.kubernetes.io/nvidia-gpu"
MEANT = {"gpu-k80-1", "gpu-p100-1"}
# A DaemonSet's controller skips only nodes with a taint that the template does not tolerate.
UNTAINTED = {"cpu-1", "gpu-1080ti-1", "gpu-k80-1", "gpu-p100-1"}

workloads = pytest.mark.parametrize(
    "kind", ["Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController"]
)


def _example(file: str) -> Json:
    pod: Json = yaml.safe_load((ROOT / "examples" / file).read_text())
    return pod


@workloads
def test_pods_of_a_workload_are_pending_without(
    kind: str, cluster: ControlPlane, namespace: str
) -> None:
    cluster.client.create(made_by(kind, _example("affinity-annotation.yaml")), namespace)

    for pod in pods_of(cluster.client, namespace, 2):
        message = why_pending(cluster.client, namespace, pod["metadata"]["name"])
        assert f"Insufficient {ALPHA}" in message


@workloads
def test_pods_of_a_workload_are_scheduled_with(
    kind: str, cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    cluster.client.create(made_by(kind, _example("affinity-annotation.yaml")), namespace)

    pods = pods_of(cluster.client, namespace, 2)
    assert {node_of(cluster.client, namespace, p["metadata"]["name"]) for p in pods} <= MEANT
    assert [p["spec"]["containers"][0]["resources"]["limits"] for p in pods] == [
        {"nvidia.com/gpu": "2"}
    ] * 2
    assert len(webhook.calls(namespace)) == 2


def test_pods_of_a_daemonset_are_pending_without(cluster: ControlPlane, namespace: str) -> None:
    cluster.client.create(made_by("DaemonSet", _example("affinity-annotation.yaml")), namespace)

    pods = pods_of(cluster.client, namespace, 4)
    assert {_pinned_to(pod) for pod in pods} == UNTAINTED
    for pod in pods:
        assert ALPHA in why_pending(cluster.client, namespace, pod["metadata"]["name"])


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize(
    ("file", "fitting"),
    [
        pytest.param("affinity-annotation.yaml", MEANT, id="the template requests two models"),
        pytest.param(
            "cuda-host-path.yaml", UNTAINTED - {"cpu-1"}, id="the template requests any GPU"
        ),
    ],
)
def test_pods_of_a_daemonset_are_placed_where_they_fit(
    file: str, fitting: set[str], cluster: ControlPlane, namespace: str
) -> None:
    cluster.client.create(made_by("DaemonSet", _example(file)), namespace)

    pods = pods_of(cluster.client, namespace, 4)
    assert {_pinned_to(pod) for pod in pods} == UNTAINTED  # the repair kept the pin
    for pod in pods:
        name = pod["metadata"]["name"]
        if _pinned_to(pod) in fitting:
            assert node_of(cluster.client, namespace, name) == _pinned_to(pod)
        else:
            why_pending(cluster.client, namespace, name)


def test_a_daemonset_s_pod_warns_that_the_template_must_be_migrated(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    cluster.client.create(made_by("DaemonSet", _example("affinity-annotation.yaml")), namespace)
    pods_of(cluster.client, namespace, 4)

    calls = until(lambda: webhook.calls(namespace) or None, "the calls")
    for call in calls:
        assert [w for w in call.warnings if "migrate the DaemonSet's template" in w], call.warnings
        assert any("daemonset-of-gpu-pods" in w for w in call.warnings), call.warnings


def _pinned_to(pod: Json) -> str:
    """Give the one node that the DaemonSet's controller made the pod for."""
    required = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    pins = [term["matchFields"] for term in required["nodeSelectorTerms"]]
    assert all(
        len(pin) == 1 and pin[0]["key"] == "metadata.name" and pin[0]["operator"] == "In"
        for pin in pins
    ), pins
    nodes = {node for pin in pins for node in pin[0]["values"]}
    assert len(nodes) == 1, pins
    return str(nodes.pop())
