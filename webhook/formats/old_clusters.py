"""API versions that a template has only for old clusters, or only asks for."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from webhook.templates import actions
from webhook.templates.cluster_questions import Answer, Questions
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.splice import apply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.core.text_patterns import Match
    from webhook.kube.api_versions import Release
    from webhook.templates.blocks import Arm, Block


_OF_TODAY = re.compile(r"\b[a-z][\w.]*/v[1-9][0-9]*(?![\w.])")
_BEGIN, _END = re.compile(r"(?=\{\{|\{%)"), re.compile(r"(?=\}\}|%\})")


class OldClusters:
    """The versions in one template that no cluster of the target gets from it."""

    def __init__(self, text: str, target: Release, written: Sequence[Replacement]) -> None:
        """For the text with the edits in `written`: what they write counts, as in the next run."""
        self._text, self._target, self._written = text, target, written
        self._has_actions = "{{" in text or "{%" in text
        self._of_today: dict[int, bool] = {}  # by id() of a branch

    def hold(self, match: Match) -> bool:
        """Whether the version of this match is only asked for, or in a branch for old clusters."""
        if not self._has_actions:
            return False
        is_asked = self._is_inside(match.start) and not self._is_written(match)
        return is_asked or self._is_for_them(match)

    def _is_inside(self, at: int) -> bool:
        """Whether this place is inside an action."""
        begun, ended = (bisect_right(each, at - 2) for each in (self._begins, self._ends))
        return begun > 0 and (not ended or self._begins[begun - 1] > self._ends[ended - 1])

    @cached_property
    def _begins(self) -> list[int]:
        return [found.start() for found in _BEGIN.finditer(self._text)]

    @cached_property
    def _ends(self) -> list[int]:
        return [found.start() for found in _END.finditer(self._text)]

    @cached_property
    def _template(self) -> actions.Template:
        return actions.read_apart(self._text)

    @cached_property
    def _questions(self) -> Questions:
        return Questions(self._template, self._target)

    def _is_written(self, match: Match) -> bool:
        """Whether the action around it writes it, or gives it to a variable."""
        around = self._template.actions_in(match.start, match.end)
        texts = (text for each in around for text in self._questions.written(each))
        return any(match.found in text for text in texts)

    def _is_for_them(self, match: Match) -> bool:
        if self._template.torn:
            return False
        return any(
            self._is_arm_for_them(block, arm)
            for block, arm in self._template.blocks_around(match.start, match.end)
        )

    def _is_arm_for_them(self, block: Block, arm: Arm) -> bool:
        """Whether a cluster of the target gets another branch, as far as that is known."""
        if self._questions.of(block, arm) not in {Answer.NO, Answer.ASKED}:
            return False
        return any(self._is_of_today(each) for each in block.arms if each is not arm)

    def _is_of_today(self, arm: Arm) -> bool:
        """Whether a branch has a current version, perhaps with this run."""
        if id(arm) not in self._of_today:
            text = self._with_edits(arm)
            self._of_today[id(arm)] = _OF_TODAY.search(text) is not None
        return self._of_today[id(arm)]

    def _with_edits(self, arm: Arm) -> str:
        here = [
            Replacement(each.start - arm.start, each.end - arm.start, each.text)
            for each in self._written
            if arm.start <= each.start and each.end <= arm.end
        ]
        return apply(self._text[arm.start : arm.end], here)
