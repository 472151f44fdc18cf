"""The blocks of a template: its actions in, out the blocks and their branches, with conditions."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONDITIONAL = {"if", "unless", "range", "with", "for"}
LOOPS = {"range", "with", "for"}  # their content may have another meaning each time


class Kind(Enum):
    """The effect of an action on the text."""

    OPENS = "opens a block"
    TURNS = "begins another arm"
    ENDS = "ends a block"
    WRITES = "writes text"
    SILENT = "writes nothing"
    COMMENT = "is a comment"


@dataclass(frozen=True, slots=True)
class Action:
    """One action: `word` is its first word, `rest` the text after it."""

    start: int
    end: int
    kind: Kind
    word: str = ""
    rest: str = ""


@dataclass(slots=True)
class Arm:
    """The text between two actions of a block; `atom` is its condition, None for `else`."""

    start: int
    end: int
    atom: str | None
    wanted: bool = True  # the value that the condition must have
    # All conditions, with values, under which it is chosen.
    needs: frozenset[tuple[str, bool]] = frozenset()
    inner: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """From the action that opens it to the one that ends it."""

    start: int
    end: int
    word: str
    arms: list[Arm]


Needs = dict[str, bool]  # conditions and the values that they must have


def nested(actions: list[Action], length: int) -> tuple[list[Block], bool]:
    """The outermost blocks, and whether some do not fit together."""
    top: list[Block] = []
    open_: list[tuple[Block, str]] = []  # with the scope of its conditions
    torn = False

    def siblings() -> list[Block]:
        return open_[-1][0].arms[-1].inner if open_ else top

    for action in actions:
        scope = open_[-1][1] if open_ else ""
        if action.kind is Kind.OPENS:
            atom, wanted = _atom(action.rest, scope, negated=action.word == "unless")
            if action.word in LOOPS:  # the number of iterations of a loop is unknown
                atom = f"#{action.start} {atom}"
            arm = Arm(action.end, length, atom if action.word in _CONDITIONAL else "", wanted)
            inner = f"{scope}{action.start}:" if action.word in LOOPS else scope
            block = Block(action.start, length, action.word, [arm])
            siblings().append(block)
            open_.append((block, inner))
        elif action.kind is Kind.TURNS and open_:
            block = open_[-1][0]
            block.arms[-1].end = action.start
            outer = open_[-2][1] if len(open_) > 1 else ""
            block.arms.append(_next_arm(action, length, outer))
        elif action.kind is Kind.ENDS and open_:
            block = open_.pop()[0]
            block.arms[-1].end, block.end = action.start, action.end
        elif action.kind in {Kind.TURNS, Kind.ENDS}:
            torn = True
    for block, _ in every_block(top, {}):
        _note_needs(block)
    return top, torn or bool(open_)


def _note_needs(block: Block) -> None:
    before: list[tuple[str, bool]] = []
    for arm in block.arms:
        own = [(arm.atom, arm.wanted)] if arm.atom else []
        arm.needs = frozenset([*before, *own])
        before += [(atom, not wanted) for atom, wanted in own]


def _next_arm(action: Action, length: int, scope: str) -> Arm:
    condition = action.rest
    if action.word == "else":
        if not condition:
            return Arm(action.end, length, None)
        condition = re.sub(r"^(?:if|with)\b", "", condition)
    atom, wanted = _atom(condition, scope)
    return Arm(action.end, length, atom, wanted)


_UNEQUAL = (re.compile(r"ne\b"), re.compile(r"!="))


def _atom(condition: str, scope: str, *, negated: bool = False) -> tuple[str, bool]:
    """A name for a condition, and whether it is negated."""
    text = " ".join(condition.split())
    wanted = not negated
    while denied := re.match(r"(?:not\b|!(?!=)) *", text):
        text, wanted = text[denied.end() :], not wanted
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1].strip()
    if _UNEQUAL[0].match(text):
        text, wanted = "eq" + text[2:], not wanted
    elif text.count("!=") == 1 and " and " not in text and " or " not in text:
        text, wanted = text.replace("!=", "=="), not wanted
    return scope + re.sub(r" ?== ?", "==", text), wanted


def arm_with(blocks: list[Block], start: int, end: int) -> Arm | None:
    """The branch of these blocks that contains this part of the text."""
    before = bisect_right(blocks, start, key=_START)
    arms = blocks[before - 1].arms if before else []
    return next((arm for arm in arms if arm.start <= start and end <= arm.end), None)


def meeting(blocks: list[Block], start: int, end: int) -> list[Block]:
    """Those of these blocks that meet this part of the text."""
    first = bisect_right(blocks, start, key=_END)
    return blocks[first : bisect_left(blocks, end, first, key=_START)]


_START, _END = attrgetter("start"), attrgetter("end")


def every_block(blocks: list[Block], path: Needs) -> Iterator[tuple[Block, Needs]]:
    """All blocks, each with the conditions under which it is active."""
    for block in blocks:
        yield block, path
        before: Needs = {}
        for arm in block.arms:
            chosen = {**path, **before}
            if arm.atom:
                chosen[arm.atom] = arm.wanted
                before[arm.atom] = not arm.wanted
            yield from every_block(arm.inner, chosen)
