"""Fractions of a GPU that a template may write: its text and known values in, the first one out.

Rules round up only what is written: the API server refuses the fraction of an action under the
current name, and under the legacy name the webhook rounds it up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from webhook.formats.mentions import Comments
from webhook.kube import quantity
from webhook.kube.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.settings import Settings

_VALUE = re.compile(r"[ \t]*(?P<value>(?:\{\{.*?\}\}|\{%.*?%\}|[^\s,}#{])+)")
_WORD = re.compile(r"[$.\w+-]+")
# What gives variables or the dot their values.
_GIVES = re.compile(
    r"\{\{-?\s*(?P<dot>(?:range|with)\b)?\s*(?P<set>\$\w+(?:\s*,\s*\$\w+)?\s*:?=)?"
    r"(?P<value>(?:(?!\{\{).)*?)\}\}",
    re.DOTALL,
)
_INSIDE = re.compile(r"\{\{(?:(?!\{\{).)*?\}\}", re.DOTALL)
_NAMED = re.compile(
    r"\{\{-?\s*define\s+\"(?P<name>[^\"]+)\"(?P<body>.*?)(?=\{\{-?\s*define\s|\Z)", re.DOTALL
)
_PAIR = re.compile(r"\"(\w+)\"\s+\(?\s*([$.][\w.]+)")  # of `dict` and `set`


@dataclass(frozen=True, slots=True)
class Known:
    """What is known besides the text: fractions in values, and named templates by their names."""

    members: dict[str, str] = field(default_factory=dict)  # the member, and its fraction
    holders: dict[str, str] = field(default_factory=dict)  # lists and maps of such members
    given: dict[str, set[str]] = field(default_factory=dict)  # what made members may be
    named: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Iterable[tuple[str, Any]], texts: Iterable[str]) -> Self:
        """What the values of a chart, each with the name of its file, and its texts have."""
        known = cls()
        for name, data in values:
            for at, value in walk(data):
                names = [each for each in at if isinstance(each, str)]
                if names and _is_fraction(value):
                    said = f"{value} from {names[-1]} in {name}"
                    known.members.setdefault(names[-1], said)
                    known.holders.update(dict.fromkeys(names[-2:], said))
        for text in texts:
            known.named.update((each["name"], each["body"]) for each in _NAMED.finditer(text))
            for name, path in _PAIR.findall(text):
                known.given.setdefault(name, set()).add(_last(path))
        return known


NOTHING = Known()


def written(text: str, settings: Settings, known: Known = NOTHING) -> tuple[int, str] | None:
    """The line of an amount under a legacy name that may be a fraction, and the fraction."""
    if not settings.legacy_resources or not ("{{" in text or "{%" in text):
        return None
    names = "|".join(map(re.escape, settings.legacy_resources))
    comments = Comments(text)
    for key in re.finditer(rf"(?:{names})[\"']?[ \t]*:", text):
        found = _VALUE.match(text, key.end())
        if found is None or "{" not in found["value"] or comments.hold(key.start()):
            continue
        if said := next(_fractions(found["value"], text, known), ""):
            return text.count("\n", 0, key.start()) + 1, said
    return None


def _fractions(value: str, text: str, known: Known) -> Iterator[str]:
    """The fractions that a value may be, with where they are from."""
    seen: set[str] = set()
    places = [(value, text)]
    for said, around in places:  # the list grows
        for word in _WORD.findall(said):
            yield from _of_word(word, around, known)
        for name, body in known.named.items():
            if name not in seen and f'"{name}"' in said:
                seen.add(name)
                places.append((" ".join(_INSIDE.findall(body)), body))


def _of_word(word: str, text: str, known: Known) -> Iterator[str]:
    """The fractions that a number, a path, a variable or the dot may be."""
    if _is_fraction(word):
        yield word
    elif word == "." or (word.startswith("$") and "." not in word):
        every = [*_given(word, text)]
        yield from filter(_is_fraction, every)
        yield from (known.holders[each] for each in every if each in known.holders)
    else:
        names = (_last(word), *known.given.get(_last(word), ()))
        yield from (known.members[each] for each in names if each in known.members)


def _given(word: str, text: str) -> Iterator[str]:
    """The words of the expressions that give a variable, or the dot, its values in this text."""
    for sets, words in _every_given(text):
        if word in sets:
            yield from words


@lru_cache(maxsize=2)
def _every_given(text: str) -> list[tuple[set[str], list[str]]]:
    """What each action gives values to, and the words of its expression."""
    return [
        ({*_WORD.findall(each["set"] or ""), "." if each["dot"] else ""}, words)
        for each in _GIVES.finditer(text)
        if each["dot"] or each["set"]
        for words in [[_last(word) for word in _WORD.findall(each["value"])]]
    ]


def _last(word: str) -> str:
    """The last member of a path; a number as it is."""
    return word if _is_fraction(word) else word.rpartition(".")[2].lstrip("$")


def _is_fraction(value: object) -> bool:
    amount = quantity.parse(value)
    return amount is not None and amount > 0 and amount.denominator != 1


def may_be(where: str, said: str) -> str:
    """The reason for held amounts: an action that may write a fraction."""
    return f"{where} may write {said}, and GPUs are whole: write a whole number there"
