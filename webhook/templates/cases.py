"""The cases of a template: the combinations of its conditions, and the text for each of them.

The active lines depend on conditions that are unknown here, so the text is read once for each
combination of the conditions that matter. An edit must be right in each of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING

from webhook.templates.actions import Template, blank
from webhook.templates.blocks import LOOPS, Arm, Block, Kind, Needs, every_block, meeting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.templates.blocks import Action

_LEADING = re.compile(
    r"(?P<header>[|>][-+0-9]*[ \t]*(?:#[^\n]*)?\r?\n)(?P<blank>(?: *\r?\n)+)"
    r"(?P<indent> +)(?=[^ \r\n])"
)
_MOST_COMBINED = 5  # conditions: all 32 combinations; with more, each alone against all others
_MOST_VIEWS = 64


class Rest(Enum):
    """The value of the conditions about which nothing is assumed."""

    FIRST = "the first arm of each block"
    TRUE = "all are true"
    NONE = "no arm but `else`"


@dataclass(frozen=True, slots=True)
class Case:
    """One combination of conditions."""

    known: Needs
    rest: Rest


def views(template: Template, start: int, end: int, matters: Callable[[str], bool]) -> list[Needs]:
    """The combinations of the conditions that matter between these places.

    A block matters if one of its branches contains text that does; other blocks have their first
    branch.
    """
    atoms: list[str] = []
    needed: list[dict[str, bool]] = []
    for block, path in every_block(meeting(template.blocks, start, end), {}):
        if block.end <= start or end <= block.start:
            continue
        within = template.text[max(block.start, start) : min(block.end, end)]
        if not matters(within) or (block.start < start and block.end > end):
            continue
        before: dict[str, bool] = {}
        for arm in block.arms:
            chosen = {**path, **before}
            if arm.atom is not None:
                if block.word not in LOOPS:  # no iteration is the same case as one
                    atoms.append(arm.atom)
                chosen[arm.atom] = arm.wanted
                before[arm.atom] = not arm.wanted
            needed.append(chosen)
    return _cases(list(dict.fromkeys(atoms)), needed)


class Part:
    """A part of the text with placeholders for its actions and for inactive branches.

    The length and the line ends stay, so all indexes stay the same.
    """

    def __init__(
        self, template: Template, mask: Callable[[Action], str], first: int, last: int
    ) -> None:
        self._template, self._first, self._last = template, first, last
        actions = template.actions_in(first, last)
        begin = here = min(first, actions[0].start) if actions else first
        pieces: list[str] = []
        for each in actions:
            raw = template.text[each.start : each.end]
            pieces.append(template.text[here : each.start])
            pieces.append(mask(each) if each.kind is Kind.WRITES else blank(raw))
            here = each.end
        pieces.append(template.text[here:last])
        self._marked = "".join(pieces)[first - begin : last - begin]
        self._blank = blank(template.text[first:last])

    def text(self, case: Case) -> str:
        """The part with only the branches of this case."""
        first, last = self._first, self._last
        pieces, here = list[str](), 0
        for start, end in hidden_spans(self._template.blocks, case, first, last):
            begin, behind = max(start - first, 0), min(end, last) - first
            pieces += (self._marked[here:begin], self._blank[begin:behind])
            here = behind
        return _LEADING.sub(_with_comments, "".join((*pieces, self._marked[here:])))


def _with_comments(found: re.Match[str]) -> str:
    """Blank lines at the begin of a block scalar, none with more blanks than its first line.

    They were conditions, and YAML allows no such line.
    """
    indent = len(found["indent"])
    lines = found["blank"].splitlines(keepends=True)
    filled = (line[:indent] + line[indent:].replace(" ", "#") for line in lines)
    return f"{found['header']}{''.join(filled)}{found['indent']}"


def is_active(template: Template, case: Case, start: int, end: int) -> bool:
    """Whether no part of this span is in an inactive branch."""
    spans = hidden_spans(template.blocks, case, start, end)
    return not any(a < end and start < b for a, b in spans)


def _cases(atoms: list[str], needed: Iterable[Needs]) -> list[Needs]:
    """All combinations, or each alone against all others if there are too many."""
    true, false = dict.fromkeys(atoms, True), dict.fromkeys(atoms, False)
    if len(atoms) <= _MOST_COMBINED:
        made = [
            dict(zip(atoms, each, strict=True))
            for each in product((True, False), repeat=len(atoms))
        ]
    else:
        made = [true, false]
        made += [{**base, **each} for base in (true, false) for each in needed]
        made += [{**base, atom: not base[atom]} for base in (true, false) for atom in atoms]
    different = {tuple(sorted(each.items())): each for each in made}
    return list(different.values())[:_MOST_VIEWS]


def hidden_spans(
    blocks: list[Block], case: Case, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """The inactive branches of the blocks that meet this part, in their order."""
    for block in meeting(blocks, start, end):
        chosen: Arm | None = None
        for arm in block.arms:
            if chosen is None and _holds(arm, case, first=arm is block.arms[0]):
                chosen = arm
                yield from hidden_spans(arm.inner, case, start, end)
            elif arm.start < end and start < arm.end:
                yield arm.start, arm.end


def _holds(arm: Arm, case: Case, *, first: bool) -> bool:
    if not arm.atom:
        return True  # `else`, or a block without a condition
    if arm.atom in case.known:
        return case.known[arm.atom] is arm.wanted
    if case.rest is Rest.FIRST:
        return first
    return case.rest is Rest.TRUE and arm.wanted
