"""A model whose pool is at zero: the repaired pod waits, and runs on the node that comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cluster import nodes
from tests.cluster.pods import AFFINITY, MODEL, PRODUCT, alpha, expression, pod, required
from tests.cluster.scheduling import node_of, why_pending

if TYPE_CHECKING:
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
