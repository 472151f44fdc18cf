"""How large an object may be to be looked at: counted once, before the first rule.

The counts are the same on each machine and at each load, so an object is always over the budget or
never. No honest pod comes near: 1.5 MB, all that etcd takes, holds 75,000 entries of 20 bytes, and
a pod of 100 containers with 100 variables each has 31,000.
"""

from __future__ import annotations

from typing import Any

MOST_ENTRIES = 100_000  # members of maps and items of lists, at all depths
MOST_ANNOTATION_BYTES = 256 * 1024  # the API server's own limit (TotalAnnotationSizeLimitB)
# No entry is shorter than two bytes of JSON ("1,"), so what is smaller need not be counted.
SMALLEST_EXCESS = 2 * MOST_ENTRIES


def excess(obj: dict[str, Any]) -> str:
    """Why the object, a pod or a workload, is over the budget; nothing if it is not.

    The API server refuses an object with more than 256 KiB of annotations, but only after it has
    asked the webhooks that change objects. A template has annotations, too.
    """
    entries, waiting = 0, list[Any]([obj])
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            annotations = node.get("annotations")
            if isinstance(annotations, dict) and _size(annotations) > MOST_ANNOTATION_BYTES:
                return (
                    f"its annotations have more than the {MOST_ANNOTATION_BYTES // 1024} KiB "
                    "that Kubernetes allows"
                )
            children = [value for key, value in node.items() if key != "managedFields"]
        else:
            children = node
        entries += len(children)
        if entries > MOST_ENTRIES:
            return f"it has more than {MOST_ENTRIES} fields and list items"
        waiting += [child for child in children if isinstance(child, dict | list)]
    return ""


def _size(annotations: dict[str, Any]) -> int:
    """Bytes of all keys and values, as the API server counts them."""
    return sum(
        len(key.encode("utf-8", "surrogatepass")) + len(value.encode("utf-8", "surrogatepass"))
        for key, value in annotations.items()
        if isinstance(value, str)
    )
