"""Checks the size of an object once, before the first rule runs: object in, reason or nothing out.

The counts do not depend on the machine or its load, so an object is always over the budget or
never. The slowest object within it takes about 0.3 s, so the requests that wait behind it are still
answered in time. Normal pods are far below: 50 containers with 100 variables, probes and mounts
each are within the budget.
"""

from __future__ import annotations

from typing import Any

from webhook.kube.pod import KINDS, SECTIONS

MOST_ENTRIES = 32_000  # members of maps and items of lists, at all depths
MOST_MANAGED = 64_000  # of managedFields; about 1 MB, and etcd stores at most 1.5 MB for an object
MOST_CONTAINERS = 1_000
MOST_TEMPLATES = 50  # of pods; Kueue uses up to 8 in one object (a RayCluster with 7 worker groups)
MOST_AMOUNTS = 2_000  # of resources, in limits and requests
MOST_CHOICES = 5_000  # of nodes: terms, their expressions, and the values of these
MOST_ANNOTATION_BYTES = 256 * 1024  # the API server's own limit (TotalAnnotationSizeLimitB)

_CHOICES = (
    "nodeSelectorTerms",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "matchExpressions",
    "matchFields",
    "values",
)
_COUNTED = {  # by the name of the field that contains them
    **dict.fromkeys(KINDS, "containers"),
    **dict.fromkeys(SECTIONS, "amounts"),
    **dict.fromkeys(_CHOICES, "choices"),
}
_LIMITS = {
    "managed": ("its managedFields have more than {} fields and list items", MOST_MANAGED),
    "containers": ("it has more than {} containers", MOST_CONTAINERS),
    "amounts": ("it has more than {} limits and requests", MOST_AMOUNTS),
    "choices": ("its affinity has more than {} terms, expressions and values", MOST_CHOICES),
    "entries": ("it has more than {} fields and list items", MOST_ENTRIES),
}
_HOLDERS = (dict, list)  # the only container types that JSON is parsed into


def excess(obj: dict[str, Any], templates: int = 1) -> str:
    """Why the object is over the budget; empty if it is not. `templates` are those of a workload.

    The API server rejects an object with more than 256 KiB of annotations, but only after the
    mutating webhooks. A template has annotations, too.
    """
    if templates > MOST_TEMPLATES:
        return f"it has more than {MOST_TEMPLATES} pod templates"
    managed, rest = _parted(obj)
    counts = dict.fromkeys(_LIMITS, 0)
    counts["managed"] = _members(managed, MOST_MANAGED)
    waiting = list[Any]([rest])
    for node in waiting:  # the list grows
        counts["entries"] += len(node)
        if counts["entries"] > MOST_ENTRIES:
            break
        if type(node) is list:
            waiting += [each for each in node if type(each) in _HOLDERS]
        elif not _count(node, waiting, counts):
            return "its annotations have more than the 256 KiB that Kubernetes allows"
    over = (_LIMITS[name] for name, count in counts.items() if count > _LIMITS[name][1])
    return next((text.format(most) for text, most in over), "")


def _parted(obj: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The managedFields of the object, and the object without them: no rule reads these."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return None, obj
    rest = {key: value for key, value in metadata.items() if key != "managedFields"}
    return metadata["managedFields"], {**obj, "metadata": rest}


def _members(value: Any, most: int) -> int:
    """The number of map members and list items in the value; counting stops above `most`."""
    count, waiting = 0, [value] if type(value) in _HOLDERS else []
    for node in waiting:  # the list grows
        count += len(node)
        if count > most:
            break
        below = node.values() if type(node) is dict else node
        waiting += [each for each in below if type(each) in _HOLDERS]
    return count


def _count(node: dict[str, Any], waiting: list[Any], counts: dict[str, int]) -> bool:
    """Count the members of this map; False if they are too many annotations."""
    for key, value in node.items():
        if type(value) not in _HOLDERS:
            continue
        if key in _COUNTED:
            counts[_COUNTED[key]] += len(value)
        elif key == "annotations" and annotation_bytes(value) > MOST_ANNOTATION_BYTES:
            return False
        waiting.append(value)
    return True


def annotation_bytes(annotations: object) -> int:
    """The bytes of all keys and values, counted as the API server does (MOST_ANNOTATION_BYTES)."""
    if not isinstance(annotations, dict):
        return 0
    return sum(
        len(key.encode("utf-8", "surrogatepass")) + len(value.encode("utf-8", "surrogatepass"))
        for key, value in annotations.items()
        if isinstance(value, str)
    )
