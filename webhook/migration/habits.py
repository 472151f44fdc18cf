"""How the author of a text writes: what is put into the text is written so, too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.migration import yaml_words
from webhook.migration.documents import is_merge
from webhook.migration.nodes import List, Map, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.migration.documents import Document
    from webhook.migration.nodes import Node


@dataclass(frozen=True, slots=True)
class Habits:
    """Indents are in columns; a quote is empty where words stand without quotes if they can."""

    step: int = 2  # of a map below its name
    list_indent: int = 0  # of the dashes below the name of the list
    item_indent: int = 2  # of an item behind its dash
    quote: str = '"'  # of texts that need quotes
    text_quote: str = ""  # of texts that need none
    name_quote: str = ""  # of names


def column(text: str, at: int) -> int:
    """How many characters stand before this one on its line."""
    return at - line_start(text, at)


def line_start(text: str, at: int) -> int:
    """Where the line begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Where the line ends, before its line end."""
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end


def next_line(text: str, at: int) -> int:
    """Where the next line begins."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def newline(text: str, at: int) -> str:
    """The line end of this line, or of the first one if this is the last."""
    end = text.find("\n", at)
    end = text.find("\n") if end < 0 else end
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def habits_of(document: Document, near: Node) -> Habits:
    """How things are written around this node: the nearest of its kind, else what most are like."""
    text, around = document.text, [*_up(near), document.root]
    usual = Habits()
    return Habits(
        _first_or_most(around, text, Map, usual.step),
        _first_or_most(around, text, List, usual.list_indent),
        _item_indent(around, text, usual.item_indent),
        *_quotes(document, near),
    )


def _up(node: Node | None) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.parent


def _indents(holder: Node, text: str, kind: type[Map | List]) -> Iterator[int]:
    """How far blocks of this kind stand behind the names that they belong to."""
    if not isinstance(holder, Map) or holder.flow:
        return
    for member in holder.members:
        value = member.value
        if isinstance(value, kind) and not value.flow:
            yield column(text, value.start) - column(text, holder.start)


def _first_or_most(around: list[Node], text: str, kind: type[Map | List], usual: int) -> int:
    for holder in around:
        for indent in _indents(holder, text, kind):
            return indent
    every = Counter(n for holder in around[-1].walk() for n in _indents(holder, text, kind))
    return every.most_common(1)[0][0] if every else usual


def _item_indent(around: list[Node], text: str, usual: int) -> int:
    lists = [node for node in (*around, *around[-1].walk()) if isinstance(node, List)]
    for node in lists:
        for item in node.items:
            inside = text[item.start + 1 : item.value.outer]
            if not node.flow and not isinstance(item.value, Scalar) and not inside.strip(" "):
                return item.value.outer - item.start
    return usual


def _quotes(document: Document, near: Node) -> tuple[str, str, str]:
    values: Counter[str] = Counter()
    names: Counter[str] = Counter()
    needed: Counter[str] = Counter()
    for holder in document.root.walk():
        keys = [m.key for m in holder.members if not is_merge(m)] if isinstance(holder, Map) else []
        for key in keys:
            if isinstance(key, Scalar) and yaml_words.is_plain(key.text, flow=False):
                names[key.style] += 1 if holder is not near else 1_000  # neighbours count most
        for node in set(holder.children) - set(keys):
            if not isinstance(node, Scalar) or node.style in {"|", ">"}:
                continue
            if node.style:
                needed[node.style] += 1
            if yaml_words.is_plain(node.text, flow=False):
                values[node.style] += 1 if node.parent is not near else 2
    quote = needed.most_common(1)[0][0] if needed else '"'
    return quote, _most(values), _most(names)


def _most(styles: Counter[str]) -> str:
    return styles.most_common(1)[0][0] if styles else ""
