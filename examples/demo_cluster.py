"""The guides' pods on a real control plane: Pending without the webhook, scheduled with it.

Run by `make demo-cluster`, which builds the control plane first. Where real nodes can run, the
legacy pods then run on one (demo_node.py). Nothing is left behind.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.table import Table

from examples import demo_node
from examples.demo import EXAMPLES, PODS
from tests.cluster import nodes
from tests.cluster.controlplane import ControlPlane
from tests.cluster.scheduling import empty, node_of, why_pending
from tests.cluster.webhook import WebhookServer, registered

if TYPE_CHECKING:
    from tests.cluster.client import Client, Json

INVENTORY = EXAMPLES / "inventory.yaml"


def main() -> int:
    """Show each pod without and with the webhook; 0 if all are scheduled with it, and run."""
    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "120"))
    console = Console(width=width, highlight=False)
    words = Console(stderr=True, highlight=False)
    words.print("Starting etcd, kube-apiserver, kube-scheduler and kube-controller-manager ...")
    with ControlPlane() as cluster, tempfile.TemporaryDirectory() as folder:
        made = nodes.from_inventory(INVENTORY)
        nodes.add(cluster.client, made)
        console.print(_nodes_table(made))
        # Modern pods need us only where nodes are tainted: the others are cordoned for them.
        free = [
            node["metadata"]["name"]
            for node in made
            if "nvidia.com/gpu" in node["status"]["capacity"] and "taints" not in node["spec"]
        ]
        cluster.make_namespace("without")
        cluster.make_namespace("with")
        without = _try_all(cluster.client, "without", free)
        arguments = [f"--inventory={INVENTORY}"]
        with (
            WebhookServer(Path(folder), cluster.authority, arguments) as server,
            registered(cluster, server.port, cluster.authority.bundle),
        ):
            repaired = _try_all(cluster.client, "with", free)
        console.print(_verdicts(without, repaired))
    scheduled = sum(verdict.startswith("scheduled") for verdict in repaired)
    console.print(f"[bold]{scheduled} of {len(PODS)} pods scheduled with the webhook.[/bold]")
    run = demo_node.show(console, words)
    return 0 if run and scheduled == len(PODS) else 1


def _try_all(client: Client, namespace: str, untainted: list[str]) -> list[str]:
    return [_try(client, namespace, name, untainted) for name in PODS]


def _try(client: Client, namespace: str, name: str, untainted: list[str]) -> str:
    """Create one pod and give the scheduler's verdict."""
    text = (EXAMPLES / name).read_text()
    is_modern = "alpha.kubernetes.io" not in text
    if is_modern:
        nodes.set_schedulable(client, untainted, schedulable=False)
    pod = yaml.safe_load(text)
    client.create(pod, namespace)
    try:
        if namespace == "without":
            return f"Pending: {why_pending(client, namespace, pod['metadata']['name'])}"
        return f"scheduled on {node_of(client, namespace, pod['metadata']['name'])}"
    except AssertionError as surprise:
        return str(surprise)
    finally:
        empty(client, namespace)
        if is_modern:
            nodes.set_schedulable(client, untainted, schedulable=True)


def _nodes_table(made: list[Json]) -> Table:
    table = Table(title="The nodes", title_justify="left", title_style="bold")
    for heading in ("node", "nvidia.com/gpu", "nvidia.com/gpu.product", "taints"):
        table.add_column(heading)
    for node in made:
        labels = node["metadata"]["labels"]
        taints = [f"{each['key']}:{each['effect']}" for each in node["spec"].get("taints", [])]
        table.add_row(
            node["metadata"]["name"],
            str(node["status"]["allocatable"].get("nvidia.com/gpu", "")),
            labels.get("nvidia.com/gpu.product", ""),
            ", ".join(taints),
        )
    return table


def _verdicts(without: list[str], repaired: list[str]) -> Table:
    table = Table(title="What kube-scheduler says", title_justify="left", title_style="bold")
    table.add_column("pod")
    table.add_column("without the webhook", style="red", ratio=2)
    table.add_column("with it", style="green")
    for name, before, after in zip(PODS, without, repaired, strict=True):
        table.add_row(name, re.split(r"\. (no new claims|preemption)", before)[0], after)
    return table


if __name__ == "__main__":
    sys.exit(main())
