"""Three real nodes: pods are spread, reach each other through Services, and a node may die."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from tests.cluster.client import until
from tests.cluster.pods import NVIDIA, alpha, pod
from tests.node import build
from tests.node.cluster import GPUS, RealCluster
from tests.node.network import own_network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json

_DEAD = 90.0  # seconds until a node that is silent is not ready; 40 of them are the controller's


@pytest.fixture(scope="module")
def three(_possible: None) -> Iterator[RealCluster]:
    """Start three nodes, and apply manifests/base on them."""
    with own_network(RealCluster.host), RealCluster(3) as running:
        running.install()
        yield running


def _is_repaired(cluster: RealCluster) -> bool:
    made = cluster.client.create(pod(alpha()), "default", dry_run=True).body
    return NVIDIA in made["spec"]["containers"][0]["resources"]["limits"]


def _replicas(cluster: RealCluster) -> list[Json]:
    found = cluster.client.list("Pod", "gpu-webhook", "app.kubernetes.io/name=gpu-webhook")
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def test_no_gpu_of_three_nodes_is_given_twice(three: RealCluster) -> None:
    half = alpha(GPUS // 2, image=build.PAUSE)
    names = [f"half-{number}" for number in range(6)]
    for name in names:
        three.client.create({**pod(half), "metadata": {"name": name}}, "default")
    given: dict[str, list[str]] = defaultdict(list)
    for name in names:
        three.until_pod("default", name, "Running")
        where = three.client.get("Pod", name, "default")["spec"]["nodeName"]
        given[where] += three.gpus_seen("default", name, half["name"])
    assert {node: len(set(gpus)) for node, gpus in given.items()} == dict.fromkeys(given, GPUS)
    assert len(given) == 3


def test_pods_are_repaired_while_one_of_the_nodes_with_a_replica_is_dead(
    three: RealCluster,
) -> None:
    places = {each["spec"]["nodeName"] for each in _replicas(three)}
    assert len(places) == 2, "the replicas are spread over the nodes"
    # The API server is on the first node.
    victim = next(node for node in three.nodes[1:] if node.place.name in places)
    victim.kill()

    def is_dead() -> bool:
        conditions = three.client.get("Node", victim.place.name)["status"]["conditions"]
        return any(each["type"] == "Ready" and each["status"] == "Unknown" for each in conditions)

    until(is_dead, f"{victim.place.name} to be found dead", _DEAD)
    until(lambda: _is_repaired(three), "a repair after the node's death", 20)
    assert [_is_repaired(three) for _ in range(20)] == [True] * 20
