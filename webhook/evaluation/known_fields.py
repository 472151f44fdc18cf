"""Which fields the schema of a custom kind is known to have: those of the objects that are there.

The API server removes ("prunes") a field that the schema lacks, also if a webhook has added it. A
model would be lost on its way from nodeSelector to affinity. The webhook does not see the schema.
But the API server pruned the request before it sent it here, and the stored object, too. So the
schema has every field in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.evaluation.workloads import has_whole_templates
from webhook.kube.pointer import Path, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    Field = tuple[str, ...]  # as a path, without positions

# Maps with names that their author chooses.
_FREE = {"annotations", "labels", "limits", "matchLabels", "nodeSelector", "requests"}
_DEEPEST = 12  # no repair writes a deeper field


def known_fields(
    at: Path, obj: Mapping[str, Any], old: Mapping[str, Any] | None
) -> frozenset[Field] | None:
    """The fields of the template at this place in the sent or the stored object; None for all."""
    if has_whole_templates(obj):
        return None
    stored = _fields(value_at(old, at)) if old else set()
    return frozenset(_fields(value_at(obj, at)) | stored)


def are_known(obj: Mapping[str, Any], at: Path, known: frozenset[Field] | None) -> bool:
    """Whether the template at this place has no other fields."""
    return known is None or _fields(value_at(obj, at)) <= known


def _fields(template: Any) -> set[Field]:
    found: set[Field] = set()
    waiting: list[tuple[Field, Any]] = [((), template)]
    while waiting:
        above, here = waiting.pop()
        for each in here if isinstance(here, list) else (here,):
            if not isinstance(each, dict):
                continue
            for name, value in each.items():
                field = (*above, name)
                found.add(field)
                if name not in _FREE and len(field) < _DEEPEST:
                    waiting.append((field, value))
    return found
