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

from webhook.templates.actions import LOOPS, Action, Arm, Block, Kind, Template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    # The loops around a condition and of it, by their numbers in the text, and the condition.
    Condition = tuple[tuple[int, ...], int | None, str]
    Piece = str | tuple[str, int]  # a text, or an action that writes one and its place

_SCOPE = re.compile(r"(?:#[0-9]+ )?(?:[0-9]+:)*")  # of Arm.atom: places, which edits move
_TRIMS_BEFORE, _TRIMS_AFTER = ("{{-", "{%-", "{#-"), ("-}}", "-%}", "-#}")
_LINE_BEFORE, _LINE_AFTER = re.compile(r"(?<![^\n])[ \t]+\Z"), re.compile(r"\A\r?\n")


@dataclass(eq=False)
class Form:
    """A template that can be filled in. Conditions and actions are named as in an edited text."""

    template: Template
    _known: dict[frozenset[tuple[Condition, int]], list[Piece]] = field(default_factory=dict)

    @cached_property
    def conditions(self) -> dict[int, Condition]:
        """The conditions of the branches, by id() of the branch."""
        return dict(_conditions(self.template.blocks, (), count()))

    @cached_property
    def outputs(self) -> list[str]:
        """The different actions that write text."""
        return list(dict.fromkeys(self.written))

    def filled(self, chosen: Mapping[Condition, int], text_of: Callable[[str, int], str]) -> str:
        """The text if conditions have these values, and loops as many turns; else 1.

        `text_of` returns what an action at a place writes.
        """
        pieces = self._pieces_of(frozenset(chosen.items()))
        return "".join(each if isinstance(each, str) else text_of(*each) for each in pieces)

    def _pieces_of(self, chosen: frozenset[tuple[Condition, int]]) -> list[Piece]:
        """The texts and the actions that write, in their order."""
        if chosen not in self._known:
            found: list[Piece] = []
            self._chosen = dict(chosen)
            self._fill(0, len(self.template.text), self.template.blocks, found)
            self._known[chosen] = found
        return self._known[chosen]

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

    def _fill(self, start: int, end: int, blocks: list[Block], found: list[Piece]) -> None:
        inside = {each.start: each for each in blocks}
        found.append(self._between.get(start, ""))
        for action in self.template.actions_in(start, end):
            if action.start < start:
                continue
            if block := inside.get(action.start):
                arm, times = self._chosen_arm(block)
                for _ in range(times):
                    self._fill(arm.start, arm.end, arm.inner, found)
                start = block.end
            else:
                if action.kind is Kind.WRITES:
                    found.append((self._raw(action), action.start))
                start = action.end
            found.append(self._between.get(start, ""))

    def _chosen_arm(self, block: Block) -> tuple[Arm, int]:
        for arm in block.arms:
            condition = self.conditions.get(id(arm))
            times = 1 if condition is None else self._chosen.get(condition, 1)
            if condition is not None and not arm.wanted:
                times = int(not times)
            if times:
                return arm, times
        return block.arms[0], 0


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
