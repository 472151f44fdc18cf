"""What is known of the cluster: node classes and facts drawn from them once, at load."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.settings import Models, Taint


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that are alike in labels (but those unique to a node), taints and GPU amounts."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    gpus: Mapping[str, int] = field(default_factory=dict)  # allocatable, by resource name
    nodes: tuple[str, ...] = ()

    @property
    def has_gpus(self) -> bool:
        return any(amount > 0 for amount in self.gpus.values())


@dataclass(frozen=True)
class Inventory:
    """A snapshot of the cluster. Questions are answered from sets that are made once."""

    classes: tuple[NodeClass, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # name -> labels
    runtime_classes: frozenset[str] = frozenset()

    @cached_property
    def _values(self) -> dict[str, frozenset[str]]:
        values: dict[str, set[str]] = {}
        for node_class in self.classes:
            for key, value in node_class.labels.items():
                values.setdefault(key, set()).add(value)
        return {key: frozenset(found) for key, found in values.items()}

    def values(self, label: str) -> frozenset[str]:
        """The values that any node carries under this label."""
        return self._values.get(label, frozenset())

    @cached_property
    def gpu_labels(self) -> frozenset[str]:
        """The label keys of nodes that offer GPUs."""
        return frozenset(key for each in self.classes if each.has_gpus for key in each.labels)

    @cached_property
    def has_gpus(self) -> bool:
        return any(node_class.has_gpus for node_class in self.classes)

    @cached_property
    def taints(self) -> frozenset[Taint]:
        """Taints that any node carries."""
        return frozenset(taint for each in self.classes for taint in each.taints)

    @cached_property
    def gpu_taints(self) -> tuple[Taint, ...]:
        """Taints of nodes that offer GPUs, sorted."""
        found = {taint for each in self.classes if each.has_gpus for taint in each.taints}
        return tuple(sorted(found, key=str))

    @cached_property
    def models(self) -> dict[tuple[Models, str], tuple[str, ...]]:
        """Remembers which real values stand for a legacy one, by settings and legacy value."""
        return {}
