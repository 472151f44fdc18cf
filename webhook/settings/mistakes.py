"""Turns the errors of pydantic into messages, with line and column.

The words come from the JSON Schema of the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from webhook.core.did_you_mean import did_you_mean
from webhook.reports.printing import in_one_line
from webhook.settings.nodes import (
    AT_THE_NAME,
    LONGEST,
    Document,
    Mistake,
    Place,
    bare,
    is_a,
    position,
    shown,
)
from webhook.settings.schema import at, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import ValidationError

    from webhook.settings.values import Schema


def mistakes(error: ValidationError, document: Document) -> Iterator[Mistake]:
    """Each mistake, with its place."""
    for each in error.errors(include_url=False, include_input=False):
        place = each["loc"]
        match each["type"]:
            case "refused":
                node, what = document.at(place), each["msg"]
            case "too_short":
                node = document.at(place)
                if node.value:  # pydantic counts the correct items
                    continue
                what = _empty(place, document)
            case "too_long":
                node, most = document.at(place), at(place)["maxItems"]
                what = f"has more than {most} entries, and a pod would get all: delete some"
            case "missing":
                node, what = document.at(place[:-1]), _missing(place)
            case "extra_forbidden":
                node = document.at((*place, AT_THE_NAME))
                what = f"there is no setting {bare(node)}{_instead(place, bare(node))}"
            case _:
                node = document.at(place)
                what = _wrong(at(place), node)
        yield Mistake(*position(node), what)


def _missing(place: Place) -> str:
    item, name = at(place[:-1]), place[-1]
    return f"{item['title']} needs {name}: add it{_example(item, name)}"


def _example(item: Schema, name: str | int) -> str:
    examples = item["properties"][name].get("examples")
    return f", as {in_one_line({name: examples[0]})[1:-1]}" if examples else ""


def _empty(place: Place, document: Document) -> str:
    """What to do about a list or map with nothing in it: there must be no next mistake."""
    item, name = at(place[:-1]), place[-1]
    others = {key.value: value.value for key, value in document.at(place[:-1]).value}
    del others[name]
    ways = item.get("anyOf", [{}])
    if name not in item.get("required", ()) and any(_fits(way, others) for way in ways):
        what = bare(document.at((*place, AT_THE_NAME)))
        return f"must name at least one, or be left out: delete {what}"
    noun = item["title"].partition(" ")[2]
    return f"must name at least one{_example(item, name)}, or delete the {noun}"


def _fits(way: Schema, written: Mapping[str, Any]) -> bool:
    """Whether what is written is of this kind, as far as `anyOf` of an item goes."""
    return all(name in written for name in way.get("required", ())) and all(
        written[name] in part.get("enum", [part.get("const")])
        for name, part in way.get("properties", {}).items()
        if name in written
    )


def _instead(place: Place, name: str) -> str:
    known = list(at(place[:-1])["properties"])
    return did_you_mean(name, known) or f"; there are {', '.join(known)}"


def _wrong(part: Schema, node: yaml.Node) -> str:
    """The expected and the present value."""
    must = words(part)
    if "pattern" in part and not is_a(node, "str"):
        if not isinstance(node, yaml.ScalarNode):
            return f"must be a text, {must}, not {shown(node)}"
        if node.value:
            return f'must be a text: write it in quotes, "{node.value[:LONGEST]}"'
    if part.get("type") == "boolean":
        must = f"{must}, without quotes"
    elif part.get("type") == "array":
        must = "a list, as [a, b]"
    elif "propertyNames" in part:
        must = "a map, as {name: value}"
    guess = did_you_mean(bare(node), part["enum"]) if "enum" in part else ""
    return f"must be {must}, not {shown(node)}{guess}"
