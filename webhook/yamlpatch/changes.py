"""Maps each edit (by JSON Pointer) to the YAML node that must change.

With anchors, aliases and merge keys one place of the text is at several places of the object: it
can only be changed if all of them change in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Append, Edit, Remove, Rename, Set, place_of
from webhook.kube.pointer import ROOT, Path
from webhook.yamlpatch.documents import Document, sources_of
from webhook.yamlpatch.nodes import (
    Alias,
    Collection,
    Entry,
    List,
    Map,
    Node,
    entries,
    entry_at,
    real,
)
from webhook.yamlpatch.refine import refined
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Iterator, Sequence


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
        for member in (each for each in node.members if each.name is None):
            for source in sources_of(member.value):
                yield source
                if isinstance(source, Map):
                    yield from self._sources(source)


@dataclass(slots=True)
class NodeChange:
    """One change of the text. `paths` are the places of the object that need it."""

    node: Node  # the value, the entry's value, or the map or list that is extended
    users: set[Path]  # places of the object that would change
    what: Any  # the new name, or the value
    name: str = ""  # of a new member
    paths: set[Path] = field(default_factory=set)


@dataclass(slots=True)
class NodeChanges:
    """All changes of one document, by the nodes that they change (by id)."""

    document: Document
    places: Places
    names: dict[int, NodeChange] = field(default_factory=dict)  # of the member's value node
    removed: dict[int, NodeChange] = field(default_factory=dict)  # of the entry's value node
    values: dict[int, NodeChange] = field(default_factory=dict)  # of the value node
    added: dict[int, dict[Hashable, NodeChange]] = field(default_factory=dict)  # of the map or list
    _removed: dict[int, list[int]] = field(default_factory=dict)  # positions, by id(holder)

    def holders(self) -> list[Collection]:
        """The maps and lists in which entries are removed or added."""
        found: dict[int, Node] = {}
        positions = self.document.once(_positions)
        for value, change in self.removed.items():
            if (holder := change.node.parent) is not None:
                found[id(holder)] = holder
                self._removed.setdefault(id(holder), []).append(positions[value])
        for changes in self.added.values():
            for change in changes.values():
                found[id(change.node)] = change.node
        return [node for node in found.values() if isinstance(node, Map | List)]

    def removed_from(self, holder: Node) -> list[int]:
        """The positions of the removed entries, in order."""
        return sorted(self._removed.get(id(holder), ()))

    def added_to(self, node: Node) -> list[tuple[str, Any]]:
        """Name and value of the new entries of the map or list; items have no name."""
        return [(change.name, change.what) for change in self.added.get(id(node), {}).values()]


def changes_of(document: Document, edits: Iterable[Edit]) -> NodeChanges:
    """The changes of the text for the edits; raises RefusedError."""
    changes = NodeChanges(document, document.once(_places))
    counts: dict[Path, int] = {}
    for edit in _refined(document, edits):
        _refuse_duplicates(document, edit)
        match edit:
            case Rename():
                entry = _entry(document, edit.at)
                _note(changes.names, id(entry.value), _of_slot(changes, entry, edit.name), edit.at)
            case Remove():
                entry = _entry(document, edit.at)
                _note(changes.removed, id(entry.value), _of_slot(changes, entry, None), edit.at)
            case Append():
                holder = _there(document, edit.to)
                position = counts[edit.to] = counts.get(edit.to, 0) + 1
                _add(changes, holder, position, edit.value, edit.to)
            case _:
                _set(changes, edit)
    _settle(changes)
    return changes


def _positions(document: Document) -> dict[int, int]:
    """Where in its map or list each value is, by id() of the value."""
    found: dict[int, int] = {}
    for node in document.nodes:
        if isinstance(node, Map | List):
            every: Sequence[Entry] = entries(node)
            for position, entry in enumerate(every):
                found[id(entry.value)] = position
    return found


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


def _of_slot(changes: NodeChanges, entry: Entry, what: Any) -> NodeChange:
    return NodeChange(entry.value, changes.places.slots[id(entry.value)], what)


def _note(among: dict[Any, NodeChange], key: Hashable, change: NodeChange, path: Path) -> None:
    known = among.setdefault(key, change)
    if not is_same(known.what, change.what):
        raise RefusedError("by anchor and alias this is two things, and they differ", change.node)
    known.paths.add(path)


def _add(changes: NodeChanges, holder: Node, key: Hashable, what: Any, path: Path) -> None:
    among = changes.added.setdefault(id(holder), {})
    name = key if isinstance(key, str) else ""
    _note(among, key, NodeChange(holder, changes.places.contents[id(holder)], what, name), path)


def _set(changes: NodeChanges, edit: Set) -> None:
    document = changes.document
    holder = _there(document, edit.at.parent)
    entry = entry_at(holder, edit.at[-1])
    if entry is None:
        _add(changes, holder, str(edit.at[-1]), edit.value, edit.at)
        return
    node = real(entry.value)
    change = NodeChange(node, changes.places.contents[id(node)], edit.value)
    try:
        _note(changes.values, id(node), change, edit.at)
    except RefusedError:
        if not isinstance(entry.value, Alias):
            raise
        _note(changes.values, id(entry.value), _of_slot(changes, entry, edit.value), edit.at)


def _settle(changes: NodeChanges) -> None:
    """Refuse changes that not all users need.

    An alias may be replaced while the anchored node stays.
    """
    for change in list(changes.values.values()):
        if not _is_wanted_by_all(change, ()) and not isinstance(change.node, Alias):
            _replace_aliases(changes, change)
    replaced = [change for change in changes.values.values() if isinstance(change.node, Alias)]
    leaving = {path for change in (*changes.removed.values(), *replaced) for path in change.paths}
    added = [change for among in changes.added.values() for change in among.values()]
    values = [*changes.names.values(), *changes.removed.values(), *changes.values.values()]
    for change in (*values, *added):
        if not _is_wanted_by_all(change, leaving):
            raise RefusedError(_why_not(change), change.node)


def _is_wanted_by_all(change: NodeChange, leaving: Container[Path]) -> bool:
    """Whether all users need it, or are removed."""
    return all(
        any(Path(user[:depth]) in leaving for depth in range(1, len(user) + 1))
        for user in _ends(change) - change.paths
    )


def _ends(change: NodeChange) -> set[Path]:
    """The users, as paths of the change: those of a new member have its name."""
    return {user / change.name for user in change.users} if change.name else change.users


def _why_not(change: NodeChange) -> str:
    anchor = next((f"the anchor &{node.anchor}" for node in change.node.up() if node.anchor), "")
    count = len(change.paths)
    few = "one of them is" if count == 1 else f"{count} of them are"
    return (
        f"by {anchor or 'a merge key'} this is in {len(change.users)} places of the object, and "
        f"only {few} to change: write it out where it differs"
    )


def _replace_aliases(changes: NodeChanges, change: NodeChange) -> None:
    """A new value for aliases alone: each alias is replaced by the value."""
    entries = {path: _entry(changes.document, path) for path in change.paths}
    if not all(isinstance(entry.value, Alias) for entry in entries.values()):
        return
    del changes.values[id(change.node)]
    for path, entry in entries.items():
        _note(changes.values, id(entry.value), _of_slot(changes, entry, change.what), path)
