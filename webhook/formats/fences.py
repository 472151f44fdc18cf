"""Finds the code blocks of a Markdown text, as CommonMark reads it: text in, Fences out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCKS = MarkdownIt("commonmark").disable("inline")
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Fence:
    """A code block: the begin and the end of its content, and the first word after its fence."""

    start: int
    end: int
    language: str
    before: str = ""  # the text before the fence on its line: `> ` in a quotation


def fences(text: str) -> Iterator[Fence]:
    """The code blocks between fences, also in lists and quotations."""
    starts = [0, *(found.end() for found in _LINE_END.finditer(text)), len(text)]
    for token in _BLOCKS.parse(text):
        if token.type == "fence" and token.map is not None:
            first = token.map[0]
            opening = text[starts[first] : starts[first + 1]]
            lines = token.content.count("\n") + (token.content[-1:] not in {"", "\n"})
            last = min(first + 1 + lines, len(starts) - 1)
            before = opening[: opening.index(token.markup)]
            yield Fence(starts[first + 1], starts[last], _language(token.info), before)


def _language(info: str) -> str:
    word = re.match(r"[\w+-]*", info.strip().lstrip("{.").strip())
    return word.group().lower() if word else ""
