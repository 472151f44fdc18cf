"""Finds containers whose GPU request differs from the limit, under a name of Kubernetes 1.3-1.10.

Why: Kubernetes 1.3-1.7, and current API servers for the legacy name, accept a request below the
limit. For `nvidia.com/gpu` it is refused: "must be equal to nvidia.com/gpu limit".

Does: writes the larger amount into both, so that no container gets less than it requested. If a
LimitRange added one of the amounts, only the other one counts. If one is not known before a chart
is rendered, GPU101 reports both. The rule does not change amounts under a current name; the API
server refuses them with its own message.

Safety: safe, with a warning: the scheduler counts more GPUs than before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.gpu_amounts import counted
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS, Pod

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "unequal-amounts"
CODE = "GPU104"
FACTS = Facts(Stage.REPAIR, Trait.AMOUNTS | Trait.SEPARATE | Trait.TIMELESS)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for container, counts in counted(pod, cx):
        name = counts.name
        if not all(name in container.sections[section] for section in SECTIONS):
            continue
        limit, request = container.limits[name], container.requests[name]
        if quantity.parse(limit) == quantity.parse(request):
            continue
        message = (
            f"container {container.name} requests {request} {name} but has a limit of {limit}: "
            f"{counts.raw} counts; write {counts.raw} in both"
        )
        edits = tuple(
            Set(container.section_at(section) / name, counts.raw)
            for section in SECTIONS
            if quantity.parse(container.sections[section][name]) != counts.value
        )
        yield Finding(CODE, container.section_at("requests") / name, message, edits)
