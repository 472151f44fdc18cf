"""One text for equal values, so that a set can find a value without a loop; and JSON of users."""

from __future__ import annotations

import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> str:
    """The JSON of the value, its members sorted.

    Keys of sets are always texts here: Python hashes texts with a secret, but a tenant could choose
    numbers with equal hashes.
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError:  # deeper than any Kubernetes object: it equals nothing else
        return f"at {id(value)}"


def parsed(text: object) -> Any:
    """The value of a JSON text, which any user may have written; None if it cannot be read."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
