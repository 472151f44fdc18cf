"""Removes and inserts entries of maps and lists in block style.

An entry is removed with its own lines, including a comment at the end of the last one. Comments
above and below it and blank lines around it stay: they may belong to other entries. They also stay
if all entries of a map or list are removed, at the indent of its name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from webhook.yamlpatch.changes import RefusedError
from webhook.yamlpatch.nodes import Collection, Entry, List, Map, Member, Scalar, entries
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.style import column, line_end, line_start, newline, next_line, style_of
from webhook.yamlpatch.writing import Writer, indented

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from webhook.yamlpatch.documents import Document

_SPACES = re.compile(r" *\Z")
_COMPACT = re.compile(r" *(?:-[ \t]+)+\Z")


def removed(document: Document, node: Collection, positions: list[int]) -> Iterator[Replacement]:
    """The lines of the entries at these positions; at least one stays."""
    every = entries(node)
    first_stays = next((n for n, position in enumerate(positions) if n != position), len(positions))
    start = 0
    if first_stays and _before(document.text, every[0].start).strip():
        yield from _pulled_up(document, every[: first_stays + 1])
        start = first_stays
    for position in positions[start:]:
        yield from _own_lines(document, every[position])


def _before(text: str, at: int) -> str:
    return text[line_start(text, at) : at]


def _own_lines(document: Document, entry: Entry) -> Iterator[Replacement]:
    text = document.text
    if not _SPACES.match(_before(text, entry.start)):
        raise RefusedError("something stands before it on its line", entry.value)
    start, indent = line_start(text, entry.start), column(text, entry.start)
    known = document.once(_known_comments)
    if id(entry) not in known:
        known[id(entry)] = list(comments(text, entry))
    for line, sign in known[id(entry)]:
        yield Replacement(start, max(line, sign - indent), "")
        start = next_line(text, line_end(text, sign))
    end = next_line(text, line_end(text, entry.end))
    if start < end:
        yield Replacement(start, end, "")


def _known_comments(_: Document) -> dict[int, list[tuple[int, int]]]:
    """The comments in each removed entry, by id(): many findings remove the same one."""
    return {}


def comments(text: str, entry: Entry) -> Iterator[tuple[int, int]]:
    """The comments above the entries of a map or list: the begin of each line, and its sign."""
    if not isinstance(entry.value, Map | List):
        return
    before = entry.key.end if isinstance(entry, Member) else entry.start
    for inside in entries(entry.value) if not entry.value.flow else ():
        line, end = next_line(text, line_end(text, before)), line_start(text, inside.start)
        while line < end:
            said = text[line : next_line(text, line_end(text, line))]
            if said.lstrip(" ").startswith("#"):
                yield line, line + said.index("#")
            line += len(said)
        yield from comments(text, inside)
        before = inside.end


def without_lines(document: Document, entry: Entry, start: int) -> Iterator[Replacement]:
    """The lines of a value are removed, from the end of the line above; comments of them stay."""
    text = document.text
    for line, sign in comments(text, entry):
        above = line - (2 if text.endswith("\r\n", 0, line) else 1)
        yield Replacement(start, above, "")
        start = line_end(text, sign)
    yield Replacement(start, entry.value.end, "")


def _pulled_up(document: Document, leaving: list[Any]) -> Iterator[Replacement]:
    """The first entries after a dash: the remaining entry moves up, or leaves the dash alone."""
    text, stays = document.text, leaving[-1]
    before = _before(text, leaving[0].start)
    if not _COMPACT.match(before) or column(text, stays.start) != len(before):
        raise RefusedError("something stands before it on its line", leaving[0].value)
    between = (text[line_end(text, a.end) : b.start] for a, b in pairwise(leaving))
    if not any(gap.strip() for gap in between):
        yield Replacement(leaving[0].start, stays.start, "")
        return
    start = leaving[0].start - len(before) + len(before.rstrip())
    yield Replacement(start, line_end(text, leaving[0].end), "")
    for entry in leaving[1:-1]:
        yield from _own_lines(document, entry)


def added(document: Document, node: Collection, new: list[tuple[str, Any]]) -> list[Replacement]:
    """The lines of new entries, after the last one and its trailing comment."""
    text, last = document.text, entries(node)[-1]
    writer = Writer(style_of(document, node))
    lines: list[str] = []
    for name, value in new:
        lines += writer.member(name, value) if isinstance(node, Map) else writer.item(value)
    indent = column(text, node.start)
    ends = newline(text, last.end)
    at = next_line(text, line_end(text, last.end))
    block = [indented(line, indent) for line in lines]
    if at == len(text) and not text.endswith("\n"):
        return [Replacement(at, at, "".join(f"{ends}{line}" for line in block))]
    return [Replacement(at, at, "".join(f"{line}{ends}" for line in block))]


def parted(
    document: Document, removals: list[Replacement], kept: Container[int]
) -> list[Replacement]:
    """The removals, joined, with the characters whose meaning would change with them.

    That is: the blank lines below, where the text above keeps those that follow it, and the line
    end above, where the file ended without one. Neither goes where something is put in (`kept`).
    """
    before: list[Replacement] = []
    after = joined(removals, kept)
    while after != before:
        before = after
        after = joined([_parted(document, each, kept) for each in before], kept)
    text = document.text
    for position, each in enumerate(after):
        if each.start in kept or not each.start or each.end < len(text):
            continue
        if not text.endswith("\n") and _text_above(document, each.start) is None:
            start = each.start - (2 if text.endswith("\r\n", 0, each.start) else 1)
            after[position] = Replacement(start, each.end, "")
    return after


def _parted(document: Document, removal: Replacement, kept: Container[int]) -> Replacement:
    text, start, end = document.text, removal.start, removal.end
    if end in kept or start != line_start(text, start):
        return removal
    if end != len(text) and end != line_start(text, end):
        return removal
    above = _text_above(document, start)
    return removal if above is None else Replacement(start, _behind_text(text, above, end), "")


def _block_scalars(document: Document) -> tuple[list[int], list[Scalar]]:
    """The scalars that continue as long as lines are indented, and their ends, in order."""
    every = (node for node in document.nodes if isinstance(node, Scalar))
    scalars = [node for node in every if node.style in {"|", ">"}]
    return [node.end for node in scalars], scalars


def _text_above(document: Document, at: int) -> Scalar | None:
    """The block scalar to which the lines from here on would belong if they were indented."""
    ends, scalars = document.once(_block_scalars)
    last = bisect_right(ends, at) - 1
    if last < 0 or document.text[ends[last] : at].strip():
        return None
    return scalars[last]


def _behind_text(text: str, scalar: Scalar, at: int) -> int:
    """The end of the blank lines that would belong to the scalar above, if it keeps them.

    A comment with the indent of the scalar would belong to it, too; it must not be removed.
    """
    lines = text[scalar.start : scalar.end].splitlines()
    indent = min((len(x) - len(x.lstrip(" ")) for x in lines[1:] if x.strip()), default=1)
    keeps = "+" in lines[0].split("#", 1)[0]
    end = at
    while end < len(text):
        line = text[end : next_line(text, end)]
        if line.strip():
            if line.lstrip()[0] == "#" and len(line) - len(line.lstrip(" ")) >= indent:
                raise RefusedError("a comment below would become part of the text above", scalar)
            break
        end += len(line)
    return end if keeps else at


def joined(removals: list[Replacement], kept: Container[int]) -> list[Replacement]:
    """Removals that overlap, or touch where nothing is inserted, as one."""
    found: list[Replacement] = []
    for each in sorted(removals, key=lambda one: (one.start, one.end)):
        last = found[-1].end if found else -1
        if each.start < last or (each.start == last and last not in kept):
            found[-1] = Replacement(found[-1].start, max(each.end, last), "")
        else:
            found.append(each)
    return found
