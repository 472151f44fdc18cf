"""What autoscalers say that they can add: Karpenter's NodePools, and cluster-autoscaler's groups.

A hint only: who reads it must not deny a pod that may run on a node which is not there yet. Where
it is certain what a group adds, as when its instance types are known from nodes, that counts like a
pool of the settings. Where it is not, the group may add a node with any GPUs. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.core import quantity
from webhook.core.node_index import ANY
from webhook.core.nodes import NodeClass
from webhook.core.pod import as_items, as_map
from webhook.core.settings import Taint
from webhook.inventory.joining import bears_a_sign

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.core.nodes import Node

    Raw = dict[str, Any]

STATUS = "kube-system/cluster-autoscaler-status"  # the ConfigMap
_POOL = "karpenter.sh/nodepool"
_TYPE = "node.kubernetes.io/instance-type"
_EKS_GROUP = "eks.amazonaws.com/nodegroup"
_GPU = "nvidia.com/gpu"
# Instance types that are known to have no GPU; of any other nothing is known (AWS's gr6 has L4).
_AWS = r"(?:a|c|d|dl|f|h|hpc|i|im|inf|is|m|mac|r|t|trn|u|vt|x|z)"
# GPUs can be attached to n1, and to none of these (cloud.google.com/compute/docs/gpus).
_GCP = r"(?:c[2-4][ad]?|e2|h[34]d?|m[1-4]|n2d?|n4[ad]?|t2[ad]|x4|z3)"
_AZURE = r"(?:A|B|D[CPS]?|E[BC]?|FX?|GS?|H[BCX]?|LS?|M)"
# Of labels that Karpenter's providers (AWS, EKS Auto Mode, Azure) give by instance type: the last
# part of the key, and what values of types without GPUs look like.
_WITHOUT = {
    "instance-category": re.compile(_AWS),
    "instance-family": re.compile(rf"{_AWS}[-\d].*"),
    "sku-family": re.compile(_AZURE),
}
_TYPES_WITHOUT = re.compile(
    rf"{_AWS}[-\d][-a-z\d]*\.(?:nano|micro|small|medium|\d*x?large|metal[-\w]*)"
    rf"|(?:Basic|Standard)_{_AZURE}\d.*"
    rf"|{_GCP}-(?:small|medium|micro|(?:standard|highmem|highcpu|mega|ultra)[-a-z\d]+)"
)
_COUNTS = ("instance-gpu-count", "sku-gpu-count")  # only types with GPUs have these labels
_PROVIDERS = ("karpenter.k8s.aws/", "eks.amazonaws.com/", "karpenter.azure.com/")
# cluster-autoscaler before 1.30 wrote text, later ones write YAML.
_OLD_GROUP = re.compile(
    r"^[ \t]*Name:[ \t]*(\S+)\s+Health:(.*?)"
    r"cloudProviderTarget=(\d+) \(minSize=\d+, maxSize=(\d+)\)",
    re.MULTILINE,
)
_OLD_READY = re.compile(r"\bready=(\d+)")
# Read by the line: a YAML parser is slow, and no parser of ours should read what others write.
_ITEM = re.compile(r"^[ \t]*- ", re.MULTILINE)
_MEMBER = re.compile(
    r"^[ \t]*(name|cloudProviderTarget|maxSize|ready):[ \t]*[\"']?([^\s\"']+)", re.MULTILINE
)
NONE = ""  # in place of a resource name: no GPUs at all
_LONGEST = 1 << 20  # characters: a ConfigMap has no more
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class NodePool:
    """What Karpenter may add: labels, or the values that labels may have, and taints that stay."""

    name: str
    labels: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, tuple[str, ...]], ...]
    taints: tuple[Taint, ...]
    startup: frozenset[str]  # keys of taints that go away

    def classes(self, types: Mapping[str, Mapping[str, int]]) -> Iterator[NodeClass]:
        """The nodes that it may add; `types` are the GPUs of the instance types that are known.

        What a type has shown is certain. It may have more names than its nodes have shown: theirs
        may be shared ones only, or their device plugin may not run.
        """
        labels, values = dict(self.labels), dict(self.values)
        named = (labels[_TYPE],) if _TYPE in labels else values.pop(_TYPE, ())
        labels.pop(_TYPE, None)
        for each in named:
            if types.get(each):
                yield NodeClass(
                    {**labels, _TYPE: each},
                    self.taints,
                    types[each],
                    declared=1,
                    former=(values,),
                    open_labels=True,
                )
        for gpus, alike in _alike(named, types) if named else (((), ()),):
            yield NodeClass(
                labels,
                self.taints,
                dict(gpus) if _is_certain(gpus) else {},
                former=({**values, _TYPE: alike} if alike else values,),
                open_labels=True,
                open_gpus=True,
                hint=f"NodePool {self.name} (Karpenter)",
            )


def _is_certain(shown: Collection[object]) -> bool:
    """Whether the amount of what was shown says how much there is.

    Beside slices or shares it does not: a device that is sliced is no whole one.
    """
    return len(shown) == 1


def _alike(
    named: Iterable[str], types: Mapping[str, Mapping[str, int]]
) -> Iterable[tuple[tuple[tuple[str, int], ...], tuple[str, ...]]]:
    """The types that may have GPUs, by what they have shown."""
    found: dict[tuple[tuple[str, int], ...], tuple[str, ...]] = {}
    for each in named:
        shown = tuple(sorted(types.get(each, {}).items()))
        if shown or not _TYPES_WITHOUT.fullmatch(each):
            found[shown] = (*found.get(shown, ()), each)
    return found.items()


def node_pool(raw: Raw) -> NodePool | None:
    """What is kept of a NodePool; None if its nodes have no GPUs."""
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
    for key, value in as_map(as_map(template.get("metadata")).get("labels")).items():
        allowed[key] = {str(value)}
    allowed[_POOL] = {name}
    single = {key: min(values) for key, values in allowed.items() if len(values) == 1}
    return NodePool(
        name,
        tuple(sorted(single.items())),
        tuple(sorted((k, tuple(sorted(v))) for k, v in allowed.items() if k not in single)),
        tuple(_taint(each) for _, each in as_items(made.get("taints"))),
        frozenset(str(each.get("key")) for _, each in as_items(made.get("startupTaints"))),
    )


def _texts(values: object) -> set[str]:
    return {str(each) for each in values} if isinstance(values, list) else set()


def _taint(raw: Raw) -> Taint:
    return Taint(str(raw.get("key", "")), str(raw.get("value") or ""), str(raw.get("effect", "")))


def _excludes_gpus(key: str, operator: str, values: set[str]) -> bool:
    """Whether it is known that the requirement leaves no instance type with GPUs."""
    provider, _, sort = key.rpartition("/")
    if f"{provider}/" not in _PROVIDERS:
        return False
    if operator == "DoesNotExist":
        return sort in _COUNTS
    without = _WITHOUT.get(sort)
    if operator != "In" or without is None or not values:
        return False
    return all(without.fullmatch(value) for value in values)


@dataclass(frozen=True, slots=True)
class Group:
    """A node group of cluster-autoscaler."""

    name: str
    grows: bool  # nodes may join it: it is below its largest size, or some are on their way

    @property
    def title(self) -> str:
        """The name without the address that some clouds put before it."""
        return self.name.rpartition("/")[2]

    @property
    def begins(self) -> str:
        """How the names of its nodes begin on GKE, AKS and with Cluster API."""
        title = self.title
        return title if title.endswith("-vmss") else f"{title.removesuffix('-grp')}-"

    def classes(self, shown: Iterable[tuple[str, str]]) -> Iterator[NodeClass]:
        """The nodes that it may add, as far as they are not like those that it has or had.

        What such nodes have shown is certain. A new one may have other names: its GPUs may be
        sliced or shared otherwise, or what was seen had no driver.
        """
        names = {name for group, name in shown if group == self.name}
        if names == {NONE}:
            return
        names.discard(NONE)
        known = dict.fromkeys(names, 0) if _is_certain(names - {ANY}) and ANY not in names else {}
        hint = f"node group {self.title} (cluster-autoscaler)"
        yield NodeClass({}, (), known, open_labels=True, open_gpus=True, hint=hint)


def groups(config_map: Raw) -> tuple[Group, ...]:
    """The groups that the ConfigMap cluster-autoscaler-status tells of."""
    status = as_map(config_map.get("data")).get("status")
    if not isinstance(status, str) or len(status) > _LONGEST:
        return ()
    old = _OLD_GROUP.findall(status)
    if old:
        return tuple(
            Group(name, _grows("".join(_OLD_READY.findall(counts)[:1]), target, most))
            for name, counts, target, most in old
        )
    items = _ITEM.split(status.partition("nodeGroups:")[2])
    return tuple(group for group in map(_group, items) if group is not None)


def _group(text: str) -> Group | None:
    """One item of the list; a number that is 0 is left out."""
    found = {match[1]: match[2] for match in _MEMBER.finditer(text)}
    if "name" not in found:
        return None
    counts = (found.get(key, "0") for key in ("ready", "cloudProviderTarget", "maxSize"))
    return Group(found["name"], _grows(*counts))


def _grows(ready: str, target: str, most: str) -> bool:
    """Whether nodes may join: also while fewer are ready than the cloud was asked for."""
    if not (ready.isdecimal() and target.isdecimal() and most.isdecimal()):
        return True  # nobody knows
    return int(ready) < int(target) or int(target) < int(most)


def shown(told: Iterable[Group], nodes: Iterable[Node]) -> set[tuple[str, str]]:
    """What the nodes of each group show: names of resources.

    NONE where it is known that a node has no GPUs, and ANY where it shows none and may have some.
    """
    told = sorted(told, key=lambda each: -len(each.begins))
    managed = {
        match[1]: each for each in told if (match := re.fullmatch(rf"eks-(.+)-{_UUID}", each.title))
    }
    found = set[tuple[str, str]]()
    for node in nodes:
        # The longest name: a node of `gpu-large` is none of `gpu`.
        group = managed.get(node.labels.get(_EKS_GROUP, "")) or next(
            (each for each in told if node.name.startswith(each.begins)), None
        )
        if group is not None:
            found.update((group.name, name) for name in _shown(node))
    return found


def _shown(node: Node) -> Iterable[str]:
    names = [name for name, amount in node.counted.items() if amount > 0]
    if names or node.joining:
        return names
    is_without = _TYPES_WITHOUT.fullmatch(node.labels.get(_TYPE, "")) and not bears_a_sign(node)
    return [NONE if is_without else ANY]


def known_types(classes: Iterable[NodeClass]) -> dict[str, dict[str, int]]:
    """The GPUs that instance types have shown: the most that any node of the type has."""
    found: dict[str, dict[str, int]] = {}
    for each in classes:
        name = each.labels.get(_TYPE, "")
        if name and not each.open_gpus:
            gpus = found.setdefault(name, {})
            for resource, amount in each.counted.items():
                if amount > 0:
                    gpus[resource] = max(amount, gpus.get(resource, 0))
    return found


def started(node: Node, pools: Iterable[NodePool]) -> tuple[Taint, ...]:
    """The taints of the node without those that its NodePool says go away."""
    name = node.labels.get(_POOL)
    startup = {key for pool in pools if pool.name == name for key in pool.startup}
    return tuple(taint for taint in node.taints if taint.key not in startup)


def in_words(each: NodeClass) -> str:
    """What an autoscaler may add."""
    if each.hint and each.gpus and not each.has_gpus:
        return f"{each.hint} has {', '.join(sorted(each.gpus))}; what else it may add is not known."
    if each.hint:
        return f"{each.hint} may add nodes with GPUs; which ones is not known."
    gpus = " and ".join(f"{amount} {name}" for name, amount in sorted(each.gpus.items()))
    return f"NodePool {each.labels[_POOL]} (Karpenter) may add {each.labels[_TYPE]} with {gpus}."
