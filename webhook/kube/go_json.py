"""Reads JSON text as Go's encoding/json reads it into a type; old schedulers read annotations so.

Member names match in any case, null counts as missing, half of a surrogate pair becomes U+FFFD, and
a value of the wrong type is a mistake. So is a member that occurs twice, in any case: Go would
merge the two, which no author intends. Go ignores members that the type does not have; here the
caller gets their names.

A shape is str, bool or one of the names below, a list of one shape, or a map of member names to
shapes, in which the name `*` stands for any.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from webhook.kube import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.kube.pod import Raw

    Unknown = Callable[[str, str], None]  # where, member

# The API server answers 500 if a webhook writes a number that does not fit its Go type.
INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)
INT_OR_STRING = (INT32, str)
QUANTITY = quantity.parse

_PLAIN: dict[Any, tuple[str, Any]] = {  # in words, and what null stands for in lists and maps
    str: ("a text", ""),
    bool: ("true or false", False),
    INT32: ("a whole number (int32)", 0),
    INT64: ("a whole number (int64)", 0),
    INT_OR_STRING: ("a text or a whole number (int32)", 0),
    QUANTITY: ("an amount", "0"),
}


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
    if not isinstance(shape, list | dict):
        if not fits(raw, shape):
            raise Mistake(f"{where} must be {_PLAIN[shape][0]}")
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


def fits(raw: object, shape: Any) -> bool:
    """Whether Go can read the value into this type, which is neither a list nor a map."""
    if isinstance(shape, tuple):
        return any(fits(raw, each) for each in shape)
    if isinstance(shape, range):
        return type(raw) is int and raw in shape
    return quantity.parse(raw) is not None if shape is QUANTITY else type(raw) is shape


def _zero(shape: Any) -> Any:
    return type(shape)() if isinstance(shape, list | dict) else _PLAIN[shape][1]


def _members(raw: Raw, shape: Raw, where: str, unknown: Unknown) -> Iterator[tuple[str, Any]]:
    names = {name.lower(): name for name in shape}
    seen: set[str] = set()
    for key, item in raw.items():
        name = names.get(key.lower().replace("\u017f", "s"))  # Go folds the long s, Python does not
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
