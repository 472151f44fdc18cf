"""Checks the size of an object once, before the first rule runs.

The counts are the same on each machine and at each load, so an object is always over the budget or
never. The dearest object within it costs some 0.3 s, so that whoever waits behind it is still in
time. No honest pod comes near: 50 containers with 100 variables, probes and mounts each are far
within it.
"""

from __future__ import annotations

from typing import Any

from webhook.kube.pod import KINDS, SECTIONS

MOST_ENTRIES = 32_000  # members of maps and items of lists, at all depths
MOST_MANAGED = 64_000  # of managedFields; some 1 MB, and etcd takes 1.5 MB of an object
MOST_CONTAINERS = 1_000
MOST_TEMPLATES = 50  # of pods; Kueue takes 8 in one object (a RayCluster of 7 worker groups)
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
_COUNTED = {  # by the name of what holds them
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
_HOLDERS = (dict, list)  # what JSON is read into, and nothing else


def excess(obj: dict[str, Any], templates: int = 1) -> str:
    """Why the object, a pod or a workload of `templates`, is over the budget; nothing if it is not.

    The API server refuses an object with more than 256 KiB of annotations, but only after it has
    asked the webhooks that change objects. A template has annotations, too.
    """
    if templates > MOST_TEMPLATES:
        return f"it has more than {MOST_TEMPLATES} pod templates"
    managed, rest = _parted(obj)
    counts = dict.fromkeys(_LIMITS, 0)
    counts["managed"] = _members(managed, MOST_MANAGED)
    waiting = list[Any]([rest])
    for node in waiting:  # which grows
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
    """The managedFields of the object, and the object without them: no rule goes through these."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return None, obj
    rest = {key: value for key, value in metadata.items() if key != "managedFields"}
    return metadata["managedFields"], {**obj, "metadata": rest}


def _members(value: Any, most: int) -> int:
    """How many members of maps and items of lists are in the value, counted up to too many."""
    count, waiting = 0, [value] if type(value) in _HOLDERS else []
    for node in waiting:  # which grows
        count += len(node)
        if count > most:
            break
        below = node.values() if type(node) is dict else node
        waiting += [each for each in below if type(each) in _HOLDERS]
    return count


def _count(node: dict[str, Any], waiting: list[Any], counts: dict[str, int]) -> bool:
    """Count what the members of this map hold; False if these are too many annotations."""
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
    """Bytes of all keys and values, as the API server counts them (MOST_ANNOTATION_BYTES)."""
    if not isinstance(annotations, dict):
        return 0
    return sum(
        len(key.encode("utf-8", "surrogatepass")) + len(value.encode("utf-8", "surrogatepass"))
        for key, value in annotations.items()
        if isinstance(value, str)
    )
