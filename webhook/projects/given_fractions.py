"""Fractions of a GPU that texts give to the values of charts: names in, places out.

Whatever the form of a text is, what it gives to a value stands behind the name of the value, or of
a variable that is given to it: `gpus: 0.5`, `--set gpus=$GPUS` with `GPUS=0.5` in another file.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.files.reading import text_of
from webhook.formats import fractions
from webhook.kube.walk import walk
from webhook.projects import given_values, named_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from webhook.files.results import Plan

_BEFORE = r"(?<![\w-])(?<!\.com/)(?:TF_VAR_)?"
_FRACTION = re.compile(r"\.\d|\d[mun]\b|\de-\d", re.IGNORECASE)
_HEAD = re.compile(r"(?:[ \t]*(?:---[^\n]*|#[^\n]*)?\n|---[ \t]+)*[ \t]*")
_LONGEST = 1_000_000  # characters of a file that is read as data
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
# An entry with a name and a value, in any order: `set { value = 0.5 name = "gpus" }`.
_ENTRY = (
    r"(?:\bname[\"']?[ \t]*[:=][ \t]*[\"']?(?:[\w.\[\]]*\.)?|\bvariable[ \t]+[\"']){}[\"']?"
    r"(?=[ \t]*[,\n}}{{)]|[ \t]+\w)"
)
_OPENS = re.compile(r"[{(]|^[ \t]*-[ \t]", re.MULTILINE)
_CLOSES = re.compile(r"[})]|^[ \t]*-[ \t]", re.MULTILINE)
_SAID = re.compile(r"\b(?:value|default|defaultValue)[\"']?[ \t]*[:=][ \t]*(?P<said>[^\s,})]+)")
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


def values(
    names: Iterable[str], path: str, plan: Plan, charts: frozenset[str], own: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """The values with fractions in the files around a path that have one of these names.

    They are data, as those of a chart itself: files that are no YAML have only commands.
    """
    searched = ((e,) if len(e) > 1 else (f"{e}:", f'"{e}"', f"{e}=") for e in names)
    files = (file for words in searched for file in named_files.with_words(path, plan, words))
    for file in dict.fromkeys(files):
        for at, line, data in () if file in own else _with_fractions(plan.run, file):
            if named_files.is_for(file, at, charts, plan):
                yield f"{os.path.relpath(file, path)} (line {line})", data


@lru_cache(maxsize=4096)
def _with_fractions(run: object, file: str) -> list[tuple[int, int, Any]]:
    """Values with fractions in a file, each with its place and the line of the first one."""
    text, found = text_of(file), list[tuple[int, int, Any]]()
    if not _FRACTION.search(text) or len(text) > _LONGEST:
        return found
    for each in given_values.given(file, text, is_map=named_files.parts_of(run, file).is_map):
        amount = next((e for _, e in walk(each.data) if fractions.is_fraction(e)), None)
        if amount is not None:
            at = _HEAD.match(text, each.start).end()  # type: ignore[union-attr]
            here = max(at, text.find(str(amount), at, each.end))
            found.append((at, text.count("\n", 0, here) + 1, each.data))
    return found


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
    names = (name for name in names if len(name) > 1)
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
    for each in re.finditer(_ENTRY.format(re.escape(name)), text):
        before = _OPENS.split(text[max(0, each.start() - _NEAR) : each.start()])[-1]
        behind = _CLOSES.split(text[each.end() : each.end() + _NEAR], maxsplit=1)[0]
        for said in (found["said"] for part in (before, behind) for found in _SAID.finditer(part)):
            if fractions.is_fraction(said.strip("\"'")):
                yield _Given(each.start(), said.strip("\"'"), frozenset())
            else:
                yield from _computed(each.start(), said)
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
