"""Finds legacy GPU templates of workloads that wait in a queue.

Why: Kueue and Volcano hold a workload back until there is room for all of it, and count its GPUs in
its templates. No quota counts `alpha.kubernetes.io/nvidia-gpu`, so the workload stays in the queue,
or is admitted as a workload without GPUs. A webhook repairs pods when they are created, which is
too late here.

Does: changes nothing. It reports that the template must request `nvidia.com/gpu`. If the queue
counts pods when they are created, and so counts repaired pods, this is only a notice: Kueue does so
for Deployments, Volcano for all built-in kinds. KAI, YuniKorn and co-scheduling always count pods
and are not reported. Nothing is reported if templates are repaired too (`workloads.repair`).
In a file that gets today's amounts it is a notice.

Safety: manual: edit the template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode
from webhook.core.rule import RENAMES_AMOUNTS, Context, Facts, Stage
from webhook.evaluation.workloads import group_of, is_built_in
from webhook.kube.pod import Pod, annotations_of, as_map, labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "queued-template"
CODE = "GPU111"
FACTS = Facts(Stage.REPAIR)

_KUEUE = "kueue.x-k8s.io/queue-name"
# Each pod of these kinds goes through the queue by itself (Kueue's pod integration).
_KUEUE_COUNTS_PODS_OF = {"Deployment", "ReplicaSet", "ReplicationController", "DaemonSet"}

_VOLCANO = "volcano"  # the scheduler's name
_VOLCANO_API = "batch.volcano.sh"
# Annotations; KubeRay and the training operator take the second as a label.
_VOLCANO_QUEUES = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
_VOLCANO_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_RAY_SCHEDULER = "ray.io/scheduler-name"  # a label
_LONGEST_NAME = 63


class _Queue(NamedTuple):
    manager: str
    name: str = ""
    counts_pods: bool = False

    def __str__(self) -> str:
        if not self.name:
            return self.manager
        return f"{self.manager} (queue {self.name[:_LONGEST_NAME]})"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if not cx.template or _is_repaired(cx):
        return
    legacy = pod.legacy_name(cx.settings)
    if not legacy:
        return
    new = cx.settings.gpu_resource
    for queue in (_kueue(pod, cx), _volcano(pod, cx)):
        if queue is not None and queue.counts_pods:
            message = (
                f"{queue} counts GPUs in the pods as they are made, so only in repaired ones; ask "
                f"for {new} in the template, and it never depends on the repair"
            )
            yield Finding(CODE, pod.at, message, severity=Severity.NOTICE)
        elif queue is not None:
            message = (
                f"{queue} counts GPUs in this template, and a pod is repaired too late for it: "
                f"ask for {new} here instead of {legacy}, which no quota knows"
            )
            severity = Severity.NOTICE if cx.is_rewritten else Severity.MANUAL
            yield Finding(CODE, pod.at, message, severity=severity)


def _is_repaired(cx: Context) -> bool:
    return cx.settings.workloads.repair and cx.modes.of_code(RENAMES_AMOUNTS) is Mode.ENFORCE


def _kueue(pod: Pod, cx: Context) -> _Queue | None:
    """Kueue's queue: a label of the workload, or of the Jobs that a CronJob makes.

    The label on the template alone makes Kueue admit pod by pod.
    """
    job = as_map(as_map(cx.workload.get("spec")).get("jobTemplate"))
    for holder in (cx.workload, job, pod.raw):
        name = labels_of(holder).get(_KUEUE)
        if name:
            kind = str(cx.workload.get("kind"))
            by_pod = holder is pod.raw or kind in _KUEUE_COUNTS_PODS_OF
            return _Queue("Kueue", str(name), by_pod)
    return None


def _volcano(pod: Pod, cx: Context) -> _Queue | None:
    """Volcano's queue: by a label, an annotation, the scheduler's name, or one of its own Jobs."""
    names = [name for key in _VOLCANO_QUEUES if (name := _said(key, pod, cx))]
    if group_of(cx.workload) == _VOLCANO_API:
        names = [as_map(cx.workload.get("spec")).get("queue") or "default"]
    elif not (
        names
        or any(_said(key, pod, cx) for key in _VOLCANO_GROUPS)
        or _said(_RAY_SCHEDULER, pod, cx) == _VOLCANO
        or pod.spec.get("schedulerName") == _VOLCANO
    ):
        return None
    return _Queue("Volcano", str(names[0]) if names else "", is_built_in(cx.workload))


def _said(key: str, pod: Pod, cx: Context) -> Any:
    """The annotation or label; what the workload says counts more than what the template does."""
    for holder in (cx.workload, pod.raw):
        for said in (annotations_of(holder), labels_of(holder)):
            if key in said:
                return said[key]
    return None
