"""Finds workloads whose pods together request more GPUs than the cluster has.

Why: each of the pods fits, so each is accepted, and the last ones stay Pending. The rollout of such
a Deployment never completes, and of a gang no pod starts.

Does: compares the GPUs of all pods of the workload (replicas, or parallelism) with the total of the
cluster. GPU301 reports a pod that is too large by itself. Nothing is reported if nodes that could
run the pods may be added by an autoscaler or have just joined, or if the watcher may not list what
an autoscaler or a DRA driver offers.

Safety: a warning, because pods of a workload may share a cluster by running one after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import fit
from webhook.capacity.runtime_class import as_admitted
from webhook.capacity.why_not import counted, short
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pod import Pod

NAME = "workload-too-large"
CODE = "GPU305"
FACTS = Facts(Stage.POLICY)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if cx.inventory is None or cx.inventory.refused:
        return
    index = cx.inventory.index
    # Asked for each template: a look at each name of the workload would be one at each too many.
    total = fit.known(
        {name: cx.workload_gpus[name] for name in index.totals if name in cx.workload_gpus}, cx
    )
    if not total:
        return
    at, pod = pod.spec_at, as_admitted(pod, cx)
    each = fit.requested(pod, cx)
    if not each or fit.may_be_added(pod, each, index, cx.settings.capacity):
        return
    for name, amount in sorted(total.items()):
        there = index.totals[name]
        if each.get(name, 0) <= there.total < amount:
            message = (
                f"all pods of this workload together ask for {amount} {short(name)}; the whole "
                f"cluster has {there.total} on {counted(there.nodes)}, so not all can run at once. "
                "Run fewer at a time, or ask for fewer GPUs."
            )
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
