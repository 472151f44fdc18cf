"""The only mutable object: applies edits, and returns the changes as RFC 6902 operations.

Before the first edit of a map or a list, the draft keeps a shallow copy of it. At the end only
these are compared with their copies. So the patch is minimal however often rules changed a place (a
rename and a new value become one `remove` and one `add`), and the cost depends on the edits, not on
the size of the object.

Positions: the edits of one round use the positions that the rule saw. So removals are applied last,
the deepest first, and in a list from its end. A map that becomes empty is removed, too. In the
patch, changes inside a list come before changes of the list itself, so each path is valid when it
is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Append, Edit, Remove, Rename, Set, place_of
from webhook.core.errors import EditError
from webhook.core.touched import Saved, Touched, restore
from webhook.kube.pointer import Path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.touched import Operation, Token


class Draft:
    """An object under repair: `object` is edited in place, `patch()` returns the changes so far.

    No map or list may occur at two places of the object, as with YAML aliases.
    """

    __slots__ = ("_saved", "_touched", "object")

    def __init__(self, obj: dict[str, Any]) -> None:
        self.object = obj
        self._touched: dict[int, Touched | None] = {}  # by id(); None: an edit added it
        # By id(): maps and lists that this round of edits changes.
        self._saved: dict[int, Saved] = {}

    def apply(self, edits: Iterable[Edit], *, texts_stay: bool = False) -> None:
        """Apply the edits together, or raise EditError and apply none of them.

        If `texts_stay`, no map or item is written where a text is, which may stand for the field.
        """
        edits = tuple(edits)
        for edit in edits:
            _check(self.object, edit, texts_stay=texts_stay)
        self._saved.clear()
        try:
            self._apply(edits)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            for token, saved in self._saved.items():
                saved.restore(self._touched[token])
            raise EditError(f"these edits do not fit together ({edits})") from error

    def _apply(self, edits: tuple[Edit, ...]) -> None:
        leaving: list[Path] = []
        for edit in edits:
            match edit:
                case Set():
                    self._set(edit.at, edit.value)
                case Append():
                    self._append(edit.to, edit.value)
                case Rename():
                    above = edit.at.parent
                    holder = self._touch(above, value_at(self.object, above))
                    holder[edit.name] = holder.pop(edit.at[-1])
                    known = self._touched[id(holder)]
                    if known is not None:
                        old = str(edit.at[-1])
                        known.renamed[edit.name] = known.renamed.pop(old, old)
                case _:  # only Remove is left
                    leaving.append(edit.at)
        by_holder: dict[Path, set[Token]] = {}  # by the map or list that contains them
        for at in sorted(leaving, key=_depth_and_position, reverse=True):
            by_holder.setdefault(at.parent, set()).add(at[-1])
        for holder_at, members in by_holder.items():
            self._take_out(holder_at, members)
            self._drop_if_empty(holder_at)

    def undo(self) -> None:
        """Undo all edits so far."""
        for known in self._touched.values():
            if known is not None:
                restore(known.now, known.before)
        self._touched.clear()
        self._saved.clear()

    def patch(self) -> list[Operation]:
        """The changes so far as RFC 6902 operations: `remove`, `replace` and `add`."""
        there = self._still_there(by_name=False)
        return [operation for known in there for operation in known.changes(self._is_as_it_was)]

    def changes(self) -> list[Edit]:
        """The changes as symbolic edits for a text, with places in the original object.

        A member with a new name is a Rename, and also a Set of the same place if its value is new.
        """
        there = self._still_there(by_name=True)
        return [edit for known in there for edit in known.edits(self._is_as_it_was)]

    def origin(self, at: Path) -> Path:
        """The place in the original object of the value that is now at `at`.

        A value that an edit added, and a place without a value, keep their present names and
        positions.
        """
        here: Any = self.object
        was: list[Token] = []
        for token in at:
            known = self._touched.get(id(here))
            was.append(token if known is None else known.name_before(token))
            try:
                here = here[token]
            except (LookupError, TypeError):
                here = None
        return Path(was)

    def _still_there(self, *, by_name: bool) -> list[Touched]:
        """The original maps and lists that are still in the object, the deepest first.

        A member with a new name is at its old place for texts (`by_name`), and removed for patches.
        """
        if not self._touched:  # the usual case
            return []
        touched = [known for known in self._touched.values() if known is not None]
        touched.sort(key=lambda known: len(known.at), reverse=True)
        places: dict[int, Mapping[Token, Token]] = {}  # by id(), of those that hold another
        return [each for each in touched if self._is_there(each, places, by_name=by_name)]

    def _is_as_it_was(self, was: Any, now: Any) -> bool:
        """True if `now` equals `was` before the first edit (edits may have changed it)."""
        known = self._touched.get(id(was))
        if known is not None:
            was = known.before
        if type(was) is not type(now):
            return False
        if isinstance(was, dict):
            return was.keys() == now.keys() and all(
                self._is_as_it_was(value, now[key]) for key, value in was.items()
            )
        if isinstance(was, list):
            return len(was) == len(now) and all(map(self._is_as_it_was, was, now))
        return bool(was == now)

    def _set(self, at: Path, value: Any) -> None:
        above = at.parent
        _put(self._touch(above, self._made_maps(above)), at[-1], copied(value))

    def _append(self, to: Path, value: Any) -> None:
        above = to.parent
        holder = self._made_maps(above)
        if isinstance(holder, dict) and holder.get(to[-1]) is None:
            items = [copied(value)]
            self._touched[id(items)] = None
            _put(self._touch(above, holder), to[-1], items)
            return
        items = self._touch(to, holder[to[-1]])
        items.append(copied(value))
        known = self._touched[id(items)]
        if known is not None and known.origins is not None:
            known.origins.append(None)

    def _take_out(self, at: Path, leaving: set[Token]) -> None:
        """Remove these members or items from the map or list at `at`."""
        holder = self._touch(at, value_at(self.object, at))
        known = self._touched[id(holder)]
        if isinstance(holder, dict):
            for name in leaving:
                holder.pop(name, None)  # a removal inside it may have removed it
                if known is not None:
                    known.renamed.pop(str(name), None)
            return
        if not leaving <= set(range(len(holder))):
            raise IndexError("an item that is to be removed does not exist")
        kept = [place for place in range(len(holder)) if place not in leaving]
        holder[:] = [holder[place] for place in kept]
        if known is not None and known.origins is not None:
            known.origins = [known.origins[place] for place in kept]

    def _drop_if_empty(self, at: Path) -> None:
        """Remove a member that edits left empty: Kubernetes treats it like a missing one."""
        here: Any = self.object
        for token in at[:-1]:
            here = here[token]
        if at and isinstance(here, dict) and here.get(at[-1]) in ({}, []):
            self._take_out(at.parent, {at[-1]})

    def _made_maps(self, at: Path) -> Any:
        """The value at `at`; missing maps on the way are created."""
        here: Any = self.object
        for depth, token in enumerate(at):
            if isinstance(here, dict) and here.get(token) is None:
                _put(self._touch(Path(at[:depth]), here), token, {})
            here = here[token]
        return here

    def _touch(self, at: Path, here: Any) -> Any:
        """The map or list at `at`, which is `here`; a copy is kept before its first edit."""
        its = id(here)
        if its not in self._touched:
            was = self._origin(at)
            self._touched[its] = None if was is None else Touched.of(here, was)
        if its not in self._saved:
            known = self._touched[its]
            origins = known.origins[:] if known is not None and known.origins is not None else None
            renamed = known.renamed.copy() if known is not None else {}
            self._saved[its] = Saved(here, here.copy(), origins, renamed)
        return here

    def _origin(self, at: Path) -> Path | None:
        """The original place of the value at `at`; None if an edit added it."""
        here: Any = self.object
        was: list[Token] = []
        for token in at:
            known = self._touched.get(id(here))
            origin = token if known is None else known.origin(token)
            if origin is None:
                return None
            was.append(origin)
            here = here[token]
        return Path(was)

    def _is_there(
        self, known: Touched, places: dict[int, Mapping[Token, Token]], *, by_name: bool
    ) -> bool:
        """False if an edit removed or replaced the container of this value."""
        here: Any = self.object
        for token in known.at:
            holder = self._touched.get(id(here))
            place: Token | None = token
            if holder is not None:
                if id(here) not in places:
                    places[id(here)] = holder.places(by_name=by_name)
                place = places[id(here)].get(token)
                if place is None or holder.origin(place) != token:
                    return False
            here = here[place]
        return True


def _put(holder: Any, token: Token, value: Any) -> None:
    """Put a value into a map by name or into a list by position."""
    if isinstance(holder, dict) is isinstance(token, int):
        raise TypeError(f"{token!r} is no place in a {type(holder).__name__}")
    holder[token] = value


def _depth_and_position(at: Path) -> tuple[int, int]:
    return len(at), at[-1] if isinstance(at[-1], int) else -1


def _check(obj: dict[str, Any], edit: Edit, *, texts_stay: bool) -> None:
    """Raise EditError unless the edit fits the object."""
    path = place_of(edit)
    if not path:
        raise EditError(f"an edit needs a place below the root ({edit})")
    must_be_there = isinstance(edit, Remove | Rename)
    holder: Any = None
    here: Any = obj
    for token in path:
        if here is None and not must_be_there:
            return  # null counts as an empty map
        holder = here
        if isinstance(here, dict) and isinstance(token, str):
            here = here.get(token, _MISSING)
        elif isinstance(here, list) and isinstance(token, int) and 0 <= token < len(here):
            here = here[token]
        else:
            raise EditError(f"there is no place {token!r} in a {type(here).__name__} ({edit})")
        if here is _MISSING:
            if must_be_there:
                raise EditError(f"{path} does not exist ({edit})")
            return
    if texts_stay and _holds_more(edit) and _is_text(here):
        raise EditError(f"{path} is a text ({edit})")
    if why := _misfit(edit, here, holder):
        raise EditError(f"{path} {why} ({edit})")


def _misfit(edit: Edit, here: Any, holder: Any) -> str:
    """Why an edit does not fit what is there; empty if it does."""
    if isinstance(edit, Append) and not (
        isinstance(here, list) or (here is None and isinstance(holder, dict))
    ):
        return "is no list"
    if isinstance(edit, Rename) and (isinstance(holder, list) or edit.name in holder):
        return f"cannot be called {edit.name}"
    return ""


def _holds_more(edit: Edit) -> bool:
    """Whether it adds to a list, or writes a map."""
    return isinstance(edit, Append) or (isinstance(edit, Set) and isinstance(edit.value, dict))


def _is_text(value: Any) -> bool:
    """Whether it may stand for a whole field: also `[[ x ]]`, as no list of a pod has lists."""
    is_list = isinstance(value, list)
    return isinstance(value, str) or (is_list and any(isinstance(each, list) for each in value))


_MISSING = object()


def copied(value: Any) -> Any:
    """A copy that later edits may change; the value (JSON, or from an edit) stays as it is."""
    if isinstance(value, dict):
        return {
            key: copied(item) if isinstance(item, _HOLDERS) else item for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [copied(item) if isinstance(item, _HOLDERS) else item for item in value]
    return value


_HOLDERS = (dict, list, tuple)
