"""Whether a template may write what selects the nodes of a pod: then no label can be added to it.

Two requirements that are right by themselves may fit no node together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.kube.pod import as_map
from webhook.kube.pointer import value_at
from webhook.templates.blocks import Kind
from webhook.templates.placeholders import stands_for_part
from webhook.templates.regions import lines_of
from webhook.yamlpatch import style
from webhook.yamlpatch.nodes import Map, real

if TYPE_CHECKING:
    from webhook.kube.pointer import Path
    from webhook.templates.actions import Template
    from webhook.templates.open_places import OpenPlaces
    from webhook.yamlpatch.documents import Document

WHY = "the template may write what selects the nodes of this pod"
_FIELDS = ("nodeSelector", "affinity", "tolerations", "nodeName", "runtimeClassName")
_WHOLE = ("affinity", "tolerations")  # in these any text may be a requirement
_KEY = re.compile(rf"(?<![^\s{{,])[\"']?(?P<name>{'|'.join(_FIELDS)})[\"']?[ \t]*:")


def may_be_made(
    document: Document, template: Template, open_: OpenPlaces, shown: str, spec: Path
) -> bool:
    """Whether an action writes members into the spec of a pod, or into one of these fields.

    So does a branch of a condition that is not in the `shown` text.
    """
    said = as_map(value_at(document.data, spec))
    if any(map(stands_for_part, (said, *(said.get(each) for each in _FIELDS)))) or any(
        map(open_.may_hold_more, (spec, *(spec / each for each in _FIELDS)))
    ):
        return True
    node = document.find(spec)
    body = real(node) if node is not None else None
    if not isinstance(body, Map) or not body.members:
        return False
    text, start, end = template.blanked, body.members[0].start, body.end
    around, _ = document.place(spec)
    if not body.flow:
        end = _end_of_lines(text, start, style.column(text, start))
    for key in _KEY.finditer(text, start, end):
        if text[style.line_start(text, key.start()) : key.start()].lstrip().startswith("#"):
            continue
        if shown[key.start() : key.end()] != key.group():
            if not template.is_either(around, key.start()):
                return True
            continue
        last = end if body.flow else _end_of_lines(text, key.end(), _column(text, key) + 1)
        if _is_changed(template, key.end(), last, whole=key["name"] in _WHOLE):
            return True
    return False


def _column(text: str, key: re.Match[str]) -> int:
    return style.column(text, key.start())


def _end_of_lines(text: str, start: int, column: int) -> int:
    """The end of the lines that belong together: items may stand below the begin of their key."""
    for line in lines_of(text, style.next_line(text, start)):
        is_item = line.text.lstrip().startswith("- ") and line.indent == column - 1
        if not line.is_blank and line.indent < column and not is_item:
            return line.start
    return len(text)


def _is_changed(template: Template, start: int, end: int, *, whole: bool) -> bool:
    """Whether a condition chooses text of a field, or, in a whole one, an action writes some."""
    last = start + len(template.blanked[start:end].rstrip())
    return any(
        (each.kind in {Kind.OPENS, Kind.TURNS} and each.end < last)
        or (whole and each.kind is Kind.WRITES)
        for each in template.actions_in(start, end)
    )
