"""A release of the chart by the real helm, and what it has made in the cluster."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.cluster import helm
from tests.cluster.client import until
from tests.cluster.own_chart import CHART, NAMESPACE
from tests.cluster.remains import everything
from tests.cluster.replicas import keeper_of
from tests.cluster.scheduling import empty, remove
from tests.cluster.webhook import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

HOW = {"server-side apply": "--server-side=true", "three-way merges": "--server-side=false"}


class Release:
    """The release `gpu-webhook`, and what it has made in the cluster."""

    def __init__(self, cluster: ControlPlane, home: Path) -> None:
        self.cluster, self.home = cluster, home
        self.kubeconfig = f"--kubeconfig={cluster.kubeconfig}"
        # Stands for the watchers of the pods, which no kubelet runs.
        self.keeper = keeper_of(cluster, home / "tls", f"gpu-webhook.{NAMESPACE}.svc")

    def helm(self, *words: str) -> str:
        done = helm.run(self.home, *words, "-n", NAMESPACE, self.kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def install(self, *words: str) -> str:
        return self.helm("install", "gpu-webhook", str(CHART), *words)

    def upgrade(self, *words: str) -> str:
        return self.helm("upgrade", "gpu-webhook", str(CHART), *words)

    def bundles(self) -> dict[str, set[str]]:
        """The caBundles of each configuration; an empty text where the field is missing."""
        return {
            f"{kind} {each['metadata']['name']}": {
                entry["clientConfig"].get("caBundle", "") for entry in each["webhooks"]
            }
            for kind in KINDS
            for each in self.cluster.client.list(kind)
        }

    def secret(self) -> Json:
        text = self.cluster.kubectl(
            *("-n", NAMESPACE, "get", "secret", "gpu-webhook-certificates", "-o", "json")
        )
        found: Json = json.loads(text)["data"]
        return found

    def until_only(self, before: set[str]) -> None:
        empty(self.cluster.client, NAMESPACE)  # no kubelet would end the pods
        until(lambda: everything(self.cluster) == before, "nothing of it to be left", 60)


@contextmanager
def released(cluster: ControlPlane, home: Path) -> Iterator[Release]:
    """Its namespace, and nothing of it afterwards."""
    remove(cluster.client, NAMESPACE)  # of another file, in the cluster of this worker
    cluster.make_namespace(NAMESPACE, {"pod-security.kubernetes.io/enforce": "restricted"})
    made = Release(cluster, home)
    yield made
    helm.run(home, "uninstall", "gpu-webhook", "-n", NAMESPACE, made.kubeconfig)
    for kind in KINDS:
        cluster.client.delete_all(kind)
    remove(cluster.client, NAMESPACE)
