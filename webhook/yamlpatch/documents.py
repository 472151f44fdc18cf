"""Reads a text into documents: nodes with their places, and the data as Kubernetes reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from webhook.kube.pointer import Path
from webhook.yamlpatch import json_tree, yaml_tree
from webhook.yamlpatch.nodes import (
    Alias,
    List,
    Map,
    Member,
    Node,
    Scalar,
    UnreadableError,
    entry_at,
    nodes_in,
    real,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


T = TypeVar("T")

MOST_VALUES = 1_000_000  # a few lines of aliases can stand for more than any memory holds
_MERGE = "<<"
_AT_START = re.compile(r"(?P<sign>---|\.\.\.)(?=[ \t\r\n]|\Z)")
_MARKER = re.compile(rf"\n{_AT_START.pattern}")  # `^` would take much longer
_BEFORE = re.compile(r"(?:%[^\n]*\n|[ \t\r]*(?:#[^\n]*)?\n)*")  # directives and comments


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a text that is neither YAML nor JSON, or is unlike any manifest.

    `at` is where reading it ended.
    """

    start: int
    end: int
    reason: str
    at: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A name that occurs twice in one map: readers use one of the values, but not all the same."""

    at: Path
    key: Node


@dataclass(slots=True)
class Document:
    """One document. `data` is its own copy: no part of it is at two places."""

    text: str
    start: int
    end: int
    root: Node
    json: bool = False
    nodes: list[Node] = field(default_factory=list)  # in the order of the text
    data: Any = None
    duplicates: list[Duplicate] = field(default_factory=list)
    memo: dict[Callable[[Document], Any], Any] = field(default_factory=dict, repr=False)

    def once(self, make: Callable[[Document], T]) -> T:
        """A cached fact about the document: a file may have thousands of edits."""
        if make not in self.memo:
            self.memo[make] = make(self)
        made: T = self.memo[make]
        return made

    def find(self, at: Path) -> Node | None:
        """The node at this place, an alias if there is one; None if there is none."""
        node: Node | None = self.root
        for token in at:
            if node is None:
                return None
            entry = entry_at(node, token)
            node = entry.value if entry is not None else None
        return node

    def place(self, at: Path, word: str = "") -> tuple[int, int]:
        """The place to show for this path: the member's name and value, or the nearest one.

        In a long text it is that of the word, if the text has it as it is.
        """
        node, entry = self.root, None
        for token in at:
            deeper = entry_at(node, token)
            if deeper is None:
                break
            entry, node = deeper, deeper.value
        if entry is None:
            return self.root.outer, self.root.end
        begins = self.text.find(word, entry.start, entry.end) if word else -1
        return (entry.start, entry.end) if begins < 0 else (begins, begins + len(word))


@dataclass(frozen=True, slots=True)
class Stream:
    """All documents of a text, and its unreadable parts."""

    documents: tuple[Document, ...]
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Part(Stream):
    """The documents between two `---`, usually one; of JSON, those of the whole text."""

    start: int = 0
    end: int = 0
    json: bool = False

    def again(self, text: str) -> Stream:
        """The documents of a new text for this part."""
        return _joined(parts(text, json=True) if self.json else _parts_of_yaml(text))


def read(text: str, *, json: bool = False, start: int = 0) -> Stream:
    """The documents of a text. Unreadable parts are reported, and the rest is read.

    There are only blanks before `start`, the begin of a line or the end of one.
    """
    return _joined(parts(text, json=json, start=start))


def _joined(found: Iterable[Stream]) -> Stream:
    found = list(found)
    return Stream(
        tuple(each for part in found for each in part.documents),
        tuple(each for part in found for each in part.unread),
    )


def parts(text: str, *, json: bool = False, start: int = 0) -> Iterator[Part]:
    """The same one by one: the nodes of a document need many times the memory of its text."""
    if text[start:].lstrip()[:1] in {"{", "["}:
        try:
            trees = json_tree.read(text)
        except json_tree.NotJsonError as error:
            if json:
                whole = Unread(0, len(text), str(error), error.at)
                return iter([Part((), (whole,), 0, len(text), json=True)])
        else:
            return iter([_collect(text, trees, 0, len(text), json=True)])
    return _parts_of_yaml(text, start)


def _collect(text: str, trees: Any, begin: int, behind: int, *, json: bool = False) -> Part:
    documents, unread = [], []
    for tree in trees:
        root = tree if json else tree.root
        start, end = (root.start, root.end) if json else (tree.start, tree.end)
        document = Document(text, start, end, root, json)
        try:
            if root is not None:
                document.nodes = nodes_in(root) if json else tree.nodes
                # Children of a node, also by an alias or a merge key, come before the node.
                nodes = document.nodes[::-1]
                nodes.sort(key=attrgetter("end"))
                _refuse_bombs(nodes)
                has_duplicates = _name_members(nodes, MOST_VALUES)
                document.data = _value(root)
                if has_duplicates:
                    document.duplicates = list(_duplicates(root, Path()))
        except _UnfitError as error:
            unread.append(Unread(start, end, str(error), error.at))
        else:
            documents.append(document)
    return Part(tuple(documents), tuple(unread), begin, behind, json)


def _parts_of_yaml(text: str, begin: int = 0) -> Iterator[Part]:
    """Documents between `---`, as kubectl splits a file: a faulty one does not affect others.

    The markers cannot be in a scalar.
    """
    for start, end in places_of_parts(text, begin):
        try:
            yield _collect(text, yaml_tree.read(text, start, end), start, end)
        except yaml_tree.NotYamlError as error:
            yield Part((), (Unread(start, end, str(error), error.at),), start, end)


def places_of_parts(text: str, begin: int = 0) -> Iterator[tuple[int, int]]:
    """The begin and the end of each part of a text, from the begin of a line or its end on."""
    start, first = begin, filter(None, [_AT_START.match(text, begin)])
    for found in chain(first, _MARKER.finditer(text, begin)):
        marker = found.start("sign")
        is_empty = _BEFORE.fullmatch(text, start, marker) is not None
        if found["sign"] == "---":
            if not is_empty:
                begins = _with_directives(text, start, marker)
                yield start, begins
                start = begins
            continue
        end = text.find("\n", marker) + 1 or len(text)
        if not (is_empty and start > begin):  # else it is a second `...`
            yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _with_directives(text: str, start: int, marker: int) -> int:
    """The begin of the directives of a `---`: libyaml needs no `...` before them."""
    begins = here = marker
    while here > start and text[here - 1] == "\n":
        here = max(text.rfind("\n", start, here - 1) + 1, start)
        if text[here] == "%":
            begins = here
        elif _BEFORE.fullmatch(text, here, text.find("\n", here) + 1) is None:
            break
    return begins


def _is_merge(member: Member) -> bool:
    """Whether the member is `<<: *other`: the members of the other map belong to this one, too."""
    key = member.key
    return isinstance(key, Scalar) and key.text == _MERGE and not key.style and key.tag is None


def sources_of(value: Node) -> list[Node]:
    """The maps that a merge key merges, by priority."""
    there = real(value)
    return [real(item.value) for item in there.items] if isinstance(there, List) else [there]


def _refuse_bombs(nodes: list[Node]) -> None:
    """Count the values for which the aliases stand, without making them."""
    if len(nodes) <= MOST_VALUES and Alias not in map(type, nodes):
        return
    sizes = dict.fromkeys(map(id, nodes), 1)
    for node in nodes:
        if isinstance(node, Alias):
            sizes[id(node)] += sizes[id(node.target)]
        size = sizes[id(node)]
        if size > MOST_VALUES:
            raise _UnfitError(node.outer, f"holds over {MOST_VALUES:,} values, by its aliases")
        if node.parent is not None:
            sizes[id(node.parent)] += size


def _name_members(nodes: list[Node], left: int) -> bool:
    """Set the names of every map. Returns whether one occurs twice in a map."""
    has_again = False
    for node in nodes:
        if not isinstance(node, Map):
            continue
        own: dict[str, Member] = {}
        for member in node.members:
            key = member.key
            name = key.value if type(key) is Scalar else None
            if type(name) is not str:
                name = _name(key)
            if name != _MERGE or not _is_merge(member):
                member.name = name
                has_again |= name in own
                own[name] = member
                continue
            for source in sources_of(member.value):
                if not isinstance(source, Map):
                    raise _UnfitError(member.start, "merges what is no map")
                left -= len(source.names)
                if left < 0:
                    raise _UnfitError(member.start, f"merges over {MOST_VALUES:,} values")
                node.names = {**source.names, **node.names}
        node.names |= own
    return has_again


def _name(key: Node) -> str:
    """A key as in JSON: a text."""
    there = real(key)
    if not isinstance(there, Scalar):
        raise _UnfitError(key.outer, "has a map or a list for a name: no manifest has")
    value = there.value
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


class _UnfitError(UnreadableError):
    """YAML that is unlike any manifest."""


def _value(node: Node, depth: int = 0) -> Any:
    """The data of a node; most nodes are scalars, and need no call."""
    if depth > json_tree.DEEPEST:  # by aliases: the nodes themselves are not so deep
        raise _UnfitError(node.outer, "is too deeply nested")
    there = real(node)
    if isinstance(there, Map):
        return {
            name: each.value.value if type(each.value) is Scalar else _value(each.value, depth + 1)
            for name, each in there.names.items()
        }
    if isinstance(there, List):
        return [
            each.value.value if type(each.value) is Scalar else _value(each.value, depth + 1)
            for each in there.items
        ]
    return there.value if isinstance(there, Scalar) else None


def _duplicates(node: Node, at: Path) -> Iterator[Duplicate]:
    there = real(node)
    if isinstance(there, Map):
        own: set[str | None] = {None}
        for member in there.members:
            if member.name is not None and member.name in own:
                yield Duplicate(at / member.name, member.key)
            own.add(member.name)
        for name, each in there.names.items():
            yield from _duplicates(each.value, at / name)
    elif isinstance(there, List):
        for position, item in enumerate(there.items):
            yield from _duplicates(item.value, at / position)
