"""Where the pod, or the pod template, sits in each kind of object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.pod import as_items, as_map
from webhook.core.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEMPLATE = Path(("spec", "template"))

# apiVersions are not looked at: a dead one has its template in the same place.
TEMPLATES: dict[str, Path] = {
    "Pod": ROOT,
    "PodTemplate": Path(("template",)),
    "Deployment": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "PetSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": Path(("spec", "jobTemplate", "spec", "template")),
    "ScheduledJob": Path(("spec", "jobTemplate", "spec", "template")),
}


def objects(document: object, at: Path = ROOT) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The objects in a document with their paths: itself, or the items of a List."""
    obj = as_map(document)
    if str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
        for position, item in as_items(obj["items"]):
            yield from objects(item, at / "items" / position)
    elif obj:
        yield at, obj


def template_at(obj: dict[str, Any]) -> Path | None:
    """Where the pod template of this object is; None if its kind has none or it is not there."""
    at = TEMPLATES.get(str(obj.get("kind", "")))
    if at is None:
        return None
    here: Any = obj
    for token in at:
        here = as_map(here).get(str(token))
    return at if isinstance(here, dict) else None
