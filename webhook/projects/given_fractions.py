"""Fractions of a GPU that texts give to the values of charts: names in, places out.

Whatever the form of a text is, what it gives to a value stands behind the name of the value, or of
a variable that is given to it: `gpus: 0.5`, `--set gpus=$GPUS` with `GPUS=0.5` in another file.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from webhook.files.reading import text_of
from webhook.formats import fractions
from webhook.projects import named_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from webhook.files.results import Plan

_BEFORE = r"(?<![\w-])(?<!\.com/)(?:TF_VAR_)?"
_MOST = 3  # variables that are given to each other
# Between a name and its value, which may be in another line: `name: gpus` and `value: 0.5`.
_GAP = (
    r"(?P<gap>[\"'\\)\]]*(?:[\s\"'\\,:=?>\[(|~+-]|\{(?!\{)"
    r"|\b(?:value|default|type|number|string)\b)+)"
)
_SIGN = re.compile(r"[:=,>\[{]")
_ASSIGNS = re.compile(r"[:=][^\n]*\Z")
_AMOUNT = re.compile(r"(?P<amount>\.?\d[\w.]*(?:e-\d+)?)(?![\w./:-])")
_BRACED = r"\{\{[^\n]*?\}\}|\$\{[^\n]*?\}|\$\([^\n]*?\)"
_EXPRESSION = re.compile(rf"(?:{_BRACED}|[^\n,;#])+")
_WORD = re.compile(rf"(?:{_BRACED}|[^\s,;#])+")
_MAKES = re.compile(r"[${|?(]|\bor\b")  # more than a plain word
_NAME = re.compile(r"[\w.$]+[\"'})\]\\\s]*")
_NEAR = 200  # characters of an expression, and between two members of one object
_TARGET = r"\btargetPath[\"']?[ \t]*:[ \t]*[^\s,}]*(?<![\w-])"  # of Flux: where one value goes
_VALUES_KEY = re.compile(r"\bvaluesKey[\"']?[ \t]*:[ \t]*[\"']?([\w.-]+)")
_DIVIDES = re.compile(r"[\w)\]}][ \t]+/[ \t]+\w")
_NUMBER = re.compile(r"(?<![\w.-])\.?\d[\w.]*|(?<=:-)\.?\d[\w.]*")
_VARIABLE = re.compile(
    r"(?<![\w-])(?:[\w.$]*\.)?([A-Za-z_]\w+)(?![\w(]|[ \t]*(?:=|:(?![-?+=]))|\.\w)"
)
_NO_VARIABLE = {
    *("true", "false", "null", "none", "None", "True", "False", "default", "value", "values"),
    *("string", "number", "int", "float", "str", "type", "quote", "if", "else", "or", "and", "not"),
}


class _Given(NamedTuple):
    """What a place in a text gives to a name: a fraction, or the names of variables."""

    start: int
    said: str
    variables: frozenset[str]


def found(
    names: Iterable[str], path: str, plan: Plan, charts: frozenset[str], own: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The names of values that get a fraction in a text around a path, and the fraction.

    They are of charts with these names, whose `own` files are known.
    """
    known = {name: name for name in names}  # variables, each with the value that it is given to
    waits = [*known]
    for _ in range(_MOST):
        more: dict[str, str] = {}
        for name, file in ((e, f) for e in waits for f in named_files.with_words(path, plan, (e,))):
            given_there = () if file in own else _given(plan.run, file, name)
            for each in given_there:
                if not named_files.is_for(file, each.start, charts, plan):
                    continue
                if each.said:
                    line = text_of(file).count("\n", 0, each.start) + 1
                    where = f"{os.path.relpath(file, path)} (line {line})"
                    yield known[name], f"{each.said} from {name} in {where}"
                more |= {one: known[name] for one in each.variables if one not in known}
        known |= more
        waits = [*more]


@lru_cache(maxsize=4096)
def _given(_run: object, file: str, name: str) -> list[_Given]:
    return [*given(text_of(file), name)]


def given(text: str, name: str) -> Iterator[_Given]:
    """What a text gives to a name: fractions, and variables that may have one."""
    for each in re.finditer(rf"{_TARGET}{re.escape(name)}(?![\w.-])", text):
        near = text[max(0, each.start() - _NEAR) : each.end() + _NEAR]
        yield _Given(each.start(), "", frozenset(_VALUES_KEY.findall(near)))
    for each in re.finditer(rf"{_BEFORE}{re.escape(name)}(?![\w-]){_GAP}", text):
        gap, at = each["gap"], each.end()
        amount = _AMOUNT.match(text, at)
        if amount is not None:
            if _SIGN.search(gap) and fractions.is_fraction(amount["amount"]):
                yield _Given(each.start(), amount["amount"], frozenset())
        elif _ASSIGNS.search(gap):
            is_word = gap.strip("\"'\\") == "="
            said = (_WORD if is_word else _EXPRESSION).match(text, at, at + _NEAR)
            yield from _computed(each.start(), said[0] if said else "")


def _computed(start: int, said: str) -> Iterator[_Given]:
    is_made = _MAKES.search(said) is not None
    fraction = next(filter(fractions.is_fraction, _NUMBER.findall(said) if is_made else ()), "")
    if not fraction and _DIVIDES.search(said):
        fraction = f"a fraction with {said.strip()}"
    is_named = is_made or _NAME.fullmatch(said) or _DIVIDES.search(said)
    variables = frozenset(_VARIABLE.findall(said) if is_named else ()) - _NO_VARIABLE
    if fraction or variables:
        yield _Given(start, fraction, variables)
