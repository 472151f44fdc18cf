"""Replaces template actions by placeholders, to read the text as YAML, and restores them.

Each is as long as its action, so all indexes stay the same. An amount of GPUs becomes a number, so
that rules read it as one; `Masks.amounts` are these numbers, and two actions have the same number
only if they write the same. Every other action becomes a run of one letter that no manifest has.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

from webhook.kube.pod import as_map
from webhook.templates.actions import Template, blank, covered
from webhook.templates.blocks import LOOPS, Action, Kind
from webhook.templates.expressions import meaning
from webhook.yamlpatch import style
from webhook.yamlpatch.style import FIRST_SIGN, LAST_SIGN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings
    from webhook.templates.regions import Region

_RUN = re.compile(f"([{chr(FIRST_SIGN)}-{chr(LAST_SIGN)}])\\1*")
_DIGIT = re.compile(r"[0-9]+")
_DIGITS = 17  # octal ones, of a number that fits into 64 bits
_KEY = re.compile(r"[\"']?(?<![\w./-])(?P<name>[\w./-]+)[\"']?[ \t]*:[ \t]*(?P<quote>[\"']?)$")
_BLANK = re.compile(r"\s*")
_NEW_LINES = re.compile(r"\|\s*nindent\b")
_AFTER = re.compile(r"[ \t]*(?:#|,|\}|\r?$)", re.MULTILINE)


def stands_for_action(value: object) -> bool:
    """Whether the value, or a part of it, is a placeholder."""
    return isinstance(value, str) and _RUN.search(value) is not None


def stands_for_part(value: object) -> bool:
    """Whether an action stands for the value, or for the name of a member of it."""
    return stands_for_action(value) or any(map(stands_for_action, as_map(value)))


def may_contain(value: object, text: str) -> bool:
    """Whether a value with a placeholder may be this text after rendering."""
    if not isinstance(value, str) or not stands_for_action(value):
        return False
    written = _RUN.split(value)[::2]  # between the placeholders
    return re.fullmatch(".*".join(map(re.escape, written)), text) is not None


class TooManyError(ValueError):
    """There are not enough placeholders."""


class Masks:
    """The signs of one part of a template."""

    def __init__(self, template: Template, region: Region, settings: Settings) -> None:
        self._template = template
        self._signs: dict[int, str] = {}  # by the start of the action
        self._runs: dict[str, Action] = {}
        self._numbers: dict[str, Action] = {}
        self._rests: dict[tuple[int, int], str] = {}  # of lines, without their actions
        text = template.text
        if _RUN.search(text, region.start, region.end):
            raise TooManyError("it has the letters that would stand for the actions")
        writing = [
            each
            for each in template.actions_in(region.start, region.end)
            if each.kind is Kind.WRITES and not self.is_alone(each)
        ]
        amounts = [each for each in writing if self._is_amount(each, settings)]
        self.amounts = self._add_numbers(amounts, region)
        for action in writing:
            if action.start not in self._signs:
                self._add(action)

    def is_alone(self, action: Action) -> bool:
        """Whether its output may be any lines.

        There are only actions on its line, or it begins new lines after a key.
        """
        text = self._template.text
        start, end = style.line_start(text, action.start), style.line_end(text, action.end)
        if (start, end) not in self._rests:
            self._rests[start, end] = "".join(self._between(start, end)).strip()
        rest = self._rests[start, end]
        if _NEW_LINES.search(self._raw(action)) and _BLANK.fullmatch(text, action.end, end):
            rest = _KEY.sub("", rest)
        return not rest or rest.startswith("#")

    def _between(self, start: int, end: int) -> Iterator[str]:
        """The text between these places without actions."""
        text = self._template.text
        for each in self._template.actions_in(start, end):
            yield text[start : each.start]
            start = max(start, each.end)
        yield text[start:end]

    def __call__(self, action: Action) -> str:
        """The placeholder for the action; blanks for one that is alone on its line."""
        raw = self._template.text[action.start : action.end]
        return self._signs.get(action.start) or blank(raw)

    def restored(self, text: str) -> str:
        """The text with the actions instead of their placeholders."""
        text = _RUN.sub(lambda found: self._raw_of(found[0]), text)
        if not self._numbers:
            return text
        numbers = "|".join(sorted(self._numbers, key=len, reverse=True))
        return re.sub(
            rf"(?<![\w.])(?:{numbers})(?![\w.])",
            lambda found: self._raw(self._numbers[found[0]]),
            text,
        )

    def _add_numbers(self, amounts: list[Action], region: Region) -> frozenset[int]:
        """Give each amount a number; actions of one text in which nothing changed get the same."""
        text, around = self._template.text, self._template.actions_in(region.start, region.end)
        loops = {each.end for each in around if each.kind is Kind.OPENS and each.word in LOOPS}
        sets = [each.start for each in around if each.kind is Kind.SILENT]
        by_text: dict[tuple[object, ...], list[Action]] = {}
        for action in amounts:
            arms = self._template.arms_around(action.start, action.end)
            subject = [arm.start for arm in arms if arm.start in loops]
            key = (meaning(self._raw(action)), bisect_right(sets, action.start), *subject)
            by_text.setdefault(key, []).append(action)
        taken = {each.lstrip("0") for each in _DIGIT.findall(text, region.start, region.end)}
        free: dict[int, Iterator[int]] = {}  # by the length of the shortest action of a text
        values = set()
        for same in by_text.values() if amounts else ():
            shortest = min(len(self._raw(each)) for each in same)
            value = _untaken(free.setdefault(shortest, _numbers(shortest)), taken)
            for action in same:
                length = len(self._raw(action))
                # A plain number with a leading zero is octal in go-yaml.
                is_decimal = text[action.start - 1] in {"'", '"'} or len(f"{value}") == length
                number = f"{value}" if is_decimal else f"{value:o}"
                self._signs[action.start] = number.zfill(length)
                self._numbers[number.zfill(length)] = action
            self._numbers[str(value)] = same[0]
            values.add(value)
        return frozenset(values)

    def _add(self, action: Action) -> None:
        if len(self._runs) > LAST_SIGN - FIRST_SIGN:
            raise TooManyError("it has too many actions")
        letter = chr(FIRST_SIGN + len(self._runs))
        self._runs[letter] = action
        self._signs[action.start] = covered(self._raw(action), letter)

    def _is_amount(self, action: Action, settings: Settings) -> bool:
        text = self._template.text
        if "\n" in self._raw(action):
            return False
        # A key has no braces, so it stands behind the action before this one.
        start = max(style.line_start(text, action.start), text.rfind("}", 0, action.start) + 1)
        key = _KEY.search(text, start, action.start)
        if key is None:
            return False
        name = key["name"]
        if not settings.names_gpus(name):
            return False
        after = self._without_actions(action.end)
        if key["quote"]:
            if not after.startswith(key["quote"]):
                return False
            after = after[1:]
        return _AFTER.match(after) is not None

    def _without_actions(self, at: int) -> str:
        """The begin of the rest of the line; conditions in it are ignored."""
        text, actions = self._template.text, self._template.actions
        end, said = style.line_end(text, at), ""
        position = bisect_right(actions, at, key=attrgetter("end"))
        while position < len(actions) and actions[position].start < end:
            action = actions[position]
            said += text[at : action.start]
            if action.kind is Kind.WRITES or len(said.strip()) > 1:
                return said + text[action.start]
            at, position = action.end, position + 1
        return said + text[at:end]

    def _raw(self, action: Action) -> str:
        return self._template.text[action.start : action.end]

    def _raw_of(self, run: str) -> str:
        return self._raw(self._runs[run[0]]) if run[0] in self._runs else run


def _numbers(length: int) -> Iterator[int]:
    """Numbers for actions of this length: octal ones have a zero before them, short ones do not."""
    digits = min(length - 1, _DIGITS)
    return iter(range(8**digits - 1, 8 ** (digits - 1) - 1, -1) if digits > 1 else range(99, 9, -1))


def _untaken(numbers: Iterator[int], taken: set[str]) -> int:
    """The next number that is in the text neither as it is nor as an octal one."""
    for value in numbers:
        if taken.isdisjoint({f"{value}", f"{value:o}"}):
            taken |= {f"{value}", f"{value:o}"}
            return value
    raise TooManyError("it has too many amounts")
