"""Finds pods that have to wait: every node that could run them is full now.

Why: a pod that waits for GPUs and one that waits for ever look alike. The difference is worth
knowing before anyone starts to look for a mistake.

Does: says how many nodes could run the pod, and how many GPUs the emptiest of them has free, as
far as the running pods are known. Pods with nodeName, for which nobody waits, are passed over.

Safety: a notice. The pod may run in the next minute: others end, or it preempts them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from webhook.core import fit
from webhook.core.findings import Finding, Severity
from webhook.core.why_not import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.core.node_index import NodeIndex
    from webhook.core.nodesets import NodeSet
    from webhook.core.pod import Pod
    from webhook.core.rule import Context

NAME = "full-now"
CODE = "GPU302"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    asked = fit.asked(pod, cx)
    if cx.inventory is None or not asked or pod.spec.get("nodeName"):
        return
    index = cx.inventory.index
    fitting = fit.enough(asked, index) & fit.allowed(pod, index, cx.settings.capacity)
    if fitting & fit.enough_free(asked, index):
        return
    fitting &= ~index.may_come  # nobody waits for pods on those
    if not fitting:
        return
    message = (
        f"asks for {in_words(asked)}: {_full(asked, fitting, index)}. It waits until pods end."
    )
    yield Finding(CODE, pod.spec_at, message, severity=Severity.NOTICE)


def _full(asked: Mapping[str, int], fitting: NodeSet, index: NodeIndex) -> str:
    """What is full; the number for one name only, as each name may have another emptiest node."""
    count = index.count(fitting)
    nodes = "the only node for it is" if count == 1 else f"all {count} nodes for it are"
    if len(asked) > 1:
        return f"{nodes} full now"
    ((name, amount),) = asked.items()
    most = fit.most_on_one(fitting, amount, partial(index.free_at_least, name))
    emptiest = f"{most} free" if count == 1 else f"the emptiest has {most} free"
    return f"{nodes} full now ({emptiest})"
