"""Instance types: which have no GPUs according to their names, and what nodes of the others show.

Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from webhook.inventory import node_examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.capacity.nodes import NodeClass

TYPE = "node.kubernetes.io/instance-type"
# Instance types without GPUs. About any other type nothing is known: the gr6 of AWS has L4, and the
# settings may count the accelerators of dl, inf and trn.
_AWS = r"(?:a|c|d|f|h|hpc|i|im|is|m|mac|r|t|u|vt|x|z)"
# GPUs can be attached to n1, but to none of these (cloud.google.com/compute/docs/gpus).
_GCP = r"(?:c[2-4][ad]?|e2|h[34]d?|m[1-4]|n2d?|n4[ad]?|t2[ad]|x4|z3)"
_AZURE = r"(?:A|B|D[CPS]?|E[BC]?|FX?|GS?|H[BCX]?|LS?|M)"
# Labels that Karpenter's providers (AWS, EKS Auto Mode, Azure) set by instance type: the last part
# of the key, and the form of the values for types without GPUs.
WITHOUT = {
    "instance-category": re.compile(_AWS),
    "instance-family": re.compile(rf"{_AWS}[-\d].*"),
    "sku-family": re.compile(_AZURE),
}
TYPES_WITHOUT = re.compile(
    rf"{_AWS}[-\d][-a-z\d]*\.(?:nano|micro|small|medium|\d*x?large|metal[-\w]*)"
    rf"|(?:Basic|Standard)_{_AZURE}\d.*"
    rf"|{_GCP}-(?:small|medium|micro|(?:standard|highmem|highcpu|mega|ultra)[-a-z\d]+)"
)


class Type(NamedTuple):
    """An instance type."""

    shown: dict[str, int]  # the largest amounts that any of its nodes has shown
    most: dict[str, int]  # the most that a new node has; empty if that is not known
    models: set[str]  # the models that its nodes show

    @property
    def labels(self) -> dict[str, str]:
        """The labels that its machine decides: the model, if all nodes show the same."""
        return {node_examples.PRODUCT: min(self.models)} if len(self.models) == 1 else {}


def known_types(classes: Iterable[NodeClass]) -> dict[str, Type]:
    """What the nodes show about their instance types, and so about new nodes of these types."""
    found: dict[str, Type] = {}
    unsure = set[str]()
    for each in classes:
        name, most = each.labels.get(TYPE, ""), node_examples.at_most(each)
        if not name or not each.has_gpus:
            continue
        if not most:
            unsure.add(name)
        if not each.open_gpus:
            known = found.setdefault(name, Type({}, {}, set()))
            if node_examples.PRODUCT in each.labels:
                known.models.add(each.labels[node_examples.PRODUCT])
            _raise(known.shown, each.counted)
            _raise(known.most, most)
    for name, known in found.items():
        if name in unsure or len(known.most) > 1:
            known.most.clear()
    return found


def _raise(amounts: dict[str, int], others: Mapping[str, int]) -> None:
    """The larger amount for each name."""
    for name, amount in others.items():
        if amount > 0:
            amounts[name] = max(amount, amounts.get(name, 0))
