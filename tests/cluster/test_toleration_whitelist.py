"""PodTolerationRestriction: a namespace that forbids the toleration keeps its working GPU pods.

The control plane is one of its own: the plugin is off by default. One of its GPU nodes is tainted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cluster import build, nodes
from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.controlplane import ControlPlane
from tests.cluster.pods import NVIDIA, alpha, limits_of, modern, named, pod
from tests.cluster.scheduling import node_of
from tests.cluster.watcher import WatcherProcess
from tests.cluster.webhook import WebhookServer, registered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Answer, Json

WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
LIFE_CYCLE = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute"}
    for state in ("not-ready", "unreachable")
]
EXISTS = {"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    if not build.is_built():
        pytest.fail("the control plane is not built: run `make cluster` first", pytrace=False)
    flags = ["--enable-admission-plugins=PodTolerationRestriction"]
    with ControlPlane(apiserver_flags=flags) as running:
        nodes.add(running.client, nodes.from_inventory(INVENTORY))
        for name, allowed in (("strict", LIFE_CYCLE), ("lenient", [*LIFE_CYCLE, EXISTS])):
            running.make_namespace(name)
            running.kubectl("annotate", "namespace", name, f"{WHITELIST}={json.dumps(allowed)}")
        yield running


@pytest.fixture(scope="module", autouse=True)
def _webhook(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Watcher and server, once they know the whitelists."""
    folder = tmp_path_factory.mktemp("whitelist")
    watcher = WatcherProcess(folder, cluster.kubeconfig)
    server = WebhookServer(folder, cluster.authority, [f"--snapshot={watcher.snapshot}"])
    with watcher, server, registered(cluster, server.port, cluster.authority.bundle):

        def known() -> bool:
            probe = named(pod(alpha()), "probe")
            answer = cluster.client.try_create(probe, "strict", dry_run=True)
            return answer.ok

        until(known, "the whitelist to be known", 30)
        yield


def created(cluster: ControlPlane, namespace: str, what: Json, name: str) -> Answer:
    return cluster.client.try_create(named(what, name), namespace)


def test_a_pod_of_today_is_left_alone(cluster: ControlPlane) -> None:
    answer = created(cluster, "strict", pod(modern()), "modern")
    assert answer.ok, answer.message
    assert not answer.warnings
    assert EXISTS not in answer.body["spec"]["tolerations"]
    assert node_of(cluster.client, "strict", "modern")


def test_a_legacy_pod_is_repaired_without_the_toleration_and_told(cluster: ControlPlane) -> None:
    answer = created(cluster, "strict", pod(alpha()), "legacy")
    assert answer.ok, answer.message
    assert limits_of(answer.body) == [{NVIDIA: "1"}]
    assert EXISTS not in answer.body["spec"]["tolerations"]
    assert "tolerationsWhitelist of the namespace forbids" in " ".join(answer.warnings)
    assert node_of(cluster.client, "strict", "legacy")


def test_a_whitelist_that_allows_it(cluster: ControlPlane) -> None:
    answer = created(cluster, "lenient", pod(alpha()), "legacy")
    assert answer.ok, answer.message
    assert EXISTS in answer.body["spec"]["tolerations"]
