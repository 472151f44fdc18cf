"""The changes of a text, line by line: as hunks, as a patch, and side by side."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, takewhile, zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CONTEXT = 3
_FEW = 2_000  # lines; for longer texts, difflib may ignore lines that occur everywhere
_MOST_ALIKE = 100_000  # pairs of equal lines
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\"\\\ud800-\udfff]*")
_NO_NEWLINE = "\\ No newline at end of file\n"
_SHORT = {"\t": "\\t", "\n": "\\n", '"': '\\"', "\\": "\\\\"}


_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its line end. It has a number in the old text, in the new one, or in both."""

    text: str
    old: int = 0
    new: int = 0

    @property
    def sign(self) -> str:
        if self.old and self.new:
            return " "
        return "-" if self.old else "+"


Change = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changes that are near each other, with lines around them; the lines are made one by one."""

    before: Sequence[str]
    after: Sequence[str]
    near: Sequence[Change]
    context: int

    @property
    def old(self) -> tuple[int, int]:
        """The first line in the old text, from 0, and the one behind the last."""
        start = max(self.near[0][0] - self.context, 0)
        return start, min(self.near[-1][1] + self.context, len(self.before))

    @property
    def new(self) -> tuple[int, int]:
        """The same in the new text."""
        start, end = self.old
        (a, _, c, _), (_, b, _, d) = self.near[0], self.near[-1]
        return start + c - a, end + d - b

    def __iter__(self) -> Iterator[Line]:
        """The lines, in order; removed ones before added ones."""
        start, ahead = self.old[0], self.near[0][2] - self.near[0][0]
        for a, b, c, d in (*self.near, (self.old[1], 0, 0, 0)):
            for at in range(start, a):
                yield Line(self.before[at], at + 1, at + 1 + ahead)
            for at in range(a, b):
                yield Line(self.before[at], old=at + 1)
            for at in range(c, d):
                yield Line(self.after[at], new=at + 1)
            start, ahead = b, d - b


def split(text: str, known: dict[str, str] | None = None) -> list[str]:
    r"""The lines with their ends. Only \n ends a line, as in git and editors.

    Equal lines are one text, also those that are `known`: most lines of long texts are.
    """
    once = ({} if known is None else known).setdefault
    return [once(found[0], found[0]) for found in _LINE.finditer(text)]


def without_end(line: str) -> str:
    """A line without its end."""
    return line.removesuffix("\n").removesuffix("\r")


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """The ranges old[a:b] that became new[c:d], in order."""
    head = _alike(old, new)
    tail = _alike(reversed(old), reversed(new), most=min(len(old), len(new)) - head)
    whole = (head, len(old) - tail, head, len(new) - tail)
    is_little = _is_little(old[head : whole[1]])
    parts = [whole] if is_little else _between_landmarks(old, new, whole)
    for part in parts:
        yield from _compared(old, new, part)


def _is_little(lines: Sequence[str]) -> bool:
    """Whether difflib may compare them at once: for each change it asks where their equals are."""
    return len(lines) <= _FEW and sum(n * n for n in Counter(lines).values()) <= _MOST_ALIKE


def _compared(old: Sequence[str], new: Sequence[str], part: Change) -> Iterator[Change]:
    """The changes of a part old[a:b], which became new[c:d]."""
    a, b, c, d = part
    matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=b - a > _FEW)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag != "equal":
            yield first + a, last + a, start + c, end + c


def _between_landmarks(old: Sequence[str], new: Sequence[str], part: Change) -> Iterator[Change]:
    """The parts between lines that occur once in both texts.

    difflib looks at all of a part for each change in it.
    """
    a, b, c, d = part
    mine, theirs = _once(old, a, b), _once(new, c, d)
    marks = [(at, theirs[line]) for line, at in mine.items() if line in theirs]
    for here, there in _rising(marks):
        if a < here or c < there:
            yield a, here, c, there
        a, c = here + 1, there + 1
    yield a, b, c, d


def _once(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    """The lines of a part that occur once in it, with their places, in order."""
    numbers = Counter(lines[start:end])
    return {lines[at]: at for at in range(start, end) if numbers[lines[at]] == 1}


def _rising(marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most of these pairs of which both places rise (a longest increasing subsequence)."""
    lowest: list[int] = []  # the least second place with which so many rise
    at_end: list[int] = []  # and the number of that pair
    before: list[int] = []
    for number, (_, there) in enumerate(marks):
        length = bisect_left(lowest, there)
        lowest[length : length + 1] = [there]
        at_end[length : length + 1] = [number]
        before.append(at_end[length - 1] if length else -1)
    found, number = [], at_end[-1] if at_end else -1
    while number >= 0:
        found.append(marks[number])
        number = before[number]
    return found[::-1]


def _alike(one: Iterable[str], other: Iterable[str], most: int | None = None) -> int:
    """How many of the first ones are equal, and at most so many."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in islice(alike, most))


def hunks(old: str, new: str, context: int = _CONTEXT) -> Iterator[Hunk]:
    """The changes with lines around them; changes that are near each other are one hunk."""
    known: dict[str, str] = {}
    before, after = split(old, known), split(new, known)
    near: list[Change] = []
    for change in changes(before, after):
        if near and change[0] - near[-1][1] > 2 * context:
            yield Hunk(before, after, near, context)
            near = []
        near.append(change)
    if near:
        yield Hunk(before, after, near, context)


def pairs(hunk: Hunk) -> Iterator[tuple[Line | None, Line | None]]:
    """The hunk side by side: removed lines next to the added ones."""
    gone: list[Line] = []
    come: list[Line] = []
    for line in hunk:
        match line.sign:
            case "-":
                gone.append(line)
            case "+":
                come.append(line)
            case _:
                yield from zip_longest(gone, come)
                gone, come = [], []
                yield line, line
    yield from zip_longest(gone, come)


def heading(hunk: Hunk) -> str:
    """The header `@@ -1,3 +1,4 @@`."""
    return f"@@ -{_range(*hunk.old)} +{_range(*hunk.new)} @@"


def _range(start: int, end: int) -> str:
    """A range of lines from 1; an empty one is numbered by the line before."""
    return f"{start + 1}" if end - start == 1 else f"{start + (end > start)},{end - start}"


def unified(path: str, old: str, new: str) -> str:
    """A patch for `git apply` and `patch -p1`; empty if nothing changed."""
    return "".join(unified_lines(path, old, new))


def unified_lines(path: str, old: str, new: str) -> Iterator[str]:
    """The same line by line: the patch of a long text is long."""
    for position, hunk in enumerate(hunks(old, new)):
        if not position:
            yield f"--- {_name('a', path)}\n+++ {_name('b', path)}\n"
        yield f"{heading(hunk)}\n"
        for line in hunk:
            end = "" if line.text.endswith("\n") else f"\n{_NO_NEWLINE}"
            yield f"{line.sign}{line.text}{end}"


def _name(side: str, path: str) -> str:
    """The name as git writes it: quoted if it contains characters that would break the line."""
    name = f"{side}/{path.removeprefix('./').lstrip('/')}"
    if _PLAIN.fullmatch(name):
        return f"{name}\t" if " " in name else name
    return f'"{"".join(map(_quoted, name))}"'


def _quoted(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if _PLAIN.fullmatch(character):
        return character
    return f"\\{ord(character) & 0xFF:03o}"  # a lone surrogate stands for a byte that is not UTF-8
