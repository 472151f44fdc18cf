"""Finds containers whose GPU request is not their GPU limit.

Why: Kubernetes 1.3-1.7 and today's API server for the legacy name accept a request below the limit;
for `nvidia.com/gpu` it is refused: "must be equal to nvidia.com/gpu limit".

Does: writes the limit into the request as well. Old kubelets gave devices by limit, so the limit is
what the container really had.

Safety: safe, with a warning: the scheduler counts more, or fewer, GPUs than before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core import quantity
from webhook.core.edits import Set
from webhook.core.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.pod import Pod
    from webhook.core.rule import Context

NAME = "unequal-amounts"
CODE = "GPU104"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for container in pod.containers:
        for name, request in container.requests.items():
            if not cx.settings.is_gpu(name) or name not in container.limits:
                continue
            limit = container.limits[name]
            if request == limit:
                continue
            asked, most = quantity.parse(request), quantity.parse(limit)
            if asked is None or most is None or asked == most:
                continue
            at = container.section_at("requests") / name
            message = (
                f"container {container.name} requests {request} {name} but has a limit of {limit}: "
                f"the limit counts; write {limit} in both"
            )
            yield Finding(CODE, at, message, (Set(at, limit),))
