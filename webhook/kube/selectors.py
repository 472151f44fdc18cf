"""Label selectors (apimachinery labels.Selector): whether one selects these labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.kube.pod import Raw, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Mapping


def selects(selector: Raw, labels: Mapping[str, Any]) -> bool:
    """Whether it selects an object with these labels; an empty one selects each."""
    return as_map(selector.get("matchLabels")).items() <= labels.items() and all(
        _holds(requirement, labels) for _, requirement in as_items(selector.get("matchExpressions"))
    )


def _holds(requirement: Raw, labels: Mapping[str, Any]) -> bool:
    key, values = requirement.get("key"), requirement.get("values")
    value = labels.get(str(key))
    match requirement.get("operator"):
        case "In":
            return isinstance(values, list) and value in values
        case "NotIn":
            return isinstance(values, list) and value not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
