"""The nodes on which a DaemonSet gets pods: its controller selects nodes by the template alone.

The controller creates a pod on each node that the template's nodeName, nodeSelector, required node
affinity and tolerations allow (1.36 pkg/controller/daemon, NodeShouldRunDaemonPod). It reads no
annotations and does not check resources, and it does not see what a webhook changes in the pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.capacity import fit, node_selection
from webhook.core.draft import copied
from webhook.core.edits import Edit, place_of
from webhook.kube.pod import Pod, as_items

if TYPE_CHECKING:
    from webhook.capacity.node_index import NodeIndex
    from webhook.capacity.node_sets import NodeSet
    from webhook.core.rule import Context
    from webhook.kube.pointer import Path

# The fields of a template that the controller uses, each with its name.
PLACEMENT = ("nodeName", "nodeSelector", "affinity", "tolerations")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happens to a DaemonSet with such a template, once its pods are repaired.

    `no_pod`: no node gets a pod that could run there, although a repaired pod could, or there is no
    pod at all. `too_few`: some such nodes get none. `pending`: nodes get pods that cannot run
    there.
    """

    no_pod: bool = False
    too_few: bool = False
    pending: bool = False


def placement_of(pod: Pod) -> Pod:
    """A copy of the node selection in the template."""
    return Pod({"spec": copied({name: pod.spec[name] for name in PLACEMENT if name in pod.spec})})


def outcome(template: Pod, pods: Pod, cx: Context) -> Outcome:
    """The outcome for a template; `pods` are its pods after the repair."""
    inventory = cx.inventory
    if inventory is None or cx.is_open or not cx.fresh or not inventory.index.size:
        label = cx.settings.models.legacy_label
        lost = _needs(template, label) and not _needs(pods, label)
        return Outcome(no_pod=lost, pending=not _chooses(template))
    index = inventory.index
    able = _allowed(pods, index, cx) & fit.enough(fit.requested(pods, cx), index)
    made = _allowed(template, index, cx)
    return Outcome(
        no_pod=not able & made and bool(able or not made),
        too_few=bool(able & ~made),
        pending=bool(made & ~able & ~index.may_come),
    )


def chooses_nodes(edit: Edit, template: Path) -> bool:
    """Whether this edit of a template changes a field that the controller uses."""
    _, name, *below = (*place_of(edit)[len(template) :], "", "")
    return name in PLACEMENT and (name != "affinity" or below[0] == "nodeAffinity")


def _allowed(pod: Pod, index: NodeIndex, cx: Context) -> NodeSet:
    found = fit.allowed(pod, index, cx.settings.capacity)
    name = pod.spec.get("nodeName")
    return found & index.named(str(name)) if name else found


def _chooses(pod: Pod) -> bool:
    """Whether the pod names a node, or labels of nodes."""
    return bool(pod.spec.get("nodeName") or pod.node_selector or node_selection.terms(pod))


def _needs(pod: Pod, label: str) -> bool:
    """Whether the pod allows only nodes with this label."""
    terms = node_selection.terms(pod) or []
    return label in pod.node_selector or (
        bool(terms) and all(_asks_for(term, label) for term in terms)
    )


def _asks_for(term: dict[str, object], label: str) -> bool:
    return any(
        each.get("key") == label and each.get("operator") not in ("NotIn", "DoesNotExist")
        for _, each in as_items(term.get("matchExpressions"))
    )
