"""A model whose pool is at zero: the repaired pod waits, and runs on the node that comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster import nodes
from tests.cluster.pods import AFFINITY, MODEL, PRODUCT, alpha, expression, named, pod, required
from tests.cluster.scheduling import node_of, why_pending
from tests.cluster.webhook import Recorder, WebhookServer, registered

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONE = {"topology.kubernetes.io/zone": "far-away"}
IN_ZONE = json.dumps(required(expression(BETA_ZONE, "In", "far-away")))
M60 = json.dumps(required(expression(MODEL, "In", "Tesla M60")))


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(pod(alpha(), nodeSelector={MODEL: "Tesla-M60"}), id="nodeSelector"),
        pytest.param(pod(alpha(), annotations={AFFINITY: M60}), id="the annotation"),
        pytest.param(pod(alpha(), annotations={AFFINITY: IN_ZONE}), id="a zone of then"),
    ],
)
@pytest.mark.usefixtures("webhook")
def test_a_pod_runs_on_a_node_that_comes_later(
    what: Json, cluster: ControlPlane, namespace: str
) -> None:
    cluster.client.create(what, namespace)
    assert "didn't match Pod's node affinity" in why_pending(cluster.client, namespace, "pod")

    labels = {PRODUCT: "Tesla-M60", **ZONE}
    joined = nodes.add(cluster.client, [nodes.gpu_node("comes-later", 1, labels=labels)])
    try:
        assert node_of(cluster.client, namespace, "pod") == "comes-later"
    finally:
        cluster.client.delete("Node", joined[0])


GKE_MODEL = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
PARTS = {
    "sliced": {**GKE_MODEL, "cloud.google.com/gke-gpu-partition-size": "1g.5gb"},
    "shared": {**GKE_MODEL, "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"},
}


def test_a_pod_that_asks_for_a_whole_gpu_gets_no_part_of_one(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Only the small node has whole GPUs; the scheduler would rather take the others."""
    there = [nodes.gpu_node(name, 8, labels=labels) for name, labels in PARTS.items()]
    there.append(nodes.gpu_node("whole", 1, labels=GKE_MODEL))
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all(there))
    (tmp_path / "settings.yaml").write_text("models: {profile: gke}")
    arguments = [f"--config={tmp_path / 'settings.yaml'}", f"--inventory={tmp_path / 'nodes.yaml'}"]
    server = WebhookServer(tmp_path, cluster.authority, arguments)
    joined = nodes.add(cluster.client, there)
    try:
        with (
            server,
            Recorder(server) as recorder,
            registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle),
        ):
            for name in ("first", "second"):
                what = named(pod(alpha(), nodeSelector={MODEL: "Tesla-T4"}), name)
                cluster.client.create(what, namespace)
                if name == "first":
                    assert node_of(cluster.client, namespace, "first") == "whole"
            assert "Insufficient nvidia.com/gpu" in why_pending(cluster.client, namespace, "second")
    finally:
        for name in joined:
            cluster.client.delete("Node", name)
