"""Finds nodes with GPUs under legacy names.

Why: current kubelets may not set the label `alpha.kubernetes.io/nvidia-gpu-name`, and no node
offers `alpha.kubernetes.io/nvidia-gpu`. The annotation `scheduler.alpha.kubernetes.io/taints` has
had no effect since 1.6: a node without `spec.taints` accepts every pod.

Does: changes nothing. It reports what to write. Labels, taints and amounts are set where the nodes
are managed: GPU Feature Discovery writes `nvidia.com/gpu.product`, the device plugin the amounts.

Safety: manual: change the configuration of the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage
from webhook.core.text_patterns import END, NO_EFFECT, Pattern
from webhook.kube.pod import as_map
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "node-objects"
CODE = "GPU129"
_LINE = r"[^\n]{0,300}?"

FACTS = Facts(
    Stage.MANIFEST,
    words=("alpha.kubernetes.io", "nvidia"),
    patterns=(
        Pattern(
            "kubectl-label",
            rf"kubectl\s+label\b{_LINE}(?:{{label}}){END}",
            "the node label of 1.3-1.10",
            "select nodes by {product}: GFD writes it",
        ),
        Pattern(
            "node-labels-flag",
            rf"--node-labels\b{_LINE}(?:{{label}}){END}",
            "current kubelets may not set it, and GPU Feature Discovery labels nodes by itself",
            "leave it out and select nodes by {product}",
        ),
        Pattern(
            "taints-annotation",
            rf"scheduler\.alpha\.kubernetes\.io/taints{END}",
            f"{NO_EFFECT} 1.6",
            "write spec.taints of the node (kubectl taint)",
        ),
    ),
)

_METADATA = ROOT / "metadata"
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/taints": "has no effect since 1.6: write spec.taints",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "is not read by current schedulers: write a taint"
    ),
}


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    if obj.get("kind") != "Node" or obj.get("apiVersion") != "v1":
        return
    metadata, status = as_map(obj.get("metadata")), as_map(obj.get("status"))
    legacy = cx.settings.models.legacy_label
    if legacy in as_map(metadata.get("labels")):
        message = (
            f"current kubelets may not set the label {legacy}: let GPU Feature Discovery write "
            f"{cx.settings.models.key}"
        )
        yield _reported(_METADATA / "labels" / legacy, message)
    for key, why in _ANNOTATIONS.items():
        if key in as_map(metadata.get("annotations")):
            yield _reported(_METADATA / "annotations" / key, f"the annotation {key} {why}")
    for section in ("capacity", "allocatable"):
        for name in cx.settings.legacy_resources:
            if name in as_map(status.get(section)):
                message = (
                    f"current nodes do not offer {name}: its device plugin reports "
                    f"{cx.settings.gpu_resource}"
                )
                yield _reported(ROOT / "status" / section / name, message)


def _reported(at: Path, message: str) -> Finding:
    return Finding(CODE, at, message, severity=Severity.MANUAL)
