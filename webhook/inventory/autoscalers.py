"""Finds autoscalers that do not list what they can add, and describes in words what any can add.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.inventory.cluster_autoscaler import GKE_POOL
from webhook.inventory.instance_types import TYPE
from webhook.inventory.karpenter import POOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.capacity.nodes import NodeClass

# Autoscalers that create nodes of any shape, with the prefix of their labels. The last two are
# Karpenter before 0.32.
_UNTOLD = (
    (GKE_POOL, "nap-", "GKE (node auto-provisioning)"),
    ("provisioner.cast.ai/managed-by", "", "Cast AI"),
    ("spotinst.io/node-lifecycle", "", "Ocean (Spot)"),
    ("karpenter.sh/provisioner-name", "", "Karpenter (Provisioners)"),
)


def unlisted(classes: Iterable[NodeClass]) -> set[str]:
    """Autoscalers that do not list what they can add; the labels of their nodes reveal them."""
    return {
        name
        for each in classes
        for labels in (each.labels, *each.unique)
        for key, begins, name in _UNTOLD
        if key in labels and labels[key].startswith(begins)
    }


def in_words(each: NodeClass) -> str:
    """What an autoscaler can add, as text."""
    if each.hint and each.gpus and not each.has_gpus:
        names = ", ".join(sorted(each.gpus))
        return f"{each.hint} has {names}; other resources of new nodes are not known."
    if each.hint:
        return f"{each.hint} may add nodes with GPUs; which ones is not known."
    gpus = " and ".join(f"{amount} {name}" for name, amount in sorted(each.gpus.items()))
    return f"NodePool {each.labels[POOL]} (Karpenter) may add {each.labels[TYPE]} with {gpus}."
