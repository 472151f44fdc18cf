"""Maps each edit (by JSON Pointer) to the YAML node that must change.

With anchors, aliases and merge keys one place of the text is at several places of the object: it
can only be changed if all of them change in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Append, Edit, Remove, Rename, Set, place_of
from webhook.kube.pointer import ROOT, Path
from webhook.yamlpatch.documents import Document, is_merge, sources_of
from webhook.yamlpatch.nodes import Alias, Collection, Entry, List, Map, Node, entry_at, real
from webhook.yamlpatch.refine import refined
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Iterator


class RefusedError(Exception):
    """An edit that cannot be written into this text; `start` and `end` are the place."""

    def __init__(self, reason: str, node: Node) -> None:
        super().__init__(reason)
        self.reason = reason
        self.start = node.outer
        self.end = node.end


@dataclass(slots=True)
class Places:
    """The places in the object for each place of the text, by id(node).

    `slots` through parents only, `contents` also through aliases and merge keys.
    """

    slots: dict[int, set[Path]] = field(default_factory=dict)
    contents: dict[int, set[Path]] = field(default_factory=dict)

    def note(self, node: Node, at: Path) -> None:
        self.slots.setdefault(id(node), set()).add(at)
        there = real(node)
        self.contents.setdefault(id(there), set()).add(at)
        if isinstance(there, List):
            for position, item in enumerate(there.items):
                self.note(item.value, at / position)
        elif isinstance(there, Map):
            for name, member in there.names.items():
                self.note(member.value, at / name)
            for source in self._sources(there):
                self.contents.setdefault(id(source), set()).add(at)

    def _sources(self, node: Map) -> Iterator[Node]:
        for member in filter(is_merge, node.members):
            for source in sources_of(member.value):
                yield source
                if isinstance(source, Map):
                    yield from self._sources(source)


@dataclass(slots=True)
class Wish:
    """One change of the text. `paths` are the places of the object that need it."""

    node: Node  # the value, the entry's value, or the map or list that is extended
    users: set[Path]  # places of the object that would change
    what: Any  # the new name, or the value
    name: str = ""  # of a new member
    paths: set[Path] = field(default_factory=set)


@dataclass(slots=True)
class Wishes:
    """All changes of one document, by the nodes that they change (by id)."""

    document: Document
    places: Places
    names: dict[int, Wish] = field(default_factory=dict)  # of the member's value node
    gone: dict[int, Wish] = field(default_factory=dict)  # of the entry's value node
    values: dict[int, Wish] = field(default_factory=dict)  # of the value node
    added: dict[int, dict[Hashable, Wish]] = field(default_factory=dict)  # of the map or list

    def holders(self) -> list[Collection]:
        """The maps and lists in which entries are removed or added."""
        found: dict[int, Node] = {}
        for wish in self.gone.values():
            if wish.node.parent is not None:
                found[id(wish.node.parent)] = wish.node.parent
        for wishes in self.added.values():
            for wish in wishes.values():
                found[id(wish.node)] = wish.node
        return [node for node in found.values() if isinstance(node, Map | List)]

    def is_gone(self, entry: Entry) -> bool:
        return id(entry.value) in self.gone

    def added_to(self, node: Node) -> list[tuple[str, Any]]:
        """Name and value of the new entries of the map or list; items have no name."""
        return [(wish.name, wish.what) for wish in self.added.get(id(node), {}).values()]


def wishes_of(document: Document, edits: Iterable[Edit]) -> Wishes:
    """The changes of the text for the edits; raises RefusedError."""
    wishes = Wishes(document, document.once(_places))
    counts: dict[Path, int] = {}
    for edit in _refined(document, edits):
        _refuse_duplicates(document, edit)
        match edit:
            case Rename():
                entry = _entry(document, edit.at)
                _wish(wishes.names, id(entry.value), _of_slot(wishes, entry, edit.name), edit.at)
            case Remove():
                entry = _entry(document, edit.at)
                _wish(wishes.gone, id(entry.value), _of_slot(wishes, entry, None), edit.at)
            case Append():
                holder = _there(document, edit.to)
                position = counts[edit.to] = counts.get(edit.to, 0) + 1
                _add(wishes, holder, position, edit.value, edit.to)
            case _:
                _set(wishes, edit)
    _settle(wishes)
    return wishes


def _places(document: Document) -> Places:
    places = Places()
    places.note(document.root, ROOT)
    return places


def _refined(document: Document, edits: Iterable[Edit]) -> Iterator[Edit]:
    """The edits, with those of whole maps and lists split into edits inside them."""
    for edit in edits:
        was = _data_at(document, edit.at) if isinstance(edit, Set) else None
        if isinstance(edit, Set) and was is not None:
            yield from refined(was, edit.value, edit.at)
        else:
            yield edit


def _data_at(document: Document, at: Path) -> Any:
    here = document.data
    for token in at:
        try:
            here = here[token]
        except (LookupError, TypeError):
            return None
    return here


def _refuse_duplicates(document: Document, edit: Edit) -> None:
    at = place_of(edit)
    for each in document.duplicates:
        if at[: len(each.at)] == each.at:
            raise RefusedError(f"{each.at[-1]} stands twice in one map: delete one", each.key)


def _there(document: Document, at: Path) -> Node:
    node = document.find(at)
    if node is None:
        raise RefusedError(f"{at.dotted} is not in the text", document.root)
    return real(node)


def _entry(document: Document, at: Path) -> Entry:
    entry = entry_at(_there(document, at.parent), at[-1])
    if entry is None:
        raise RefusedError(f"{at.dotted} is not in the text", _there(document, at.parent))
    return entry


def _of_slot(wishes: Wishes, entry: Entry, what: Any) -> Wish:
    return Wish(entry.value, wishes.places.slots[id(entry.value)], what)


def _wish(among: dict[Any, Wish], key: Hashable, wish: Wish, path: Path) -> None:
    known = among.setdefault(key, wish)
    if not is_same(known.what, wish.what):
        raise RefusedError("by anchor and alias this is two things, and they differ", wish.node)
    known.paths.add(path)


def _add(wishes: Wishes, holder: Node, key: Hashable, what: Any, path: Path) -> None:
    among = wishes.added.setdefault(id(holder), {})
    name = key if isinstance(key, str) else ""
    _wish(among, key, Wish(holder, wishes.places.contents[id(holder)], what, name), path)


def _set(wishes: Wishes, edit: Set) -> None:
    document = wishes.document
    holder = _there(document, edit.at.parent)
    entry = entry_at(holder, edit.at[-1])
    if entry is None:
        _add(wishes, holder, str(edit.at[-1]), edit.value, edit.at)
        return
    node = real(entry.value)
    wish = Wish(node, wishes.places.contents[id(node)], edit.value)
    try:
        _wish(wishes.values, id(node), wish, edit.at)
    except RefusedError:
        if not isinstance(entry.value, Alias):
            raise
        _wish(wishes.values, id(entry.value), _of_slot(wishes, entry, edit.value), edit.at)


def _settle(wishes: Wishes) -> None:
    """Refuse changes that not all users need.

    An alias may be replaced while the anchored node stays.
    """
    for wish in list(wishes.values.values()):
        if not _is_wanted_by_all(wish, ()) and not isinstance(wish.node, Alias):
            _replace_aliases(wishes, wish)
    replaced = [wish for wish in wishes.values.values() if isinstance(wish.node, Alias)]
    leaving = {path for wish in (*wishes.gone.values(), *replaced) for path in wish.paths}
    added = [wish for among in wishes.added.values() for wish in among.values()]
    values = [*wishes.names.values(), *wishes.gone.values(), *wishes.values.values()]
    for wish in (*values, *added):
        if not _is_wanted_by_all(wish, leaving):
            raise RefusedError(_why_not(wish), wish.node)


def _is_wanted_by_all(wish: Wish, leaving: Container[Path]) -> bool:
    """Whether all users need it, or are removed."""
    return all(
        any(Path(user[:depth]) in leaving for depth in range(1, len(user) + 1))
        for user in _ends(wish) - wish.paths
    )


def _ends(wish: Wish) -> set[Path]:
    """The users, as paths of the change: those of a new member have its name."""
    return {user / wish.name for user in wish.users} if wish.name else wish.users


def _why_not(wish: Wish) -> str:
    anchor = next((f"the anchor &{node.anchor}" for node in wish.node.up() if node.anchor), "")
    few = "one of them is" if len(wish.paths) == 1 else f"{len(wish.paths)} of them are"
    return (
        f"by {anchor or 'a merge key'} this is in {len(wish.users)} places of the object, and only "
        f"{few} to change: write it out where it differs"
    )


def _replace_aliases(wishes: Wishes, wish: Wish) -> None:
    """A new value for aliases alone: each alias is replaced by the value."""
    entries = {path: _entry(wishes.document, path) for path in wish.paths}
    if not all(isinstance(entry.value, Alias) for entry in entries.values()):
        return
    del wishes.values[id(wish.node)]
    for path, entry in entries.items():
        _wish(wishes.values, id(entry.value), _of_slot(wishes, entry, wish.what), path)
