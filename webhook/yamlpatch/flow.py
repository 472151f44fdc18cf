"""Removes and inserts entries of maps and lists in flow style, including JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.yamlpatch.changes import RefusedError
from webhook.yamlpatch.nodes import Collection, List, Map, Node, entries
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.style import line_end, line_start, newline, next_line, style_of
from webhook.yamlpatch.writing import JsonStyle, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.yamlpatch.documents import Document

_DEFAULT_UNIT = "  "

_BLANKS = re.compile(r"[ \t]*")


def removed(document: Document, node: Collection, positions: list[int]) -> Iterator[Replacement]:
    """The entries at these positions, each with one comma; at least one stays."""
    every = entries(node)
    text = document.text
    for position, end in _runs(positions):
        last = every[end - 1]
        if position == 0:
            start, stop = every[0].start, every[end].start
        else:
            start, stop = every[position - 1].end, last.end
        if "#" in _outside(text, every[position:end], start, stop):
            start, stop = _whole_lines(document, every[position], last)
        yield Replacement(start, stop, "")


def _runs(positions: list[int]) -> Iterator[tuple[int, int]]:
    """The first of the positions that follow each other, and the one behind the last of them."""
    first = end = -1
    for position in positions:
        if position != end:
            if end > 0:
                yield first, end
            first = position
        end = position + 1
    if end > 0:
        yield first, end


def _outside(text: str, leaving: list[Any], start: int, stop: int) -> str:
    """The text between these indexes outside of the entries."""
    found, at = "", start
    for entry in leaving:
        found += text[at : max(entry.start, at)]
        at = entry.end
    return found + text[at:stop]


def _whole_lines(document: Document, first: Any, last: Any) -> tuple[int, int]:
    """With comments between them, whole lines are removed.

    A comma before a closing bracket is allowed.
    """
    text = document.text
    start, end = line_start(text, first.start), next_line(text, line_end(text, last.end))
    behind = text[last.end : line_end(text, last.end)].strip().removeprefix(",").strip()
    if text[start : first.start].strip() or (behind and not behind.startswith("#")):
        raise RefusedError("a comment stands between it and what stays", first.value)
    return start, end


def added(document: Document, node: Collection, new: list[tuple[str, Any]]) -> list[Replacement]:
    """New entries after the last existing one."""
    text, every = document.text, entries(node)
    written = [_written(document, node, name, value) for name, value in new]
    last = every[-1]
    gap = _gap(document, node)
    behind = text[last.end : line_end(text, last.end)]
    if "\n" in gap and "#" in behind:  # its comment stays with the last one
        comma = [] if behind.lstrip().startswith(",") else [Replacement(last.end, last.end, ",")]
        at = line_end(text, last.end)
        between = gap.lstrip(",")
        return [*comma, Replacement(at, at, between + f",{between}".join(written))]
    return [Replacement(last.end, last.end, "".join(f"{gap}{one}" for one in written))]


def _gap(document: Document, node: Collection) -> str:
    """The text between two entries: a comma and blanks or a line end."""
    text, every = document.text, entries(node)
    if len(every) > 1:
        gap = text[every[-2].end : every[-1].start]
        if gap.strip() == "," and gap.lstrip(" \t").startswith(","):
            return gap.lstrip(" \t")
    start = line_start(text, every[-1].start)
    indent = text[start : every[-1].start]
    if start > node.start and not indent.strip():
        return f",{newline(text, every[-1].start)}{indent}"
    return _json_style(document, node).comma if document.json else ", "


def _written(document: Document, node: Collection, name: str, value: Any) -> str:
    said = value_text(document, node, value)
    if not isinstance(node, Map):
        return said
    if document.json:
        style = _json_style(document, node)
        return f"{replace(style, unit='').write(name)}{style.colon}{said}"
    return f"{Writer(style_of(document, node)).name(name, flow=True)}: {said}"


def value_text(document: Document, holder: Node, value: Any) -> str:
    """A value in the style of this map or list."""
    if not document.json:
        return Writer(style_of(document, holder)).flow(value)
    text = _json_style(document, holder).write(value, _inner_indent(document, holder))
    return text.replace("\n", newline(document.text, holder.start))


def _line_indent(text: str, at: int) -> str:
    blanks = _BLANKS.match(text, line_start(text, at), at)
    return blanks[0] if blanks is not None else ""


def _inner_indent(document: Document, node: Node) -> str:
    """The indent of the lines in this map or list."""
    known = document.once(_inner_indents)
    if id(node) not in known:
        known[id(node)] = _found_indent(document, node)
    return known[id(node)]


def _inner_indents(_document: Document) -> dict[int, str]:
    """Computed indents, by id() of the map or list, for later edits."""
    return {}


def _found_indent(document: Document, node: Node) -> str:
    text = document.text
    for entry in entries(node) if isinstance(node, Map | List) else ():
        start = line_start(text, entry.start)
        if start > node.start and not text[start : entry.start].strip():
            return text[start : entry.start]
    return _line_indent(text, node.start) + document.once(_unit)


def _unit(document: Document) -> str:
    """The indent of one level in this text; empty if it is all on one line."""
    text = document.text
    for holder in _collections(document):
        first = entries(holder)[0].start
        if line_start(text, first) > holder.start:
            inner, outer = _line_indent(text, first), _line_indent(text, holder.start)
            return inner.removeprefix(outer) or _DEFAULT_UNIT
    return ""


def _json_style(document: Document, holder: Node) -> JsonStyle:
    """The style of this JSON text around a map or a list."""
    style = document.once(_usual_style)
    if isinstance(holder, Map | List) and entries(holder):
        is_on_one_line = "\n" not in document.text[holder.start : entries(holder)[0].start]
        return replace(style, unit="") if is_on_one_line else style
    return style


def _usual_style(document: Document) -> JsonStyle:
    text = document.text
    colons = (
        text[node.members[0].key.end : node.members[0].value.start]
        for node in _collections(document)
        if isinstance(node, Map)
    )
    colon = next(colons, ": ")
    gaps = (
        text[entries(node)[0].end : entries(node)[1].start]
        for node in _collections(document)
        if len(entries(node)) > 1
    )
    comma = next((gap for gap in gaps if "\n" not in gap), "," if colon == ":" else ", ")
    return JsonStyle(_unit(document), colon if "\n" not in colon else ": ", comma, text.isascii())


def _collections(document: Document) -> Iterator[Collection]:
    """Maps and lists that are not empty."""
    for node in document.nodes:
        if isinstance(node, Map | List) and entries(node):
            yield node
