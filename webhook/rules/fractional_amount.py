"""Finds containers that ask for a fraction of a GPU.

Why: the legacy name took fractions and the scheduler and kubelet rounded them up, so `500m` meant
one device. For `nvidia.com/gpu` a fraction is refused: "must be an integer".

Does: rounds up to whole devices, as `Quantity.Value()` did. Whole amounts stay as they are written
(`1000m` and `1k` are whole).

Safety: safe, with a warning: the container gets, as it always did, whole GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core import quantity
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.pod import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.pod import Pod
    from webhook.core.rule import Context

NAME = "fractional-amount"
CODE = "GPU102"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for container in pod.containers:
        for section in SECTIONS:
            for name, raw in container.section(section).items():
                if not cx.settings.is_gpu(name):
                    continue
                amount = quantity.parse(raw)
                if amount is None or amount < 0 or quantity.is_whole(amount):
                    continue
                at = container.section_at(section) / name
                whole = str(quantity.whole(amount))
                message = (
                    f"container {container.name} asks for {raw} {name}: GPUs are whole, "
                    f"so it gets {whole}; write {name}: {whole}"
                )
                yield Finding(CODE, at, message, (Set(at, whole),))
