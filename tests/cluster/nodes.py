"""Nodes without machines: what the scheduler needs to know of a node, and nothing behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from tests.cluster.client import Client, Json


def from_inventory(file: Path) -> list[Json]:
    """Give the nodes of what `kubectl get nodes -o yaml` printed."""
    items: list[Json] = yaml.safe_load(file.read_text())["items"]
    return items


def gpu_node(
    name: str,
    gpus: int,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    resource: str = "nvidia.com/gpu",
) -> Json:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", resource: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                **(labels or {}),
            },
        },
        "spec": {"taints": list(taints)},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def add(client: Client, nodes: Sequence[Json]) -> list[str]:
    """Make the nodes as a kubelet would: the object first, then its status."""
    for node in nodes:
        metadata, status = node["metadata"], node["status"]
        client.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {k: metadata[k] for k in ("name", "labels") if k in metadata},
                "spec": {k: v for k, v in node.get("spec", {}).items() if k == "taints"},
            }
        )
        told = {k: status[k] for k in ("capacity", "allocatable", "conditions")}
        client.patch("Node", metadata["name"], {"status": told}, subresource="status")
    return [node["metadata"]["name"] for node in nodes]


def set_schedulable(client: Client, names: Collection[str], *, schedulable: bool) -> None:
    """Cordon or uncordon nodes."""
    for name in names:
        client.patch("Node", name, {"spec": {"unschedulable": None if schedulable else True}})
