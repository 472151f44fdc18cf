"""Finds pods that must wait because all suitable nodes are full now.

Why: a pod that waits for free GPUs looks the same as a pod that can never run. Users should know
the difference before they search for a mistake.

Does: reports how many nodes could run the pod, how many free GPUs the emptiest of them has (as far
as the running pods are known), and which autoscaler may add a suitable node. Pods with nodeName do
not wait and are not checked. If no pod uses the missing GPUs, the devices are not healthy or their
device plugin does not run, and the message says so. Nothing is reported if the watcher may not list
what an autoscaler or a DRA driver offers.

For a template, the node selector of its namespace counts, and the notice says so.

Safety: a notice. The pod may run in the next minute, when other pods end or when it preempts them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from webhook.capacity import fit
from webhook.capacity.runtime_class import as_admitted, in_namespace
from webhook.capacity.why_not import in_words, or_adds
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.capacity.node_index import NodeIndex
    from webhook.capacity.node_sets import NodeSet
    from webhook.kube.pod import Pod

NAME = "full-now"
CODE = "GPU302"
FACTS = Facts(Stage.POLICY)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    at, bound = pod.spec_at, in_namespace(pod, cx)
    where = "" if bound is pod else "with the node selector of the namespace, "
    pod = as_admitted(bound, cx)
    asked = fit.requested(pod, cx)
    if cx.inventory is None or cx.inventory.refused or not asked or pod.spec.get("nodeName"):
        return
    index = cx.inventory.index
    fitting = fit.enough(asked, index) & fit.allowed(pod, index, cx.settings.capacity)
    if fitting & fit.enough_free(asked, index):
        return
    fitting &= ~index.may_come  # no pod is waited for on those
    if not fitting:
        return
    added = fit.may_be_added(pod, asked, index, cx.settings.capacity)
    helps = or_adds([words for words, nodes in index.hinted if nodes & added])
    message = f"requests {in_words(asked)}: {where}{_full(asked, fitting, index)}{helps}."
    yield Finding(CODE, at, message, severity=Severity.NOTICE)


def _full(asked: Mapping[str, int], fitting: NodeSet, index: NodeIndex) -> str:
    """What is full, and what the pod waits for."""
    count = index.count(fitting)
    nodes, free = "the only node" if count == 1 else f"all {count} nodes", ""
    if len(asked) == 1:  # each name may have another emptiest node
        ((name, amount),) = asked.items()
        most = fit.most_on_one(fitting, amount, partial(index.free_at_least, name))
        free = f" ({most} free)" if count == 1 else f" (the emptiest has {most} free)"
    if any(name in index.totals and index.totals[name].held for name in asked):
        are = "is" if count == 1 else "are"
        return f"{nodes} for it {are} full now{free}. It waits until pods end or are preempted"
    have = "has" if count == 1 else "have"
    return (
        f"{nodes} for it {have} too few now{free}: devices are not healthy, or their device plugin "
        "is away. It waits until they are back"
    )
