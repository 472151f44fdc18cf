"""Where the scheduler puts pods that name a model: pools at zero, parts, full names, old labels."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster import nodes
from tests.cluster.pods import AFFINITY, MODEL, PRODUCT, alpha, expression, named, pod, required
from tests.cluster.scheduling import node_of, why_pending
from tests.cluster.webhook import Recorder, WebhookServer, registered

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    with among(there, cluster, tmp_path, "models: {profile: gke}"):
        for name in ("first", "second"):
            what = named(pod(alpha(), nodeSelector={MODEL: "Tesla-T4"}), name)
            cluster.client.create(what, namespace)
            if name == "first":
                assert node_of(cluster.client, namespace, "first") == "whole"
        assert "Insufficient nvidia.com/gpu" in why_pending(cluster.client, namespace, "second")


@contextmanager
def among(
    there: list[Json], cluster: ControlPlane, folder: Path, settings: str = "{}"
) -> Iterator[None]:
    """Pods are repaired with these settings, for a cluster with these nodes."""
    (folder / "nodes.yaml").write_text(yaml.safe_dump_all(there))
    (folder / "settings.yaml").write_text(settings)
    arguments = [f"--config={folder / 'settings.yaml'}", f"--inventory={folder / 'nodes.yaml'}"]
    server = WebhookServer(folder, cluster.authority, arguments)
    joined = nodes.add(cluster.client, there)
    try:
        with (
            server,
            Recorder(server) as recorder,
            registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle),
        ):
            yield
    finally:
        for name in joined:
            cluster.client.delete("Node", name)


FLEET = {"fleet": "ours"}  # beside the nodes that all tests share
K80, OLD_K80 = {PRODUCT: "Tesla-K80", **FLEET}, {MODEL: "Tesla-K80", **FLEET}
OURS = expression("fleet", "In", "ours")


def asking(name: str, operator: str, *models: str) -> Json:
    """Give a pod that requests these models in the annotation of then."""
    affinity = json.dumps(required(expression(MODEL, operator, *models), OURS))
    return named(pod(alpha(), annotations={AFFINITY: affinity}), name)


@pytest.mark.parametrize(
    ("profile", "label", "p100", "t4"),
    [
        pytest.param(
            "gke", "cloud.google.com/gke-accelerator", "nvidia-tesla-p100", "nvidia-tesla-t4",
            id="GKE",
        ),
        pytest.param(
            "aks", "node.kubernetes.io/instance-type", "Standard_NC6s_v2", "Standard_NC4as_T4_v3",
            id="AKS",
        ),
    ],
)  # fmt: skip
def test_a_full_name_is_the_short_name_of_a_cloud(
    profile: str, label: str, p100: str, t4: str,
    cluster: ControlPlane, namespace: str, tmp_path: Path,
) -> None:  # fmt: skip
    there = [
        nodes.gpu_node("has-p100", 8, labels={label: p100, **FLEET}),
        nodes.gpu_node("has-t4", 8, labels={label: t4, **FLEET}),
    ]
    client, full = cluster.client, "Tesla-P100-PCIE-16GB"
    with among(there, cluster, tmp_path, f"models: {{profile: {profile}}}"):
        client.create(named(pod(alpha(), nodeSelector={MODEL: full}), "selects"), namespace)
        client.create(asking("wants", "In", "Tesla-K80", full), namespace)
        client.create(asking("rejects", "NotIn", full), namespace)
        client.create(asking("rejects-both", "NotIn", full, "Tesla T4"), namespace)
        assert node_of(client, namespace, "selects") == "has-p100"
        assert node_of(client, namespace, "wants") == "has-p100"
        assert node_of(client, namespace, "rejects") == "has-t4"
        assert "didn't match Pod's node affinity" in why_pending(client, namespace, "rejects-both")


def test_models_are_found_and_excluded_under_the_old_label_and_todays(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    m40, p100 = {PRODUCT: "Tesla-M40", **FLEET}, {PRODUCT: "Tesla-P100-PCIE-16GB", **FLEET}
    there = [
        nodes.gpu_node("old-m40", 1, labels={MODEL: "Tesla-M40", **m40}),
        nodes.gpu_node("new-m40", 1, labels=m40),
        nodes.gpu_node("new-p100", 8, labels=p100),
        nodes.gpu_node("no-gpus", 0, labels={MODEL: "Tesla-K80", **FLEET}),
    ]
    client = cluster.client
    with among(there, cluster, tmp_path):
        excluded = asking("rejects", "NotIn", "Tesla-P100", "Tesla-M40")
        client.create(excluded, namespace)
        assert "didn't match Pod's node affinity" in why_pending(client, namespace, "rejects")
        client.create(asking("first", "In", "Tesla-M40"), namespace)
        client.create(named(pod(alpha(), nodeSelector={MODEL: "Tesla-M40"}), "second"), namespace)
        found = {node_of(client, namespace, name) for name in ("first", "second")}
        assert found == {"old-m40", "new-m40"}
        client.create(asking("third", "In", "Tesla-P100", "Tesla-M40"), namespace)
        assert node_of(client, namespace, "third") == "new-p100"
        client.create(asking("fourth", "In", "Tesla-K80", "Tesla-P100"), namespace)
        assert node_of(client, namespace, "fourth") == "new-p100"


@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist"])
def test_an_excluded_model_stays_excluded_on_a_node_that_joins_under_the_old_label(
    operator: str, cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    client, models = cluster.client, ("Tesla-K80",) if operator == "NotIn" else ()
    with among([nodes.gpu_node("new-k80", 1, labels=K80)], cluster, tmp_path):
        client.create(asking("rejects", operator, *models), namespace)
        joined = nodes.add(client, [nodes.gpu_node("old-k80", 8, labels=OLD_K80)])
        try:
            client.create(asking("first", "Exists"), namespace)
            assert node_of(client, namespace, "first") == "new-k80"
            client.create(named(pod(alpha(), nodeSelector=FLEET), "second"), namespace)
            assert node_of(client, namespace, "second") == "old-k80"
            assert "didn't match Pod's node affinity" in why_pending(client, namespace, "rejects")
        finally:
            for name in joined:
                client.delete("Node", name)
