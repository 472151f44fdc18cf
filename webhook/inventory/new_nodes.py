"""Finds nodes that have just joined, whose GPUs and labels may still be missing.

The kubelet creates the node, a controller of the cloud adds labels, the device plugin adds GPUs,
and GPU Feature Discovery adds the model; this takes minutes. Until then, missing GPUs do not mean
that the node has none, unless its pool or instance type is known to have none. That is known from
settled nodes that show no GPUs, have never shown any, and have no label or taint of GPU nodes. A
node whose driver has crashed does not count as such.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from webhook.capacity.node_index import ANY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.capacity.nodes import Node, NodeClass

# Labels that are the same on all nodes of one pool or type: clouds, Karpenter, Gardener, kOps,
# eksctl.
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
# Parts of label and taint keys that only GPU nodes have; 10de is the PCI vendor ID of NVIDIA.
_SIGNS = ("gpu", "nvidia", "accelerator", "10de")
_SLICING, _NVIDIA = "nvidia.com/mig.config.state", "nvidia.com/"
# Instance types of AWS, Azure and GCP with GPUs.
_TYPES_WITH = re.compile(r"(?:g|gr|p)\d.*\..+|Standard_N.+|(?:a[2-9]|g[2-9])[a-z]*-.+")


def joining(
    young: Iterable[Node],
    settled: Iterable[Node],
    removed: Iterable[NodeClass],
    broken: Collection[str],
) -> set[str]:
    """The names of the young nodes that may have GPUs which they do not show yet.

    `broken` are the names of nodes that once had GPUs.
    """
    young, settled = list(young), list(settled)
    may = {_kind(n.labels) for n in (*young, *settled) if n.name in broken or has_gpu_signs(n)}
    may |= {_kind(each.labels) for each in removed}
    without = {_kind(node.labels) for node in settled} - may - {()}
    return {n.name for n in young if has_gpu_signs(n) or _kind(n.labels) not in without}


def with_unknown_slices(node: Node) -> Node:
    """The node; while the MIG manager slices its GPUs again, their names and labels are unknown."""
    if node.labels.get(_SLICING) not in ("pending", "rebooting"):
        return node
    former = {key: (ANY,) for key in node.labels if key.startswith(_NVIDIA)}
    return replace(node, joining=True, former={**node.former, **former})


def _kind(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, labels[key]) for key in _KIND if key in labels)


def has_gpu_signs(node: Node) -> bool:
    """Whether the node names any GPU resource, even with 0, or has a label or taint of GPU nodes.

    A kubelet keeps naming a resource whose device plugin has stopped.
    """
    return (
        bool(node.counted)
        or any(_is_sign(key) and value != "false" for key, value in node.labels.items())
        or any(_is_sign(each) or _TYPES_WITH.fullmatch(each) for _, each in _kind(node.labels))
        or any(_is_sign(each.key) or _is_sign(each.value) for each in node.taints)
    )


@lru_cache(maxsize=4096)  # all nodes have the same keys
def _is_sign(text: str) -> bool:
    text = text.lower()
    return any(sign in text for sign in _SIGNS)
