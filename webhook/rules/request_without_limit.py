"""Finds containers that request GPUs under a name of Kubernetes 1.3-1.10 but set no limit.

Why: Kubernetes 1.3.3-1.7 accepted this for the legacy name (the scheduler reserved a GPU, and the
kubelet, which read limits, gave no device). For `nvidia.com/gpu` it is refused: "Limit must be
set for non overcommitable resources".

Does: sets the limit to the request, which is what the author meant. The rule does not change a
request under a current name; the API server refuses it with its own message.

Safety: safe, with a warning: on an old cluster the container saw no GPU, now it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.rule import Context, Facts, Stage, Trait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pod import Pod

NAME = "request-without-limit"
CODE = "GPU103"
FACTS = Facts(Stage.REPAIR, Trait.AMOUNTS | Trait.SEPARATE | Trait.TIMELESS)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    today = cx.settings.gpu_resource
    # Where this rule only warns or counts, GPU101 has left the legacy name.
    left = () if CODE in cx.repairing else cx.settings.legacy_resources
    for container in pod.containers if cx.legacy else ():
        name = next((each for each in (today, *left) if each in container.requests), None)
        there = {today, name} & container.limits.keys()
        if container.at not in cx.legacy or name is None or there:
            continue
        request = container.requests[name]
        message = (
            f"container {container.name} requests {request} {name} without a limit, so old "
            f"kubelets gave it no device: write limits: {today}: {request}"
        )
        at = container.section_at("requests") / name
        limit = Set(container.section_at("limits") / name, request)
        yield Finding(CODE, at, message, (limit,))
