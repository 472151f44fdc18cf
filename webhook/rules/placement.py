"""Finds GPU pods that say nothing about the nodes that they want (off by default).

Why: the GPU request alone places a pod well. A cluster may still want GPU pods on labelled nodes
only.

Does: if `placement.enabled` is set, adds the configured label to nodeSelector of pods with a GPU
that name neither nodeSelector nor affinity.

Safety: safe, by choice of the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Set
from webhook.core.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.pod import Pod
    from webhook.core.rule import Context

NAME = "placement"
CODE = "GPU203"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    placement = cx.settings.placement
    if not placement.enabled or pod.node_selector or pod.affinity or not pod.gpus(cx.settings):
        return
    at = pod.spec_at / "nodeSelector" / placement.label
    message = (
        f"GPU pods go to GPU nodes here; write nodeSelector: {placement.label}: {placement.value}"
    )
    yield Finding(CODE, at, message, (Set(at, placement.value),))
