"""The lines of a finding with its carets, and the new lines."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.files.diff import changes, split, without_end
from webhook.yamlpatch.places import Place, Replacement
from webhook.yamlpatch.style import newlines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_BEFORE, _AFTER = 60, 100  # characters of a long line, around the place


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line in three parts: `marked` is the place of the finding."""

    number: int
    before: str
    marked: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """Lines that replace the `removed` lines from `number` on."""

    number: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


class Lines:
    """A text by its lines, for many lookups."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = newlines(text)
        self._number = len(self._ends) + (text[-1:] not in {"", "\n"})

    def place(self, start: int, end: int) -> Place:
        """The place of these indexes, in lines and columns."""
        line, column = self._position(start)
        end_line, end_column = self._position(end)
        return Place(line, column, end_line, end_column)

    def _position(self, index: int) -> tuple[int, int]:
        line = bisect_left(self._ends, index) + 1
        return line, index - self._start(line) + 1

    def _start(self, line: int) -> int:
        return self._ends[line - 2] + 1 if line > 1 else 0

    def _end(self, line: int) -> int:
        """The end of a line with its line end."""
        return self._ends[line - 1] + 1 if line <= len(self._ends) else len(self._text)

    def line(self, number: int) -> str:
        """A line without its end; "" if the text has none with this number."""
        if not 1 <= number <= self._number:
            return ""
        return without_end(self._text[self._start(number) : self._end(number)])

    def around(self, place: Place, context: int = 0) -> Iterator[Excerpt]:
        """The place's first line and its neighbours; long lines are shortened."""
        for number in range(place.line - context, place.line + context + 1):
            if number == place.line:
                yield self._marked(place)
            elif 1 <= number <= self._number:
                yield Excerpt(number, shortened(self.line(number)), "", "")

    def _marked(self, place: Place) -> Excerpt:
        line = self.line(place.line)
        start = min(max(place.column - 1, 0), len(line))
        end = place.end_column - 1 if place.end_line == place.line else len(line)
        end = min(max(end, start), len(line))
        before, marked, after = line[:start], line[start:end], line[end:]
        if len(line) > _BEFORE + _AFTER:
            before = f"…{before[-_BEFORE:]}" if len(before) > _BEFORE else before
            marked = f"{marked[:_AFTER]}…" if len(marked) > _AFTER else marked
            after = f"{after[:_BEFORE]}…" if len(after) > _BEFORE else after
        return Excerpt(place.line, before, marked, after)

    def replaced(self, fix: Sequence[Replacement]) -> Iterator[ChangedLines]:
        """The lines after the replacements, a ChangedLines for each run of lines."""
        near: list[Replacement] = []
        last = 0
        for each in sorted(fix, key=lambda replacement: (replacement.start, replacement.end)):
            where = self.place(each.start, each.end)
            if near and where.line > last:
                yield from self._cured(near)
                near = []
            near.append(each)
            last = max(last, where.end_line)
        if near:
            yield from self._cured(near)

    def _cured(self, near: list[Replacement]) -> Iterator[ChangedLines]:
        first = self._position(near[0].start)[0]
        last = self._position(max(each.end for each in near))[0]
        start, end = self._start(first), self._end(last)
        parts, done = [], start
        for each in near:
            parts += [self._text[done : each.start], each.text]
            done = max(done, each.end)
        old, new = split(self._text[start:end]), split("".join(parts) + self._text[done:end])
        for a, b, c, d in changes(old, new):
            yield ChangedLines(first + a, tuple(map(_bare, old[a:b])), tuple(map(_bare, new[c:d])))


def _bare(line: str) -> str:
    return shortened(without_end(line))


def shortened(line: str) -> str:
    """The beginning of a line that is too long to be read."""
    longest = _BEFORE + _AFTER
    return line if len(line) <= longest else f"{line[:longest]}…"
