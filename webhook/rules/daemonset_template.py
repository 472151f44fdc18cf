"""Finds DaemonSets with a legacy template, and legacy pods that a DaemonSet created.

Why: the DaemonSet controller selects nodes by the template. It reads no annotations there, ignores
resources, and does not see how a webhook repairs the pods. So a template that requires
`alpha.kubernetes.io/nvidia-gpu-name` gets no pods at all, and a template without a toleration gets
none on tainted GPU nodes. A template that selects no nodes gets a pod on every node: on nodes
without GPUs these pods stay Pending, each bound to its own node.

Does: changes neither the template nor the pod. It reports which of these cases will occur, as far
as the nodes are known, and what to write into the template. Where the template itself is repaired
(`workloads.repair`, and manifests in files), the rule checks the repaired template. In a file that
gets today's amounts it is a notice.

Safety: manual: edit the DaemonSet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity import daemonsets
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage
from webhook.kube.pod import as_items

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pod import Pod

NAME = "daemonset-template"
CODE = "GPU110"
FACTS = Facts(Stage.REPAIR)
_MAKER = "DaemonSet"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if cx.written is not None:
        yield from _of_template(cx.written, pod, cx)
        return
    owners = as_items(pod.metadata.get("ownerReferences")) if cx.stuck else ()
    if not any(each.get("kind") == _MAKER for _, each in owners):  # the usual case
        return
    kind, name = pod.controller()
    if kind == _MAKER:
        message = (
            f"the DaemonSet {name} makes such a pod on every node, and without these GPUs it stays "
            "Pending there: migrate the DaemonSet's template"
        )
        yield Finding(CODE, pod.at / "metadata", message, severity=_severity(cx))


def _of_template(written: Pod, pod: Pod, cx: Context) -> Iterator[Finding]:
    """What the controller makes of the template: as it was written, or as it is repaired."""
    is_repaired = cx.in_manifest or cx.settings.workloads.repair
    template = pod if is_repaired else written
    will = daemonsets.outcome(template, pod, cx)
    parts = [p for p in daemonsets.PLACEMENT if template.spec.get(p) != pod.spec.get(p)]
    if parts and (will.no_pod or will.too_few):
        message = (
            "the DaemonSet controller reads this template, not the repaired pods, and by it "
            f"{_NONE if will.no_pod else _SOME}: write today's {_listed(parts)} into the template"
        )
        yield Finding(CODE, pod.spec_at, message, severity=Severity.MANUAL)
    if will.pending:
        message = (
            "the DaemonSet controller makes a pod on each node that this template allows; without "
            "these GPUs it stays Pending there: write a nodeSelector for nodes with these GPUs "
            "into the template"
        )
        yield Finding(CODE, pod.spec_at, message, severity=_severity(cx))


def _severity(cx: Context) -> Severity:
    """Today's amounts are right in a file, wherever its pods are made; of those nothing is said."""
    return Severity.NOTICE if cx.is_rewritten else Severity.MANUAL


def _listed(parts: list[str]) -> str:
    return ", ".join(parts[:-1]) + (" and " if parts[1:] else "") + "".join(parts[-1:])


_NONE = "no node with these GPUs gets a pod"
_SOME = "some nodes with these GPUs get none"
