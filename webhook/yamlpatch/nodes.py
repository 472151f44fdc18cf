"""The nodes of a text, with their places and styles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class UnreadableError(ValueError):
    """The text cannot be read from `at` on."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at


@dataclass(eq=False, slots=True)
class Node:
    """A scalar, a map, a list or an alias; `start` and `end` are indexes into the text.

    `start` is that of the content; `outer` that of the anchor or tag before it, if there is one.
    The end of a block is that of its last member, without the line end: comments and blank lines
    after it belong to no node.
    """

    outer: int
    start: int
    end: int
    parent: Node | None = None
    anchor: str = ""
    tag: str | None = None

    def up(self) -> Iterator[Node]:
        """This node and all nodes around it, from the inside out."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


@dataclass(eq=False, slots=True)
class Scalar(Node):
    """`style` is the quote, `|` or `>`, or empty for a plain one; `value` is as in JSON."""

    text: str = ""
    style: str = ""
    value: Any = None


@dataclass(eq=False, slots=True)
class Alias(Node):
    """`*name`: stands for a node elsewhere."""

    target: Node = None  # type: ignore[assignment]  # always set


@dataclass(eq=False, slots=True)
class Member:
    """A key and its value in a map. `name` is the key as in JSON; None for a merge key (<<)."""

    key: Node
    value: Node
    name: str | None = None

    @property
    def start(self) -> int:
        return self.key.outer

    @property
    def end(self) -> int:
        return max(self.value.end, self.key.end)


@dataclass(eq=False, slots=True)
class Item:
    """An item of a list; in block style `start` is that of its dash."""

    start: int
    value: Node

    @property
    def end(self) -> int:
        return max(self.value.end, self.start + 1)


@dataclass(eq=False, slots=True)
class Map(Node):
    """`flow` is {a: b}. `names` has the members as they are read, also by merge keys (<<)."""

    flow: bool = False
    members: list[Member] = field(default_factory=list)
    names: dict[str, Member] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class List(Node):
    """`flow` is [a, b]."""

    flow: bool = False
    items: list[Item] = field(default_factory=list)


Entry = Member | Item
Collection = Map | List


def nodes_in(node: Node) -> list[Node]:
    """This node and all nodes in it, in the order of the text."""
    found, waiting = [], [node]
    while waiting:
        here = waiting.pop()
        found.append(here)
        if isinstance(here, Map):
            for member in reversed(here.members):
                waiting += (member.value, member.key)
        elif isinstance(here, List):
            waiting += [item.value for item in reversed(here.items)]
    return found


def entry_at(node: Node, token: str | int) -> Entry | None:
    """The node at this name or position of a map or a list, or of one that an alias stands for."""
    there = node.target if isinstance(node, Alias) else node
    if isinstance(there, List) and isinstance(token, int):
        return there.items[token] if 0 <= token < len(there.items) else None
    if isinstance(there, Map) and isinstance(token, str):
        return there.names.get(token)
    return None


def entries(node: Collection) -> list[Member] | list[Item]:
    """The members or the items."""
    return node.members if isinstance(node, Map) else node.items


def real(node: Node) -> Node:
    """The node itself, or the target of an alias."""
    return node.target if isinstance(node, Alias) else node
