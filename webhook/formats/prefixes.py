"""Lines with a prefix that is not part of the text: `> ` in a quotation, tabs after `<<-`.

Markdown and the shell remove it. Here blanks replace it, so that all offsets stay the same, and
inserted lines get it back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from webhook.files.diff import split
from webhook.templates.actions import blank
from webhook.yamlpatch.style import line_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.templates.regions import Region
    from webhook.yamlpatch.places import Replacement

    Asked = tuple[Region, Sequence[re.Pattern[str]]]

TABS = (re.compile(r" *\t+"),)
_NOTHING = " \t>\r\n"


def of_block(before: str) -> tuple[re.Pattern[str], ...]:
    """The prefix of the lines in a code block, from the text before its fence.

    One blank after the mark of a quotation belongs to it; lines may omit it if no line has more.
    YAML does not allow tabs as indentation, but blanks.
    """
    if depth := before.count(">"):
        mark = rf"(?:[ \t]*>){{{depth}}}"
        return re.compile(f"{mark} "), re.compile(rf"{mark}(?! \S)")
    return (re.compile(re.escape(before)),) if "\t" in before and not before.strip() else ()


@dataclass(slots=True)
class Stripped:
    """The text with blanks instead of prefixes, and the places of these."""

    text: str
    prefixes: list[tuple[Region, str]] = field(default_factory=list)
    odd: dict[Region, int] = field(default_factory=dict)  # where a line begins with another prefix

    def put_back(self, each: Replacement) -> Replacement | None:
        """The same edit in the original text; None if it does not fit between its lines."""
        for region, prefix in self.prefixes:
            if region.start <= each.start and each.end <= region.end:
                return self._with(prefix, each)
        return each

    def _with(self, prefix: str, each: Replacement) -> Replacement | None:
        lines = each.text.split("\n")
        begins = each.start == line_start(self.text, each.start)
        if not lines[-1] and (begins or len(lines) > 1):  # the next line has its own
            if each.end != line_start(self.text, each.end):
                return None
            last = lines.pop()
        else:
            last = None
        whole = lines if begins else lines[1:]
        if any(line[: len(prefix)].strip() for line in whole):
            return None
        made = [
            prefix + line[len(prefix) :] if line.strip() else prefix.rstrip() + line.lstrip(" ")
            for line in whole
        ]
        kept = [] if begins else lines[:1]
        return replace(each, text="\n".join([*kept, *made, *([] if last is None else [last])]))


def strip(text: str, asked: Iterable[Asked]) -> Stripped:
    """Replace the prefixes of lines in these regions by blanks, if a region has only one prefix."""
    done = Stripped(text)
    pieces, here = [], 0
    for region, patterns in asked:
        inside = split(text[region.start : region.end])
        said = [line for line in inside if line.strip(_NOTHING)]
        found = [{_begin(line, each) for line in said} for each in patterns]
        prefix = next((p for begins in found if len(begins) == 1 for p in begins if p), None)
        if prefix is not None:
            done.prefixes.append((region, prefix))
            pieces += [text[here : region.start], *(_without(prefix, line) for line in inside)]
            here = region.end
        elif any(begins - {None} for begins in found):
            done.odd[region] = _odd_line(region, inside, patterns[0])
    done.text = "".join([*pieces, text[here:]])
    return done


def _begin(line: str, pattern: re.Pattern[str]) -> str | None:
    found = pattern.match(line)
    return found[0] if found else None


def _without(prefix: str, line: str) -> str:
    if line.startswith(prefix):
        return blank(prefix) + line[len(prefix) :]
    return blank(line)


def _odd_line(region: Region, lines: list[str], pattern: re.Pattern[str]) -> int:
    """The place of the first line with another prefix than the first line with content."""
    at, first = region.start, ""
    for line in lines:
        if line.strip(_NOTHING):
            begin = _begin(line, pattern) or "none"
            if first and begin != first:
                break
            first = begin
        at += len(line)
    return min(at, region.end - 1)
