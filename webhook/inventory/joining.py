"""Nodes that have just joined: GPUs and labels come one after the other, minutes after the node.

The kubelet makes the node, a cloud's controller adds labels, the device plugin its GPUs, and GPU
Feature Discovery the model. Until a node has settled, what it lacks says nothing of it, unless its
pool or instance type is known to have no GPUs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.nodes import Node, NodeClass

# Labels that nodes of one kind share, on the clouds, and by Karpenter, Gardener, kOps and eksctl.
_KIND = (
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "worker.gardener.cloud/pool",
    "kops.k8s.io/instancegroup",
    "doks.digitalocean.com/node-pool",
)
# In keys of labels and taints that only nodes with GPUs carry; 10de is NVIDIA's PCI vendor.
_SIGNS = ("gpu", "nvidia", "accelerator", "10de")


def joining(young: Iterable[Node], settled: Iterable[Node], gone: Iterable[NodeClass]) -> set[str]:
    """The names of the young nodes that may have GPUs which they do not show yet."""
    young, settled = list(young), list(settled)
    without = {_kind(node.labels) for node in settled if not _shows_gpus(node)} - {()}
    without -= {_kind(node.labels) for node in (*young, *settled) if _shows_gpus(node)}
    without -= {_kind(each.labels) for each in gone}
    return {n.name for n in young if _shows_gpus(n) or _kind(n.labels) not in without}


def _kind(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, labels[key]) for key in _KIND if key in labels)


def _shows_gpus(node: Node) -> bool:
    """Whether it has any, or a label or taint that says so."""
    return (
        any(amount > 0 for amount in node.counted.values())
        or any(_is_sign(key) and value != "false" for key, value in node.labels.items())
        or any(_is_sign(each.key) or _is_sign(each.value) for each in node.taints)
    )


@lru_cache(maxsize=4096)  # all nodes have the same keys
def _is_sign(text: str) -> bool:
    text = text.lower()
    return any(sign in text for sign in _SIGNS)
