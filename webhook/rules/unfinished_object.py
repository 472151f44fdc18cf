"""Finds objects of guides and notes that are too incomplete to be created.

Why: an example shows only its topic and often omits the name and the image. No API server accepts
such an object ("name or generateName is required"), even after other repairs.

Does: changes nothing. It reports the names and images that are missing. An object with a name may
be a patch, which contains only what it changes, so nothing else is required of it.

Safety: manual: only the author knows the missing values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.evaluation.workloads import is_built_in, templates_of
from webhook.kube.pod import Pod, as_map
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "unfinished-object"
CODE = "GPU135"
FACTS = Facts(Stage.MANIFEST, Trait.OBJECT | Trait.TIMELESS | Trait.WHOLE)


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    metadata = as_map(obj.get("metadata"))
    if not is_built_in(obj) or metadata.get("name") or metadata.get("generateName"):
        return
    at = ROOT / "metadata" if metadata else ROOT
    message = f"this {obj['kind']} has no name, and no API server takes it: write metadata.name"
    yield Finding(CODE, at, message, severity=Severity.MANUAL)
    for place in templates_of(obj, cx.settings):
        for container in Pod(obj, place).containers:
            if not container.raw.get("image"):
                message = f"container {container.name} has no image: write one"
                yield Finding(CODE, container.at, message, severity=Severity.MANUAL)
