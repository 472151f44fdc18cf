"""Renames the legacy name line by line, in a text that is not YAML even without template actions.

Only if the line is clear by itself: a name with an amount, directly below limits or requests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.files.results import Located, Status
from webhook.rules import legacy_resource
from webhook.templates.regions import Line, Region, lines_of
from webhook.yamlpatch.places import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings
    from webhook.files.source import Source
    from webhook.templates.actions import Template

CODE = legacy_resource.CODE
_BESIDE = "it is not indented below limits or requests"
_ENTRY = re.compile(
    r"(?P<indent>[ \t]*)(?P<quote>[\"']?)(?P<name>[\w./-]+)(?P=quote)[ \t]*:"
    r"(?P<value>(?:[ \t].*)?)$"
)
_AMOUNT = re.compile(r"[\"']?(?:[1-9][0-9]*|@+)[\"']?[ \t]*(?:#.*)?")
_AFTER = re.compile(r"[\"']|[ \t]+#.*")
_SECTION = re.compile(r"[ \t]*(?:- )?[\"']?(?:limits|requests)[\"']?[ \t]*:[ \t]*(?:#.*)?$")


def not_indented(
    source: Source, template: Template, region: Region, settings: Settings
) -> Iterator[Located]:
    """The lines with the legacy name next to limits or requests, which are then null."""
    for each in renamed(source, template, region, settings):
        if _BESIDE in each.message:
            yield each


def renamed(
    source: Source, template: Template, region: Region, settings: Settings
) -> Iterator[Located]:
    """A finding for each line with the legacy name as a key; with a `fix` if it can be renamed."""
    lines = list(lines_of(template.shown, region.start, region.end))
    found = {
        number: entry for number, line in enumerate(lines) if (entry := _ENTRY.match(line.text))
    }
    entries = {n: each for n, each in found.items() if each["name"] in settings.legacy_resources}
    reasons = {n: _why_not(template, lines, n, each, settings) for n, each in entries.items()}
    refused = _refused_together(source, template, lines, [n for n in entries if not reasons[n]])
    for number, entry in entries.items():
        line = lines[number]
        start = line.start + entry.start("name")
        place = source.place(line.start + len(entry["indent"]), line.start + len(line.text))
        why = reasons[number]
        if number in refused:
            why = f"a request needs the same limit; write {settings.gpu_resource} with it in both"
        name, new = entry["name"], settings.gpu_resource
        if why:
            message = f"{name} is offered by no node, and is not renamed: {why}"
            yield Located(CODE, message, Status.MANUAL, place)
            continue
        value = _value(source, line)
        message = f"{name} is offered by no node; write {new}: {value}"
        fix = (Replacement(start, start + len(name), new),)
        yield Located(CODE, message, Status.FIXABLE, place, fix=fix)


def _refused_together(
    source: Source, template: Template, lines: list[Line], numbers: list[int]
) -> set[int]:
    """The entries that the API server would refuse under the current name.

    A request counts only beside a limit of the same amount, wherever it is there.
    """
    containers: dict[int | None, list[int]] = {}
    for number in numbers:
        containers.setdefault(_holder(lines, _holder(lines, number)), []).append(number)
    return {
        n for each in containers.values() if _differ(source, template, lines, each) for n in each
    }


def _differ(source: Source, template: Template, lines: list[Line], numbers: list[int]) -> bool:
    """Whether a container may have a request without the same limit."""
    limits = [n for n in numbers if "limits" in lines[_holder(lines, n) or 0].text]
    branches = {n: template.arms_around(lines[n].start, lines[n].start) for n in numbers}
    for request in (n for n in numbers if n not in limits):
        beside = [n for n in limits if not template.is_either(lines[n].start, lines[request].start)]
        is_limited = any(template.covers(branches[n], branches[request]) for n in beside)
        amounts = {_AFTER.sub("", _value(source, lines[n])) for n in (request, *beside)}
        if not is_limited or len(amounts) > 1:
            return True
    return False


def _value(source: Source, line: Line) -> str:
    """The amount on a line of an entry, as it is written."""
    entry = _ENTRY.match(line.text)
    start = line.start + (entry.start("value") if entry else 0)
    return source.text[start : line.end].strip()


def _holder(lines: list[Line], number: int | None) -> int | None:
    """The line above that holds this one, by its indent."""
    if number is None:
        return None
    above = (n for n in range(number - 1, -1, -1) if not lines[n].is_blank)
    return next((n for n in above if lines[n].indent < lines[number].indent), None)


def _why_not(
    template: Template, lines: list[Line], number: int, entry: re.Match[str], settings: Settings
) -> str:
    new = settings.gpu_resource
    if not _AMOUNT.fullmatch(entry["value"].strip()):
        return f"it has no amount; write {new} where one is meant"
    indent = len(entry["indent"])
    holder = _holder(lines, number)
    above = (n for n in range(number - 1, -1 if holder is None else holder, -1))
    if any(lines[n].indent == indent and _SECTION.match(lines[n].text) for n in above):
        return f"{_BESIDE}; indent it and write {new}"
    if holder is None or not _SECTION.match(lines[holder].text):
        return f"it is below neither limits nor requests; write {new} where it is one"
    for n in _siblings(lines, number, holder, indent):
        other = _ENTRY.match(lines[n].text)
        if other is None or not settings.is_gpu(other["name"]):
            continue
        if not template.is_either(lines[n].start + indent, lines[number].start + indent):
            return f"{other['name']} may be next to it; delete one of them"
    return ""


def _siblings(lines: list[Line], number: int, holder: int, indent: int) -> Iterator[int]:
    yield from (n for n in range(holder + 1, number) if lines[n].indent == indent)
    for n in range(number + 1, len(lines)):
        if lines[n].is_blank:
            continue
        if lines[n].indent < indent:
            return
        if lines[n].indent == indent:
            yield n
