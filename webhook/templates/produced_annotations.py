"""Finds legacy annotations whose text the template produces, in whole or in part.

With its actions hidden such a text looks empty or too short. Its content is unknown before
rendering, so it must not be converted or removed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.core.text_patterns import find
from webhook.kube.walk import walk
from webhook.rules import PATTERNS, ignored_annotations
from webhook.templates import actions
from webhook.templates.open_places import named_indent
from webhook.yamlpatch import documents, style
from webhook.yamlpatch.nodes import Map, Member, Scalar, entry_at, real

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.files.source import Source
    from webhook.kube.pointer import Path
    from webhook.templates.actions import Template
    from webhook.templates.blocks import Action
    from webhook.yamlpatch.documents import Document

_BY_ACTIONS = re.compile(r"@[@ \t]*(?:#.*)?")  # in Template.shown: a line that actions produce


def is_any_made(source: Source) -> bool:
    """Whether there is one in a text that is YAML with its actions, too."""
    if "{{" not in source.text and "{%" not in source.text:
        return False
    template = actions.read(source.text)
    stream = documents.read(source.text, json=source.kind == "json")
    return any(True for each in stream.documents for _ in made_annotations(each, template))


def made_annotations(document: Document, template: Template) -> Iterator[Path]:
    """Their places, for one combination of branches."""
    for at, _ in walk(document.data):
        is_annotation = at[-2:-1] == ("annotations",) and isinstance(at[-1], str)
        if is_annotation and _is_legacy(at[-1]) and actions_of(document, template, at):
            yield at


def _is_legacy(name: Any) -> bool:
    return ignored_annotations.is_ignored(name) or next(find(name, PATTERNS), None) is not None


def actions_of(document: Document, template: Template, at: Path) -> list[Action]:
    """The actions that produce a part of the value of this member; none if it is missing."""
    found = document.find(at.parent)
    holder = real(found) if found is not None else None
    member = entry_at(holder, at[-1]) if isinstance(holder, Map) else None
    if not isinstance(holder, Map) or not isinstance(member, Member):
        return []
    end = _end_in_flow(holder, member) if holder.flow else _end_in_block(template, member)
    return template.actions_in(member.key.end, end)


def _end_in_flow(holder: Map, member: Member) -> int:
    """The begin of the next member, or the end of the map."""
    later = (each.start for each in holder.members if each.start > member.start)
    return min(later, default=holder.end)


def _end_in_block(template: Template, member: Member) -> int:
    """The end of the last line that may be a part of the value, for any conditions.

    These lines have a larger indent than the key. The place of a line that actions produce shows
    nothing if they name no indent: after a value that may continue it counts as a part of it.
    """
    text, end = template.shown, member.end
    column = style.column(text, member.start)
    here = style.next_line(text, end)
    while here < len(text):
        next_ = style.next_line(text, here)
        line = text[here:next_].strip()
        start = text.find(line, here) if line else here
        if line and not line.startswith("#"):
            indent = style.column(text, start)
            if _BY_ACTIONS.fullmatch(line):
                said = named_indent(template.text, template.actions_in(start, start + 1)[0])
                if said is not None:
                    indent = said
                elif indent < column and _may_go_on(member):
                    indent = column + 1
                elif indent == column and _is_empty(member):
                    indent += 1
            if indent <= column:
                break
            end = next_
        here = next_
    return end


def _may_go_on(member: Member) -> bool:
    """Whether following lines may belong to the value, as far as it is visible."""
    value = member.value
    return isinstance(value, Scalar) and (value.style in {"|", ">"} or _is_empty(member))


def _is_empty(member: Member) -> bool:
    value = member.value
    return isinstance(value, Scalar) and not value.text and value.style in {"", "|", ">"}
