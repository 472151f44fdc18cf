"""The changes of a text, line by line: as hunks, as a patch, and side by side."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CONTEXT = 3
_FEW = 2_000  # lines; for longer texts, difflib may ignore lines that occur everywhere
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\"\\\ud800-\udfff]*")
_NO_NEWLINE = "\\ No newline at end of file\n"
_SHORT = {"\t": "\\t", "\n": "\\n", '"': '\\"', "\\": "\\\\"}


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
Hunk = tuple[Line, ...]


def split(text: str) -> list[str]:
    r"""The lines with their ends. Only \n ends a line, as in git and editors."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def without_end(line: str) -> str:
    """A line without its end."""
    return line.removesuffix("\n").removesuffix("\r")


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """The ranges old[a:b] that became new[c:d], in order."""
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    whole = (head, len(old) - tail, head, len(new) - tail)
    parts = [whole] if whole[1] - head <= _FEW else _between_landmarks(old, new, whole)
    return [found for part in parts for found in _compared(old, new, part)]


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


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return number
    return min(len(one), len(other))


def hunks(old: str, new: str, context: int = _CONTEXT) -> Iterator[Hunk]:
    """The changes with lines around them; changes that are near each other are one hunk."""
    before, after = split(old), split(new)
    near: list[Change] = []
    for change in changes(before, after):
        if near and change[0] - near[-1][1] > 2 * context:
            yield _hunk(before, after, near, context)
            near = []
        near.append(change)
    if near:
        yield _hunk(before, after, near, context)


def _hunk(
    before: Sequence[str],
    after: Sequence[str],
    near: list[Change],
    context: int,
) -> Hunk:
    lines: list[Line] = []
    start = max(near[0][0] - context, 0)
    ahead = near[0][2] - near[0][0]  # offset of the new line numbers
    for a, b, c, d in near:
        lines += [Line(before[at], at + 1, at + 1 + ahead) for at in range(start, a)]
        lines += [Line(before[at], old=at + 1) for at in range(a, b)]
        lines += [Line(after[at], new=at + 1) for at in range(c, d)]
        start, ahead = b, d - b
    end = min(start + context, len(before))
    lines += [Line(before[at], at + 1, at + 1 + ahead) for at in range(start, end)]
    return tuple(lines)


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
    old = [line.old for line in hunk if line.old]
    new = [line.new for line in hunk if line.new]
    return f"@@ -{_range(old, new)} +{_range(new, old)} @@"


def _range(mine: list[int], others: list[int]) -> str:
    # An empty side is numbered by the line before; there is context unless a file is empty.
    if not mine:
        return f"{max(others[0] - 1, 0)},0"
    return f"{mine[0]}" if len(mine) == 1 else f"{mine[0]},{len(mine)}"


def unified(path: str, old: str, new: str) -> str:
    """A patch for `git apply` and `patch -p1`; empty if nothing changed."""
    lines = list(_unified(old, new))
    return "".join((f"--- {_name('a', path)}\n+++ {_name('b', path)}\n", *lines)) if lines else ""


def _unified(old: str, new: str) -> Iterator[str]:
    for hunk in hunks(old, new):
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
