"""Finds nodes that offer shares of GPUs under the name of whole GPUs, by their labels.

A pod of 2017 requested whole devices. GKE labels nodes whose GPUs are sliced or shared; GPU Feature
Discovery adds a suffix to the model, and labels that other profiles can use (k8s-device-plugin
docs/gpu-feature-discovery, GKE: GPU time-sharing, multi-instance GPUs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.capacity.node_sets import NodeSet, as_int64

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from webhook.capacity.nodes import Inventory
    from webhook.core.settings import Settings
    from webhook.kube.pod import Raw


_ANY_VALUE = ("Exists", "Gt", "Lt")
_PRODUCT = "nvidia.com/gpu.product"
_FEW = 50  # values that a requirement names; GKE shares a GPU among at most 48 clients


def _several(value: str) -> bool:
    return (as_int64(value or "0") or 0) > 1


# The setting of `models` that allows it, a node label, and its values with that meaning.
_MARKS: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    ("mig", "cloud.google.com/gke-gpu-partition-size", bool),
    ("shared", "cloud.google.com/gke-gpu-sharing-strategy", bool),
    ("shared", "cloud.google.com/gke-max-shared-clients-per-gpu", _several),
    ("shared", "nvidia.com/gpu.sharing-strategy", lambda value: value not in ("", "none")),
    ("shared", "nvidia.com/gpu.replicas", _several),
    ("shared", "nvidia.com/mps.capable", lambda value: value == "true"),
    ("mig", _PRODUCT, lambda value: "-mig-" in value.lower()),
    ("shared", _PRODUCT, lambda value: value.lower().endswith("-shared")),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A label of nodes that offer shares of GPUs, and these nodes."""

    setting: str  # of `models`, which allows it
    key: str
    values: tuple[str, ...]  # of the label, as the nodes have it
    nodes: NodeSet

    @property
    def excluded(self) -> Raw:
        """The requirement of a node selector term that excludes these nodes."""
        return {"key": self.key, "operator": "NotIn", "values": list(self.values)}

    @property
    def words(self) -> str:
        return f"{self.key}={self.values[0]}"


def excluded_by(key: str, operator: str, values: Collection[str]) -> str:
    """The setting of the shares of GPUs that this requirement excludes; empty if none.

    DoesNotExist is what older versions wrote for the labels of GKE.
    """
    for setting, label, means in _MARKS:
        if key == label and (
            (operator == "NotIn" and all(map(means, values)))
            or (operator == "DoesNotExist" and key.startswith("cloud.google.com/"))
        ):
            return setting
    return ""


def is_exclusion(key: str, operator: str, values: Collection[str]) -> bool:
    """Whether this requirement excludes shares of GPUs."""
    if key == _PRODUCT:
        return operator == "NotIn" and all(map(is_part, values))
    return bool(excluded_by(key, operator, values))


def asked_for(key: str, operator: str, values: Iterable[str]) -> str:
    """The setting that allows the shares of GPUs which a requirement selects; empty if none."""
    for setting, label, means in _MARKS:
        if key == label and (
            (operator in _ANY_VALUE and label != _PRODUCT)
            or (operator == "In" and any(map(means, values)))
        ):
            return setting
    return ""


def is_part(value: str) -> bool:
    """Whether the name of a model shows that it is a share of a GPU."""
    return any(means(value) for _, key, means in _MARKS if key == _PRODUCT)


def parts(settings: Settings, inventory: Inventory | None) -> tuple[Part, ...]:
    """The labels of nodes that offer shares of GPUs as whole ones, unless they are allowed."""
    if inventory is None:
        return ()
    models = settings.models
    key = (settings.gpu_resource, models.shared, models.mig)
    known: tuple[Part, ...] | None = inventory.remembered.get(key)
    if known is None:
        known = inventory.remembered[key] = tuple(_parts(settings, inventory))
    return known


def _parts(settings: Settings, inventory: Inventory) -> Iterable[Part]:
    index, models = inventory.index, settings.models
    offering = index.at_least(settings.gpu_resource, 1)
    allowed = {"shared": models.shared, "mig": models.mig}
    for setting, key, means in _MARKS:
        table = index.label(key)
        values = tuple(sorted(filter(means, table))) if not allowed[setting] else ()
        if nodes := table.having_any(values) & offering:
            yield Part(setting, key, values[:_FEW], nodes)


def among(nodes: NodeSet, found: Iterable[Part]) -> tuple[Part, ...]:
    """Those of the labels that one of these nodes has."""
    return tuple(each for each in found if each.nodes & nodes)


def only(nodes: NodeSet, found: Iterable[Part]) -> bool:
    """Whether there are such nodes, and each has one of the labels."""
    left = nodes
    for each in found:
        left &= ~each.nodes
    return bool(nodes) and not left
