"""Whether the schema of a chart may refuse amounts of a run: schema and values in, a reason out.

Helm checks the values of a chart against its `values.schema.json`. Only what certainly allows an
amount counts as allowed: keywords that are not listed here, such as `$ref`, may refuse it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from webhook.kube.pod import as_map
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
            if not _allows(data, below, old, value):
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


def _allows(schema: Any, at: tuple[Any, ...], old: str, value: Any) -> bool:
    """Whether a schema certainly allows the value at this place, and the old name to be away."""
    for depth, token in enumerate(at):
        if schema is True:
            return True
        known = _IDLE | (_OF_ITEMS if isinstance(token, int) else _OF_MEMBERS)
        if not isinstance(schema, dict) or not schema.keys() <= known:
            return False
        if isinstance(token, int):
            schema = schema.get("items", True)
            continue
        if depth == len(at) - 1 and old in (schema.get("required") or ()):
            return False
        schema = _member(schema, str(token))
    types = schema.get("type") if isinstance(schema, dict) else None
    wanted = {types} if isinstance(types, str) else set(types or ())
    is_typed = not wanted or value is None or not wanted.isdisjoint(_TYPES.get(type(value), ()))
    return schema is True or (isinstance(schema, dict) and schema.keys() <= _IDLE and is_typed)


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
