"""Decides which files are ignored: by .gitignore, as git reads it, .git/info/exclude, .helmignore.

A whole file becomes one regular expression: a path takes a microsecond, while a loop over patterns
takes as long as opening and reading the file. Tests compare it with `git check-ignore`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9", "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e",
    "punct": "!-/:-@\\[-`{-~", "space": "\\s", "upper": "A-Z", "xdigit": "0-9a-fA-F",
}  # fmt: skip
_POSIX_CLASS = re.compile(r":([^\]]*):\]")
_ANY = "[^/\0]"
_FOLDER = f"(?:{_ANY}+/)"
_TWO_STARS = 2  # and the text before, between and after them


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns of one file; the last one that matches a path decides."""

    joined: re.Pattern[str]
    kept: frozenset[int]  # numbers of the patterns that begin with !

    @classmethod
    def of(cls, lines: Sequence[str]) -> Self | None:
        """Read the lines; None if there is no pattern."""
        # A regular expression uses the first alternative that matches, so the order is reversed.
        read = [each for line in reversed(lines) if (each := _pattern(line)) is not None]
        if not read:
            return None
        kept = frozenset(number for number, (is_kept, _) in enumerate(read, 1) if is_kept)
        return cls(re.compile("|".join(f"({each})" for _, each in read), re.DOTALL), kept)

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """True if the path is ignored, False if it is kept, None if no pattern matches.

        Ignored folders are never entered, so paths below them need no answer.
        """
        end = "/" if folder else ""
        # Patterns without a slash match the name, others the path.
        found = self.joined.fullmatch(f"{path.rpartition('/')[2]}{end}\0{path}{end}")
        return None if found is None else found.lastindex not in self.kept


@dataclass(frozen=True, slots=True)
class Ignored:
    """The ignored paths of a folder: by the files in it and above it; the nearest file decides."""

    files: tuple[tuple[int, str, Patterns], ...] = ()  # (cut, prefix, patterns): see `says`

    def and_also(self, patterns: Patterns | None, cut: int, prefix: str = "") -> Ignored:
        """Add the patterns of a file; they see a path as `prefix` and the text after the cut."""
        return self if patterns is None else Ignored((*self.files, (cut, prefix, patterns)))

    def says(self, path: str, *, folder: bool = False) -> bool:
        """Whether this file or folder is ignored."""
        for cut, prefix, patterns in reversed(self.files):
            decided = patterns.decide(prefix + path[cut:], folder=folder)
            if decided is not None:
                return decided
        return False


NOTHING = Ignored()


def _pattern(line: str) -> tuple[bool, str] | None:
    """(begins with !, the regular expression) of a line; None for a line without a pattern."""
    line = _trimmed(line.removesuffix("\r"))
    if line.startswith("#"):
        return None
    is_kept = line.startswith("!")
    line, end = line[is_kept:], "/?"
    if line.endswith("/"):
        line, end = line[:-1], "/"
    if not line:
        return None
    try:
        fits = _translate(line.removeprefix("/"))
    except _NeverFitsError:
        return None
    return is_kept, f"[^\0]*\0{fits}{end}" if "/" in line else f"{fits}{end}\0.*"


def _trimmed(line: str) -> str:
    """Without trailing spaces, except one after a backslash."""
    while line.endswith(" "):
        before = line[:-1]
        if (len(before) - len(before.rstrip("\\"))) % 2:
            break
        line = before
    return line


class _NeverFitsError(ValueError):
    """A pattern that git accepts, and that matches nothing."""


def _translate(glob: str) -> str:
    """Make a regular expression of a pattern, with the meaning of git's wildmatch.c."""
    segments: list[list[str]] = [[""]]  # for each segment, the texts between its stars
    at = 0
    while at < len(glob):
        character = glob[at]
        at += 1
        if character == "/":
            segments.append([""])
        elif character == "*":
            segments[-1].append("")
        elif character == "?":
            segments[-1][-1] += _ANY
        elif character == "[":
            one, at = _bracket(glob, at)
            segments[-1][-1] += one
        else:
            if character == "\\":
                character, at = _next(glob, at)
            segments[-1][-1] += re.escape(character)
    return _path(segments)


def _path(segments: list[list[str]]) -> str:
    """Join the segments. The text between two ** is searched once, as between stars below."""
    runs = [""]
    for parts in segments[:-1]:
        if not _is_any_depth(parts):
            runs[-1] += _segment(parts) + "/"
        elif runs[-1] or len(runs) == 1:  # two ** in a row are one
            runs.append("")
    if _is_any_depth(segments[-1]):
        return _runs([*runs, ""] if runs[-1] or len(runs) == 1 else runs, "[^\0]+")
    runs[-1] += _segment(segments[-1])
    return _runs(runs, "")


def _runs(runs: list[str], end: str) -> str:
    first, *between = runs
    if not between:
        return first + end
    middle = (f"(?>{_FOLDER}*?{run})" for run in between[:-1])
    return f"{first}{''.join(middle)}{_FOLDER}*{between[-1]}{end}"


def _is_any_depth(parts: list[str]) -> bool:
    return len(parts) > _TWO_STARS and not any(parts)


def _segment(parts: list[str]) -> str:
    """Join the texts between stars.

    All but the last star match as little as they can, without retries.

    The matches stay the same, and a pattern of many stars is not tried in all combinations.
    """
    first, *between = parts
    if not between:
        return first
    middle = (f"(?>{_ANY}*?{part})" for part in between[:-1] if part)
    return f"{first}{''.join(middle)}{_ANY}*{between[-1]}"


def _bracket(glob: str, at: int) -> tuple[str, int]:
    """Read the text after [; returns the expression for one character, and the end of it."""
    negated = glob[at : at + 1] in {"!", "^"}
    at += negated
    members, before, begin = "", "", at
    while at == begin or glob[at : at + 1] != "]":
        character, at = _next(glob, at)
        if character == "[" and (named := _POSIX_CLASS.match(glob, at)):
            if named[1] not in _POSIX_CLASSES:
                raise _NeverFitsError
            members += _POSIX_CLASSES[named[1]]
            before, at = "", named.end()
        elif character == "-" and before and glob[at : at + 1] not in {"", "]"}:
            to, at = _next(glob, at)
            if to == "\\":
                to, at = _next(glob, at)
            members += f"{re.escape(before)}-{re.escape(to)}" if before <= to else ""
            before = ""
        else:
            if character == "\\":
                character, at = _next(glob, at)
            members += re.escape(character)
            before = character
    return f"(?![/\0])[{'^' if negated else ''}{members}]", at + 1


def _next(glob: str, at: int) -> tuple[str, int]:
    if at == len(glob):
        raise _NeverFitsError
    return glob[at], at + 1
