"""What autoscalers say that they can add: Karpenter's NodePools, and cluster-autoscaler's groups.

A hint only: who reads it must not deny a pod that may run on a node which is not there yet. Where
it is certain what a group adds, as when its instance types are known from nodes, that counts like a
pool of the settings. Where it is not, the group may add a node with any GPUs. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.capacity.node_index import ANY
from webhook.capacity.nodes import NodeClass
from webhook.core.settings import Taint
from webhook.inventory import evidence
from webhook.inventory.joining import bears_a_sign
from webhook.kube import quantity
from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.capacity.nodes import Node

    Raw = dict[str, Any]

STATUS = "kube-system/cluster-autoscaler-status"  # the ConfigMap
_POOL = "karpenter.sh/nodepool"
_TYPE = "node.kubernetes.io/instance-type"
_ZONE = "topology.kubernetes.io/zone"
_EKS_GROUP = "eks.amazonaws.com/nodegroup"
_GKE_POOL = "cloud.google.com/gke-nodepool"
_AKS_POOL = "kubernetes.azure.com/agentpool"
_GPU = "nvidia.com/gpu"
# Instance types that are known to have no GPU; of any other nothing is known (AWS's gr6 has L4, and
# the settings may count the accelerators of dl, inf and trn).
_AWS = r"(?:a|c|d|f|h|hpc|i|im|is|m|mac|r|t|u|vt|x|z)"
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
# Autoscalers that make nodes of any shape, and how a label of theirs begins. The end of the list is
# Karpenter before 0.32.
_UNTOLD = (
    (_GKE_POOL, "nap-", "GKE (node auto-provisioning)"),
    ("provisioner.cast.ai/managed-by", "", "Cast AI"),
    ("spotinst.io/node-lifecycle", "", "Ocean (Spot)"),
    ("karpenter.sh/provisioner-name", "", "Karpenter (Provisioners)"),
)
# How keys of labels begin that clouds give to all nodes of a group, or that its machines decide.
# Anything else may have been set by hand, or be another on the next node.
_OF_A_GROUP = (
    _EKS_GROUP,
    "alpha.eksctl.io/nodegroup-name",
    _GKE_POOL,
    "cloud.google.com/gke-accelerator",
    _AKS_POOL,
    "kubernetes.azure.com/accelerator",
    "k8s.amazonaws.com/accelerator",
    "accelerator",
    "nvidia.com/gpu.product",
    "kubernetes.io/arch",
    "kubernetes.io/os",
)
_TYPES = (_TYPE, "beta.kubernetes.io/instance-type")
_PLACES = ("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "topology.gke.io/")
NONE = ""  # in place of a resource name: no GPUs at all
_LONGEST = 1 << 20  # characters: a ConfigMap has no more
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# Names that clouds give to nodes: that of the group, and what tells its nodes apart.
_OF_GKE = re.compile(r"(gke-.+)-[0-9a-z]{4}")
_OF_AKS = re.compile(r"(aks-([0-9a-z]+)-\d+-vmss)[0-9a-z]{6}")
_SET_OF_AKS = re.compile(r"aks-[0-9a-z]+-\d+-vmss")
# Cluster API names the set of machines that a MachineDeployment makes; the end has no vowels.
_OF_DEPLOYMENT = re.compile(r"MachineSet/([^/]+/.+)-[bcdfghjklmnpqrstvwxz2456789]{5,10}")


@dataclass(frozen=True, slots=True)
class NodePool:
    """What Karpenter may add: labels, or the values that labels may have, and taints that stay."""

    name: str
    labels: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, tuple[str, ...]], ...]
    taints: tuple[Taint, ...]
    startup: frozenset[str]  # keys of taints that go away

    def classes(self, types: Mapping[str, Type]) -> Iterator[NodeClass]:
        """The nodes that it may add; `types` are the instance types that are known.

        What a type has shown is certain. It may have more than that: other names, as its nodes may
        show shared ones only, and other amounts, as some of their devices may be sliced.
        """
        labels, values = dict(self.labels), dict(self.values)
        named = (labels[_TYPE],) if _TYPE in labels else values.pop(_TYPE, ())
        labels.pop(_TYPE, None)
        for each in named:
            if each in types and types[each].shown:
                yield NodeClass(
                    {**labels, _TYPE: each},
                    self.taints,
                    types[each].shown,
                    grows=True,
                    former=(values,),
                    open_labels=True,
                )
        known = {} if evidence.is_set_up(labels, values) else types
        for most, alike in _alike(named, known) if named else (((), ()),):
            yield NodeClass(
                labels,
                self.taints,
                dict(most),
                former=({**values, _TYPE: alike} if alike else values,),
                open_labels=True,
                open_gpus=True,
                hint=f"NodePool {self.name} (Karpenter)",
            )


class Type(NamedTuple):
    """An instance type."""

    shown: dict[str, int]  # the largest amounts that any of its nodes has shown
    most: dict[str, int]  # what a new one has at most; empty if that is not known


def _alike(
    named: Iterable[str], types: Mapping[str, Type]
) -> Iterable[tuple[tuple[tuple[str, int], ...], tuple[str, ...]]]:
    """The types that may have GPUs, by the most that a new node of them has."""
    found: dict[tuple[tuple[str, int], ...], tuple[str, ...]] = {}
    for each in named:
        most = tuple(sorted(types[each].most.items())) if each in types else ()
        if most or not _TYPES_WITHOUT.fullmatch(each):
            found[most] = (*found.get(most, ()), each)
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
    def key(self) -> tuple[str, ...]:
        """What its nodes name it by; see `_keys`."""
        if managed := re.fullmatch(rf"eks-(.+)-{_UUID}", self.title):
            return ("eks", managed[1])
        if zonal := re.search(r"/zones/([^/]+)/instanceGroups/(gke-[^/]+)-grp$", self.name):
            return ("gke", zonal[1], zonal[2])
        return ("", self.name)

    @property
    def fixed(self) -> tuple[str, ...]:
        """How keys of labels begin that all its nodes have alike.

        Pools of GKE and AKS have one instance type, and a group of GKE has one zone. Of others the
        next node may be of another type, or elsewhere.
        """
        if self.key[0] == "gke":
            return (*_OF_A_GROUP, *_TYPES, *_PLACES)
        return (*_OF_A_GROUP, *_TYPES) if _SET_OF_AKS.fullmatch(self.name) else _OF_A_GROUP

    def classes(self, shown: Iterable[Shown]) -> Iterator[NodeClass]:
        """The nodes that it may add, as far as they are not like those that it has or had.

        Such nodes bring no more than is there where those of the group show whole devices only, on
        one instance type. Of others nothing is certain: their GPUs may be sliced or shared
        otherwise on a new one, or what was seen had no driver.
        """
        seen = [each for each in shown if each.group == self.name]
        with_gpus = [each for each in seen if each.resource != NONE]
        if seen and not with_gpus:
            return
        names, labels = {each.resource for each in with_gpus}, _common(with_gpus)
        mixed = len({value for each in with_gpus for key, value in each.labels if key == _TYPE}) > 1
        hint = f"node group {self.title} (cluster-autoscaler)"
        unknown = NodeClass({}, (), {}, open_labels=True, open_gpus=True, hint=hint)
        if len(names) != 1 or ANY in names or mixed:
            yield unknown
            return
        yield replace(
            unknown,
            labels={key: value for key, value in labels.items() if key.startswith(self.fixed)},
            taints=tuple(each for each in _taints(with_gpus[0]) if _on_all(each, with_gpus)),
            gpus={name: max(each.amount for each in with_gpus) for name in names},
        )


class Shown(NamedTuple):
    """What a node of a group shows: a resource, how much of it, labels and taints that stay."""

    group: str
    resource: str
    amount: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()


def _common(shown: Iterable[Shown]) -> dict[str, str]:
    """The labels in which no two differ; one that lacks a label may get it yet."""
    values: dict[str, set[str]] = {}
    for each in shown:
        for key, value in each.labels:
            values.setdefault(key, set()).add(value)
    return {key: min(found) for key, found in values.items() if len(found) == 1}


def _taints(shown: Shown) -> Iterable[Taint]:
    return (Taint(*each) for each in shown.taints)


def _on_all(taint: Taint, shown: Iterable[Shown]) -> bool:
    return all(taint in _taints(each) for each in shown)


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
    """One item of the list; a number that is 0 is left out, and what errors quote comes last."""
    found = dict[str, str]()
    for match in _MEMBER.finditer(text):
        found.setdefault(match[1], match[2])
    if "name" not in found:
        return None
    counts = (found.get(key, "0") for key in ("ready", "cloudProviderTarget", "maxSize"))
    return Group(found["name"], _grows(*counts))


def _grows(ready: str, target: str, most: str) -> bool:
    """Whether nodes may join: also while fewer are ready than the cloud was asked for."""
    if not (ready.isdecimal() and target.isdecimal() and most.isdecimal()):
        return True  # nobody knows
    return int(ready) < int(target) or int(target) < int(most)


def shown(told: Iterable[Group], nodes: Iterable[Node]) -> set[Shown]:
    """What the nodes of each group show.

    The resource is NONE where it is known that a node has no GPUs, and ANY where a new one may have
    any.
    """
    groups = {each.key: each.name for each in told}
    found = set[Shown]()
    for node in nodes:
        for key in _keys(node):
            if key in groups:
                found.update(_of_group(groups[key], node))
    return found


def _of_group(group: str, node: Node) -> Iterator[Shown]:
    """Only labels of the kind that all nodes of a group may share: others would tell all apart."""
    kept = (*_OF_A_GROUP, *_TYPES, *_PLACES)
    labels = tuple(sorted(item for item in node.labels.items() if item[0].startswith(kept)))
    taints = tuple(
        sorted((each.key, each.value, each.effect) for each in node.taints if not each.goes_away)
    )
    for name in _shown(node):
        known = name not in (NONE, ANY)
        yield (
            Shown(group, name, node.counted[name], labels, taints) if known else Shown(group, name)
        )


def _keys(node: Node) -> Iterator[tuple[str, ...]]:
    """What the group of the node may be known by.

    Only what its cloud has written on it counts, or a name of the exact form that the cloud gives:
    somebody's own node `gpu-small` is none of a group `gpu`.
    """
    labels = node.labels
    if _EKS_GROUP in labels:
        yield ("eks", labels[_EKS_GROUP])
    if _GKE_POOL in labels and (name := _OF_GKE.fullmatch(node.name)):
        yield ("gke", labels.get(_ZONE, ""), name[1])
    pool = labels.get(_AKS_POOL, "")
    if pool and (name := _OF_AKS.fullmatch(node.name)) and name[2] == pool:
        yield ("", name[1])
    if node.owner:  # of Cluster API or OpenShift
        yield ("", node.owner)
    if made := _OF_DEPLOYMENT.fullmatch(node.owner):
        yield ("", f"MachineDeployment/{made[1]}")


def _shown(node: Node) -> Iterable[str]:
    names = [name for name, amount in node.counted.items() if amount > 0]
    most = evidence.at_most(node)
    if (most and most == dict(node.counted)) or (node.joining and not names):
        return names
    without = not names and _TYPES_WITHOUT.fullmatch(node.labels.get(_TYPE, ""))
    return [NONE if without and not bears_a_sign(node) else ANY]


def untold(classes: Iterable[NodeClass]) -> Iterator[NodeClass]:
    """What autoscalers may add that tell nobody; that they are here is known by their nodes."""
    found = {
        name
        for each in classes
        for labels in (each.labels, *each.unique)
        for key, begins, name in _UNTOLD
        if key in labels and labels[key].startswith(begins)
    }
    for name in sorted(found):
        yield NodeClass({}, open_labels=True, open_gpus=True, hint=name)


def known_types(classes: Iterable[NodeClass]) -> dict[str, Type]:
    """What the instance types of these nodes have shown, and what that says of new ones."""
    found: dict[str, Type] = {}
    unsure = set[str]()
    for each in classes:
        name, most = each.labels.get(_TYPE, ""), evidence.at_most(each)
        if not name or not each.has_gpus:
            continue
        if not most:
            unsure.add(name)
        if not each.open_gpus:
            known = found.setdefault(name, Type({}, {}))
            _raise(known.shown, each.counted)
            _raise(known.most, most)
    for name, known in found.items():
        if name in unsure or len(known.most) > 1:
            known.most.clear()
    return found


def _raise(amounts: dict[str, int], others: Mapping[str, int]) -> None:
    """The larger of the two, for each name."""
    for name, amount in others.items():
        if amount > 0:
            amounts[name] = max(amount, amounts.get(name, 0))


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
