"""Turns edits of a part of a template into replacements, moved out of conditions where needed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from webhook.core.edits import Edit, Remove, place_of
from webhook.formats.file_objects import cause_of
from webhook.kube.pointer import Path
from webhook.templates.blocks import Kind
from webhook.yamlpatch import style
from webhook.yamlpatch.nodes import List, Map, entries
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.splice import RefusedError, splice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.core.findings import Finding
    from webhook.evaluation.evaluate import Evaluation
    from webhook.templates.actions import Template
    from webhook.templates.blocks import Arm
    from webhook.templates.open_places import OpenPlaces
    from webhook.yamlpatch.documents import Document

_LINE_ENDS = ("\n", "\r\n")
_BLANKS = re.compile(r"\s*")
# The last function of an action of Helm. Jinja's, and one before others, may not indent all lines.
_INDENTS = re.compile(r"\|\s*n?indent\s+(?P<by>[0-9]{1,4})\s*-?\}\}$")


@dataclass(slots=True)
class EditGroup:
    """The edits of one place, with their replacements in the text."""

    at: Path
    edits: list[Edit]
    causes: list[Finding]
    replacements: list[Replacement] = field(default_factory=list)
    refused: str = ""
    lines: bool = False  # whole lines are removed, and the map around them stays


@dataclass(slots=True)
class TemplateEdits:
    """The edits of one document, written into one of its possible texts."""

    groups: list[EditGroup]
    document: Document
    moves: dict[int, int]  # the intended places of additions, and their real places

    def all_replacements(self) -> list[Replacement] | None:
        """All replacements; None if they overlap."""
        edits = [edit for group in self.groups if not group.lines for edit in group.edits]
        try:
            found = splice(self.document, edits) if edits else []
        except (RefusedError, LookupError):
            return None
        found = [self._moved(each) for each in found]
        found += [each for group in self.groups if group.lines for each in group.replacements]
        found.sort(key=lambda each: (each.start, each.end))
        return None if any(b.start < a.end for a, b in pairwise(found)) else found

    def _moved(self, each: Replacement) -> Replacement:
        if each.start < each.end or each.start not in self.moves:
            return each
        return _moved(self.document.text, each, self.moves[each.start])


def written(
    template: Template,
    document: Document,
    evaluations: list[Evaluation],
    into: Document,
    open_: OpenPlaces,
) -> TemplateEdits:
    """Write the edits that the rules made in one document into this text of it."""
    made = TemplateEdits([], into, {})
    found = [each for made in evaluations for each in made.findings if each.action == "repaired"]
    causes = _Causes(found)
    for at, edits in _grouped(edit for each in evaluations for edit in each.edits).items():
        group = EditGroup(at, edits, causes.of(at))
        made.groups.append(group)
        try:
            replacements = splice(into, edits)
        except (RefusedError, LookupError) as error:
            group.refused = str(error) or "it does not exist"
            continue
        touches = any(template.actions_in(each.start, each.end) for each in replacements)
        touches = touches or any(map(open_.goes_on, edits))
        if touches and all(isinstance(edit, Remove) for edit in edits):
            group.replacements = _lines_of(into, at)
            group.lines = bool(group.replacements)
        if not group.lines:
            arms = [template.arms_around(*document.place(cause_of(each))) for each in group.causes]
            arms.append(template.arms_around(*(_holder(document, edits[0]),) * 2))
            group.replacements = [_out(template, each, arms, made) for each in replacements]
    return made


class _Causes:
    """The findings from which an edit results, by the places that they touch.

    An object has many findings, and each has its edits.
    """

    def __init__(self, repaired: list[Finding]) -> None:
        self._repaired = repaired
        self._at: dict[Path, set[int]] = {}  # the findings that touch this place
        self._within: dict[Path, set[int]] = {}  # those that touch it, or a place in it
        for number, found in enumerate(repaired):
            for was in {place_of(edit) for edit in found.touched}:
                self._at.setdefault(was, set()).add(number)
                for depth in range(len(was) + 1):
                    self._within.setdefault(Path(was[:depth]), set()).add(number)

    def of(self, at: Path) -> list[Finding]:
        """Those that touch the place, a place in it, or one around it."""
        around = (self._at.get(Path(at[:depth]), ()) for depth in range(len(at)))
        numbers = {*self._within.get(at, ()), *(each for some in around for each in some)}
        return [self._repaired[number] for number in sorted(numbers)]


def _grouped(edits: Iterable[Edit]) -> dict[Path, list[Edit]]:
    groups: dict[Path, list[Edit]] = {}
    for edit in edits:
        groups.setdefault(place_of(edit), []).append(edit)
    return groups


def _holder(document: Document, edit: Edit) -> int:
    """The map or list to which the edit adds: the addition stays below the same conditions.

    For the value of a key that has none, this is the key.
    """
    at = place_of(edit)
    while at and document.find(at) is None:
        at = at.parent
    return document.place(at)[0]


def adds_lines(text: str, each: Replacement) -> bool:
    """Whether whole lines are inserted: after a line end, or before the next line."""
    if each.start < each.end or not each.text.strip():
        return False
    at_start = each.start == style.line_start(text, each.start)
    return each.text.startswith(_LINE_ENDS) or (at_start and each.text.endswith(_LINE_ENDS))


def _out(
    template: Template, added: Replacement, causes: list[list[Arm]], made: TemplateEdits
) -> Replacement:
    """An addition below a condition that its cause does not have is moved behind this condition."""
    text = template.text
    if not adds_lines(text, added):
        return added
    behind = added.text.startswith(_LINE_ENDS)
    at = added.start
    while True:
        arms = template.arms_around(at, at)
        out = [arm for arm in arms if not any(template.covers([arm], each) for each in causes)]
        block = template.block_of(out[0]) if out else None
        if block is None or text[block.end : style.line_end(text, block.end)].strip():
            break
        end = style.line_end(text, block.end)
        at = end if behind else style.next_line(text, end)
    while (last := _going_on(template, at, added)) is not None:
        end = style.line_end(text, last)
        at = end if behind else style.next_line(text, end)
    made.moves[added.start] = at
    return _moved(text, added, at)


def _going_on(template: Template, at: int, added: Replacement) -> int | None:
    """The end of the block or action directly after this place, if it belongs to the text before.

    Of a block, each line must belong there; an action must indent all lines that it writes.
    """
    text, first = template.text, added.text.strip("\r\n")
    start = _end_of_blanks(text, at)
    arms = template.arms_around(at, at)
    blocks = arms[-1].inner if arms else template.blocks
    block = next((each for each in blocks if each.start == start), None)
    if block is None:
        action = next(iter(template.actions_in(start, start + 1)), None)
        if action is None or action.kind is not Kind.WRITES or action.start != start:
            return None
        end, indents = action.end, _INDENTS.search(text, start, action.end)
        goes_on = indents is not None and follows(" " * int(indents["by"]) + "@", first)
    else:
        end = block.end
        shown = template.shown[start : style.line_end(text, end)]
        lines = [each for each in shown.split("\n") if each.strip() and each.strip()[0] != "#"]
        says = all(each.strip("@ \t\r") for each in lines)
        goes_on = bool(lines) and says and all(follows(each, first) for each in lines)
    return end if goes_on and not text[end : style.line_end(text, end)].strip() else None


def _end_of_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found is not None else at


def follows(line: str, added: str) -> bool:
    """Whether a line after the added lines, by its indent, belongs to the text before them."""
    indent, deep = (len(each) - len(each.lstrip(" ")) for each in (added, line))
    is_item = line.lstrip().startswith("- ") and not added.lstrip().startswith("- ")
    return deep > indent or (deep == indent and is_item)


def _moved(text: str, added: Replacement, at: int) -> Replacement:
    """The same lines elsewhere; the last line of a text may have no line end."""
    said = added.text
    if at != style.line_start(text, at) and not said.startswith(_LINE_ENDS):
        ends = "\r\n" if said.endswith("\r\n") else "\n"
        said = ends + said.removesuffix(ends)
    return Replacement(at, at, said)


def _lines_of(document: Document, at: Path) -> list[Replacement]:
    """The lines of a map or list, without those of the template around them."""
    node, text = document.find(at), document.text
    if not isinstance(node, Map | List) or node.flow:
        return []
    found: list[Replacement] = []
    for entry in entries(node):
        start, end = style.line_start(text, entry.start), style.line_end(text, entry.end)
        behind = text[entry.end : end].strip()
        if text[start : entry.start].strip() or (behind and not behind.startswith("#")):
            return []
        found.append(Replacement(start, style.next_line(text, end), ""))
    return found
