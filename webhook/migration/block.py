"""Entries of maps and lists in block style: where they go from a text, and where new ones come.

A member or an item leaves with its own lines: its trailing comment, and the comment above it if
that can be of nothing else. A comment stands for the run of entries below it, up to the next
comment or blank line, so it goes with the whole run; it stays where it looks like entries that are
commented out. No blank line is left over where an entry was.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from webhook.migration.habits import column, habits_of, line_end, line_start, newline, next_line
from webhook.migration.nodes import Map, Scalar, entries
from webhook.migration.results import Replacement
from webhook.migration.wishes import RefusedError
from webhook.migration.writing import Writer, indented

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from webhook.migration.documents import Document
    from webhook.migration.nodes import Collection, Entry

_COMMENTED_OUT = re.compile(r"#+[ \t]*(?:-[ \t]|[\"']?[\w./-]+[\"']?[ \t]*:(?:[ \t\r]|$)|[\[{}\]])")
_BLANK = re.compile(r"[ \t]*\r?\n")
_SPACES = re.compile(r" *\Z")
_COMPACT = re.compile(r" *(?:-[ \t]+)+\Z")


def removed(document: Document, node: Collection, gone: list[bool]) -> Iterator[Replacement]:
    """The lines of the entries that go; at least one stays."""
    every = entries(node)
    first_stays = gone.index(False)
    start = 0
    if first_stays and _before(document.text, every[0].start).strip():
        yield from _pulled_up(document, every[: first_stays + 1])
        start = first_stays
    for position in range(start, len(every)):
        if gone[position]:
            yield _own_lines(document, every[position])
    for run in _runs(document.text, every):
        heading = _heading(document, every, run.start)
        if heading is not None and all(gone[position] for position in run) and run.start >= start:
            yield heading


def _before(text: str, at: int) -> str:
    return text[line_start(text, at) : at]


def _own_lines(document: Document, entry: Entry) -> Replacement:
    text = document.text
    if not _SPACES.match(_before(text, entry.start)):
        raise RefusedError("something stands before it on its line", _value(entry))
    end = next_line(text, line_end(text, entry.end))
    return Replacement(line_start(text, entry.start), end, "")


def _value(entry: Entry) -> Any:
    return entry.value


def _pulled_up(document: Document, leaving: list[Any]) -> Iterator[Replacement]:
    """The first entries, behind a dash: the one that stays comes up, or leaves the dash alone."""
    text, stays = document.text, leaving[-1]
    before = _before(text, leaving[0].start)
    if not _COMPACT.match(before) or column(text, stays.start) != len(before):
        raise RefusedError("something stands before it on its line", _value(leaving[0]))
    between = text[line_end(text, leaving[-2].end) : stays.start]
    if not between.strip():
        yield Replacement(leaving[0].start, stays.start, "")
        return
    start = leaving[0].start - len(before) + len(before.rstrip())
    yield Replacement(start, line_end(text, leaving[-2].end), "")


def _runs(text: str, every: list[Any]) -> Iterator[range]:
    """Positions of entries that have no comment and no blank line between them."""
    start = 0
    for position in range(1, len(every) + 1):
        if position < len(every):
            end = next_line(text, line_end(text, every[position - 1].end))
            if end >= line_start(text, every[position].start):
                continue
        yield range(start, position)
        start = position


def _heading(document: Document, every: list[Any], position: int) -> Replacement | None:
    """The comment lines right above an entry, at its column."""
    text, entry = document.text, every[position]
    indent = column(text, entry.start)
    end = start = line_start(text, entry.start)
    least = next_line(text, every[position - 1].end) if position else 0
    while start > least:
        above = line_start(text, start - 1)
        line = text[above:start]
        if above < least or line[:indent].strip(" ") or line[indent : indent + 1] != "#":
            break
        if _COMMENTED_OUT.match(line, indent):
            return None
        start = above
    return Replacement(start, end, "") if start < end else None


def added(document: Document, node: Collection, new: list[tuple[str, Any]]) -> Replacement:
    """The lines of new entries, behind the last one and its trailing comment."""
    text, last = document.text, entries(node)[-1]
    writer = Writer(habits_of(document, node))
    lines: list[str] = []
    for name, value in new:
        lines += writer.member(name, value) if isinstance(node, Map) else writer.item(value)
    indent = column(text, node.start)
    ends = newline(text, last.end)
    at = next_line(text, line_end(text, last.end))
    block = [indented(line, indent) for line in lines]
    if at == len(text) and not text.endswith("\n"):
        return Replacement(at, at, "".join(f"{ends}{line}" for line in block))
    return Replacement(at, at, "".join(f"{line}{ends}" for line in block))


def tidied(document: Document, gone: list[Replacement], kept: Container[int]) -> list[Replacement]:
    """The removals, joined, with the blank lines that would be left over.

    That is: a second one in a row, one below the name of a map or a list, or one at the end. None
    goes where something is put in (`kept`).
    """
    before: list[Replacement] = []
    after = joined(gone, kept)
    while after != before:
        before = after
        tidy = [_tidy(document, each) if each.end not in kept else each for each in before]
        after = joined(tidy, kept)
    text = document.text
    for position, each in enumerate(after):
        if each.start in kept or not each.start:
            continue
        if text.endswith("\n") or _text_above(document, each.start) is not None:
            continue  # the line end above is no part of a text
        if each.end == len(text):
            start = each.start - (2 if text[: each.start].endswith("\r\n") else 1)
            after[position] = Replacement(start, each.end, "")
    return after


def _tidy(document: Document, removal: Replacement) -> Replacement:
    text, start, end = document.text, removal.start, removal.end
    if start != line_start(text, start) or end not in {len(text), line_start(text, end)}:
        return removal
    above = text[line_start(text, start - 1) : start] if start else "\n"
    scalar = _text_above(document, start)
    if scalar is not None:
        end = _behind_text(text, scalar, end, blank=not above.strip())
    elif not above.strip() or _begins_block(above):
        end = _behind_blank(text, end)
    if end == len(text) or text.startswith(("---", "..."), end):
        start = _without_blank_above(document, start)
    return Replacement(start, end, "")


def _behind_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    while blank is not None:
        at = blank.end()
        blank = _BLANK.match(text, at)
    return at


def _block_scalars(document: Document) -> tuple[list[int], list[Scalar]]:
    """The texts that go on as far as lines are indented, and where they end, in order."""
    every = (node for node in document.root.walk() if isinstance(node, Scalar))
    scalars = [node for node in every if node.style in {"|", ">"}]
    return [node.end for node in scalars], scalars


def _text_above(document: Document, at: int) -> Scalar | None:
    """The block scalar that the lines from here on would be part of if they were indented."""
    ends, scalars = document.once(_block_scalars)
    last = bisect_right(ends, at) - 1
    if last < 0 or document.text[ends[last] : at].strip():
        return None
    return scalars[last]


def _behind_text(text: str, scalar: Scalar, at: int, *, blank: bool) -> int:
    """Where the lines end that would become part of the text above once nothing is between.

    Those are comments as far right as the text and, if it keeps them, blank lines. These go, too,
    if there are some above (`blank`).
    """
    lines = text[scalar.start : scalar.end].splitlines()
    indent = min((len(x) - len(x.lstrip(" ")) for x in lines[1:] if x.strip()), default=1)
    blank = blank or "+" in lines[0].split("#", 1)[0]
    end = at
    while end < len(text):
        line = text[end : next_line(text, end)]
        if line.strip() and (len(line) - len(line.lstrip(" ")) < indent or line.lstrip()[0] != "#"):
            break
        end += len(line)
        at = end if line.strip() or blank else at
    return at


def _begins_block(line: str) -> bool:
    return line.split(" #", 1)[0].rstrip().endswith((":", "-"))


def _without_blank_above(document: Document, start: int) -> int:
    """Where the blank lines above begin, unless they are part of a text that keeps them."""
    text = document.text
    ends, _ = document.once(_block_scalars)
    last = bisect_left(ends, start) - 1
    least = ends[last] if last >= 0 else -1
    while start:
        above = line_start(text, start - 1)
        if text[above:start].strip() or above <= least:
            break
        start = above
    return start


def joined(gone: list[Replacement], kept: Container[int]) -> list[Replacement]:
    """Removals that overlap, or touch where nothing is put in, as one."""
    found: list[Replacement] = []
    for each in sorted(gone, key=lambda one: (one.start, one.end)):
        last = found[-1].end if found else -1
        if each.start < last or (each.start == last and last not in kept):
            found[-1] = Replacement(found[-1].start, max(each.end, last), "")
        else:
            found.append(each)
    return found
