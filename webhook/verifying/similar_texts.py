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

from webhook.yamlpatch import documents, yaml_words

# No key is a word such as `on`, whose name in JSON is another one.
_KEY = re.compile(
    r" *(?!(?i:y|n|yes|no|on|off|true|false|null):)(?P<name>[A-Za-z][\w./-]*):"
    r"(?=[ \t\r\n]|$)[ \t]*(?P<rest>[^\n]*)"
)
# A value for which no parser is needed, up to the end of its block.
_WORD = re.compile(
    r" +(?:(?P<plain>[A-Za-z0-9/][\w./-]*)|(?P<quote>[\"'])(?P<text>[\w./ -]*)(?P=quote))[ \r\n]*",
    re.ASCII,
)
_CONTENT = re.compile(r"^(?P<indent> *)(?![ \t\r]*(?:#|$))", re.MULTILINE)
_MARKER = re.compile(r"(?:---[ \t]*\n)?")
_OTHER_BREAKS = ("\x85", "\u2028", "\u2029")  # a line ends here, too, for YAML 1.1
_END, _DIRECTIVE = "\n...", "\n%"


class _NotAloneError(Exception):
    """A block is no YAML without the rest of the text."""


class _BrokenError(Exception):
    """Readers do not agree on a block, whatever follows it."""


@dataclass(slots=True)
class Reader:
    """The data of texts; `_known` has those of the blocks, and `_read` of the documents so far."""

    _known: dict[str, Any] = field(default_factory=dict)
    _read: dict[str, list[Any] | None] = field(default_factory=dict)

    def read(self, text: str) -> list[Any] | None:
        """The documents; None if readers do not agree on them. Equal blocks share their data."""
        found: list[Any] = []
        for start, end in documents.places_of_parts(text):
            document = text[start:end]
            if document not in self._read:
                self._read[document] = self._document(document)
            read = self._read[document]
            if read is None:
                return None
            found += read
        return found

    def _document(self, text: str) -> list[Any] | None:
        marker = _MARKER.match(text)
        try:
            made = self._map(text[marker.end() :]) if marker and _has_plain_lines(text) else None
        except _BrokenError:
            return None
        except _NotAloneError:
            made = None
        return _whole(text) if made is None else [made]

    def _map(self, text: str) -> dict[str, Any] | None:
        """The members of a map; None if it cannot be cut.

        They are read in their order, so that a fault in one counts: what is before it has ended.
        """
        made: dict[str, Any] = {}
        for block in _cut(text, items=False):
            key = _KEY.match(block)
            if key is None:
                return None
            if key["name"] in made:
                raise _BrokenError
            made[key["name"]] = self._member(block, key)
        return made or None

    def _member(self, block: str, key: re.Match[str]) -> Any:
        """The value of the only key of a block."""
        if block not in self._known:
            if word := _WORD.fullmatch(block, key.end("name") + 1):
                plain = word["plain"]
                value = word["text"] if plain is None else yaml_words.of_plain(plain)
            else:
                value = None if key["rest"].strip() else self._below(block[key.end() + 1 :])
                value = _alone(block, key["name"]) if value is None else value
            self._known[block] = value
        return self._known[block]

    def _below(self, text: str) -> Any:
        """The map or list below a key; None if it cannot be cut."""
        if made := self._map(text):
            return made
        items = []
        for each in _cut(text, items=True):
            item = self._map(each.replace("-", " ", 1))
            if item is None:
                return None
            items.append(item)
        return items or None


def _has_plain_lines(text: str) -> bool:
    """Whether its lines end as usual, and no line has a directive or ends the document."""
    return not (
        text.count("\r") != text.count("\r\n")
        or any(each in text for each in (*_OTHER_BREAKS, _END, _DIRECTIVE))
        or text.startswith((_END[1:], _DIRECTIVE[1:]))
    )


def _cut(text: str, *, items: bool) -> list[str]:
    """The text from each key, or item, with the indent of the first line; none if others have less.

    A list may have the indent of its key.
    """
    begin = _CONTENT.search(text)
    least = len(begin["indent"]) if begin is not None else 0
    starts = []
    for found in _lines(least).finditer("\n" + text):
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
    """Lines with this indent or less, without comments. A line end is found sooner than `^`."""
    return re.compile(rf"\n(?P<indent> {{0,{indent}}}+)(?![ \r\n#]|\Z)(?P<item>-(?=[ \t\r\n]|\Z))?")


def _alone(block: str, name: str) -> Any:
    """The value of the key in a block."""
    stream = documents.read(block)
    if stream.unread:
        is_over = "*" in block or "\n" not in block[stream.unread[0].at :].rstrip()
        raise _NotAloneError if is_over else _BrokenError
    if any(each.duplicates for each in stream.documents):
        raise _BrokenError
    if [list(each.data) for each in stream.documents] != [[name]]:
        raise _NotAloneError
    return stream.documents[0].data[name]


def _whole(text: str) -> list[Any] | None:
    stream = documents.read(text)
    if stream.unread or any(each.duplicates for each in stream.documents):
        return None
    return [each.data for each in stream.documents]
