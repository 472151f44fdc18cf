"""The style of a text (indentation, quotes), so that inserted text has the same style."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webhook.yamlpatch import yaml_words
from webhook.yamlpatch.nodes import List, Map, Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.yamlpatch.documents import Document


# Placeholders of template actions (templates/placeholders.py) are Yi syllables: letters that YAML
# allows in a plain word, and that no manifest has.
FIRST_SIGN, LAST_SIGN = 0xA000, 0xA48C
_NEWLINE = re.compile("\n")
_NEAR = 1_000  # characters of usual lines: each of many manifests in a text has a text of its own
_SIGN = re.compile(f"[{chr(FIRST_SIGN)}-{chr(LAST_SIGN)}]")


@dataclass(frozen=True, slots=True)
class Style:
    """Indents are in columns; a quote is empty if words have no quotes where possible."""

    step: int = 2  # of a map below its name
    list_indent: int = 0  # of the dashes below the name of the list
    item_indent: int = 2  # of an item after its dash
    quote: str = '"'  # of texts that need quotes
    text_quote: str = ""  # of texts that do not need them
    name_quote: str = ""  # of names
    # Texts with placeholders, unchanged: in other quotes, or in none, they could become numbers.
    as_written: Mapping[str, str] = field(default_factory=dict)


def column(text: str, at: int) -> int:
    """The number of characters before this one on its line."""
    return at - line_start(text, at)


@lru_cache(maxsize=4)
def newlines(text: str) -> array[int]:
    """The line ends: a line may have a megabyte, and each edit needs its begin."""
    return array("I", (found.start() for found in _NEWLINE.finditer(text)))


def _next_newline(text: str, at: int) -> int:
    """The first one from this place on; -1 if there is none."""
    near = text.find("\n", at, at + _NEAR)
    if near >= 0:
        return near
    ends = newlines(text)
    position = bisect_left(ends, at)
    return ends[position] if position < len(ends) else -1


def line_start(text: str, at: int) -> int:
    """The begin of the line."""
    near = text.rfind("\n", max(at - _NEAR, 0), at)
    if near >= 0:
        return near + 1
    ends = newlines(text)
    position = bisect_left(ends, at)
    return ends[position - 1] + 1 if position else 0


def line_end(text: str, at: int) -> int:
    """The end of the line, before its line end."""
    end = _next_newline(text, at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end


def next_line(text: str, at: int) -> int:
    """The begin of the next line."""
    end = _next_newline(text, at)
    return len(text) if end < 0 else end + 1


def newline(text: str, at: int) -> str:
    """The line end of this line, or of the first line if this is the last."""
    end = _next_newline(text, at)
    end = _next_newline(text, 0) if end < 0 else end
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def style_of(document: Document, near: Node) -> Style:
    """The style around this node: the nearest of its kind, otherwise the most frequent one."""
    usual, known = document.once(_usual), document.once(_known_styles)
    around = [_style_in(document, each, known) for each in near.up()]
    return replace(
        usual,
        step=next((each.step for each in around if each.step is not None), usual.step),
        list_indent=next(
            (each.list_indent for each in around if each.list_indent is not None),
            usual.list_indent,
        ),
        item_indent=next((each.item_indent for each in around if each.item_indent is not None), 0)
        or usual.item_indent,
        name_quote=around[0].name_quote(near, usual.name_quote),
    )


@dataclass(slots=True)
class _StyleIn:
    """The style of one map or list, by its first entry of each kind; None if it has none."""

    step: int | None
    list_indent: int | None
    item_indent: int | None
    _names: Counter[str] | None = None

    def name_quote(self, node: Node, usual: str) -> str:
        """The quote of most names of the map, which is this one."""
        if self._names is None:
            self._names = _names(node) if isinstance(node, Map) else Counter()
        return str(_most(self._names, usual))


def _known_styles(_: Document) -> dict[int, _StyleIn]:
    """By id() of the map or list: one with thousands of entries is read once."""
    return {}


def _style_in(document: Document, node: Node, known: dict[int, _StyleIn]) -> _StyleIn:
    if id(node) not in known:
        text = document.text
        known[id(node)] = _StyleIn(
            next(_indents(node, text, Map), None),
            next(_indents(node, text, List), None),
            next(_behind_dashes(node, text), None),
        )
    return known[id(node)]


def _usual(document: Document) -> Style:
    """The most frequent style of the document."""
    text, usual = document.text, Style()
    counts: tuple[Counter[Any], ...] = (Counter(), Counter(), Counter(), Counter())
    steps, lists, items, names = counts
    needed: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    for node in document.nodes:
        if isinstance(node, Map):
            steps.update(_indents(node, text, Map))
            lists.update(_indents(node, text, List))
            names.update(_names(node))
            values = [member.value for member in node.members]
        elif isinstance(node, List):
            items.update(_behind_dashes(node, text))
            values = [item.value for item in node.items]
        else:
            continue
        for value in values:
            if isinstance(value, Scalar) and value.style not in {"|", ">"}:
                needed.update([value.style] if value.style else [])
                if yaml_words.is_plain(value.text, flow=False):
                    plain[value.style] += 1
    return Style(
        _most(steps, usual.step),
        _most(lists, usual.list_indent),
        _most(items, usual.item_indent),
        _most(needed, usual.quote),
        _most(plain, usual.text_quote),
        _most(names, usual.name_quote),
        dict(_as_written(document)),
    )


def _as_written(document: Document) -> Iterator[tuple[str, str]]:
    for node in document.nodes:
        if isinstance(node, Scalar) and _SIGN.search(node.text):
            said = document.text[node.start : node.end]
            is_one_line = node.style not in {"|", ">"} and "\n" not in said
            yield node.text, said if is_one_line else yaml_words.quoted(node.text, '"')


def _most(counted: Counter[Any], otherwise: Any) -> Any:
    return max(counted, key=counted.__getitem__) if counted else otherwise


def _indents(holder: Node, text: str, kind: type[Map | List]) -> Iterator[int]:
    """The indents of blocks of this kind below their names."""
    if not isinstance(holder, Map) or holder.flow:
        return
    for member in holder.members:
        value = member.value
        if isinstance(value, kind) and not value.flow:
            yield column(text, value.start) - column(text, holder.start)


def _behind_dashes(node: Node, text: str) -> Iterator[int]:
    """The indents of items that are maps or lists after their dashes."""
    if not isinstance(node, List) or node.flow:
        return
    for item in node.items:
        inside = text[item.start + 1 : item.value.outer]
        if not isinstance(item.value, Scalar) and not inside.strip(" "):
            yield item.value.outer - item.start


def _names(node: Map) -> Counter[str]:
    """The quotes of names that need none."""
    keys = [member.key for member in node.members if member.name is not None]
    return Counter(
        key.style
        for key in keys
        if isinstance(key, Scalar) and yaml_words.is_plain(key.text, flow=False)
    )
