"""Whether a filled-in template may be valid: data in, out whether texts and amounts are such."""

from __future__ import annotations

from typing import Any

from webhook.kube import quantity
from webhook.kube.pod import SECTIONS

# Fields and maps of every kind whose values are texts.
_TEXTS = {"image", "key", "mountPath", "name", "path"}
_MAPS_OF_TEXTS = {"annotations", "labels", "matchLabels", "nodeSelector"}


def are_texts(data: Any) -> bool:
    """Whether texts and amounts are, where the API has them: the filling is not valid otherwise."""
    if isinstance(data, dict):
        return all(map(_is_valid, data, data.values()))
    return not isinstance(data, list) or all(map(are_texts, data))


def _is_valid(name: Any, value: Any) -> bool:
    if isinstance(value, str):  # the usual case
        return True
    if name in _TEXTS:
        return isinstance(value, dict | list)
    if name in _MAPS_OF_TEXTS and isinstance(value, dict):
        return all(isinstance(each, str | None) for each in value.values())
    if name in SECTIONS and isinstance(value, dict):
        return all(quantity.parse(each) is not None for each in value.values())
    return are_texts(value)
