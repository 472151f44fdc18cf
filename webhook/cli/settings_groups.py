"""Maps with known names in the settings file, and the dataclasses that they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from webhook.cli.settings_kinds import Kind, Refused, bare, meant, shown
from webhook.reports.printing import in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.cli.settings_kinds import Notes, Schema

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """A named member of a map."""

    name: str
    title: str
    kind: Kind[Any] | Group
    text: str  # what it does
    example: Any
    field: str  # where in the dataclass, with dots; of a group: where its members' fields are
    required: bool = False


@dataclass(frozen=True, slots=True)
class Demand:
    """What one member asks of another. `schema` says the same in JSON Schema."""

    at: str  # the member at which it is said, if that is there
    broken: Callable[[Mapping[str, Any]], bool]
    what: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Group:
    """A map with known names, whose values are fields of one dataclass."""

    settings: tuple[Setting, ...]
    demands: tuple[Demand, ...] = ()
    noun: str = ""  # of an item of a list, as `a pool`

    @property
    def words(self) -> str:
        return f"a map of {', '.join(each.name for each in self.settings)}"

    @property
    def required(self) -> list[str]:
        """The names that cannot be left out."""
        return [each.name for each in self.settings if each.required]

    def read(self, node: yaml.Node, path: str, notes: Notes) -> dict[str, Any]:
        """The values by name. Nothing at all stands for an empty map, but in a list."""
        if not self.noun and isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null"):
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise Refused(node, f"must be {self.words}, not {shown(node)}")
        before = len(notes.mistakes)
        values, nodes = self._members(node, path, notes)
        for each in self.settings:
            if each.required and each.name not in nodes:
                example = in_one_line({each.name: each.example})[1:-1]
                notes.add(node, f"{self.noun} needs {each.name}: add it, as {example}")
        if len(notes.mistakes) == before:
            for demand in self.demands:
                if demand.broken(values):
                    notes.add(nodes.get(demand.at, node), demand.what)
        return values

    def _members(
        self, node: yaml.MappingNode, path: str, notes: Notes
    ) -> tuple[dict[str, Any], dict[str, yaml.Node]]:
        known = {each.name: each.kind for each in self.settings}
        values: dict[str, Any] = {}
        nodes: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name not in known:
                notes.add(key, f"there is no setting {bare(key)}{self._cure(name or '')}")
            elif name in nodes:
                notes.add(key, f"{name} stands twice: delete one")
            else:
                nodes[name] = value
                values[name] = notes.attempt(
                    known[name], value, notes.mark(_joined(path, name), key)
                )
        return values, nodes

    def _cure(self, name: str) -> str:
        names = [each.name for each in self.settings]
        return meant(name, names) or f"; there are {', '.join(names)}"

    def fields(self, values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
        """What was read, by the dataclass's fields, with dots."""
        found: dict[str, Any] = {}
        for each in self.settings:
            value, at = values.get(each.name), _joined(prefix, each.field)
            if isinstance(each.kind, Group):
                found |= each.kind.fields(value or {}, at)
            elif value is not None:
                found[at] = value
        return found

    def leaves(self, prefix: str = "", path: str = "") -> Iterator[tuple[str, str, Setting]]:
        """Every setting that is no group: its path in the file, its field, and itself."""
        for each in self.settings:
            at, named = _joined(prefix, each.field), _joined(path, each.name)
            if isinstance(each.kind, Group):
                yield from each.kind.leaves(at, named)
            else:
                yield named, at, each

    def plain(self, instance: object, prefix: str = "") -> dict[str, Any]:
        """The instance as the file writes it, whole."""
        written: dict[str, Any] = {}
        for each in self.settings:
            at = _joined(prefix, each.field)
            if isinstance(each.kind, Group):
                written[each.name] = each.kind.plain(instance, at)
            else:
                value = plain_at(each, instance, at)
                written |= {} if value is None else {each.name: value}
        return written

    def schema(self, default: object, prefix: str = "") -> Schema:
        """This map as JSON Schema; the default of each member is taken from the instance."""
        made: Schema = {
            "type": "object" if self.noun else ["object", "null"],
            "additionalProperties": False,
            "properties": {each.name: _member(each, default, prefix) for each in self.settings},
        }
        made |= {"required": self.required} if self.required else {}
        demands = [each.schema for each in self.demands]
        return made | ({"allOf": demands} if demands else {})


@dataclass(frozen=True, slots=True)
class Record(Kind[T]):
    """A map that makes one instance of a dataclass."""

    default: T
    group: Group

    @property
    def words(self) -> str:
        return self.group.words

    def read(self, node: yaml.Node, path: str, notes: Notes) -> T:
        return _made(self.default, self.group.fields(self.group.read(node, path, notes)))

    def schema(self) -> Schema:
        return self.group.schema(self.default)

    def plain(self, value: T) -> dict[str, Any]:
        """As the file writes it, without what is as it would be if it were left out."""
        default, required = self.group.plain(self.default), self.group.required
        return {
            name: each
            for name, each in self.group.plain(value).items()
            if name in required or default.get(name) != each
        }


def plain_at(setting: Setting, instance: object, at: str) -> Any:
    """The setting's value in the instance, as the file writes it; None if it is not set."""
    assert not isinstance(setting.kind, Group)  # noqa: S101 - groups have no value of their own
    value = attrgetter(at)(instance)
    return None if value is None else setting.kind.plain(value)


def _joined(prefix: str, name: str) -> str:
    return ".".join(filter(None, (prefix, name)))


def _member(setting: Setting, default: object, prefix: str) -> Schema:
    at = _joined(prefix, setting.field)
    about: Schema = {"title": setting.title, "description": setting.text}
    if isinstance(setting.kind, Group):
        return about | setting.kind.schema(default, at)
    value = None if setting.required else plain_at(setting, default, at)
    about |= {} if value is None else {"default": value}
    return about | {"examples": [setting.example]} | setting.kind.schema()


def _made(default: T, fields: Mapping[str, Any]) -> T:
    """The default with these fields in its place; a dot leads into a dataclass within."""
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for path, value in fields.items():
        head, _, rest = path.partition(".")
        if rest:
            inner.setdefault(head, {})[rest] = value
        else:
            own[head] = value
    own |= {head: _made(getattr(default, head), each) for head, each in inner.items()}
    return replace(default, **own)  # type: ignore[type-var]
