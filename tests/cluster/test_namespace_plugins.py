"""Namespaces by whose annotations admission plugins constrain pods.

PodTolerationRestriction: one that forbids the toleration keeps its working GPU pods, and one that
adds a toleration its pods that need it. One of the GPU nodes is tainted. PodNodeSelector: one that
adds the legacy model label to each pod, and once more after a repair. The control plane is one of
its own: both plugins are off by default.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cluster import build, nodes
from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.controlplane import ControlPlane
from tests.cluster.pods import MODEL, NVIDIA, PRODUCT, alpha, limits_of, modern, named, pod
from tests.cluster.scheduling import empty, node_of, pods_of
from tests.cluster.watcher import WatcherProcess
from tests.cluster.webhook import WebhookServer, registered
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Answer, Json

WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
LIFE_CYCLE = [
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute"}
    for state in ("not-ready", "unreachable")
]
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
SELECTING = {"one-model": f"{MODEL}=Tesla-K80", "two-values": f"{MODEL}=Tesla-P100"}
TOLERATING = "scheduler.alpha.kubernetes.io/defaultTolerations"
TEAM = {"key": "team", "operator": "Exists"}
SETTINGS = {
    "policy": {
        "overrides": [
            {"namespaces": ["tolerating"], "rules": {"GPU301": "enforce"}},
            {"labels": {"tier": "limited"}, "rules": {"GPU304": "enforce"}},
        ]
    },
    "capacity": {
        "rememberedHours": 0,
        "joiningMinutes": 0,
        "limits": [{"labels": {"tier": "limited"}, "gpus": {NVIDIA: 1}}],
    },
}
EXISTS = {"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    if not build.is_built():
        pytest.fail("the control plane is not built: run `make cluster` first", pytrace=False)
    flags = ["--enable-admission-plugins=PodTolerationRestriction,PodNodeSelector"]
    with ControlPlane(apiserver_flags=flags) as running:
        nodes.add(running.client, nodes.from_inventory(INVENTORY))
        for name, allowed in (("strict", LIFE_CYCLE), ("lenient", [*LIFE_CYCLE, EXISTS])):
            running.make_namespace(name)
            running.kubectl("annotate", "namespace", name, f"{WHITELIST}={json.dumps(allowed)}")
        taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
        nodes.add(running.client, [nodes.gpu_node("team", 16, taints=[taint])])
        running.make_namespace("tolerating")
        running.kubectl("annotate", "namespace", "tolerating", f"{TOLERATING}={json.dumps([TEAM])}")
        for name, selector in SELECTING.items():
            running.make_namespace(name)
            running.kubectl("annotate", "namespace", name, f"{SELECTOR}={selector}")
        yield running


@pytest.fixture(scope="module", autouse=True)
def _webhook(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Watcher and server, once they know the whitelists."""
    folder = tmp_path_factory.mktemp("whitelist")
    config = folder / "settings.json"
    config.write_text(json.dumps(SETTINGS))
    watcher = WatcherProcess(folder, cluster.kubeconfig, [f"--config={config}"])
    arguments = [f"--snapshot={watcher.snapshot}", f"--config={config}"]
    server = WebhookServer(folder, cluster.authority, arguments)
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


def test_the_first_pod_of_a_new_namespace_gets_its_toleration(cluster: ControlPlane) -> None:
    """Of a chart with `--create-namespace`, or of a controller that makes namespaces."""
    for number in range(4):
        namespace = cluster.make_namespace(f"new-{number}")
        answer = created(cluster, namespace, pod(modern()), "first")
        assert answer.ok, answer.message
        assert EXISTS in answer.body["spec"]["tolerations"]


def test_the_first_pod_of_a_new_namespace_is_judged_by_its_labels(cluster: ControlPlane) -> None:
    cluster.make_namespace("new-limited", {"tier": "limited"})
    answer = created(cluster, "new-limited", pod(modern(2)), "first")
    assert not answer.ok
    assert "GPU304" in answer.message


def test_the_first_pod_of_a_new_namespace_that_forbids_it_is_left_alone(
    cluster: ControlPlane,
) -> None:
    metadata = {"name": "new-strict", "annotations": {WHITELIST: json.dumps(LIFE_CYCLE)}}
    cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    until(lambda: cluster._is_populated("new-strict"), "the service account")
    answer = created(cluster, "new-strict", pod(modern()), "first")
    assert answer.ok, answer.message
    assert EXISTS not in answer.body["spec"]["tolerations"]


@pytest.mark.parametrize("gpus", [alpha, modern])
def test_pods_that_run_by_a_toleration_of_the_namespace_are_not_said_to_be_refused(
    gpus: Callable[..., Json], cluster: ControlPlane
) -> None:
    what = made_by("Deployment", pod(gpus(16)), 1)
    answer = cluster.client.try_create(what, "tolerating")
    assert answer.ok, answer.message
    warned = " ".join(answer.warnings)
    assert "REFUSED" not in warned
    assert "[its pods may be refused in namespace tolerating]" in warned
    [made] = pods_of(cluster.client, "tolerating", 1)
    assert node_of(cluster.client, "tolerating", made["metadata"]["name"]) == "team"
    empty(cluster.client, "tolerating")


@pytest.mark.parametrize("namespace", SELECTING)
def test_a_model_label_of_the_namespace_is_repaired_and_told(
    cluster: ControlPlane, namespace: str
) -> None:
    answer = created(cluster, namespace, pod(alpha()), "legacy")
    assert answer.ok, answer.message
    assert MODEL not in answer.body["spec"].get("nodeSelector", {})
    where = f"write {PRODUCT} where it comes from (namespace annotation {SELECTOR},"
    assert where in " ".join(answer.warnings)
    placed = node_of(cluster.client, namespace, "legacy")
    node = cluster.client.demand("GET", f"api/v1/nodes/{placed}").body
    model = SELECTING[namespace].partition("=")[2]
    assert node["metadata"]["labels"][PRODUCT].startswith(model)


def test_a_pod_of_today_there_is_told_that_it_waits_and_why(cluster: ControlPlane) -> None:
    answer = created(cluster, "one-model", pod(modern()), "modern")
    assert answer.ok, answer.message
    assert "this pod did not ask for it" in " ".join(answer.warnings)
    assert answer.body["spec"]["nodeSelector"] == {MODEL: "Tesla-K80"}
