"""What a template asks about the cluster in a condition: its text in, the answer of the target out.

A chart often chooses an API version so. It may even ask for one that was removed itself: then the
branch for clusters without it is the one that counts.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from webhook.kube.api_versions import is_served
from webhook.templates.blocks import LOOPS, Kind
from webhook.templates.expressions import At, Call, Constant, Text, assigned, inside, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.api_versions import Release
    from webhook.templates.actions import Template
    from webhook.templates.blocks import Action, Arm, Block
    from webhook.templates.expressions import Expression

# Names in a condition about the Kubernetes version.
_CLUSTER = re.compile(
    r"\bCapabilities\b|\bsemver(?:Compare)?\b|kube_?-?version|k8s_?version|api_?versions?\b"
    r"|isStable|supportsIngress",
    re.IGNORECASE,
)
_SCOPE = re.compile(r"(?:\d+:)*")
_VARIABLE = re.compile(r"\$\w+")
_VERSION = re.compile(r"\b[a-z][\w.]*/v[1-9]\w*(?:/\w+)?")
_COMPARED = re.compile(r"([<>=!^~]*) *v?(\d+)\.(\d+)(?:\.(\d+))?(?:-\w+)?")
_SET = re.compile(r"=\s*(['\"])([^'\"]*)\1$")  # a statement of Jinja
_QUESTIONS = {"Has", "contains", "eq", "has", "hasPrefix", "hasSuffix", "include", "lookup", "ne"}
_MOST_STEPS = 20  # from a variable to another one


class Answer(Enum):
    """What the API server of the target answers."""

    YES = "yes"
    NO = "no"
    ASKED = "it is asked, and the answer is not known"
    OPEN = "something else decides"


_NOT = {Answer.YES: Answer.NO, Answer.NO: Answer.YES}


class Questions:
    """The conditions of one template, answered for one release."""

    def __init__(self, template: Template, target: Release) -> None:
        self._template, self._target = template, target
        self._known: dict[int, Answer] = {}  # by id() of a branch

    def of(self, block: Block, arm: Arm) -> Answer:
        """Whether this branch of the block is the one for the target."""
        before = block.arms[: [each is arm for each in block.arms].index(True)]
        return _all(*(_not(self._of_arm(block, each)) for each in before), self._of_arm(block, arm))

    def written(self, action: Action) -> Iterator[str]:
        """The texts that an action may write, or give to a variable."""
        text = self._template.text[action.start : action.end]
        if action.word == "set":
            yield from (found[2] for found in _SET.finditer(action.rest))
        elif action.kind in {Kind.WRITES, Kind.SILENT}:
            yield from self._texts(read(assigned(inside(text))[1]))

    def _texts(self, made: Expression) -> Iterator[str]:
        if isinstance(made, Text):
            yield made.value
        elif isinstance(made, Call) and made.name not in {"?", *_QUESTIONS}:
            given = made.arguments
            if made.name == "ternary" and len(given) == len(("yes", "no", "condition")):
                answer = self._answer(given[2])
                chosen = {Answer.YES: given[:1], Answer.NO: given[1:2], Answer.ASKED: ()}
                given = chosen.get(answer, given[:2])
            for each in given:
                yield from self._texts(each)

    def _of_arm(self, block: Block, arm: Arm) -> Answer:
        if arm.atom is None:
            return Answer.YES
        if block.word in LOOPS:
            return Answer.OPEN
        condition = arm.atom[_SCOPE.match(arm.atom).end() :]  # type: ignore[union-attr]
        made = read(condition)
        answer = self._unread(condition) if _is_unread(made) else self._answer(made)
        return answer if arm.wanted else _not(answer)

    def _answer(self, made: Expression, steps: int = _MOST_STEPS) -> Answer:
        if isinstance(made, Constant) and made.value in {"true", "false"}:
            return Answer.YES if made.value == "true" else Answer.NO
        if isinstance(made, At) and not made.members and isinstance(made.root, str):
            given = self._given.get(made.root, [])
            is_one = len(given) == 1 and steps > 0
            return self._answer(read(given[0]), steps - 1) if is_one else self._unread(made.root)
        if isinstance(made, Call):
            given_to = made.arguments
            if made.name == "not" and len(given_to) == 1:
                return _not(self._answer(given_to[0], steps))
            if made.name == "and":
                return _all(*(self._answer(each, steps) for each in given_to))
            if made.name == "or":
                return _not(_all(*(_not(self._answer(each, steps)) for each in given_to)))
            if (answer := self._of_cluster(made)) is not None:
                return answer
        return self._unread(repr(made))

    def _of_cluster(self, made: Call) -> Answer | None:
        texts = [each.value for each in made.arguments if isinstance(each, Text)]
        others = " ".join(repr(e) for e in made.arguments if not isinstance(e, Text))
        if len(texts) != 1:
            return None
        if made.name == "semverCompare":
            by_helper = Answer.ASKED if "'include'" in others else Answer.OPEN
            return _compared(texts[0], self._target) if self._asks(others) else by_helper
        if made.name in {"Has", "has"} and self._asks(others):
            served = is_served(texts[0], self._target)
            return Answer.ASKED if served is None else _said(is_so=served)
        return None

    def _unread(self, condition: str) -> Answer:
        """The answer to a condition of which only the words are known."""
        named = _VERSION.findall(condition)
        if any(is_served(each, self._target) is False for each in named):
            return Answer.OPEN
        return Answer.ASKED if self._asks(condition) else Answer.OPEN

    def _asks(self, condition: str) -> bool:
        """Whether it asks for the cluster, or the definition of a variable in it does."""
        if _CLUSTER.search(condition):
            return True
        names = _VARIABLE.findall(condition)
        return any(_CLUSTER.search(each) for name in names for each in self._given.get(name, ()))

    @cached_property
    def _given(self) -> dict[str, list[str]]:
        """What the template gives to each variable."""
        given: dict[str, list[str]] = {}
        for each in self._template.actions:
            names, rest = assigned(inside(self._template.text[each.start : each.end]))
            for name in names:
                given.setdefault(name, []).append(rest.strip())
        return given


def _is_unread(made: Expression) -> bool:
    return isinstance(made, Call) and made.name == "?"


def _said(*, is_so: bool) -> Answer:
    return Answer.YES if is_so else Answer.NO


def _not(answer: Answer) -> Answer:
    return _NOT.get(answer, answer)


def _all(*answers: Answer) -> Answer:
    worst = (Answer.NO, Answer.OPEN, Answer.ASKED)
    return next((each for each in worst if each in answers), Answer.YES)


def _compared(wanted: str, target: Release) -> Answer:
    """Whether a release of this minor version is in a range of semver."""
    ranges = [
        _all(*(_holds(each, target) for each in _COMPARED.finditer(one)))
        if _COMPARED.sub("", one).strip(", ") == ""
        else Answer.ASKED
        for one in wanted.split("||")
    ]
    return _not(_all(*map(_not, ranges)))


def _holds(compared: re.Match[str], target: Release) -> Answer:
    sign, major, minor, patch = compared.groups()
    other = int(major), int(minor)
    if target == other:
        is_first = not (patch or "").strip("0")
        known = {">=": Answer.YES, "<": Answer.NO} if is_first else {}
        return known.get(sign, Answer.ASKED)
    is_newer = target > other
    if sign == "^":
        return _said(is_so=is_newer and target[0] == other[0])
    if sign in {">", ">=", "<", "<="}:
        return _said(is_so=is_newer is (sign[0] == ">"))
    return _said(is_so=sign == "!=")
