"""One text for equal values, so that a set can find a value without a loop."""

from __future__ import annotations

import json

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> str:
    """The JSON of the value, its members sorted.

    A key of a set is always a text here: Python hashes texts with a secret, but numbers so that
    whoever writes them can make them all alike.
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError:  # deeper than anything that Kubernetes has: it equals nothing else
        return f"at {id(value)}"
