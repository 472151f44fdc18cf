"""Finds workloads whose pods cannot all run at once: together they ask for more than there is.

Why: each of the pods fits, so each is accepted, and the last ones stay Pending for ever. With a
Deployment a roll-out then never ends; with a gang none of them starts.

Does: holds the GPUs of all pods of the workload (replicas, or parallelism) against the total of
the cluster. A pod that alone is too much is GPU301's. Nothing is said where nodes may be added that
could run the pods: by an autoscaler, or because they join just now.

Safety: a warning; a cluster may be shared out in turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import fit
from webhook.capacity.runtime_class import as_admitted
from webhook.capacity.why_not import counted, short
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Facts, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.rule import Context
    from webhook.kube.pod import Pod

NAME = "workload-too-large"
CODE = "GPU305"
FACTS = Facts(Stage.POLICY)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if cx.inventory is None:
        return
    index = cx.inventory.index
    # Asked for each template: a look at each name of the workload would be one at each too many.
    together = fit.known(
        {name: cx.workload_gpus[name] for name in index.totals if name in cx.workload_gpus}, cx
    )
    if not together:
        return
    at, pod = pod.spec_at, as_admitted(pod, cx)
    each = fit.asked(pod, cx)
    if not each or fit.may_be_added(pod, each, index, cx.settings.capacity):
        return
    for name, amount in sorted(together.items()):
        there = index.totals[name]
        if each.get(name, 0) <= there.total < amount:
            message = (
                f"all pods of this workload together ask for {amount} {short(name)}; the whole "
                f"cluster has {there.total} on {counted(there.nodes)}, so not all can run at once. "
                "Run fewer at a time, or ask for fewer GPUs."
            )
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
