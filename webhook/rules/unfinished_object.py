"""Finds objects of guides and notes that say too little to be made.

Why: an example shows what it is about and leaves out the rest, often the name and the image. No API
server takes such an object ("name or generateName is required"), whatever is repaired in it.

Does: nothing; says which name, and which images, a person must write. An object with a name may
well be a patch, which says only what it changes, so nothing more is asked of it.

Safety: a person must write what only its author knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.findings import Finding, Severity
from webhook.core.rule import Facts, Stage, Trait
from webhook.evaluation.workloads import is_built_in, templates_of
from webhook.kube.pod import Pod, as_map
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.rule import Context

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
