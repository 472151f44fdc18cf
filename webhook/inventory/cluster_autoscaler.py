"""What cluster-autoscaler can add: takes its status and the nodes, returns classes of nodes.

Only a hint, as in karpenter.py. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from webhook.capacity.node_index import ANY
from webhook.capacity.nodes import Node, NodeClass
from webhook.core.settings import Taint
from webhook.inventory import node_examples
from webhook.inventory.instance_types import TYPE, TYPES_WITHOUT
from webhook.inventory.new_nodes import has_gpu_signs
from webhook.kube.pod import Raw, as_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


GKE_POOL = "cloud.google.com/gke-nodepool"
_ZONE = "topology.kubernetes.io/zone"
_EKS_GROUP = "eks.amazonaws.com/nodegroup"
_AKS_POOL = "kubernetes.azure.com/agentpool"
# Read with patterns: a YAML parser is slow, and its input could be hostile.
_ITEM = re.compile(r"^[ \t]*- ", re.MULTILINE)
_MEMBER = re.compile(
    r"^[ \t]*(name|cloudProviderTarget|maxSize|ready):[ \t]*[\"']?([^\s\"']+)", re.MULTILINE
)
# Prefixes of label keys that the cloud sets on all nodes of a group, or that follow from the
# machine. Another label may have been set by hand, or differ on the next node.
_OF_A_GROUP = (
    _EKS_GROUP,
    "alpha.eksctl.io/nodegroup-name",
    GKE_POOL,
    "cloud.google.com/gke-accelerator",
    _AKS_POOL,
    "kubernetes.azure.com/accelerator",
    "k8s.amazonaws.com/accelerator",
    "accelerator",
    "nvidia.com/gpu.product",
    "kubernetes.io/arch",
    "kubernetes.io/os",
)
_TYPES = (TYPE, "beta.kubernetes.io/instance-type")
_PLACES = ("topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "topology.gke.io/")
NONE = ""  # in place of a resource name: the node has no GPUs
_LONGEST = 1 << 20  # characters: a ConfigMap is not larger
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# Forms of node names in clouds: the name of the group, and a suffix for each node.
_OF_GKE = re.compile(r"(gke-.+)-[0-9a-z]{4}")
_OF_AKS = re.compile(r"(aks-([0-9a-z]+)-\d+-vmss)[0-9a-z]{6}")
_SET_OF_AKS = re.compile(r"aks-[0-9a-z]+-\d+-vmss")
# Cluster API names the MachineSets of a MachineDeployment so; the suffix has no vowels.
_OF_DEPLOYMENT = re.compile(r"MachineSet/([^/]+/.+)-[bcdfghjklmnpqrstvwxz2456789]{5,10}")


@dataclass(frozen=True, slots=True)
class Group:
    """A node group of cluster-autoscaler."""

    name: str
    grows: bool  # it is below its largest size, or nodes are being created

    @property
    def title(self) -> str:
        """The name without the URL that some clouds put before it."""
        return self.name.rpartition("/")[2]

    @property
    def key(self) -> tuple[str, ...]:
        """The key by which its nodes name it; see `_keys`."""
        if managed := re.fullmatch(rf"eks-(.+)-{_UUID}", self.title):
            return ("eks", managed[1])
        if zonal := re.search(r"/zones/([^/]+)/instanceGroups/(gke-[^/]+)-grp$", self.name):
            return ("gke", zonal[1], zonal[2])
        return ("", self.name)

    @property
    def fixed(self) -> tuple[str, ...]:
        """Prefixes of the label keys that have the same value on all its nodes.

        A pool of GKE or AKS has one instance type, and a group of GKE has one zone. In other clouds
        the next node may have another type or zone.
        """
        if self.key[0] == "gke":
            return (*_OF_A_GROUP, *_TYPES, *_PLACES)
        return (*_OF_A_GROUP, *_TYPES) if _SET_OF_AKS.fullmatch(self.name) else _OF_A_GROUP

    def classes(self, shown: Iterable[Shown]) -> Iterator[NodeClass]:
        """The nodes that it may add, unless they are like nodes that it has or had.

        If its nodes show only whole devices and one instance type, a new node has at most as many.
        Otherwise nothing is certain: GPUs of a new node may be sliced or shared, or the driver was
        missing when the known node was seen.
        """
        seen = [each for each in shown if each.group == self.name]
        with_gpus = [each for each in seen if each.resource != NONE]
        if seen and not with_gpus:
            return
        names, labels = {each.resource for each in with_gpus}, _common(with_gpus)
        mixed = len({value for each in with_gpus for key, value in each.labels if key == TYPE}) > 1
        hint = f"node group {self.title} (cluster-autoscaler)"
        unknown = NodeClass({}, (), {}, open_labels=True, open_gpus=True, hint=hint)
        if len(names) != 1 or ANY in names or mixed:
            yield unknown
            return
        yield replace(
            unknown,
            labels={key: value for key, value in labels.items() if key.startswith(self.fixed)},
            taints=tuple(
                Taint(*taint)
                for taint in with_gpus[0].taints
                if all(taint in each.taints for each in with_gpus)
            ),
            gpus={name: max(each.amount for each in with_gpus) for name in names},
        )


# Its status lists no groups while it starts, for as long as it cannot reach its cloud, and where it
# is of a form that is not known here (before 1.30 it was no YAML).
UNKNOWN = NodeClass(
    {}, open_labels=True, open_gpus=True, hint="cluster-autoscaler (its status lists no groups)"
)


class Shown(NamedTuple):
    """What one node of a group shows: a resource, its amount, labels, and taints that stay."""

    group: str
    resource: str
    amount: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()


def _common(shown: Iterable[Shown]) -> dict[str, str]:
    """The labels that are equal on all these nodes; one that is missing may still be added."""
    values: dict[str, set[str]] = {}
    for each in shown:
        for key, value in each.labels:
            values.setdefault(key, set()).add(value)
    return {key: min(found) for key, found in values.items() if len(found) == 1}


def groups(config_map: Raw) -> tuple[Group, ...]:
    """The node groups in the status of cluster-autoscaler; none if it cannot be read."""
    status = as_map(config_map.get("data")).get("status")
    if not isinstance(status, str) or len(status) > _LONGEST:
        return ()
    listed = status.partition("nodeGroups:")[2]
    begins = _ITEM.search(listed)
    # What is indented otherwise is a part of an item: its error may quote anything.
    items = re.split(rf"(?m)^{begins[0]}", listed) if begins is not None else ()
    return tuple(group for group in map(_group, items) if group is not None)


def _group(text: str) -> Group | None:
    """One item of the list. `ready` is left out if it is 0; quoted error messages come last."""
    found = dict[str, str]()
    for match in _MEMBER.finditer(text):
        found.setdefault(match[1], match[2])
    if "name" not in found:
        return None
    # The two sizes are always written, so the text is cut, or of another form, without them.
    target, most = found.get("cloudProviderTarget", ""), found.get("maxSize", "")
    return Group(found["name"], _grows(found.get("ready", "0"), target, most))


def _grows(ready: str, target: str, most: str) -> bool:
    """Whether nodes may join; also while fewer nodes are ready than were requested."""
    if not (ready.isdecimal() and target.isdecimal() and most.isdecimal()):
        return True  # not known
    return int(ready) < int(target) or int(target) < int(most)


def shown(groups: Iterable[Group], nodes: Iterable[Node]) -> set[Shown]:
    """What the nodes of each group show.

    The resource is NONE if a node is known to have no GPUs, and ANY if a new node may have any.
    """
    names = {each.key: each.name for each in groups}
    found = set[Shown]()
    for node in nodes:
        for key in _keys(node):
            if key in names:
                found.update(_of_group(names[key], node))
    return found


def _of_group(group: str, node: Node) -> Iterator[Shown]:
    """The node with only the labels that all nodes of a group may share."""
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
    """The keys of the node's group.

    Only labels of its cloud count, or a node name of the exact form that the cloud uses: a node
    named `gpu-small` by its owner does not belong to a group `gpu`.
    """
    labels = node.labels
    if _EKS_GROUP in labels:
        yield ("eks", labels[_EKS_GROUP])
    if GKE_POOL in labels and (name := _OF_GKE.fullmatch(node.name)):
        yield ("gke", labels.get(_ZONE, ""), name[1])
    pool = labels.get(_AKS_POOL, "")
    if pool and (name := _OF_AKS.fullmatch(node.name)) and name[2] == pool:
        yield ("", name[1])
    if node.owner:  # from Cluster API or OpenShift
        yield ("", node.owner)
    if made := _OF_DEPLOYMENT.fullmatch(node.owner):
        yield ("", f"MachineDeployment/{made[1]}")


def _shown(node: Node) -> Iterable[str]:
    names = [name for name, amount in node.counted.items() if amount > 0]
    most = node_examples.at_most(node)
    if (most and most == dict(node.counted)) or (node.joining and not names):
        return names
    without = not names and TYPES_WITHOUT.fullmatch(node.labels.get(TYPE, ""))
    return [NONE if without and not has_gpu_signs(node) else ANY]
