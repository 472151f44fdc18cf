"""What is not known denies nothing: each way to be without an inventory, or without good settings.

Everywhere here GPU301 is in force, and a pod requests more GPUs than there are.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import orjson
import pytest

from tests.cluster import nodes
from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.controlplane import free_ports
from tests.cluster.pods import modern, named, pod
from tests.cluster.watcher import WatcherProcess
from tests.cluster.webhook import WebhookServer, registered
from tests.telemetry.scraping import scrape, value
from webhook.core.settings import Settings
from webhook.inventory.project import NamespaceFacts
from webhook.inventory.publish import Publisher
from webhook.inventory.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.controlplane import ControlPlane

# The nodes of these tests are new, and would be given time.
GOOD = "policy:\n  rules: {GPU301: enforce}\ncapacity: {joiningMinutes: 0, rememberedHours: 0}\n"
USABLE, UP = "gpu_webhook_inventory_usable", "gpu_webhook_watcher_up"
RELOADED = "gpu_webhook_settings_last_reload_successful"
SILENT_SECONDS = 30


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
        self._namespace = namespace

    def denies(self, gpus: int = 99) -> bool:
        """Whether a pod with so many GPUs is refused."""
        what = named(pod(modern(gpus)), "asks")
        answer = self._cluster.client.try_create(what, self._namespace, dry_run=True)
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
