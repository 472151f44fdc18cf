"""Fills in a template: values of its conditions and texts of its actions in, the rendered text out.

This is what Helm or Jinja would render if each action produced the given text: nothing of a
template is computed. Blanks go as in Helm (`{{-`), and as in Ansible, where a block makes no line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, pairwise
from typing import TYPE_CHECKING

from webhook.templates.blocks import LOOPS, Action, Arm, Block, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.templates.actions import Template

    # The loops around a condition and of it, by their numbers in the text, and the condition.
    Condition = tuple[tuple[int, ...], int | None, str]
    # A text; an action that writes one, and its place; the branches of a block, each with its
    # condition and the value that this must have.
    Piece = str | tuple[str, int] | list[tuple[Condition | None, bool, list["Piece"]]]

_SCOPE = re.compile(r"(?:#[0-9]+ )?(?:[0-9]+:)*")  # of Arm.atom: places, which edits move
_TRIMS_BEFORE, _TRIMS_AFTER = ("{{-", "{%-", "{#-"), ("-}}", "-%}", "-#}")
_LINE_BEFORE, _LINE_AFTER = re.compile(r"(?<![^\n])[ \t]+\Z"), re.compile(r"\A\r?\n")


@dataclass(eq=False)
class Form:
    """A template that can be filled in. Conditions and actions are named as in an edited text."""

    template: Template
    # The last combination, and its texts and actions that write, one after the other.
    _chosen: dict[object, list[str | tuple[str, int]]] = field(default_factory=dict)

    @cached_property
    def conditions(self) -> dict[int, Condition]:
        """The conditions of the branches, by id() of the branch."""
        return dict(_conditions(self.template.blocks, (), count()))

    @cached_property
    def outputs(self) -> list[str]:
        """The different actions that write text."""
        return list(dict.fromkeys(self.written))

    def filled(
        self, chosen: Mapping[Condition, int] | None, text_of: Callable[[str, int], str]
    ) -> str:
        """The text if conditions have these values, and loops as many turns; else 1.

        `text_of` returns what an action at a place writes. If nothing is chosen, all branches
        follow one another.
        """
        key = None if chosen is None else tuple(chosen.items())
        if key not in self._chosen:
            found: list[str | tuple[str, int]] = []
            _choose(self._pieces, chosen, found)
            self._chosen = {key: found}  # usually it is asked for again at once
        chosen_pieces = self._chosen[key]
        return "".join([e if isinstance(e, str) else text_of(*e) for e in chosen_pieces])

    @cached_property
    def _pieces(self) -> list[Piece]:
        text = self.template.text
        return list(self._pieces_in(0, len(text), self.template.blocks))

    @property
    def written(self) -> Iterator[str]:
        """The actions that write text, each as often as it occurs."""
        return (self._raw(each) for each in self.template.actions if each.kind is Kind.WRITES)

    def _raw(self, action: Action) -> str:
        return self.template.text[action.start : action.end]

    @cached_property
    def _between(self) -> dict[int, str]:
        """The text up to the next action, by its begin, without the blanks that actions trim."""
        text = self.template.text
        found = {}
        ends = Action(0, 0, Kind.COMMENT), Action(len(text), len(text), Kind.COMMENT)
        for one, other in pairwise((ends[0], *self.template.actions, ends[1])):
            part, before, after = text[one.end : other.start], self._raw(one), self._raw(other)
            if before.endswith(_TRIMS_AFTER):
                part = part.lstrip()
            elif _makes_no_line(before, one):
                part = _LINE_AFTER.sub("", part)
            if after.startswith(_TRIMS_BEFORE):
                part = part.rstrip()
            elif _makes_no_line(after, other):
                part = _LINE_BEFORE.sub("", part)
            found[one.end] = part
        return found

    def _pieces_in(self, start: int, end: int, blocks: list[Block]) -> Iterator[Piece]:
        """The texts, the actions that write, and the blocks, in their order."""
        inside = {each.start: each for each in blocks}
        yield self._between.get(start, "")
        for action in self.template.actions_in(start, end):
            if action.start < start:
                continue
            if block := inside.get(action.start):
                yield [self._arm(each) for each in block.arms]
                start = block.end
            else:
                if action.kind is Kind.WRITES:
                    yield self._raw(action), action.start
                start = action.end
            yield self._between.get(start, "")

    def _arm(self, arm: Arm) -> tuple[Condition | None, bool, list[Piece]]:
        pieces = list(self._pieces_in(arm.start, arm.end, arm.inner))
        return self.conditions.get(id(arm)), arm.wanted, pieces


def _choose(
    pieces: list[Piece],
    chosen: Mapping[Condition, int] | None,
    found: list[str | tuple[str, int]],
) -> None:
    for each in pieces:
        if not isinstance(each, list):
            found.append(each)
        elif chosen is None:
            for *_, inner in each:
                _choose(inner, chosen, found)
        else:
            inner, times = _chosen_arm(each, chosen)
            for _ in range(times):
                _choose(inner, chosen, found)


def _chosen_arm(
    arms: list[tuple[Condition | None, bool, list[Piece]]], chosen: Mapping[Condition, int]
) -> tuple[list[Piece], int]:
    """The pieces of the branch that is active, and how often they come."""
    for condition, wanted, pieces in arms:
        times = 1 if condition is None else chosen.get(condition, 1)
        if condition is not None and not wanted:
            times = int(not times)
        if times:
            return pieces, times
    return [], 0


def _makes_no_line(raw: str, action: Action) -> bool:
    return action.kind is not Kind.WRITES and raw.startswith(("{%", "{#"))


def _conditions(
    blocks: list[Block], loops: tuple[int, ...], numbers: Iterator[int]
) -> Iterator[tuple[int, Condition]]:
    for block in blocks:
        number = next(numbers)
        inner = (*loops, number) if block.word in LOOPS else loops
        for arm in block.arms:
            if arm.atom:
                own = number if block.word in LOOPS else None
                yield id(arm), (loops, own, _SCOPE.sub("", arm.atom, count=1))
            yield from _conditions(arm.inner, inner, numbers)
