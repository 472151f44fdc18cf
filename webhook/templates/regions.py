"""Finds the manifests in a text that is not a YAML file: between `---`, in blocks, in scripts.

A template, a script or a cloud-config has manifests with a common indent. Such a block is YAML
without the rest of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEAD = re.compile(r"(?P<indent>[ \t]*)[\"']?(?P<key>apiVersion|kind|metadata|spec)[\"']?[ \t]*:")
_SEPARATOR = re.compile(r"[ \t]*(?:---|\.\.\.)(?:[ \t].*)?$")
_BRACE = re.compile(r"[ \t]*\{[ \t]*(?:$|\"(?:apiVersion|kind)\")")
_BLOCK_SCALAR = re.compile(r"[:\-][ \t]+[|>][-+0-9]*[ \t]*(?:#.*)?$")
_BLOCK_SCALARS = re.compile(_BLOCK_SCALAR.pattern, re.MULTILINE)
_HERE = re.compile(r"<<-?[ \t]*(?P<quote>[\"'\\]?)(?P<word>\w+)[\"']?")


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a text, from the begin of a line to the begin of another."""

    start: int
    end: int


class Line(NamedTuple):
    """A line, its place in the text, and its content."""

    start: int
    end: int  # with the line end
    text: str  # without it
    indent: int
    is_blank: bool  # nothing, or a comment


def lines_of(text: str, start: int = 0, end: int | None = None) -> Iterator[Line]:
    """The lines of a text, or of a part that begins and ends with lines."""
    end = len(text) if end is None else end
    while start < end:
        behind = text.find("\n", start, end) + 1 or end
        line = text[start:behind].rstrip("\r\n")
        indent, said = len(line) - len(line.lstrip(" \t")), line.strip()
        yield Line(start, behind, line, indent, not said or said.startswith("#"))
        start = behind


def manifests(text: str, within: Region | None = None) -> list[Region]:
    """The blocks with an API version and a kind, the outermost first.

    In `text`, template actions are blanks; `within` it, only a part may be searched. One manifest
    inside another counts only as a text of its own: in a block scalar or a here-document.
    """
    within = within or Region(0, len(text))
    lines = list(lines_of(text, within.start, within.end))
    found: list[Region] = []
    taken: set[tuple[int, int]] = set()  # lines
    is_taken = bytearray(len(lines))

    def take(first: int, last: int) -> None:
        found.append(Region(lines[first].start, lines[last - 1].end))
        taken.add((first, last))
        is_taken[first:last] = b"\1" * (last - first)

    for block in _json_blocks(lines):
        take(*block)
    heads = [
        (match["indent"], number)
        for number, line in enumerate(lines)
        if (match := _HEAD.match(line.text)) and match["key"] in {"apiVersion", "kind"}
        if not line.text.rstrip().endswith(",")
    ]
    for indent, number in sorted(heads, key=lambda head: len(head[0])):
        first, last = _block(lines, number, len(indent))
        if is_taken[number] and not _is_text(lines, first, len(indent)):
            continue
        if (first, last) in taken or not _is_manifest(lines[first:last], len(indent)):
            continue
        take(first, last)
    return found


def parts(text: str) -> list[Region]:
    """The manifests in a text, then the parts between `---` without one."""
    found = manifests(text)
    without = (
        part
        for part in split(text, Region(0, len(text)))
        if not any(each.start < part.end and part.start < each.end for each in found)
    )
    return [*found, *without]


def manifest_texts(text: str) -> Iterator[Region]:
    """The block scalars with a manifest, as ConfigMaps and cloud-configs have, with their keys.

    Those inside another one come first.
    """
    opened: list[tuple[Line, dict[int, set[str]]]] = []  # each with the keys by their indent
    for line in lines_of(text) if _BLOCK_SCALARS.search(text) else ():
        while opened and not line.is_blank and line.indent <= opened[-1][0].indent:
            yield from _text_of_manifest(*opened.pop(), line.start)
        if opened and (match := _HEAD.match(line.text)):
            opened[-1][1].setdefault(line.indent, set()).add(match["key"])
        if _BLOCK_SCALAR.search(line.text):
            opened.append((line, {}))
    while opened:
        yield from _text_of_manifest(*opened.pop(), len(text))


def _text_of_manifest(opened: Line, keys: dict[int, set[str]], end: int) -> Iterator[Region]:
    if any(each >= {"apiVersion", "kind"} for each in keys.values()):
        yield Region(opened.start, end)


def _json_blocks(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """From a brace to its closing brace, on lines of their own."""
    number = 0
    while number < len(lines):
        opened = lines[number]
        number += 1
        if not _BRACE.match(opened.text):
            continue
        last = next((n for n in range(number, len(lines)) if _closes(opened, lines[n])), None)
        if last is None:
            continue
        said = "".join(line.text for line in lines[number - 1 : last + 1])
        if '"apiVersion"' in said and '"kind"' in said:
            yield number - 1, last + 1
        number = last + 1


def _closes(opened: Line, line: Line) -> bool:
    return line.indent == opened.indent and line.text.lstrip()[:1] == "}"


def here_documents(text: str) -> Iterator[Region]:
    """The text between `<<EOF` and `EOF` in a shell script."""
    lines = list(lines_of(text))
    number = 0
    while number < len(lines):
        opened = _HERE.search(lines[number].text)
        number += 1
        if opened is None:
            continue
        last = next(
            (n for n in range(number, len(lines)) if lines[n].text.strip() == opened["word"]), None
        )
        if last is None:
            continue
        if last > number:
            yield Region(lines[number].start, lines[last - 1].end)
        number = last + 1


def split(text: str, region: Region) -> list[Region]:
    """The documents of a region: the parts between `---`."""
    parts: list[Region] = []
    start = region.start
    for line in lines_of(text, region.start, region.end):
        if _SEPARATOR.match(line.text):
            parts.append(Region(start, line.start))
            start = line.end
    parts.append(Region(start, region.end))
    return [each for each in parts if text[each.start : each.end].strip()]


def _block(lines: Sequence[Line], number: int, indent: int) -> tuple[int, int]:
    """The lines around this one with the same or a larger indent."""
    first = number
    while first > 0 and _belongs(lines[first - 1], indent):
        first -= 1
    last = number + 1
    while last < len(lines) and _belongs(lines[last], indent):
        last += 1
    return first, last


def _belongs(line: Line, indent: int) -> bool:
    return line.is_blank or (line.indent >= indent and not _SEPARATOR.match(line.text))


def _is_manifest(lines: Sequence[Line], indent: int) -> bool:
    keys = {
        match["key"]
        for line in lines
        if (match := _HEAD.match(line.text)) and len(match["indent"]) == indent
    }
    return keys >= {"apiVersion", "kind"} and len(keys) > 2  # noqa: PLR2004  # or it is a reference


def _is_text(lines: Sequence[Line], first: int, indent: int) -> bool:
    before = next((lines[n] for n in range(first - 1, -1, -1) if not lines[n].is_blank), None)
    if before is None or before.indent >= indent > 0:
        return False
    return _BLOCK_SCALAR.search(before.text) is not None or _HERE.search(before.text) is not None
