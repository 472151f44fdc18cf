"""Reads YAML 1.2: a text in, plain data and the place of each part out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[int | str, ...]  # ("capacity", "pools", 0, "gpus"), as in pydantic

AT_THE_NAME = "[key]"  # pydantic ends a place with it if the name itself is meant

# libyaml goes down one C frame a level and does not ask how many are left.
_DEEPEST = 1_000
_LARGEST_FOR_WORDS = 100_000  # characters: the parser in Python takes about a second for them
_STANDARD = "tag:yaml.org,2002:"
_TAGS: dict[type[yaml.Node], tuple[str, ...]] = {
    yaml.ScalarNode: ("str", "int", "float", "bool", "null"),
    yaml.SequenceNode: ("seq",),
    yaml.MappingNode: ("map",),
}
# No setting is so deep. A deeper value is below something of the wrong type, and an alias within
# itself has no end.
_DEEPEST_SETTING = 12
_MOST_VALUES = 100_000  # more than any real file has; aliases of aliases could make billions
LONGEST = 80  # characters of a number, and of a wrong value in a message


class Mistake(NamedTuple):
    """A mistake at a place of the file, and what to write; lines and columns begin at 1."""

    line: int
    column: int
    what: str


class _Nothing:
    """YAML's null, and any value that no setting may have."""


NOTHING = _Nothing()  # not None, which stands for a missing setting


class _Yaml12(yaml.resolver.BaseResolver):
    """The types of plain words in YAML 1.2, as in editors: `off`, `no` and `on` are texts."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # so the base class has it


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
        list("-+.0123456789"),
    ),
):
    _Yaml12.add_implicit_resolver(f"{_STANDARD}{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)


class Slow(_Yaml12, yaml.SafeLoader):
    """The parser in Python: ten times as slow, with better words for what is wrong."""


if yaml.__with_libyaml__:

    class Quick(_Yaml12, yaml.CSafeLoader):
        """libyaml: each worker reads the file again."""
else:
    Quick = Slow  # type: ignore[misc,assignment]


_RESOLVER = _Yaml12()


def lines(text: str) -> list[str]:
    """The lines of a text, as YAML counts them; at least one."""
    return re.split("\r\n|[\r\n\x85\u2028\u2029]", text)


class Document:
    """A text as data without duplicates, with the nodes of its names and values by place."""

    def __init__(self, text: str) -> None:
        """`mistakes` are those of the YAML; a text that is not YAML has no data."""
        self.names: dict[Place, yaml.Node] = {}  # for an item of a list: the item
        self.values: dict[Place, yaml.Node] = {}
        self.mistakes: list[Mistake] = []
        self.data: Any = {}
        try:
            roots = _composed(text)
        except (yaml.YAMLError, RecursionError) as error:
            self.mistakes.append(_not_yaml(error, text))
            return
        for another in roots[1:2]:
            what = (
                "a second YAML document starts here, and settings are one: join the two, or "
                "delete one"
            )
            self.mistakes.append(Mistake(*position(another), what))
        for node in roots[:1]:
            try:
                self.data = self._read(node, ())
            except _TooManyError:
                what = f"has more than {_MOST_VALUES} values, with those of aliases: write fewer"
                self.mistakes = [Mistake(1, 1, what)]

    def at(self, place: Place) -> yaml.Node:
        """The value at this place, or its name if the place ends with AT_THE_NAME."""
        named = place[-1:] == (AT_THE_NAME,)
        return self.names[place[:-1]] if named else self.values[place]

    def _read(self, node: yaml.Node, place: Place) -> Any:
        self.values[place] = node
        if len(self.values) > _MOST_VALUES:
            raise _TooManyError
        self._forget_tag(node)
        if len(place) > _DEEPEST_SETTING:
            return NOTHING
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.MappingNode):
            return dict(self._members(node, place))
        places = [(*place, number) for number in range(len(node.value))]
        self.names |= zip(places, node.value, strict=True)
        return tuple(map(self._read, node.value, places))

    def _members(self, node: yaml.MappingNode, place: Place) -> Iterator[tuple[str, Any]]:
        for key, value in node.value:
            self._forget_tag(key)
            # A name that matches no setting.
            text = key.value if is_a(key, "str") else f"\0{bare(key)}"
            name = text.encode("utf-8", "backslashreplace").decode()
            here = (*place, name)
            if here in self.names:
                what = f"{bare(key)} stands twice: delete one"
                self.mistakes.append(Mistake(*position(key), what))
            else:
                self.names[here] = key
                yield name, self._read(value, here)

    def _forget_tag(self, node: yaml.Node) -> None:
        """Name a tag that no setting has, and go on as if it were not there."""
        kinds = _TAGS[type(node)]
        if node.tag.removeprefix(_STANDARD) not in kinds:
            tag = _printable(node.tag.replace(_STANDARD, "!!")[:LONGEST])
            what = f"the tag {tag} has no meaning here: delete it"
            self.mistakes.append(Mistake(*position(node), what))
            is_plain = isinstance(node, yaml.ScalarNode) and not node.style
            node.tag = _RESOLVER.resolve(type(node), node.value, (is_plain, not is_plain))  # type: ignore[no-untyped-call]


class _TooManyError(Exception):
    """More values than a file may have."""


def is_a(node: yaml.Node, kind: str) -> bool:
    """Whether the node is a str, int, float, bool or null in YAML 1.2."""
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_STANDARD}{kind}"


def _scalar(node: yaml.ScalarNode) -> Any:
    if is_a(node, "str"):
        return node.value
    if is_a(node, "bool") and node.value.lower() in {"true", "false"}:
        return node.value.lower() == "true"
    if len(node.value) > LONGEST:
        return NOTHING
    try:
        if is_a(node, "int"):
            return int(node.value, 0 if node.value[:2] in {"0x", "0o"} else 10)
        if is_a(node, "float"):
            number = float(node.value)
            return int(number) if number.is_integer() else number  # 8, 8.0 and 8e0 are equal
    except ValueError:
        pass  # `!!int x`
    return NOTHING


def shown(node: yaml.Node) -> str:
    """The value for a message: short, and without control characters."""
    if is_a(node, "null"):
        return "nothing"
    return repr(node.value[:LONGEST]) if is_a(node, "str") else bare(node)


def bare(node: yaml.Node) -> str:
    """The same without quotes, if possible."""
    if not isinstance(node, yaml.ScalarNode):
        return "a list" if isinstance(node, yaml.SequenceNode) else "a map"
    return _printable(str(node.value)[:LONGEST])


def _printable(text: str) -> str:
    return text if text.isprintable() and text else repr(text)


def position(node: yaml.Node) -> tuple[int, int]:
    """Line and column, from 1."""
    return node.start_mark.line + 1, node.start_mark.column + 1


def _composed(text: str) -> list[yaml.Node]:
    """The YAML documents of the text, without those that are empty."""
    try:
        _refuse_depth(text)
        return _documents(text, Quick)
    except yaml.reader.ReaderError:
        pass  # libyaml counts bytes; the other one finds it before it starts to parse
    except yaml.YAMLError:
        if len(text) > _LARGEST_FOR_WORDS:
            raise
    return _documents(text, Slow)


def _documents(text: str, loader: type[Quick | Slow]) -> list[yaml.Node]:
    return [node for node in yaml.compose_all(text, Loader=loader) if not is_a(node, "null")]


def _refuse_depth(text: str) -> None:
    """RecursionError if the text is deeper than libyaml may go down."""
    if max(map(len, lines(text))) + text.count("[") + text.count("{") < _DEEPEST:
        return
    depth = 0
    for event in yaml.parse(text, Loader=Quick):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RecursionError


def _not_yaml(error: Exception, text: str) -> Mistake:
    """The place where a text is not YAML."""
    if isinstance(error, yaml.reader.ReaderError):
        before = lines(text[: error.position])
        what = f"is not YAML: a control character, {chr(error.character)!r}: delete it"
        return Mistake(len(before), len(before[-1]) + 1, what)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        why = ", ".join(filter(None, (error.context, error.problem)))
        return Mistake(mark.line + 1, mark.column + 1, f"is not YAML: {why}")
    return Mistake(1, 1, "is not YAML that can be read: too deeply nested")
