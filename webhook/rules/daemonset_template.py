"""Finds legacy GPU pods that a DaemonSet made.

Why: the DaemonSet controller decides by its template on which nodes it makes pods, and it reads no
annotation and no pod that a webhook repaired. So it makes one on every node, and those on nodes
without the GPUs stay Pending there, each pinned to its own node.

Does: nothing to the pod; says that the DaemonSet's template is what must be migrated.

Safety: a person must edit the DaemonSet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.pod import Pod
    from webhook.core.rule import Context

NAME = "daemonset-template"
CODE = "GPU110"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    kind, name = pod.controller()
    if cx.stuck and kind == "DaemonSet":
        message = (
            f"the DaemonSet {name} makes such a pod on every node, and without these GPUs it stays "
            "Pending there: migrate the DaemonSet's template"
        )
        yield Finding(CODE, pod.at / "metadata", message, severity=Severity.PERSON)
