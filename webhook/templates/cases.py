"""The cases of a template: how its conditions can turn out, and the text as it is in each of them.

Which lines count depends on conditions that nobody knows here, so the text is looked at once for
every way in which the conditions that matter can turn out. An edit must be right in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING

from webhook.templates.actions import (
    LOOPS,
    Action,
    Arm,
    Block,
    Kind,
    Needs,
    Template,
    blank,
    every_block,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_MOST_COMBINED = 5  # conditions: all 32 ways; with more, each alone against all others
_MOST_VIEWS = 64


class Rest(Enum):
    """How the conditions of which nothing is assumed turn out."""

    FIRST = "the first arm of each block"
    TRUE = "all are true"
    NONE = "no arm but `else`"


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which the conditions can turn out."""

    known: Needs
    rest: Rest


def views(template: Template, start: int, end: int, matters: Callable[[str], bool]) -> list[Needs]:
    """The ways in which conditions that matter between these places can turn out.

    A block matters if one of its arms holds text that does; the others are seen with their first
    arm.
    """
    atoms: list[str] = []
    needed: list[dict[str, bool]] = []
    for block, path in every_block(template.blocks, {}):
        if block.end <= start or end <= block.start:
            continue
        within = template.text[max(block.start, start) : min(block.end, end)]
        if not matters(within) or (block.start < start and block.end > end):
            continue
        before: dict[str, bool] = {}
        for arm in block.arms:
            chosen = {**path, **before}
            if arm.atom is not None:
                if block.word not in LOOPS:  # none at all is no other case than one
                    atoms.append(arm.atom)
                chosen[arm.atom] = arm.wanted
                before[arm.atom] = not arm.wanted
            needed.append(chosen)
    return _cases(list(dict.fromkeys(atoms)), needed)


def hidden(template: Template, case: Case, mask: Callable[[Action], str]) -> str:
    """The text with its actions and the arms that are not chosen behind other characters.

    The length stays and so do the line ends, so every index means the same place.
    """
    pieces: list[str] = []
    here = 0
    gone = sorted(_gone(template.blocks, case))
    spans: list[tuple[int, int, Action | None]] = [(start, end, None) for start, end in gone]
    spans += [(each.start, each.end, each) for each in template.actions]
    for start, end, action in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < here:
            continue
        pieces.append(template.text[here:start])
        if action is not None and action.kind is Kind.WRITES:
            pieces.append(mask(action))
        else:
            pieces.append(blank(template.text[start:end]))
        here = end
    pieces.append(template.text[here:])
    return "".join(pieces)


def is_active(template: Template, case: Case, start: int, end: int) -> bool:
    """Whether no part of this span is in an arm that is not chosen."""
    return not any(a < end and start < b for a, b in _gone(template.blocks, case))


def _cases(atoms: list[str], needed: Iterable[Needs]) -> list[Needs]:
    """All of them, or each alone against all others where there are too many."""
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


def _gone(blocks: list[Block], case: Case) -> Iterator[tuple[int, int]]:
    """The arms that are not chosen."""
    for block in blocks:
        chosen: Arm | None = None
        for arm in block.arms:
            if chosen is None and _holds(arm, case, first=arm is block.arms[0]):
                chosen = arm
                yield from _gone(arm.inner, case)
            else:
                yield arm.start, arm.end


def _holds(arm: Arm, case: Case, *, first: bool) -> bool:
    if not arm.atom:
        return True  # `else`, or a block that is no question
    if arm.atom in case.known:
        return case.known[arm.atom] is arm.wanted
    if case.rest is Rest.FIRST:
        return first
    return case.rest is Rest.TRUE and arm.wanted
