"""What a node shows about the next node of its instance type or its group.

How many GPUs a machine has is one thing, and what its device plugin offers another: devices may be
sliced (MIG), shared, or away, and on the next machine they may not. Only a node that shows nothing
but whole devices, and that nobody has set up otherwise, says how many the next one has at most.
Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.capacity.nodes import Node, NodeClass

# Labels by which nodes are set up, or that say how they are: MIG, time-slicing, MPS, on any node by
# the GPU operator and GPU Feature Discovery, and by GKE; and the values that mean "whole devices".
_SET_UP: Mapping[str, tuple[str, ...]] = {
    "nvidia.com/mig.config": ("all-disabled",),
    "nvidia.com/device-plugin.config": (),
    "nvidia.com/gpu.sharing-strategy": ("none",),
    "nvidia.com/gpu.replicas": ("0", "1"),
    "nvidia.com/mps.capable": ("false",),
    "cloud.google.com/gke-gpu-partition-size": ("",),
    "cloud.google.com/gke-gpu-sharing-strategy": ("",),
    "cloud.google.com/gke-max-shared-clients-per-gpu": ("", "0", "1"),
}
_PRODUCT = "nvidia.com/gpu.product"
# How many devices the machine has: as its driver counts them, and as its cloud sells it.
_COUNTS = (
    "nvidia.com/gpu.count",
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.azure.com/sku-gpu-count",
)
_LONGEST = 4  # digits


def at_most(each: Node | NodeClass) -> dict[str, int]:
    """What this node, or the next one like it, has at most; empty where that is not known."""
    former = (each.former,) if not isinstance(each.former, tuple) else each.former
    if len(each.counted) != 1 or is_set_up(each.labels, *former) or _offers_parts(each.others):
        return {}
    ((name, shown),) = each.counted.items()
    most = max(shown, *(_number(each.labels.get(key, "")) for key in _COUNTS))
    return {name: most} if name.rpartition("/")[2] == "gpu" and most > 0 else {}


def is_set_up(labels: Mapping[str, str], *unsure: Iterable[str]) -> bool:
    """Whether a label says that devices are sliced or shared; `unsure` keys may have any value."""
    product = labels.get(_PRODUCT, "")
    return (
        any(key in _SET_UP and value not in _SET_UP[key] for key, value in labels.items())
        or product.endswith("-SHARED")
        or "-MIG-" in product
        or any(key in _SET_UP for keys in unsure for key in keys)
    )


def _offers_parts(names: Iterable[str]) -> bool:
    """Whether any of these names, which the settings do not count, is of slices or shares."""
    return any("gpu" in name or "/mig-" in name for name in names)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= _LONGEST else 0
