"""Finds the nodes that a pod allows, and of these the nodes that can ever have enough GPUs.

"Never" is not "not now": cordoned and NotReady nodes count, and temporary taints count as absent.
What only the scheduler can know later (preemption, pod affinity, spread, volumes) is left to the
scheduler. No function loops over nodes, so a large cluster takes no longer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from webhook.capacity import node_selection
from webhook.capacity.requests import gpu_requests
from webhook.kube.labels import is_key, is_value
from webhook.kube.pod import Pod, as_items, is_for_windows, once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.capacity.node_index import NodeIndex
    from webhook.capacity.node_sets import NodeSet
    from webhook.core.rule import Context
    from webhook.core.settings import Capacity

_LARGEST = 2**63 - 1
_DEFAULT_SCHEDULER = "default-scheduler"


def requested(pod: Pod, cx: Context) -> Mapping[str, int]:
    """What the pod requests from one node, as far as the inventory has such resources.

    Empty for a pod for Windows: the rules of its nodes are not implemented here.
    """
    if is_for_windows(pod.spec):
        return {}
    return known(gpu_requests(pod, cx.settings), cx)


def requested_of_the_scheduler(pod: Pod, cx: Context) -> Mapping[str, int]:
    """The same amounts without those that overflow in kube-scheduler, which reads an int64.

    It reads such an amount as 0, or as its low 64 bits, and may place the pod on any node.
    """
    return {name: amount for name, amount in requested(pod, cx).items() if amount <= _LARGEST}


def known(amounts: Mapping[str, int], cx: Context) -> Mapping[str, int]:
    """The amounts that the inventory can judge: none if it is old or empty.

    If a DRA device class serves a name (KEP-5004), the allocatable of nodes does not show it.
    """
    inventory = cx.inventory
    if inventory is None or not cx.fresh or not inventory.index.size:
        return {}
    served = inventory.served_by_dra
    return {name: amount for name, amount in amounts.items() if name not in served}


def enough(amounts: Mapping[str, int], index: NodeIndex) -> NodeSet:
    """The nodes that have all of these amounts when they are empty."""
    return _all_of(amounts, index.at_least, index)


def enough_free(amounts: Mapping[str, int], index: NodeIndex) -> NodeSet:
    """The nodes that have all of these amounts free now."""
    return _all_of(amounts, index.free_at_least, index)


def may_be_added(
    pod: Pod, amounts: Mapping[str, int], index: NodeIndex, capacity: Capacity
) -> NodeSet:
    """Sources of more nodes that could run the pod, in a number that is not known."""
    return _all_of(amounts, index.may_add, index) & allowed(pod, index, capacity)


def _all_of(
    amounts: Mapping[str, int], nodes_with: Callable[[str, int], NodeSet], index: NodeIndex
) -> NodeSet:
    found = index.everything
    for name, amount in amounts.items():
        found &= nodes_with(name, amount)
    return found


def most_on_one(nodes: NodeSet, below: int, with_at_least: Callable[[int], NodeSet]) -> int:
    """The most that one of these nodes has.

    `below` is an amount that none of them has.
    """
    low = 0
    while below - low > 1:
        middle = (low + below) // 2
        if with_at_least(middle) & nodes:
            low = middle
        else:
            below = middle
    return low


def allowed(pod: Pod, index: NodeIndex, capacity: Capacity) -> NodeSet:
    """The nodes that its nodeSelector, required node affinity and tolerations allow."""
    return chosen(pod, index) & node_selection.tolerated(pod, index, capacity)


def would_do(pod: Pod, cx: Context) -> NodeSet:
    """The nodes, as last known, that have enough for the pod and that the pod allows."""
    if cx.inventory is None:
        return 0
    index = cx.inventory.index
    found = enough(requested(pod, replace(cx, fresh=True)), index)
    node = pod.spec.get("nodeName")
    if node:  # its kubelet checks labels, but no taints (1.36 predicateAdmitHandler)
        return found & chosen(pod, index) & index.named(str(node))
    return found & allowed(pod, index, cx.settings.capacity)


def compared(changed: Pod, pod: Pod, cx: Context) -> tuple[NodeSet, NodeSet]:
    """The nodes that would do for the pod with a change of its node selection, and without it.

    Of a pod into which text is inserted later only the requirements count that are legal as they
    are written. It may request as many GPUs as one of its nodes has; a DaemonSet gets all of them.
    """
    if cx.inventory is None or not cx.is_open:
        return would_do(changed, cx), would_do(pod, cx)
    index = cx.inventory.index
    nodes = chosen(_certain(pod), index)
    amounts = requested(pod, replace(cx, fresh=True))
    likely = {
        name: 1 if cx.makes_daemons else _at_most(amount, name, nodes, index)
        for name, amount in amounts.items()
    }
    nodes &= enough(likely, index)
    return nodes & chosen(_certain(changed), index), nodes


def still_fits(changed: NodeSet, before: NodeSet, cx: Context) -> bool:
    """Whether a pod can run with a change of its node selection that leaves it these nodes.

    A legacy pod does not run as it is, so for it the change need only make nothing worse. A
    DaemonSet must lose no node: there its pods would wait for ever, or there would be none.
    """
    if cx.makes_daemons and before & ~changed:
        return False
    if cx.stuck:
        return bool(changed) or not before
    return bool(changed if cx.inventory is None else changed & ~cx.inventory.index.only_hinted)


def _at_most(amount: int, name: str, nodes: NodeSet, index: NodeIndex) -> int:
    """The amount, or less if none of these nodes has so much."""
    if index.at_least(name, amount) & nodes:
        return amount
    return max(most_on_one(nodes, amount, partial(index.at_least, name)), 1)


def _certain(pod: Pod) -> Pod:
    """The pod with the requirements on its node that Kubernetes accepts as they are written."""
    asked_for = pod.node_selector.items()
    legal = all(
        is_key(each.get("key")) and all(map(is_value, node_selection.values_of(each)))
        for term in node_selection.terms(pod) or ()
        for _, each in as_items(term.get("matchExpressions"))
    )
    return pod.having(
        nodeSelector={k: v for k, v in asked_for if is_key(k) and is_value(v)},
        affinity=pod.affinity if legal else {},
    )


@once
def chosen(pod: Pod, index: NodeIndex) -> NodeSet:
    """The nodes that its nodeSelector and required node affinity allow."""
    return selected(pod, index) & attracted(pod, index)


def selected(pod: Pod, index: NodeIndex) -> NodeSet:
    """The nodes that its nodeSelector allows."""
    found = index.everything
    for each in node_selection.selector(pod, index):
        found &= each.nodes
    return found


@once
def attracted(pod: Pod, index: NodeIndex) -> NodeSet:
    """The nodes that its required node affinity allows."""
    terms = node_selection.terms(pod)
    if terms is None:
        return index.everything
    found = 0
    for term in terms:
        found |= node_selection.matching(term, index)
    return found


def is_left_to_the_scheduler(pod: Pod, capacity: Capacity) -> bool:
    """Whether kube-scheduler chooses the node of this pod as it is now.

    Not if another scheduler does, if a gate may still change the pod (KEP-3838), if the node is
    already chosen, or if the DaemonSet controller pins the pod to its node.
    """
    scheduler = pod.spec.get("schedulerName") or _DEFAULT_SCHEDULER
    return (
        (scheduler == _DEFAULT_SCHEDULER or scheduler in capacity.equivalent_schedulers)
        and not pod.spec.get("schedulingGates")
        and not pod.spec.get("nodeName")
        and pod.controller()[0] != "DaemonSet"
    )
