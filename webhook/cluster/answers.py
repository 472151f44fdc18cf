"""Parses answers of the API server: JSON in, the value or a fault out.

A user who writes an object may nest its managedFields deeper than orjson reads (1,024 levels), and
the API server accepts it. One such object must not hide all others in its list.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from webhook.cluster.client import Fault, Refused

if TYPE_CHECKING:
    from webhook.cluster.client import Client

_DEEPEST = 512  # levels; no field that is used is deeper than a tenth of it
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def read(text: bytes) -> Any:
    """The value; of one that is nested too deeply only the outer levels, with null below them."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(_outer(text))
    except orjson.JSONDecodeError as error:
        raise Fault(f"the answer is not JSON: {error}") from error


def of_one(client: Client, path: str) -> dict[str, Any] | None:
    """The object at a path, or None if there is none. May raise Fault."""
    try:
        found: dict[str, Any] = read(client.get(path, {}))
    except Refused as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        return None
    return found


def _outer(text: bytes) -> bytes:
    parts: list[bytes] = []
    depth = kept = 0
    for token in _TOKENS.finditer(text):
        match token[0]:
            case b"[" | b"{":
                depth += 1
                if depth == _DEEPEST:
                    parts += (text[kept : token.start()], b"null")
            case b"]" | b"}":
                if depth == _DEEPEST:
                    kept = token.end()
                depth -= 1
    return b"".join((*parts, text[kept:] if depth < _DEEPEST else b""))
