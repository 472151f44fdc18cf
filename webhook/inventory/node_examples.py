"""How many GPUs the next node of an instance type or node group has at most, from one such node.

The device plugin may offer another number of GPUs than the machine has: devices may be sliced
(MIG), shared, or missing, and on the next machine they may not be. So only a node that offers whole
devices, without labels for slicing or sharing, limits the number for the next node. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.capacity.nodes import Node, NodeClass

# Labels that configure or report MIG, time-slicing and MPS (GPU operator, GPU Feature Discovery,
# GKE), each with the values that mean "whole devices".
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
PRODUCT = "nvidia.com/gpu.product"
# Labels with the number of devices of the machine: from its driver, or from its cloud.
_COUNTS = (
    "nvidia.com/gpu.count",
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.azure.com/sku-gpu-count",
)
_LONGEST = 4  # digits


def at_most(each: Node | NodeClass) -> dict[str, int]:
    """The most GPUs that this node or the next one like it has; empty if that is not known."""
    former = (each.former,) if not isinstance(each.former, tuple) else each.former
    if len(each.counted) != 1 or is_set_up(each.labels, *former) or _offers_parts(each.others):
        return {}
    ((name, shown),) = each.counted.items()
    most = max(shown, *(_number(each.labels.get(key, "")) for key in _COUNTS))
    return {name: most} if name.rpartition("/")[2] == "gpu" and most > 0 else {}


def is_set_up(labels: Mapping[str, str], *unsure: Iterable[str]) -> bool:
    """Whether a label shows that devices are sliced or shared; `unsure` keys may have any value."""
    product = labels.get(PRODUCT, "")
    return (
        any(key in _SET_UP and value not in _SET_UP[key] for key, value in labels.items())
        or product.endswith("-SHARED")
        or "-MIG-" in product
        or any(key in _SET_UP for keys in unsure for key in keys)
    )


def _offers_parts(names: Iterable[str]) -> bool:
    """Whether one of these uncounted resource names is a name of slices or shares."""
    return any("gpu" in name or "/mig-" in name for name in names)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= _LONGEST else 0
