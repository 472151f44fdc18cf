"""The one mutable object on the road: takes edits, and says what they came to as RFC 6902.

The first time an edit touches a map or a list, the draft keeps a shallow copy of it. At the end
only those few are compared with their copies, so the patch is minimal however often the rules
touched a place (a rename and a rounding are one `remove` and one `add`), and it costs what the
edits cost, not what the object does.

Positions: edits that arrive together name list positions as they were when the rule looked, so
items leave last, the deepest first, and from the end. What a removal leaves empty goes with it. In the patch, changes inside a list come before changes of the
list itself, so every path holds when its turn comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Append, Edit, Remove, Rename, Set
from webhook.core.errors import EditError
from webhook.core.pointer import Path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Operation = dict[str, Any]
    Token = str | int


@dataclass(slots=True)
class _Touched:
    """A map or a list that was there before the first edit, and how it was then."""

    at: Path  # where it was, in the object as it came
    now: Any
    before: Any
    origins: list[int | None] | None  # of a list: where each item was; None: an edit added it

    def origin(self, token: Token) -> Token | None:
        """Where the item that is at `token` now was before; None if an edit put it there."""
        if self.origins is not None:
            was = self.origins[int(token)]
            return was if was is not None and self.before[was] is self.now[token] else None
        return token if token in self.before and self.before[token] is self.now[token] else None

    def changes(self) -> Iterator[Operation]:
        return self._map_changes() if self.origins is None else self._list_changes(self.origins)

    def _map_changes(self) -> Iterator[Operation]:
        for key in self.before:
            if key not in self.now:
                yield {"op": "remove", "path": str(self.at / key)}
        for key, value in self.now.items():
            if key not in self.before:
                yield {"op": "add", "path": str(self.at / key), "value": value}
            elif self.before[key] is not value and self.before[key] != value:
                yield {"op": "replace", "path": str(self.at / key), "value": value}

    def _list_changes(self, origins: list[int | None]) -> Iterator[Operation]:
        for was, value in zip(origins, self.now, strict=True):
            if was is not None and self.before[was] is not value and self.before[was] != value:
                yield {"op": "replace", "path": str(self.at / was), "value": value}
        for was in range(len(self.before) - 1, -1, -1):
            if was not in origins:
                yield {"op": "remove", "path": str(self.at / was)}
        for origin, value in zip(origins, self.now, strict=True):
            if origin is None:
                yield {"op": "add", "path": str(self.at / "-"), "value": value}


class Draft:
    """An object under repair: `object` is edited in place, `patch()` is what happened so far."""

    __slots__ = ("_touched", "object")

    def __init__(self, obj: dict[str, Any]) -> None:
        self.object = obj
        self._touched: dict[int, _Touched | None] = {}  # by id(); None: an edit brought it in

    def apply(self, edits: Iterable[Edit]) -> None:
        """Apply the edits together, or raise EditError and apply none of them."""
        edits = tuple(edits)
        for edit in edits:
            _check(self.object, edit)
        members: list[Path] = []
        leaving: list[Path] = []
        for edit in edits:
            match edit:
                case Set():
                    self._set(edit.at, edit.value)
                case Append():
                    self._append(edit.to, edit.value)
                case Rename():
                    holder = self._touch(edit.at.parent)
                    holder[edit.name] = holder.pop(edit.at[-1])
                case Remove() if isinstance(edit.at[-1], int):
                    leaving.append(edit.at)
                case Remove():
                    members.append(edit.at)
                    del self._touch(edit.at.parent)[edit.at[-1]]
        for at in members:
            self._drop_if_empty(at.parent)
        for at in sorted(set(leaving), key=_depth_and_position, reverse=True):
            self._take_out(at)
            self._drop_if_empty(at.parent)

    def patch(self) -> list[Operation]:
        """The changes so far as RFC 6902 operations: `remove`, `replace` and `add`."""
        touched = [known for known in self._touched.values() if known is not None]
        touched.sort(key=lambda known: len(known.at), reverse=True)
        there = [known for known in touched if self._is_there(known)]
        return [operation for known in there for operation in known.changes()]

    def _set(self, at: Path, value: Any) -> None:
        self._make_maps(at.parent)
        self._touch(at.parent)[at[-1]] = _copy(value)

    def _append(self, to: Path, value: Any) -> None:
        self._make_maps(to.parent)
        holder = self._touch(to.parent)
        if isinstance(holder, dict) and holder.get(to[-1]) is None:
            holder[to[-1]] = []
        items = self._touch(to)
        items.append(_copy(value))
        known = self._touched[id(items)]
        if known is not None and known.origins is not None:
            known.origins.append(None)

    def _take_out(self, at: Path) -> None:
        items = self._touch(at.parent)
        del items[at[-1]]
        known = self._touched[id(items)]
        if known is not None and known.origins is not None:
            del known.origins[int(at[-1])]

    def _drop_if_empty(self, at: Path) -> None:
        """Take away a member that the edits left empty: to Kubernetes it is as good as none."""
        here: Any = self.object
        for token in at[:-1]:
            here = here.get(token) if isinstance(here, dict) else here[token]
            if here is None:
                return
        if at and isinstance(here, dict) and here.get(at[-1]) in ({}, []):
            del self._touch(at.parent)[at[-1]]

    def _make_maps(self, at: Path) -> None:
        here: Any = self.object
        for depth, token in enumerate(at):
            if isinstance(here, dict) and here.get(token) is None:
                self._touch(Path(at[:depth]))[token] = {}
            here = here[token]

    def _touch(self, at: Path) -> Any:
        """The map or list at `at`, with a copy kept if this is its first edit."""
        here: Any = self.object
        was: Path | None = Path()
        for token in at:
            known = self._touched.get(id(here))
            origin = token if known is None else known.origin(token)
            was = None if was is None or origin is None else was / origin
            here = here[token]
        if id(here) not in self._touched:
            self._touched[id(here)] = None if was is None else _touched(was, here)
        return here

    def _is_there(self, known: _Touched) -> bool:
        """False if an edit took away, or put another in the place of, what holds this."""
        here: Any = self.object
        for token in known.at:
            holder = self._touched.get(id(here))
            place: Token | None = token
            if holder is not None:
                place = _place(holder, token)
                if place is None or holder.origin(place) != token:
                    return False
            here = here[place]
        return True


def _place(holder: _Touched, was: Token) -> Token | None:
    """Where the item that was at `was` is now."""
    if holder.origins is None:
        return was if was in holder.now else None
    return holder.origins.index(int(was)) if was in holder.origins else None


def _touched(was: Path, here: Any) -> _Touched:
    if isinstance(here, list):
        return _Touched(was, here, list(here), list(range(len(here))))
    return _Touched(was, here, dict(here), None)


def _depth_and_position(at: Path) -> tuple[int, int]:
    return len(at), int(at[-1])


def _check(obj: dict[str, Any], edit: Edit) -> None:
    """Raise EditError unless the edit fits the object."""
    path = edit.to if isinstance(edit, Append) else edit.at
    if not path:
        raise EditError(f"an edit needs a place below the root ({edit})")
    must_be_there = isinstance(edit, Remove | Rename)
    here: Any = obj
    for token in path:
        if here is None and not must_be_there:
            return  # a null map is as good as none
        here = _step(here, token, edit)
        if here is _MISSING:
            if must_be_there:
                raise EditError(f"{path} is not there ({edit})")
            return
    if isinstance(edit, Append) and not isinstance(here, list | None):
        raise EditError(f"{path} is no list ({edit})")


_MISSING = object()


def _step(here: Any, token: Token, edit: Edit) -> Any:
    match here, token:
        case dict(), str():
            return here.get(token, _MISSING)
        case list(), int() if 0 <= token < len(here):
            return here[token]
    raise EditError(f"there is no place {token!r} in a {type(here).__name__} ({edit})")


def _copy(value: Any) -> Any:
    """A copy that later edits may change without changing the finding that carries the value."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(item) for item in value]
    return value
