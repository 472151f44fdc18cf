"""Finds containers that request a fraction of a GPU under a name of Kubernetes 1.3-1.10.

Why: the legacy name accepted fractions, and the scheduler and the kubelet rounded them up, so
`500m` meant one device. For `nvidia.com/gpu` a fraction is refused: "must be an integer".

Does: rounds up to whole devices, as `Quantity.Value()` did. Whole amounts stay as they are written
(`1000m` and `1k` are whole). The rule does not change a fraction under a current name; the API
server refuses it with its own message.

Safety: safe, with a warning: as before, the container gets whole GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.gpu_amounts import counted
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS, Container, Pod

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "fractional-amount"
CODE = "GPU102"
FACTS = Facts(Stage.REPAIR, Trait.AMOUNTS | Trait.SEPARATE | Trait.TIMELESS)


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for container, counts in counted(pod, cx):
        rounded = {
            section: str(quantity.whole(amount))
            for section in SECTIONS
            if (amount := quantity.parse(container.sections[section].get(counts.name))) is not None
            and not quantity.is_whole(amount)
        }
        if rounded:
            yield _finding(container, counts.name, rounded, cx.settings.gpu_resource)


def _finding(container: Container, name: str, rounded: dict[str, str], today: str) -> Finding:
    """One finding for limit and request, which the API server has made the same."""
    places = {container.section_at(section) / name: whole for section, whole in rounded.items()}
    section, whole = next(iter(rounded.items()))
    message = (
        f"container {container.name} requests {container.sections[section][name]} {name}: GPUs are "
        f"whole, so it means {whole}; write {today}: {whole}"
    )
    edits = tuple(
        Set(place, quantity.like(whole, container.sections[str(place[-2])][name]))
        for place, whole in places.items()
    )
    return Finding(CODE, next(iter(places)), message, edits)
