"""The edits that a rule may return: four operations with a path each, no offsets and no diffs.

`core/draft.py` applies them to an object in memory and returns RFC 6902 operations;
`yamlpatch/splice.py` applies the same edits to text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webhook.kube.pointer import Path


@dataclass(frozen=True, slots=True)
class Set:
    """Set the member or list item at `at` to this value; missing maps above it are created."""

    at: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the existing member or list item at `at`."""

    at: Path


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename the existing member at `at` within its map; its value stays."""

    at: Path
    name: str


@dataclass(frozen=True, slots=True)
class Append:
    """Append the value to the list at `to`; a missing list is created, also instead of null."""

    to: Path
    value: Any


Edit = Set | Remove | Rename | Append


def place_of(edit: Edit) -> Path:
    """The place that the edit changes, or the list to which it appends."""
    return edit.to if isinstance(edit, Append) else edit.at


def at_place(edit: Edit, at: Path) -> Edit:
    """The same edit at this place."""
    return replace(edit, to=at) if isinstance(edit, Append) else replace(edit, at=at)
