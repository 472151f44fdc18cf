"""Reads many texts that are nearly the same: a text in, its data out; equal blocks are read once.

A map in block style is cut before each of its keys, and a list before each of its items. A block
that cannot be cut so, or that is no YAML then, is read as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from webhook.yamlpatch import documents

# No key is a word such as `on`, whose name in JSON is another one.
_KEY = re.compile(
    r" *(?!(?i:y|n|yes|no|on|off|true|false|null):)(?P<name>[A-Za-z][\w./-]*):"
    r"(?=[ \t\r\n]|$)[ \t]*(?P<rest>[^\n]*)"
)
_CONTENT = re.compile(r"^(?P<indent> *)(?![ \t\r]*(?:#|$))", re.MULTILINE)
_OTHER_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")  # a line ends here, too, for YAML 1.1
_MARKER = re.compile(r"(?:---[ \t]*\n)?(?!.*^(?:\.\.\.|%))", re.MULTILINE | re.DOTALL)


class _NotAloneError(Exception):
    """A block is no YAML without the rest of the text."""


@dataclass(slots=True)
class Reader:
    """The data of texts; `_known` has those of the blocks that were read."""

    _known: dict[str, Any] = field(default_factory=dict)

    def read(self, text: str) -> list[Any] | None:
        """The documents; None if readers do not agree on them."""
        found: list[Any] = []
        for start, end in documents.places_of_parts(text):
            read = self._document(text[start:end])
            if read is None:
                return None
            found += read
        return found

    def _document(self, text: str) -> list[Any] | None:
        begin = None if _OTHER_BREAK.search(text) else _MARKER.match(text)
        try:
            made = self._map(text[begin.end() :]) if begin is not None else None
        except _NotAloneError:
            made = None
        return _whole(text) if made is None else [made]

    def _map(self, text: str) -> dict[str, Any] | None:
        """The members of a map; None if it cannot be cut."""
        made: dict[str, Any] = {}
        for block in _cut(text, items=False):
            key = _KEY.match(block)
            if key is None or key["name"] in made:
                return None
            made[key["name"]] = self._member(block, key)
        return made or None

    def _member(self, block: str, key: re.Match[str]) -> Any:
        """The value of the only key of a block."""
        if block not in self._known:
            value = None if key["rest"].strip() else self._below(block[key.end() + 1 :])
            whole = _whole(block) if value is None else [{key["name"]: value}]
            if whole is None or [*map(list, whole)] != [[key["name"]]]:
                raise _NotAloneError
            self._known[block] = whole[0][key["name"]]
        return self._known[block]

    def _below(self, text: str) -> Any:
        """The map or list below a key; None if it cannot be cut."""
        if made := self._map(text):
            return made
        items = [self._map(each.replace("-", " ", 1)) for each in _cut(text, items=True)]
        return None if None in items else items or None


def _cut(text: str, *, items: bool) -> list[str]:
    """The text from each key, or item, with the indent of the first line; none if others have less.

    A list may have the indent of its key.
    """
    begin = _CONTENT.search(text)
    least = len(begin["indent"]) if begin is not None else 0
    starts = []
    for found in _lines(least).finditer(text):
        is_item = found["item"] is not None
        if len(found["indent"]) < least or (items and not is_item):
            return []
        if is_item == items:
            starts.append(found.start())
        elif not starts:
            return []
    return [text[one:other] for one, other in pairwise([*starts, len(text)])]


@lru_cache(maxsize=100)
def _lines(indent: int) -> re.Pattern[str]:
    """Lines with this indent or less, without comments."""
    return re.compile(
        rf"^(?P<indent> {{0,{indent}}})(?![ \r\n#]|\Z)(?P<item>-(?=[ \t\r\n]|\Z))?", re.MULTILINE
    )


def _whole(text: str) -> list[Any] | None:
    stream = documents.read(text)
    if stream.unread or any(each.duplicates for each in stream.documents):
        return None
    return [each.data for each in stream.documents]
