"""Whether the schema of a chart may refuse amounts of a run: schema and values in, a reason out.

Helm checks the values of a chart against its `values.schema.json`. Only what certainly allows an
amount counts as allowed: keywords that are not listed here, and references to other files, may
refuse it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from webhook.kube.pod import SECTIONS, as_map
from webhook.kube.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.settings import Settings
    from webhook.kube.pointer import Path
    from webhook.projects.merged_values import Values

# They say nothing about names and values, or only of which type a map or list is.
_IDLE = frozenset(
    {
        *("$comment", "$defs", "$id", "$schema", "$vocabulary", "default", "definitions"),
        *("deprecated", "description", "examples", "format", "id", "readOnly", "title", "type"),
        "writeOnly",
    }
)
_OF_MEMBERS = frozenset({"additionalProperties", "patternProperties", "properties", "required"})
_OF_ITEMS = frozenset({"items", "minItems"})
_CHOICES = frozenset({"anyOf", "oneOf"})
_OF_OTHERS = {"$ref", "allOf", *_CHOICES}
# Its maps have any names, and numbers or texts.
_OF_KUBERNETES = "#/definitions/io.k8s.api.core.v1.ResourceRequirements"
_DEEPEST = 64  # schemas in each other
_TYPES = {int: {"integer", "number"}, float: {"number"}, str: {"string"}, bool: {"boolean"}}


def why_refused(
    schema: str, name: str, own: Iterable[Values], outer: Iterable[Values], settings: Settings
) -> str:
    """Why amounts wait for a schema, given as text; empty if it allows them.

    `outer` are values of charts around the chart, which have its values below one member. What they
    have in `global` it gets at the same place.
    """
    try:
        data = json.loads(schema)
    except ValueError:
        return ""  # helm refuses the chart, whatever its values are
    for is_outer, each in (*((False, e) for e in own), *((True, e) for e in outer)):
        for old, at, value in _renamed(each, settings):
            below = at[1:] if is_outer and at[0] != "global" else tuple(at)
            if not _allows(data, below, _Amount(data, old, value)):
                return (
                    f"{name} may refuse {at[-1]} at {at.parent.dotted} in {each.name}: change the "
                    "schema and the values together"
                )
    return ""


def _renamed(values: Values, settings: Settings) -> Iterator[tuple[str, Path, Any]]:
    """The amounts that a run changes: one of the names before, the place after, and the amount."""
    before = {at: value for at, value in walk(values.before) if at}
    for at, value in walk(values.after):
        if at and settings.names_gpus(str(at[-1])) and before.get(at) != value:
            beside = (e for e in settings.legacy_resources if at.parent / e in before)
            yield next(beside, ""), at, value


@dataclass(frozen=True, slots=True)
class _Amount:
    """An amount that a run writes, and the name that is away then."""

    root: Any  # the whole schema
    old: str
    value: Any


def _allows(schema: Any, at: tuple[Any, ...], amount: _Amount, deep: int = 0) -> bool:
    """Whether a schema certainly allows the amount at this place, and the old name to be away."""
    if schema is True or not isinstance(schema, dict):
        return schema is True
    own = {name: each for name, each in schema.items() if name not in _OF_OTHERS}
    parts = [*_parts(schema, at, amount)]
    if deep == _DEEPEST or not _allows_itself(own, at, amount, deep):
        return False
    return all(_allows(each, at, amount, deep + 1) for each in parts)


def _parts(schema: dict[str, Any], at: tuple[Any, ...], amount: _Amount) -> Iterator[Any]:
    """The other schemas that must allow it, too; False where they are not known."""
    if "$ref" in schema:
        said = str(schema["$ref"])
        if not said.endswith(_OF_KUBERNETES):
            yield _referred(amount.root, said) if "$id" not in schema else False
        elif not (at[1:] and at[0] in SECTIONS):
            yield False
    yield from _listed(schema.get("allOf", []))
    for name in _CHOICES & schema.keys():
        may_be = [each for each in _listed(schema[name]) if _has_type(each, at, amount.value)]
        yield may_be[0] if len(may_be) == 1 else False


def _referred(root: Any, said: str) -> Any:
    """What a reference in a schema leads to; False if it is not in the same file."""
    if said[:1] != "#" or said[1:2] not in {"", "/"}:
        return False
    here = root
    for each in unquote(said).split("/")[1:]:
        name = each.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list):
            here = here[int(name)] if name.isdecimal() and int(name) < len(here) else False
        else:
            here = as_map(here).get(name, False)
    return here


def _has_type(schema: Any, at: tuple[Any, ...], value: Any) -> bool:
    """Whether what is here may have a type that the schema asks for."""
    if not isinstance(schema, dict):
        return schema is not False
    types = schema.get("type", [])
    wanted = {types} if isinstance(types, str) else {*map(str, _listed(types))}
    has = _TYPES.get(type(value), set())
    if at:
        has = {"array" if isinstance(at[0], int) else "object"}
    return not wanted or not wanted.isdisjoint(has)


def _listed(value: Any) -> list[Any]:
    """What is said in a list; False, which nothing is, in another form."""
    return value if isinstance(value, list) else [False]


def _allows_itself(schema: dict[str, Any], at: tuple[Any, ...], amount: _Amount, deep: int) -> bool:
    """The same for what the schema says without other schemas."""
    if not at:
        is_typed = amount.value is None or _has_type(schema, (), amount.value)
        return schema.keys() <= _IDLE and is_typed
    is_item = isinstance(at[0], int)
    if not schema.keys() <= _IDLE | (_OF_ITEMS if is_item else _OF_MEMBERS):
        return False
    required = _listed(schema.get("required", []))
    if False in required or (len(at) == 1 and amount.old in required):
        return False
    inside = schema.get("items", True) if is_item else _member(schema, str(at[0]))
    return _allows(inside, at[1:], amount, deep + 1)


def _member(schema: dict[str, Any], name: str) -> Any:
    """The schema of a member; False where it may be that of a pattern, too."""
    try:
        is_met = any(re.search(each, name) for each in as_map(schema.get("patternProperties")))
    except re.error:
        is_met = True
    if is_met:
        return False
    named = as_map(schema.get("properties"))
    return named[name] if name in named else schema.get("additionalProperties", True)
