"""Finds GPU pods that do not select any nodes (off by default).

Why: the GPU request alone is enough to place a pod. A cluster may still want GPU pods only on
labelled nodes.

Does: if `placement.enabled` is set, adds the configured label to nodeSelector of pods with a GPU
that have neither nodeSelector nor affinity. If nodes that could run the pod are known, and none of
them has the label, or only with parts of GPUs, the label is not added, and a warning says so: the
pod would stay Pending, or GPU301 would refuse it. A DaemonSet does not get the label if it would
lose one of its nodes. A pod without legacy use gets it only if a known node fits; if no node is
known, all pods get it. A template keeps the label that it has. In a namespace with a node selector,
and in one that the watcher does not know yet, only pods get the label, because PodNodeSelector has
then changed them already. In a file where text is inserted into the pod later, the label is added
if one of the largest GPU nodes has it, and to a DaemonSet if all GPU nodes have it. It is not added
where that text may select nodes itself, as with `affinity: {{ toYaml .Values.affinity }}`.

Safety: safe, and only where the settings enable it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import fit, whole_gpus
from webhook.capacity.runtime_class import as_admitted, node_selector
from webhook.capacity.why_not import short
from webhook.core.edits import Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage, Trait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pod import Pod

NAME = "placement"
CODE = "GPU203"
FACTS = Facts(Stage.REPAIR, Trait.CLUSTER)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    placement = cx.settings.placement
    if not placement.enabled or pod.node_selector or pod.affinity or not pod.gpus(cx.settings):
        return
    at = pod.spec_at / "nodeSelector" / placement.label
    added = cx.was_added.get(("spec", "nodeSelector", placement.label)) == placement.value
    given = node_selector(cx)
    if given or (given is None and not added):
        return  # its pods may get one (PodNodeSelector), which may contradict the label
    label = short(f"{placement.label}={placement.value}")
    if _fits(pod, cx):
        message = (
            "GPU pods go to GPU nodes here; write nodeSelector: "
            f"{placement.label}: {placement.value}"
        )
        yield Finding(CODE, at, message, (Set(at, placement.value),))
        return
    if added:
        message = (
            f"the label {label} of placement was added before and stays, though with it this pod "
            "lacks nodes that would fit it now; ask the administrator to label them"
        )
        yield Finding(CODE, at, message, (Set(at, placement.value),), Severity.MANUAL)
        return
    message = (
        f"the label {label} of placement is not added: with it this pod would lack nodes that fit "
        "it now; ask the administrator to label them"
    )
    yield Finding(CODE, at, message, severity=Severity.MANUAL)


def _fits(pod: Pod, cx: Context) -> bool:
    """Whether the pod can run with the label, and on whole GPUs if it can so without."""
    if cx.inventory is None:
        return True
    label = {cx.settings.placement.label: cx.settings.placement.value}
    changed = as_admitted(pod.having(nodeSelector=label), cx)
    with_it, without = fit.compared(changed, as_admitted(pod, cx), cx)
    parts = whole_gpus.parts(cx.settings, cx.inventory)
    if whole_gpus.only(with_it, parts) and not whole_gpus.only(without, parts):
        return False
    return fit.still_fits(with_it, without, cx)
