"""The guides' legacy pods on a real node: they run, and print the GPUs that they see.

The end of `make demo-cluster`; where nodes cannot run it says why, in a line. The GPUs and the
images are stand-ins: a device plugin offers the first, and tests/node/image makes the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from rich.table import Table

from examples.demo import EXAMPLES, PODS
from tests.node import build, machine
from tests.node.cluster import GPUS, MODEL, RealCluster
from tests.node.network import own_network

if TYPE_CHECKING:
    from rich.console import Console

_HEADINGS = ("pod", "container", "phase", "GPUs that nvidia-smi prints in it")


def show(console: Console, words: Console) -> bool:
    """Whether all of them run, or none can be tried here."""
    if why := machine.lacks():
        console.print(f"The legacy pods were not started, since no real node can run here: {why}")
        return True
    build.everything()  # before the network of our own, which reaches no package registry
    words.print("Starting the control plane with kubelet, containerd and kube-proxy ...")
    title = f"On a real node with {GPUS} simulated {MODEL}, after `kubectl apply -k manifests/base`"
    table = Table(*_HEADINGS, title=title, title_justify="left", title_style="bold")
    legacy = [name for name in PODS if "alpha.kubernetes.io" in (EXAMPLES / name).read_text()]
    with own_network(RealCluster.host), RealCluster() as cluster:
        cluster.install()
        running = sum(_runs(cluster, name, table) for name in legacy)
    console.print(table)
    console.print(f"[bold]{running} of {len(legacy)} legacy pods run on a real node.[/bold]")
    return running == len(legacy)


def _runs(cluster: RealCluster, name: str, table: Table) -> bool:
    """Create one pod, which keeps its GPUs, and add what its containers print."""
    namespace = name.partition(".")[0]
    pod = yaml.safe_load((EXAMPLES / name).read_text())
    cluster.client.create(pod, cluster.make_namespace(namespace))
    called = pod["metadata"]["name"]
    try:
        cluster.until_pod(namespace, called, "Running")
    except TimeoutError:
        table.add_row(name, "", f"[red]{cluster.phase(namespace, called)}[/red]", "")
        return False
    for container in (each["name"] for each in pod["spec"]["containers"]):
        seen = sorted(cluster.gpus_seen(namespace, called, container), key=_number)
        table.add_row(name, container, "[green]Running[/green]", " ".join(seen))
    return True


def _number(gpu: str) -> int:
    return int(gpu.removeprefix("GPU-"))
