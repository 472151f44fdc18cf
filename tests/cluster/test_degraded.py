"""What is not known denies nothing: each way to be without an inventory, or without good settings.

Everywhere here GPU301 is in force, and a pod requests more GPUs than there are.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.cluster import nodes
from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.controlplane import free_ports
from tests.cluster.pods import container, modern, named, pod
from tests.cluster.watcher import WatcherProcess
from tests.cluster.webhook import WebhookServer, registered
from tests.telemetry.scraping import scrape, value
from webhook.core.settings import Settings
from webhook.inventory.object_facts import NamespaceFacts
from webhook.inventory.publish import Publisher
from webhook.inventory.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.client import Client, Json
    from tests.cluster.controlplane import ControlPlane

# The nodes of these tests are new, and would be given time.
GOOD = "policy:\n  rules: {GPU301: enforce}\ncapacity: {joiningMinutes: 0, rememberedHours: 0}\n"
USABLE, UP = "gpu_webhook_inventory_usable", "gpu_webhook_watcher_up"
RELOADED = "gpu_webhook_settings_last_reload_successful"
SILENT_SECONDS = 30
_ALL = [{"operator": "Exists"}]


class Replica:
    """Watcher and server as in the Deployment, behind the shipped configuration."""

    def __init__(self, cluster: ControlPlane, folder: Path, namespace: str) -> None:
        self.folder = folder
        self.settings = folder / "settings.yaml"
        self.settings.write_text(GOOD)
        self.metrics_port = free_ports(1)[0]
        config = f"--config={self.settings}"
        self.watcher = WatcherProcess(folder, cluster.kubeconfig, [config])
        arguments = [
            config,
            f"--snapshot={self.watcher.snapshot}",
            f"--metrics-bind=127.0.0.1:{self.metrics_port}",
        ]
        self.server = WebhookServer(folder, cluster.authority, arguments)
        self._cluster = cluster
        self.namespace = namespace

    def denies(self, gpus: int = 99) -> bool:
        """Whether a pod with so many GPUs is refused."""
        what = named(pod(modern(gpus)), "asks")
        answer = self._cluster.client.try_create(what, self.namespace, dry_run=True)
        assert answer.ok or "GPU301" in answer.message
        return not answer.ok

    def metric(self, name: str) -> float | None:
        return value(scrape(self.metrics_port), name)

    def readyz(self) -> tuple[int, str]:
        return self.server.ask("/readyz")

    def says(self, words: str) -> None:
        """Wait until /readyz is ready with these words, and the inventory counts as unusable."""
        # Each worker reads the inventory by itself: one may admit before the other has read it.
        until(lambda: words in self.readyz()[1], f"/readyz to say {words!r}", 10)
        until(lambda: self.metric(USABLE) == 0, "the metric to say so", 10)
        assert self.readyz()[0] == 200


@pytest.fixture
def replica(cluster: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Replica]:
    made = Replica(cluster, tmp_path, namespace)
    with (
        made.watcher,
        made.server,
        registered(cluster, made.server.port, cluster.authority.bundle),
    ):
        until(made.denies, "the inventory to be in use", 30)
        yield made


def test_all_is_well_at_first(replica: Replica) -> None:
    # Each worker reads the inventory by itself; the one that denied was one of them.
    until(lambda: replica.readyz() == (200, "ok"), "all to be well", 30)
    assert replica.metric(USABLE) == 1
    assert replica.metric(UP) == 1
    assert replica.metric(RELOADED) == 1


def test_a_crashed_watcher(replica: Replica) -> None:
    replica.watcher.process.kill()

    until(lambda: replica.metric(UP) == 0, "the metric to say that the watcher is gone", 15)
    status, words = until(
        lambda: answer if (answer := replica.readyz())[0] != 200 else None,
        "the replica not to be ready",
        SILENT_SECONDS + 10,
    )
    assert (status, "the watcher has written nothing for" in words) == (503, True)
    assert not replica.denies(1)  # an API server that still calls is answered


def test_a_stale_inventory(replica: Replica) -> None:
    replica.watcher.process.send_signal(signal.SIGSTOP)
    status = replica.watcher.snapshot / "status.json"
    told = orjson.loads(status.read_bytes())
    status.write_bytes(orjson.dumps({**told, "as_of": time.time() - 400, "beat": time.time()}))

    until(lambda: not replica.denies(), "pods to be admitted", 10)
    replica.says("inventory: stale")


def test_an_empty_inventory(replica: Replica) -> None:
    replica.watcher.process.kill()
    replica.watcher.process.wait()
    Publisher(replica.watcher.snapshot, Settings()).publish(_empty(), time.time())

    until(lambda: not replica.denies(), "pods to be admitted", 10)
    replica.says("inventory: no node offers GPUs")


def _empty() -> Store:
    """What is known of a cluster with one namespace and no node."""
    store = Store()
    store.namespaces.put("default", NamespaceFacts({}), time.time())
    store.nodes.put("gone", None, time.time())
    return store


def test_no_inventory_at_all(cluster: ControlPlane, namespace: str, tmp_path: Path) -> None:
    made = Replica(cluster, tmp_path, namespace)  # its watcher is never started
    with made.server, registered(cluster, made.server.port, cluster.authority.bundle):
        assert not made.denies()
        code, words = made.readyz()
        assert (code, "inventory: unknown" in words) == (200, True)
        assert made.metric(USABLE) == 0
        assert made.metric(UP) == 0


_DID_YOU_MEAN = "there is no setting polizy; did you mean policy?"


def test_broken_settings_keep_the_ones_before_and_new_ones_are_taken(replica: Replica) -> None:
    replica.settings.write_text("polizy: {}\n")

    until(lambda: replica.metric(RELOADED) == 0, "the metric to say so", 10)
    assert replica.denies()
    # The other worker may not have looked yet.
    until(lambda: _DID_YOU_MEAN in replica.readyz()[1], "each worker to say so", 10)
    assert replica.readyz()[0] == 200
    until(lambda: replica.server.log().count("have mistakes"), "one of the workers to say so", 30)
    time.sleep(3)  # a worker looks once a second
    assert replica.server.log().count("have mistakes") == 1

    replica.settings.write_text("policy:\n  rules: {GPU301: warn}\n")
    until(lambda: not replica.denies(), "the new settings to be in force", 10)
    until(lambda: replica.metric(RELOADED) == 1, "the metric to say so", 10)
    until(lambda: replica.readyz() == (200, "ok"), "all to be well", 20)


def test_cordoned_gpu_nodes_deny_nothing(replica: Replica, cluster: ControlPlane) -> None:
    names = [
        node["metadata"]["name"]
        for node in nodes.from_inventory(INVENTORY)
        if "nvidia.com/gpu" in node["status"]["capacity"]
    ]
    taint = "node.kubernetes.io/unschedulable"  # set by the node lifecycle controller, off here
    before = replica.watcher.status()["published"]
    with ExitStack() as afterwards:
        afterwards.callback(nodes.set_schedulable, cluster.client, names, schedulable=True)
        afterwards.callback(cluster.kubectl, "taint", "nodes", *names, f"{taint}:NoSchedule-")
        nodes.set_schedulable(cluster.client, names, schedulable=False)
        cluster.kubectl("taint", "nodes", *names, f"{taint}=:NoSchedule")
        until(lambda: replica.watcher.status()["published"] > before, "the cordon to be seen", 10)
        time.sleep(1.5)  # a worker looks once a second
        assert not replica.denies(1)
        assert replica.denies(99)  # cordoned or not, no node is so large


def _label(client: Client, name: str, turn: int) -> Json:
    client.patch("Node", name, {"metadata": {"labels": {"team": f"t{turn}"}}})
    return _pod(1, nodeSelector={"team": f"t{turn}"})


def _give_gpus(client: Client, name: str, turn: int) -> Json:
    amounts = {"nvidia.com/gpu": str(20 + turn)}
    told = {"status": {"capacity": amounts, "allocatable": amounts}}
    client.patch("Node", name, told, subresource="status")
    return _pod(20 + turn)


def _remove_taint(client: Client, name: str, turn: int) -> Json:
    labels, taint = {"team": f"t{turn}"}, {"key": f"t{turn}", "effect": "NoSchedule"}
    client.patch("Node", name, {"metadata": {"labels": labels}, "spec": {"taints": [taint]}})
    time.sleep(2.5)  # the watcher and the server know it
    client.patch("Node", name, {"spec": {"taints": None}})
    return pod(modern(), nodeSelector=labels)


def _add_node(client: Client, name: str, turn: int) -> Json:
    gpu = "nvidia.com/gpu.shared"  # of no other node: the test takes them away with the namespace
    nodes.add(client, [nodes.gpu_node(f"{name}-{turn}", turn + 1, resource=gpu)])
    return _pod(turn + 1, gpu)


def _pod(gpus: int, resource: str = "nvidia.com/gpu", **spec: Any) -> Json:
    return pod(container(limits={resource: gpus}), tolerations=_ALL, **spec)


@pytest.mark.parametrize(
    ("change", "turns"),
    [
        pytest.param(_label, 20, id="the label that it selects is set"),
        pytest.param(_give_gpus, 10, id="the node gets as many GPUs as it requests"),
        pytest.param(_remove_taint, 3, id="a taint is removed"),
        pytest.param(_add_node, 10, id="a node with enough GPUs is added"),
    ],
)
def test_a_pod_that_fits_since_a_moment_ago_is_not_denied(
    replica: Replica, cluster: ControlPlane, change: Callable[[Client, str, int], Json], turns: int
) -> None:
    name = f"late-{time.time_ns()}"
    with ExitStack() as afterwards:
        for each in (name, *(f"{name}-{turn}" for turn in range(turns))):
            afterwards.callback(cluster.client.delete, "Node", each)
        nodes.add(cluster.client, [nodes.gpu_node(name, 1)])
        denials, seconds = [], []
        for turn in range(turns):
            time.sleep(turn % 5 * 0.2)  # at any time between two writes of the watcher
            made = named(change(cluster.client, name, turn), f"p-{turn}")
            started = time.monotonic()
            answer = cluster.client.try_create(made, replica.namespace, dry_run=True)
            seconds.append(time.monotonic() - started)
            denials += [] if answer.ok else [answer.message]
        print(f"\n{len(denials)} of {turns} denied; {max(seconds):.2f} s at most")  # noqa: T201
        assert not denials
        assert replica.denies(99)


def test_a_name_that_counts_as_gpu_since_a_moment_ago_denies_nothing_that_fits(
    replica: Replica, cluster: ControlPlane
) -> None:
    """The server may read new settings before the watcher has listed all nodes with them."""
    name, resource = f"late-{time.time_ns()}", "example.com/gpu"
    with ExitStack() as afterwards:
        afterwards.callback(cluster.client.delete, "Node", name)
        late = nodes.gpu_node(name, 4, resource=resource)
        late["status"]["capacity"] |= {"nvidia.com/gpu": "1"}
        late["status"]["allocatable"] |= {"nvidia.com/gpu": "1"}
        nodes.add(cluster.client, [late])
        fits = pod(container(limits={"nvidia.com/gpu": 1, resource: 4}), tolerations=_ALL)
        too_large = pod(container(limits={"nvidia.com/gpu": 1, resource: 5}), tolerations=_ALL)
        time.sleep(2.5)  # the watcher and the server know the node
        names = f"resources: {{gpus: [nvidia.com/gpu, {resource}]}}\n"
        replica.settings.write_text(GOOD + names)
        end, denials, turn = time.monotonic() + 5, [], 0
        while time.monotonic() < end:
            turn += 1
            made = named(fits, f"p-{turn}")
            answer = cluster.client.try_create(made, replica.namespace, dry_run=True)
            denials += [] if answer.ok else [answer.message]
        print(f"\n{len(denials)} of {turn} denied")  # noqa: T201
        assert not denials
        made = named(too_large, "too-large")
        answer = cluster.client.try_create(made, replica.namespace, dry_run=True)
        assert "GPU301" in answer.message
