"""Finds pods that request more GPUs than the settings allow for one pod.

Why: a pod that requests all GPUs of a team is often a typing mistake, and Kubernetes has no limit
of devices per pod except a LimitRange in each namespace.

Does: compares what the pod requests from one node with `capacity.limits`. If several entries select
its namespace and name the resource, the last one counts. The limit applies to each pod; to limit a
whole namespace, use a ResourceQuota.

Safety: the pod is denied where the mode is enforce, also if another scheduler, a DaemonSet or
nodeName places it. A workload is never denied; the warning says that its pods will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity.requests import gpu_requests
from webhook.capacity.runtime_class import as_admitted
from webhook.capacity.why_not import short
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pod import Pod

NAME = "above-limit"
CODE = "GPU304"
FACTS = Facts(Stage.POLICY)

_LARGE = 2**63
_PER_POD = "This limit is per pod; sums per namespace are ResourceQuota's."


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if not cx.settings.capacity.limits:
        return
    asked = gpu_requests(as_admitted(pod, cx), cx.settings)
    for name, amount in sorted(asked.items()):
        most = _limit(name, cx)
        if most is None or amount <= most:
            continue
        advice = f"Ask for {most} or split the work" if most else "Use another namespace"
        message = (
            f"requests {_shown(amount)} {short(name)}; the limit for a pod in the namespace "
            f"{cx.namespace} is {most}. {advice}. {_PER_POD}"
        )
        yield Finding(CODE, pod.spec_at, message, severity=Severity.DENY)


def _shown(amount: int) -> str:
    """The amount, if it is one that a message can hold."""
    return str(amount) if amount < _LARGE else "2^63 or more"


def _limit(name: str, cx: Context) -> int | None:
    """The last limit for this name here: what stands later is the exception to what is before.

    Where the labels are not known, the lowest one that may be the last.
    """
    may = list[int]()
    for limit in reversed(cx.settings.capacity.limits):
        if name not in limit.gpus:
            continue
        if limit.where.selects(cx.namespace, cx.namespace_labels):
            return min([limit.gpus[name], *may])
        if cx.labels_unknown and limit.where.may_select(cx.namespace):
            may.append(limit.gpus[name])
    return min(may, default=None)
