"""Reads JSON text as Go's encoding/json reads it into a type; old schedulers read annotations so.

Member names match in any case, null counts as missing, half of a surrogate pair becomes U+FFFD, and
a value of the wrong type is a mistake. So is a member that occurs twice, in any case: Go would
merge the two, which no author intends. Go ignores members that the type does not have; here the
caller gets their names.

A shape is a Python type or several of them, a list of one shape, or a map of member names to
shapes, in which the name `*` stands for any.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Raw = dict[str, Any]
    Unknown = Callable[[str, str], None]  # where, member

QUANTITY = (str, int, float)
INT_OR_STRING = (int, str)


class Mistake(Exception):  # noqa: N818  # it is the author's, not ours
    """Why a text, or a part of it, cannot be taken over."""


def loads(text: str) -> Any:
    """The value that the text stands for; raises Mistake if it stands for none."""
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Mistake(f"it is not JSON ({_first_line(error)})") from error


def read(raw: object, shape: Any, where: str, unknown: Unknown) -> Any:
    """The value as the type writes it; raises Mistake if it does not fit."""
    if isinstance(shape, type | tuple):
        types = shape if isinstance(shape, tuple) else (shape,)
        if type(raw) not in types:
            raise Mistake(f"{where} must be {_NAMES[shape]}")
        return _whole_text(raw) if isinstance(raw, str) and not raw.isascii() else raw
    if isinstance(shape, list):
        if not isinstance(raw, list):
            raise Mistake(f"{where} must be a list")
        # In a Go slice a null is the type's zero value.
        return [
            read(_zero(shape[0]) if item is None else item, shape[0], where, unknown)
            for item in raw
        ]
    if not isinstance(raw, dict):
        raise Mistake(f"{where} must be an object")
    if "*" in shape:
        zero = _zero(shape["*"])
        return {
            _whole_text(key): read(zero if item is None else item, shape["*"], where, unknown)
            for key, item in raw.items()
        }
    return dict(_members(raw, shape, where, unknown))


_NAMES: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    QUANTITY: "an amount",
    INT_OR_STRING: "a text or a whole number",
}


def _zero(shape: Any) -> Any:
    if isinstance(shape, dict | list):
        return type(shape)()
    first = shape[0] if isinstance(shape, tuple) else shape
    return first()


def _members(raw: Raw, shape: Raw, where: str, unknown: Unknown) -> Iterator[tuple[str, Any]]:
    names = {name.lower(): name for name in shape}
    seen: set[str] = set()
    for key, item in raw.items():
        name = names.get(key.lower())
        if name in seen:
            raise Mistake(f"{where}.{name} occurs twice")
        if name is None:
            unknown(where, key)
            continue
        seen.add(name)
        if item is not None:
            yield name, read(item, shape[name], f"{where}.{name}", unknown)


def _whole_text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> Raw:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member occurs twice")
    return members


def _first_line(error: Exception) -> str:
    return "too deeply nested" if isinstance(error, RecursionError) else str(error)
