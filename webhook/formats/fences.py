"""Finds the code blocks of a Markdown text (CommonMark 4.5), also in lists and quotations."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from webhook.templates.regions import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENS = re.compile(
    r"(?P<before>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+|>[ \t]*)*)"
    r"(?P<fence>`{3,}|~{3,})(?P<info>[^\r\n]*)"
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A code block: the begin and the end of its content, and the first word after its fence."""

    start: int
    end: int
    language: str
    before: str = ""  # the text before the fence on its line: `> ` in a quotation

    @property
    def depth(self) -> int:
        """Depth of the quotation around it: each line begins with this number of >."""
        return self.before.count(">")


def fences(text: str) -> Iterator[Fence]:
    """The code blocks.

    One that is not closed goes on to the end of the text or of its quotation.
    """
    opened: Fence | None = None  # as if it ended where it begins
    fence = ""
    for each in lines_of(text):
        start, end, line = each.start, each.end, each.text
        if opened is not None:
            inside = _unquoted(line, opened.depth)
            if inside is not None and not _closes(inside, fence):
                continue
            yield replace(opened, end=start)
            opened = None
            if inside is not None:
                continue
        found = _OPENS.match(line)
        if found is not None and not ("`" in found["fence"] and "`" in found["info"]):
            fence = found["fence"]
            opened = Fence(end, end, _language(found["info"]), found["before"])
    if opened is not None:
        yield replace(opened, end=len(text))


def _unquoted(line: str, depth: int) -> str | None:
    """The line without the marks of its quotation; None if it is not a line of the quotation."""
    found = re.match(rf"(?:[ \t]*>){{{depth}}}", line)
    return line[found.end() :] if found else None


def _closes(line: str, fence: str) -> bool:
    said = line.strip()
    return len(said) >= len(fence) and said == fence[0] * len(said)


def _language(info: str) -> str:
    word = re.match(r"[\w+-]*", info.strip().lstrip("{.").strip())
    return word.group().lower() if word else ""
