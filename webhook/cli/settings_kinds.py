"""What a value in the settings file may be.

A kind reads a YAML node, says the same in words and in JSON Schema, and writes a value back as the
file has it. So the reader, the schema, `config show` and the manual cannot disagree.
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")
Schema = dict[str, Any]
_LONGEST = 80  # characters of a wrong value that a message repeats


class Mistake(NamedTuple):
    """What is wrong at a place of the file, and how to mend it; lines and columns from 1."""

    line: int
    column: int
    what: str


class Refused(Exception):  # noqa: N818 - it never leaves this module
    """The node is not what its kind wants."""

    def __init__(self, node: yaml.Node, what: str) -> None:
        super().__init__(what)
        self.node = node
        self.what = what


@dataclass(slots=True)
class Notes:
    """What reading leaves besides values: every mistake, and where each setting stands.

    A place is named as `capacity.pools[0].gpus`; the members of a map follow a dot.
    """

    mistakes: list[Mistake] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def attempt(self, reader: Reader, node: yaml.Node, path: str) -> Any:
        """What is read; a refusal is noted and gives None, which no kind reads."""
        try:
            return reader.read(node, path, self)
        except Refused as refused:
            self.add(refused.node, refused.what)
        return None

    def add(self, node: yaml.Node, what: str) -> None:
        """Note what is wrong here."""
        self.mistakes.append(Mistake(*_place(node), what))

    def mark(self, path: str, node: yaml.Node) -> str:
        """Note where this setting begins: at its name, or at an item's first character."""
        self.places[path] = _place(node)
        return path


class Reader(Protocol):
    """What reads a node: a kind, or a map with known names."""

    def read(self, node: yaml.Node, path: str, notes: Notes) -> Any:
        """The value; raises Refused, or notes what is wrong further in."""


class Kind(ABC, Generic[T]):
    """One kind of value."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What the value must be, to follow `must be`."""

    @abstractmethod
    def read(self, node: yaml.Node, path: str, notes: Notes) -> T:
        """The value; raises Refused, or notes what is wrong further in."""

    @abstractmethod
    def schema(self) -> Schema:
        """The same as JSON Schema (draft 2020-12)."""

    def plain(self, value: T) -> Any:
        """The value as the file writes it; None if the file would leave it out."""
        return value


@dataclass(frozen=True, slots=True)
class Text(Kind[str]):
    """A text that fits a pattern whole. The pattern is one that ECMA-262 understands too."""

    what: str
    pattern: str
    such: str = ""

    @property
    def words(self) -> str:
        return f"{self.what}, as {self.such}" if self.such else self.what

    def read(self, node: yaml.Node, path: str, notes: Notes) -> str:
        del path, notes
        if not isinstance(node, yaml.ScalarNode):
            raise Refused(node, f"must be a text, {self.words}, not {shown(node)}")
        if not node.tag.endswith(":str") and node.value:
            raise Refused(node, f'must be a text: write it in quotes, "{node.value[:_LONGEST]}"')
        if not node.tag.endswith(":str") or not re.fullmatch(self.pattern, node.value):
            raise Refused(node, f"must be {self.words}, not {shown(node)}")
        return str(node.value)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}

    def plain(self, value: str) -> str | None:
        return value if re.fullmatch(self.pattern, value) else None


@dataclass(frozen=True, slots=True)
class Truth(Kind[bool]):
    """True or false."""

    @property
    def words(self) -> str:
        return "true or false"

    def read(self, node: yaml.Node, path: str, notes: Notes) -> bool:
        del path, notes
        if not isinstance(node, yaml.ScalarNode) or not node.tag.endswith(":bool"):
            raise Refused(node, f"must be true or false, without quotes, not {shown(node)}")
        return str(node.value).lower() == "true"

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Whole(Kind[int]):
    """A whole number."""

    least: int
    most: int

    @property
    def words(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def read(self, node: yaml.Node, path: str, notes: Notes) -> int:
        del path, notes
        number = _number(node)
        if number is None or not self.least <= number <= self.most:
            raise Refused(node, f"must be {self.words}, not {shown(node)}")
        return number

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class OneOf(Kind[T]):
    """One of a few words, each with what it stands for; two words may stand for the same."""

    choices: Mapping[str, T]
    what: str = ""  # said instead of a long list
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return self.what or f"one of {', '.join(self.choices)}"

    def read(self, node: yaml.Node, path: str, notes: Notes) -> T:
        del path, notes
        text = str(node.value) if isinstance(node, yaml.ScalarNode) else ""
        if text in self.choices:
            return self.choices[text]
        hint = meant(text, self.choices)
        raise Refused(node, f"must be {self.words}, not {shown(node)}{hint}")

    def schema(self) -> Schema:
        return {"enum": list(self.choices)}

    def plain(self, value: T) -> str | None:
        return next(
            (word for word, stands_for in self.choices.items() if stands_for == value), None
        )

    def synonyms(self) -> Iterator[tuple[str, str]]:
        """Pairs of words that stand for the same."""
        first: dict[T, str] = {}
        for word, stands_for in self.choices.items():
            if first.setdefault(stands_for, word) != word:
                yield first[stands_for], word


@dataclass(frozen=True, slots=True)
class ListOf(Kind[tuple[T, ...]]):
    """A list of values of one kind."""

    item: Kind[T]
    least: int = 0

    @property
    def words(self) -> str:
        return f"a list; each {self.item.words}"

    def read(self, node: yaml.Node, path: str, notes: Notes) -> tuple[T, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise Refused(node, f"must be a list, as [a, b], not {shown(node)}")
        if len(node.value) < self.least:
            raise Refused(node, "must name at least one, or be left out: delete the line")
        read = (
            notes.attempt(self.item, each, notes.mark(f"{path}[{position}]", each))
            for position, each in enumerate(node.value)
        )
        return tuple(each for each in read if each is not None)

    def schema(self) -> Schema:
        least = {"minItems": self.least} if self.least else {}
        return {"type": "array", "items": self.item.schema(), **least}

    def plain(self, value: tuple[T, ...]) -> list[Any] | None:
        return None if len(value) < self.least else [self.item.plain(each) for each in value]


@dataclass(frozen=True, slots=True)
class MapOf(Kind[T], Generic[T]):
    """A map whose names are free, within what their kind allows."""

    key: Text | OneOf[str]
    value: Kind[Any]
    make: Callable[[Iterable[tuple[str, Any]]], T]  # dict, or a tuple of pairs
    least: int = 0

    @property
    def words(self) -> str:
        return f"a map; each name {self.key.words}, with {self.value.words}"

    def read(self, node: yaml.Node, path: str, notes: Notes) -> T:
        if not isinstance(node, yaml.MappingNode):
            raise Refused(node, f"must be a map, as {{name: value}}, not {shown(node)}")
        if len(node.value) < self.least:
            raise Refused(node, "must name at least one, or be left out: delete the line")
        read: dict[str, Any] = {}
        for key, value in node.value:
            name = notes.attempt(self.key, key, path)
            if name in read:
                notes.add(key, f"{name} stands twice: delete one")
            elif name is not None:
                read[name] = notes.attempt(self.value, value, notes.mark(f"{path}.{name}", key))
        return self.make(read.items())

    def schema(self) -> Schema:
        least = {"minProperties": self.least} if self.least else {}
        value = self.value.schema()
        if not isinstance(self.key, OneOf):
            names: Schema = {"propertyNames": self.key.schema(), "additionalProperties": value}
            return {"type": "object", **names, **least}
        words = {
            word: {"title": self.key.titles.get(word, word), **value} for word in self.key.choices
        }
        once = [{"not": {"required": list(pair)}} for pair in self.key.synonyms()]
        names = {"properties": words, "additionalProperties": False}
        return {"type": "object", **names, **least, **({"allOf": once} if once else {})}

    def plain(self, value: T) -> dict[str, Any] | None:
        members: dict[str, Any] = dict(value)  # type: ignore[call-overload]
        if len(members) < self.least:
            return None
        return {name: self.value.plain(each) for name, each in members.items()}


@dataclass(frozen=True, slots=True)
class Shared(Kind[T]):
    """A kind that stands once in the schema, among its definitions, and is referred to."""

    name: str
    kind: Kind[T]

    @property
    def words(self) -> str:
        return self.kind.words

    def read(self, node: yaml.Node, path: str, notes: Notes) -> T:
        return self.kind.read(node, path, notes)

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> Schema:
        """What is referred to."""
        return self.kind.schema()

    def plain(self, value: T) -> Any:
        return self.kind.plain(value)


def meant(name: str, known: Iterable[str]) -> str:
    """A guess at what was meant, whatever its capitals."""
    lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    return f"; did you mean {lower[close[0]]}?" if close else ""


def shown(node: yaml.Node) -> str:
    """The value in a message: short, and nothing in it that a terminal would obey."""
    if isinstance(node, yaml.ScalarNode):
        quoted = node.tag.endswith(":str")
        if node.tag.endswith(":null"):
            return "nothing"
        return repr(node.value[:_LONGEST]) if quoted else bare(node)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a map"


def bare(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return shown(node)
    text = str(node.value)[:_LONGEST]
    return text if text.isprintable() and text else repr(text)


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _number(node: yaml.Node) -> int | None:
    """A number that is whole, however it is written: 8, 8.0 and 8e0 are the same in JSON."""
    if not isinstance(node, yaml.ScalarNode) or len(node.value) > _LONGEST:
        return None
    if node.tag.endswith(":int"):
        return int(node.value, 0) if node.value[:2] in {"0x", "0o"} else int(node.value)
    if node.tag.endswith(":float"):
        number = float(node.value)
        return int(number) if number.is_integer() else None
    return None
