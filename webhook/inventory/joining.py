"""Nodes that have just joined: GPUs and labels come one after the other, minutes after the node.

The kubelet makes the node, a cloud's controller adds labels, the device plugin its GPUs, and GPU
Feature Discovery the model. Until a node has settled, what it lacks says nothing of it, unless its
pool or instance type is known to have no GPUs: from nodes that have settled, show none, have never
shown any as far as is known, and bear no sign of them. One whose driver has crashed is no evidence.
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
_SLICING, _NVIDIA = "nvidia.com/mig.config.state", "nvidia.com/"
# Instance types of AWS, Azure and GCP that have GPUs.
_TYPES_WITH = re.compile(r"(?:g|gr|p)\d.*\..+|Standard_N.+|(?:a[2-9]|g[2-9])[a-z]*-.+")


def joining(
    young: Iterable[Node],
    settled: Iterable[Node],
    gone: Iterable[NodeClass],
    broken: Collection[str],
) -> set[str]:
    """The names of the young nodes that may have GPUs which they do not show yet.

    `broken` are the names of those that once had some.
    """
    young, settled = list(young), list(settled)
    may = {_kind(n.labels) for n in (*young, *settled) if n.name in broken or bears_a_sign(n)}
    may |= {_kind(each.labels) for each in gone}
    without = {_kind(node.labels) for node in settled} - may - {()}
    return {n.name for n in young if bears_a_sign(n) or _kind(n.labels) not in without}


def sliced_anew(node: Node) -> Node:
    """The node; while the MIG manager slices its GPUs anew it may get other names and labels."""
    if node.labels.get(_SLICING) not in ("pending", "rebooting"):
        return node
    former = {key: (ANY,) for key in node.labels if key.startswith(_NVIDIA)}
    return replace(node, joining=True, former={**node.former, **former})


def _kind(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, labels[key]) for key in _KIND if key in labels)


def bears_a_sign(node: Node) -> bool:
    """Whether it names any GPUs, if only 0 of them, or its labels or taints say that it has some.

    A kubelet goes on naming a resource whose device plugin is away.
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
