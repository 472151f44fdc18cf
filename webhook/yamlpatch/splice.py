"""Applies edits of an object to its text, with the fewest changed characters.

Everything else stays as it is: comments, order, quotes, indents, anchors, line ends. An edit that
would need other changes is refused, with the reason and the place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from webhook.yamlpatch import block, flow, yaml_words
from webhook.yamlpatch.changes import RefusedError, changes_of
from webhook.yamlpatch.nodes import (
    Alias,
    Collection,
    Entry,
    Item,
    List,
    Map,
    Member,
    Node,
    Scalar,
    entries,
)
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.style import column, line_end, line_start, newline, style_of
from webhook.yamlpatch.writing import Writer, indented, is_nested

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.edits import Edit
    from webhook.yamlpatch.documents import Document

__all__ = ["RefusedError", "apply", "splice"]

_COLON = re.compile(r"[ \t]*:")
_PROPERTIES = re.compile(r"(?:[ \t]*[&!][^ \t\r\n]*)*")


def splice(document: Document, edits: Iterable[Edit]) -> list[Replacement]:
    """The replacements for the edits, in order and without overlap; raises RefusedError.

    The edits are at places of the original object (Draft.changes).
    """
    changes = changes_of(document, edits)
    names = [w for key, w in changes.names.items() if key not in changes.removed]
    removals: list[Replacement] = []
    made: list[tuple[int, Replacement]] = []  # with the begin of the changed node
    made += [(change.node.start, _renamed(document, change.node, change.what)) for change in names]
    for change in changes.values.values():
        made += [
            (change.node.start, each) for each in _revalued(document, change.node, change.what)
        ]
    for holder in changes.holders():
        gone = changes.removed_from(holder)
        new = changes.added_to(holder)
        changed: Iterable[Replacement]
        if len(gone) == len(entries(holder)):  # nothing of it is left
            value: Any = dict(new) if isinstance(holder, Map) else [item for _, item in new]
            changed = _revalued(document, holder, value)
        else:
            style = flow if holder.flow else block
            removals += style.removed(document, holder, gone) if gone else ()
            changed = style.added(document, holder, new) if new else ()
        made += [(holder.start, each) for each in changed]
    # Insertions at one place: the innermost first.
    made.sort(key=lambda pair: -pair[0])
    others = _joined([each for _, each in made])
    kept = {each.start for each in others}
    return _in_order(document, [*block.parted(document, removals, kept), *others])


def _joined(found: list[Replacement]) -> list[Replacement]:
    """Insertions at the same place, joined."""
    by_start: dict[int, str] = {}
    for each in found:
        if each.start == each.end:
            by_start[each.start] = by_start.get(each.start, "") + each.text
    others = [each for each in found if each.start < each.end]
    return [*others, *(Replacement(at, at, text) for at, text in by_start.items())]


def apply(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with the replacements, which do not overlap."""
    parts: list[str] = []
    kept = 0
    backwards = sorted(replacements, key=lambda one: (one.start, one.end), reverse=True)
    for each in reversed(backwards):  # of two at one place, the later one comes first
        parts += (text[kept : each.start], each.text)
        kept = each.end
    return "".join((*parts, text[kept:]))


def _renamed(document: Document, value: Node, name: str) -> Replacement:
    key = _entry_of(document, value).key  # type: ignore[union-attr]  # only members have names
    if not isinstance(key, Scalar) or key.anchor or key.style in {"|", ">"}:
        raise RefusedError("the name is an anchor or an alias, or a text block", key)
    if key.style == '"' and document.json:
        said = flow.value_text(document, key, name)
    elif key.style:
        said = yaml_words.quoted(name, key.style)
    else:
        in_flow = isinstance(value.parent, Map) and value.parent.flow
        said = name
        if not yaml_words.is_plain(name, flow=in_flow):
            said = Writer(style_of(document, value)).scalar_like(name, key, 0, "", flow=in_flow)
    return Replacement(key.start, key.end, said)


def _entry_of(document: Document, value: Node) -> Entry:
    holder = value.parent
    entry = document.once(_by_value).get(id(value)) if holder is not None else None
    if entry is None:
        raise RefusedError("the whole document would be another", document.root)
    return entry


def _by_value(document: Document) -> dict[int, Entry]:
    """The members and items of all maps and lists, by id() of their values."""
    return {
        id(entry.value): entry
        for node in document.nodes
        if isinstance(node, Map | List)
        for entry in entries(node)
    }


def _is_in_flow(node: Node) -> bool:
    return isinstance(node.parent, Map | List) and node.parent.flow


def _revalued(document: Document, node: Node, value: Any) -> Iterable[Replacement]:
    """Another value instead of a node."""
    if node.parent is None and isinstance(node, Map | List):
        return [_whole(document, node, value)]
    if document.json or _is_in_flow(node):
        return [_revalued_in_flow(document, node, value)]
    entry = _entry_of(document, node)
    if isinstance(node, Map | List) and node.flow and entries(node) and is_nested(value):
        return [_revalued_in_flow(document, node, value)]
    if isinstance(node, Map | List) and not node.flow:
        return _instead_of_block(document, entry, node, value)
    if is_nested(value):
        return _block_instead_of(document, entry, node, value)
    return [_scalar(document, entry, node, value)]


def _whole(document: Document, node: Collection, value: Any) -> Replacement:
    """Another map or list instead of the one that is the whole document."""
    if document.json or node.flow or not is_nested(value):
        said = flow.value_text(document, node, value)
    else:
        lines = Writer(style_of(document, node)).block(value)
        return _in_place(document, node, lines, newline(document.text, node.start))
    return Replacement(node.start, node.end, said)


def _in_place(document: Document, node: Node, lines: list[str], ends: str) -> Replacement:
    """The lines of a map or a list that begins where the node does."""
    indent = column(document.text, node.start)
    said = ends.join(indented(line, indent) for line in lines)
    return Replacement(node.start, node.end, said[indent:])


def _revalued_in_flow(document: Document, node: Node, value: Any) -> Replacement:
    holder = node.parent if node.parent is not None else node
    if node.tag or (node.start == node.end and not _has_colon(document, node)):
        raise RefusedError("its tag or its form says more than the value", node)
    if document.json or not isinstance(node, Scalar) or is_nested(value):
        said = flow.value_text(document, holder, value)
    else:
        said = Writer(style_of(document, holder)).scalar_like(value, node, 0, "", flow=True)
    blank = " " if node.start == node.end else ""
    return Replacement(node.start, node.end, blank + said)


def _has_colon(document: Document, node: Node) -> bool:
    before = node.start
    while before and document.text[before - 1].isspace():
        before -= 1
    return document.text.endswith(":", 0, before)


def _head_end(document: Document, entry: Entry, node: Node) -> int:
    """The end of the dash, or of the name with its colon, and of an anchor."""
    if isinstance(entry, Member):
        colon = _COLON.match(document.text, entry.key.end)
        if colon is None:
            raise RefusedError("its name stands behind a question mark, or has no colon", entry.key)
        end = colon.end()
    else:
        end = entry.start + 1
    if node.tag:
        raise RefusedError("its tag says more than the value", node)
    if node.outer < node.start or node.anchor:
        found = _PROPERTIES.match(document.text, end)
        end = found.end() if found is not None else end
    return end


def _scalar(document: Document, entry: Entry, node: Node, value: Any) -> Replacement:
    """A scalar, or nothing, instead of a scalar, an alias, or an empty or flow-style value."""
    writer = Writer(style_of(document, node))
    if node.start == node.end:
        at = _head_end(document, entry, node)
        return Replacement(at, at, f" {writer.scalar(value)}")
    if node.tag:
        raise RefusedError("its tag says more than the value", node)
    if not isinstance(node, Scalar):
        return Replacement(node.start, node.end, writer.scalar(value))
    indent = _indent_of_lines(document.text, node)
    ends = newline(document.text, node.start)
    return Replacement(
        node.start, node.end, writer.scalar_like(value, node, indent, ends, flow=False)
    )


def _indent_of_lines(text: str, node: Scalar) -> int:
    """The indent of the lines of a block scalar."""
    for line in text[node.start : node.end].splitlines()[1:]:
        if line.strip():
            return len(line) - len(line.lstrip(" "))
    return column(text, line_start(text, node.start)) + 2


def _instead_of_block(
    document: Document, entry: Entry, node: Collection, value: Any
) -> Iterator[Replacement]:
    """Another value instead of a map or a list in block style."""
    text = document.text
    head = _head_end(document, entry, node)
    ends = newline(text, head)
    writer = Writer(style_of(document, node))
    if not is_nested(value):
        if line_start(text, node.start) <= head:  # after a dash
            yield Replacement(node.start, node.end, writer.scalar(value))
            return
        yield Replacement(head, head, f" {writer.scalar(value)}")
        yield from block.without_lines(document, entry, line_end(text, head))
        return
    said = [text[at : line_end(text, at)] for _, at in block.comments(text, entry)]
    if isinstance(node, Map) is isinstance(value, dict):
        above = sum(at < node.start for _, at in block.comments(text, entry))
        yield _in_place(document, node, [*said[above:], *writer.block(value)], ends)
        return
    start = line_end(text, head) if line_start(text, node.start) > head else head
    indent = column(text, node.start)
    lines = [indented(each, indent) for each in said]
    lines += _lines_below(document, entry, writer, value)
    yield Replacement(start, node.end, "".join(f"{ends}{line}" for line in lines))


def _block_instead_of(
    document: Document, entry: Entry, node: Node, value: Any
) -> Iterator[Replacement]:
    """A map or a list in block style instead of a scalar, an alias or an empty value."""
    text = document.text
    head, end = _head_end(document, entry, node), line_end(text, node.end)
    ends = newline(text, head)
    writer = Writer(style_of(document, node))
    behind = text[node.end : end]
    if isinstance(entry, Item) and not behind.strip() and node.start > head and not node.anchor:
        yield _in_place(document, node, writer.block(value), ends)
        return
    said = "".join(f"{ends}{line}" for line in _lines_below(document, entry, writer, value))
    if not behind.strip():
        yield Replacement(head, end, said)
        return
    comment = end - len(behind.lstrip())
    blank = text[node.end : comment].replace("\t", " ")  # YAML does not allow a tab after a dash
    if node.end > node.start or blank != text[node.end : comment]:
        yield Replacement(head, comment, blank)
    yield Replacement(end, end, said)


def _lines_below(document: Document, entry: Entry, writer: Writer, value: Any) -> list[str]:
    """The lines of a value below its name or its dash."""
    style = writer.style
    indent = column(document.text, entry.start)
    if isinstance(entry, Item):
        indent += style.item_indent
    else:
        indent += style.step if isinstance(value, dict) else style.list_indent
    return [indented(line, indent) for line in writer.block(value)]


def _in_order(document: Document, found: list[Replacement]) -> list[Replacement]:
    """The replacements in order; one must not begin before the end of the one before it."""
    found = [each for each in found if each.text or each.start < each.end]
    found.sort(key=lambda one: (one.start, one.end))
    _refuse_lost_anchors(document, found)
    for one, other in pairwise(found):
        if other.start < one.end:
            raise RefusedError("two changes meet here", document.root)
    return found


def _aliases(document: Document) -> list[Alias]:
    return [node for node in document.nodes if isinstance(node, Alias)]


def _refuse_lost_anchors(document: Document, found: list[Replacement]) -> None:
    """An alias that stays needs its anchor."""
    starts = [each.start for each in found]
    ends = list(accumulate((each.end for each in found), max))

    def is_removed(node: Node) -> bool:  # only its sign is: comments inside of removed text stay
        before = bisect_right(starts, node.outer)
        return before > 0 and node.outer < ends[before - 1]

    for node in document.once(_aliases):
        if is_removed(node.target) and not is_removed(node):
            name = node.target.anchor
            raise RefusedError(f"*{name} elsewhere needs what &{name} stands at", node.target)
