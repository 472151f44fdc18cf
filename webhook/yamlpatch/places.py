"""Places in a text, and replacements of their characters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Lines and columns from 1; the end is the first character that is not part of it."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replaces the characters from `start` to `end`, as indexes into the text."""

    start: int
    end: int
    text: str
