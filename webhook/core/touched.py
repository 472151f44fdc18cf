"""A map or a list that edits have touched: how it was, and its changes since."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from webhook.core.edits import Append, Edit, Remove, Rename, Set
from webhook.kube.pointer import Path, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Comparison = Callable[[Any, Any], bool]
    Operation = dict[str, Any]
    Token = str | int


@dataclass(slots=True)
class Touched:
    """A map or a list that existed before the first edit, and its content at that time."""

    at: Path  # its place in the original object
    now: Any
    before: Any
    # Of a list: the original position of each item, None if an edit added it.
    origins: list[int | None] | None
    # Of a map: original names by their present names.
    renamed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, here: Any, at: Path) -> Self:
        """Keep a copy of what is there before its first edit."""
        if isinstance(here, list):
            return cls(at, here, list(here), list(range(len(here))))
        return cls(at, here, dict(here), None)

    def origin(self, token: Token) -> Token | None:
        """The original name or position of the item at `token`; None if an edit added it."""
        item = self.now[token]
        if self.origins is not None:
            place = self.origins[int(token)]
            return place if place is not None and self.before[place] is item else None
        name = self.renamed.get(str(token), token)
        return name if name in self.before and self.before[name] is item else None

    def name_before(self, token: Token) -> Token:
        """The original name of the member at this place; the present name if there was none."""
        if self.origins is None:
            return self.renamed.get(str(token), token)
        known = isinstance(token, int) and token < len(self.origins)
        place = self.origins[int(token)] if known else None
        return token if place is None else place

    def places(self, *, by_name: bool) -> Mapping[Token, Token]:
        """The places at which original content is now.

        For texts (`by_name`), renamed members count.
        """
        if self.origins is not None:
            return {was: now for now, was in enumerate(self.origins) if was is not None}
        there: dict[Token, Token] = {}
        if by_name:
            there.update((old, new) for new, old in reversed(self.renamed.items()))
        there.update((name, name) for name in self.before if name in self.now)
        return there

    def changes(self, is_as_it_was: Comparison) -> Iterator[Operation]:
        if self.origins is None:
            return self._map_changes(is_as_it_was)
        return self._list_changes(self.origins, is_as_it_was)

    def _map_changes(self, is_as_it_was: Comparison) -> Iterator[Operation]:
        at = str(self.at)
        for key in self.before:
            if key not in self.now:
                yield {"op": "remove", "path": f"{at}/{escape(key)}"}
        for key, value in self.now.items():
            if key not in self.before:
                yield {"op": "add", "path": f"{at}/{escape(key)}", "value": value}
            elif self.before[key] is not value and not is_as_it_was(self.before[key], value):
                yield {"op": "replace", "path": f"{at}/{escape(key)}", "value": value}

    def edits(self, is_as_it_was: Comparison) -> Iterator[Edit]:
        """The same changes as symbolic edits, with places in the original object."""
        if self.origins is None:
            return self._map_edits(is_as_it_was)
        return self._list_edits(self.origins, is_as_it_was)

    def _map_edits(self, is_as_it_was: Comparison) -> Iterator[Edit]:
        names = {
            old: new
            for new, old in self.renamed.items()
            if old in self.before and old not in self.now
        }
        new_names = set(names.values())
        for key, was in self.before.items():
            stayed = key in self.now and key not in new_names
            new = key if stayed else names.get(key)
            if new is None:
                yield Remove(self.at / key)
                continue
            if new != key:
                yield Rename(self.at / key, new)
            value = self.now[new]
            if was is not value and not is_as_it_was(was, value):
                yield Set(self.at / key, value)
        for key, value in self.now.items():
            if key not in self.before and key not in new_names:
                yield Set(self.at / key, value)

    def _list_edits(self, origins: list[int | None], is_as_it_was: Comparison) -> Iterator[Edit]:
        for was, value in zip(origins, self.now, strict=True):
            if was is None:
                yield Append(self.at, value)
            elif self.before[was] is not value and not is_as_it_was(self.before[was], value):
                yield Set(self.at / was, value)
        stayed = set(origins)
        for was in range(len(self.before)):
            if was not in stayed:
                yield Remove(self.at / was)

    def _list_changes(
        self, origins: list[int | None], is_as_it_was: Comparison
    ) -> Iterator[Operation]:
        for was, value in zip(origins, self.now, strict=True):
            if was is None or self.before[was] is value or is_as_it_was(self.before[was], value):
                continue
            yield {"op": "replace", "path": str(self.at / was), "value": value}
        stayed = set(origins)
        for was in range(len(self.before) - 1, -1, -1):
            if was not in stayed:
                yield {"op": "remove", "path": str(self.at / was)}
        for origin, value in zip(origins, self.now, strict=True):
            if origin is None:
                yield {"op": "add", "path": str(self.at / "-"), "value": value}


@dataclass(slots=True)
class Saved:
    """A map or a list as it was before this round of edits."""

    now: Any
    before: Any
    origins: list[int | None] | None
    renamed: dict[str, str]

    def restore(self, known: Touched | None) -> None:
        restore(self.now, self.before)
        if known is not None:
            known.origins, known.renamed = self.origins, self.renamed


def restore(holder: Any, before: Any) -> None:
    """Restore the original members of a map or a list, in their order."""
    if isinstance(holder, list):
        holder[:] = before
    else:
        holder.clear()
        holder.update(before)
