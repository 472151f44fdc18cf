"""What Karpenter can add: takes a NodePool, returns classes of nodes.

Only a hint: it must not cause the denial of a pod that could run on a node that does not exist yet.
If the result is certain, because nodes show the instance types, it counts like a pool of the
settings. Otherwise a node with any GPUs may be added. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.capacity.nodes import Node, NodeClass
from webhook.core.settings import Taint  # noqa: TC001  # pydantic reads it
from webhook.inventory import node_examples
from webhook.inventory.instance_types import TYPE, TYPES_WITHOUT, WITHOUT, Type
from webhook.inventory.object_facts import taints_of
from webhook.kube import quantity
from webhook.kube.pod import Raw, as_items, as_map, labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


POOL = "karpenter.sh/nodepool"
_GPU = "nvidia.com/gpu"
_COUNTS = ("instance-gpu-count", "sku-gpu-count")  # only types with GPUs have these labels
_PROVIDERS = ("karpenter.k8s.aws/", "eks.amazonaws.com/", "karpenter.azure.com/")


@dataclass(frozen=True, slots=True)
class NodePool:
    """The nodes of a NodePool: their labels or possible label values, and the taints that stay."""

    name: str
    labels: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, tuple[str, ...]], ...]
    taints: tuple[Taint, ...]
    startup: frozenset[str]  # keys of taints that are removed after start-up

    def classes(self, types: Mapping[str, Type]) -> Iterator[NodeClass]:
        """The nodes that it may add; `types` are the known instance types.

        What a type has shown is certain. It may have more: other names, if its nodes show shared
        GPUs only, and other amounts, if devices are sliced.
        """
        labels, values = dict(self.labels), dict(self.values)
        named = (labels[TYPE],) if TYPE in labels else values.pop(TYPE, ())
        labels.pop(TYPE, None)
        for each in named:
            if each in types and types[each].shown:
                yield NodeClass(
                    {**types[each].labels, **labels, TYPE: each},
                    self.taints,
                    types[each].shown,
                    grows=True,
                    former=(values,),
                    open_labels=True,
                )
        known = {} if node_examples.is_set_up(labels, values) else types
        for most, alike in _alike(named, known) if named else (((), ()),):
            yield NodeClass(
                labels,
                self.taints,
                dict(most),
                former=({**values, TYPE: alike} if alike else values,),
                open_labels=True,
                open_gpus=True,
                hint=f"NodePool {self.name} (Karpenter)",
            )


def _alike(
    named: Iterable[str], types: Mapping[str, Type]
) -> Iterable[tuple[tuple[tuple[str, int], ...], tuple[str, ...]]]:
    """The types that may have GPUs, by the most that a new node of them has."""
    found: dict[tuple[tuple[str, int], ...], tuple[str, ...]] = {}
    for each in named:
        most = tuple(sorted(types[each].most.items())) if each in types else ()
        if most or not TYPES_WITHOUT.fullmatch(each):
            found[most] = (*found.get(most, ()), each)
    return found.items()


def node_pool(raw: Raw) -> NodePool | None:
    """The facts of a NodePool that are kept; None if its nodes have no GPUs."""
    spec, name = as_map(raw.get("spec")), str(as_map(raw.get("metadata")).get("name", ""))
    template = as_map(spec.get("template"))
    made = as_map(template.get("spec"))
    allowed: dict[str, set[str]] = {}
    for _, each in as_items(made.get("requirements")):
        key, values = str(each.get("key")), _texts(each.get("values"))
        if _excludes_gpus(key, str(each.get("operator")), values):
            return None
        if each.get("operator") == "In":
            allowed[key] = allowed.get(key, values) & values
    if quantity.parse(as_map(spec.get("limits")).get(_GPU, "1")) == 0:
        return None
    for key, value in labels_of(template).items():
        allowed[key] = {str(value)}
    allowed[POOL] = {name}
    single = {key: min(values) for key, values in allowed.items() if len(values) == 1}
    return NodePool(
        name,
        tuple(sorted(single.items())),
        tuple(sorted((k, tuple(sorted(v))) for k, v in allowed.items() if k not in single)),
        taints_of(made.get("taints")),
        frozenset(str(each.get("key")) for _, each in as_items(made.get("startupTaints"))),
    )


def _texts(values: object) -> set[str]:
    return {str(each) for each in values} if isinstance(values, list) else set()


def _excludes_gpus(key: str, operator: str, values: set[str]) -> bool:
    """Whether the requirement certainly excludes all instance types with GPUs."""
    provider, _, sort = key.rpartition("/")
    if f"{provider}/" not in _PROVIDERS:
        return False
    if operator == "DoesNotExist":
        return sort in _COUNTS
    without = WITHOUT.get(sort)
    if operator != "In" or without is None or not values:
        return False
    return all(without.fullmatch(value) for value in values)


def started(node: Node, pools: Iterable[NodePool]) -> tuple[Taint, ...]:
    """The taints of the node without the start-up taints of its NodePool."""
    name = node.labels.get(POOL)
    startup = {key for pool in pools if pool.name == name for key in pool.startup}
    return tuple(taint for taint in node.taints if taint.key not in startup)
