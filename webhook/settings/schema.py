"""The JSON Schema of the settings file, for editors and CI; and its part for one place."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from webhook.settings.maps import Generator
from webhook.settings.nodes import AT_THE_NAME, Place
from webhook.settings.whole import File

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.settings.values import Schema

ID = "urn:gpu-webhook:settings"  # a name; no address has it


@cache
def schema() -> Schema:
    """JSON Schema, draft 2020-12."""
    made = File.model_json_schema(schema_generator=Generator)
    return {"$schema": Generator.schema_dialect, "$id": ID, **made}


def at(place: Place) -> Schema:
    """The schema of the value at this place."""
    if not place:
        return schema()
    *above, last = place
    if last == AT_THE_NAME:
        return _resolved(at(tuple(above[:-1]))["propertyNames"])
    part = at(tuple(above))
    if isinstance(last, int):
        return _resolved(part["items"])
    return _resolved(part.get("properties", {}).get(last) or part["additionalProperties"])


def _resolved(part: Schema) -> Schema:
    if "$ref" not in part:
        return part
    definition: Schema = schema()["$defs"][part["$ref"].rpartition("/")[2]]
    return definition | part


def all_settings(place: Place = ()) -> Iterator[tuple[Place, Schema]]:
    """Every setting below the section at this place, with its schema."""
    for name in at(place)["properties"]:
        here = (*place, name)
        if "null" in at(here).get("type", ()):
            yield from all_settings(here)
        else:
            yield here, at(here)


def words(part: Schema) -> str:
    """The allowed values, as words after `must be`."""
    part = _resolved(part)
    if "errorMessage" in part:
        return str(part["errorMessage"]).removeprefix("must be ")
    if "enum" in part:
        return f"one of {', '.join(part['enum'])}"
    match part["type"]:
        case "boolean":
            return "true or false"
        case "integer":
            return f"a whole number from {part['minimum']} to {part['maximum']}"
        case "array":
            most = f" of at most {part['maxItems']}" if "maxItems" in part else ""
            return f"a list{most}; each {words(part['items'])}"
    if "propertyNames" in part:
        value = words(part["additionalProperties"])
        return f"a map; each name {words(part['propertyNames'])}, with {value}"
    return f"a map of {', '.join(part['properties'])}"
