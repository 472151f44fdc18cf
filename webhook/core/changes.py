"""Finds the changes of an object that belong to an edit, by place: without a search of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Append, Edit, place_of
from webhook.kube.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Place = tuple[str | int, ...]


class Changes:
    """All changes of a draft (Draft.changes), by place."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.edits = edits
        self._at: dict[Place, list[int]] = {}  # by their place: positions in `edits`
        self._inside: dict[Place, list[int]] = {}  # by each place around theirs
        self._appended: dict[tuple[Place, str], list[int]] = {}  # by their list and value
        for position, each in enumerate(edits):
            at = place_of(each)
            self._at.setdefault(at, []).append(position)
            for depth in range(len(at)):
                self._inside.setdefault(at[:depth], []).append(position)
            if isinstance(each, Append):
                self._appended.setdefault((at, canonical(each.value)), []).append(position)

    def about(self, edits: Iterable[Edit]) -> tuple[Edit, ...]:
        """The changes at the places of these edits, around them, and in them, in their own order.

        Of two items that are appended to one list, each belongs only to its own edit.
        """
        found: set[int] = set()
        for each in edits:
            at = place_of(each)
            for depth in range(len(at)):
                found.update(self._at.get(at[:depth], ()))
            found.update(self._inside.get(at, ()))
            if isinstance(each, Append):
                found.update(self._appended.get((at, canonical(each.value)), ()))
                found.update(self._edited(at))
            else:
                found.update(self._at.get(at, ()))
        return tuple(self.edits[position] for position in sorted(found))

    def _edited(self, at: Place) -> list[int]:
        """The changes at this place that append nothing."""
        here = self._at.get(at, ())
        return [each for each in here if not isinstance(self.edits[each], Append)]
