"""The edits that a rule may return: four operations with a path each, no offsets and no diffs.

`core/draft.py` applies them to the object in memory and says what they come to in RFC 6902;
the second road writes the same edits into text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webhook.kube.pointer import Path


@dataclass(frozen=True, slots=True)
class Set:
    """Give the member or list item at `at` this value; maps that are missing above it are made."""

    at: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Remove:
    """Take away the member or list item at `at`, which is there."""

    at: Path


@dataclass(frozen=True, slots=True)
class Rename:
    """Give the member at `at`, which is there, another name in the same map; its value stays."""

    at: Path
    name: str


@dataclass(frozen=True, slots=True)
class Append:
    """Put the value at the end of the list at `to`, which is made if it is missing or null."""

    to: Path
    value: Any


Edit = Set | Remove | Rename | Append


def place_of(edit: Edit) -> Path:
    """The place that the edit changes, or the list that it makes longer."""
    return edit.to if isinstance(edit, Append) else edit.at


def at_place(edit: Edit, at: Path) -> Edit:
    """The same edit at this place."""
    return replace(edit, to=at) if isinstance(edit, Append) else replace(edit, at=at)
