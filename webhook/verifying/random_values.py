"""Two renderings of an object in; what they have in common out, with marks where they differ.

A chart may make random values (passwords, certificates, the time). Only the words that all
renderings of such a text have are compared.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.kube.canonical import canonical
from webhook.kube.pod import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    Raw = dict[str, Any]
    Names = tuple[str, ...]

_MARK = "(made anew by each rendering)"
_UNLIKE = f"{_MARK}, no text"
_WHOLE = "the whole object"
_HEAD = ("apiVersion", "kind", "metadata")
# Keys and certificates, base64, hashes and host names are one word.
_WORD = re.compile(r"-----BEGIN [^-\n]+-----[\s\w+/=]*|[\w+/=.$]+")


def common(one: Raw, other: Raw) -> Raw:
    """The first object, with a mark in place of each value that the second has otherwise."""
    made = _common(one, other)
    if isinstance(made, dict):
        return made
    return {name: one[name] for name in _HEAD if name in one} | {_WHOLE: made}


def _common(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {name: _common(value, other[name]) for name, value in one.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_common(*each) for each in zip(one, other, strict=True)]
    if isinstance(one, str) and isinstance(other, str) and one != other:
        there = set(_WORD.findall(other))
        return " ".join((_MARK, *(each for each in _WORD.findall(one) if each in there)))
    return one if canonical(one) == canonical(other) else _UNLIKE


def marked(data: Any, at: Names = ()) -> Iterator[tuple[Names, bool]]:
    """The places of marks; and whether such a value may be another one."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from marked(value, (*at, name))
    elif isinstance(data, list):
        for each in data:
            yield from marked(each, at)
    elif _is_mark(data):
        yield at, data != _UNLIKE and not {*SECTIONS}.intersection(at)


def unmarked(one: Any, other: Any) -> tuple[Any, Any]:
    """Both, with the same mark in both where one of them has a mark."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = {name: unmarked(value, other[name]) for name, value in one.items()}
        return {n: a for n, (a, _) in pairs.items()}, {n: b for n, (_, b) in pairs.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        both = [unmarked(*each) for each in zip(one, other, strict=True)]
        return [a for a, _ in both], [b for _, b in both]
    return (_MARK, _MARK) if _is_mark(one) or _is_mark(other) else (one, other)


def _is_mark(data: Any) -> bool:
    return isinstance(data, str) and data.startswith(_MARK)
