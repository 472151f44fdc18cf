"""Finds pods that no node of this cluster can ever run.

Why: a pod that requests more GPUs than any node has, or that excludes every node with enough, stays
Pending without a message at creation. The author can fix it right away if a warning comes at once.

Does: compares what the pod requests from one node (KEP-753, under every GPU name) with the real
nodes, and names the first cause that applies: more than the whole cluster has; more than any one
node has; no node that its nodeSelector, required node affinity and tolerations allow has enough.
"Never" is not "not now": cordon, NotReady and temporary taints do not count. Declared pools do
count, and so do, for some time, GPUs that nodes have lost, nodes that were removed, and what nodes
that have just joined may still get (docs/policy.md). An amount of 2^63 and more does not count: it
overflows in kube-scheduler. Preemption, pod affinity, spread and volumes are left to the scheduler.
Nothing is reported if the inventory is unknown, stale or empty, or if a DRA device class serves the
name.

Safety: the pod is denied where the mode is enforce. A workload is never denied; the warning says
that its pods will be. It says that they may be if only a toleration is missing, which plugins of
the API server may add, or if only the node selector of the namespace excludes all nodes, because
the webhook cannot see whether PodNodeSelector is enabled. What a known RuntimeClass adds to the
pods counts. There is only a warning for pods of a scheduler that is not in
`capacity.equivalentSchedulers`, for gated pods, pods with nodeName and pods of a DaemonSet, if no
node offers any GPU, if an autoscaler may still add nodes of unknown type, and if the watcher may
not list what else may give capacity: device classes, NodePools, the status of cluster-autoscaler.
A denial waits, at most 2 seconds, until the watcher has received what happened before the request.
If that is not sure by then, there is only a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import fit, node_selection
from webhook.capacity.runtime_class import as_admitted, in_namespace, node_selector
from webhook.capacity.why_not import why_bound, why_never, why_unknown, why_unsure
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage
from webhook.evaluation import repair_record
from webhook.kube.pod import REQUIRED, Pod, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "never-fits"
CODE = "GPU301"
FACTS = Facts(Stage.POLICY)

_TERMS = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
# Short: an API server cuts a warning at 256 characters.
_OF_REPAIR = " An earlier repair wrote this affinity; no chart has it."


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    at, sent = pod.spec_at, pod
    bound, pod = in_namespace(pod, cx), as_admitted(pod, cx)
    if cx.inventory is None or not fit.requested(pod, cx):
        return
    asked = fit.requested_of_the_scheduler(pod, cx)
    index, capacity = cx.inventory.index, cx.settings.capacity
    chosen = fit.enough(asked, index) & fit.chosen(pod, index)
    fitting = chosen & node_selection.tolerated(pod, index, capacity)
    by_itself = bool(fitting & ~index.only_hinted)
    if by_itself:
        fitting &= fit.allowed(as_admitted(bound, cx), index, capacity)
        if fitting:
            return
    hints = [words for words, nodes in index.hinted if nodes & fitting]
    if by_itself:
        reason = why_bound(asked, node_selector(cx) or {})
    elif hints:
        reason = why_unsure(asked, hints)
    elif cx.inventory.refused:
        reason = why_unknown(asked, cx.inventory.refused)
    else:
        reason = why_never(pod, asked, index, cx.settings)
        if "node affinity" in reason and _is_of_repair(sent, cx):
            reason += _OF_REPAIR
    certain = (
        not hints
        and not cx.inventory.refused
        and cx.inventory.has_gpus
        and not cx.makes_daemons
        and fit.is_left_to_the_scheduler(pod, cx.settings.capacity)
    )
    yield Finding(
        CODE,
        at,
        reason,
        severity=Severity.DENY if certain else Severity.MANUAL,
        may_run=bool(chosen) and not fitting,
        lags=True,
    )


def _is_of_repair(pod: Pod, cx: Context) -> bool:
    """Whether the repair of this template wrote the required node affinity that stands in it."""
    noted = repair_record.read(as_map(cx.workload.get("metadata"))).get(str(pod.at), {})
    _, written = noted.get(_TERMS, (None, None))
    node_affinity = as_map(pod.affinity.get("nodeAffinity"))
    stands = as_map(node_affinity.get(REQUIRED)).get("nodeSelectorTerms")
    return written is not None and written == stands
