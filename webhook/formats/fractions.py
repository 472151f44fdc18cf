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
from webhook.templates import computing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.settings import Settings

_VALUE = re.compile(r"[ \t]*(?P<value>(?:\{\{.*?\}\}|\{%.*?%\}|[^\s,}#{])+)")
_OF_DOT = re.compile(r"(?<![\w.$)])\.(?![A-Z])")  # Helm's own objects begin with a capital
_WORD = re.compile(r"[$.\w+-]+")
# What gives variables or the dot their values.
_GIVES = re.compile(
    r"\{\{-?\s*(?P<dot>(?:range|with)\b)?\s*(?P<set>\$\w+(?:\s*,\s*\$\w+)?\s*:?=)?"
    r"(?P<value>(?:(?!\{\{).)*?)-?\}\}",
    re.DOTALL,
)
_ACTION = re.compile(r"\{[{%]-?\s*(.*?)\s*-?[%}]\}", re.DOTALL)
_IF = re.compile(r"\{\{-?\s*(?:else\s+)?if\b.*?\}\}")  # it writes nothing
_OPENS = re.compile(r"(?:if|range|with|block|define)\b")
_ENDS = re.compile(r"end\b")
_INSIDE = re.compile(r"\{\{(?:(?!\{\{).)*?\}\}", re.DOTALL)
_NAMED = re.compile(
    r"\{\{-?\s*define\s+\"(?P<name>[^\"]+)\"(?P<body>.*?)(?=\{\{-?\s*define\s|\Z)", re.DOTALL
)
_MEMBER = re.compile(r"[A-Za-z_][\w-]*")
_READS = re.compile(r"\b(?:index|get|pluck|dig)\b")
_KEY = re.compile(r"\"([A-Za-z_][\w-]*)\"")
_PAIR = re.compile(r"\"(\w+)\"\s+\(?\s*([$.][\w.]+)")  # of `dict` and `set`


@dataclass(frozen=True, slots=True)
class Known:
    """What is known besides the text: fractions in values, and named templates by their names."""

    members: dict[str, str] = field(default_factory=dict)  # the member, and its fraction
    holders: dict[str, str] = field(default_factory=dict)  # lists and maps of such members
    above: dict[str, str] = field(default_factory=dict)  # all maps around such members
    given: dict[str, set[str]] = field(default_factory=dict)  # what made members may be
    named: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)  # members that decided an amount so far

    @classmethod
    def of(cls, values: Iterable[tuple[str, Any]], texts: Iterable[str]) -> Self:
        """What the values of a chart, each with the name of its file, and its texts have."""
        known = cls()
        for name, data in values:
            known.learn(name, data)
        for text in texts:
            known.named.update((each["name"], _own(each["body"])) for each in _NAMED.finditer(text))
            for name, path in _PAIR.findall(text):
                known.given.setdefault(name, set()).add(_last(path))
        return known

    def learn(self, name: str, data: Any) -> None:
        """Note the fractions in values, which are in the file with this name."""
        for at, value in walk(data):
            names = [each for each in at if isinstance(each, str)]
            if names and is_fraction(value):
                said = f"{value} from {names[-1]} in {name}"
                self.members.setdefault(names[-1], said)
                self.holders.update(dict.fromkeys(names[-2:], said))
                self.above.update(dict.fromkeys((*names, "Values"), said))

    def names(self) -> frozenset[str]:
        """The members of values that decided an amount so far."""
        return frozenset(filter(_MEMBER.fullmatch, self.asked)) - computing.FUNCTIONS - {"Values"}


def _own(body: str) -> str:
    """The text of a named template up to its end.

    Not by the blocks of actions.py, which are not read where they are too deep: a fraction there
    is one, too.
    """
    depth = 1
    for each in _ACTION.finditer(body):
        depth += bool(_OPENS.match(each[1])) - bool(_ENDS.match(each[1]))
        if not depth:
            return body[body.find("}}") + 2 : each.start()]
    return body[body.find("}}") + 2 :]


def written(text: str, settings: Settings, known: Known) -> tuple[int, str] | None:
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
    value = _IF.sub("", value)
    places = [_Place(value, text, _ACTION.findall(value))]
    for place in places:  # the list grows
        known.asked.update(_KEY.findall(place.said) if _READS.search(place.said) else ())
        for word in _WORD.findall(place.said):
            yield from _of_word(word, place, known)
            name, _, member = word.partition(".")
            if word.startswith("$") and (read := f"{name}.{bool(member)}") not in seen:
                seen.add(read)
                given = [said for sets, _, said in _every_given(place.text) if name in sets]
                # Of a map it is the member that counts, so no other word of it does.
                places += [_Place("" if member else g, place.text, [g], True) for g in given]
        if place is places[0] and _OF_DOT.search(value):
            yield from _computed_dots(text)
        for said in place.written:
            yield from computing.fractions(said, known.above)
        for name, body in known.named.items():
            if name not in seen and f'"{name}"' in place.said:
                seen.add(name)
                beside = computing.pieces(_INSIDE.split(body))
                yield from (f"{each} in the template {name}" for each in beside)
                written = _ACTION.findall(body)
                places.append(_Place(" ".join(_INSIDE.findall(body)), body, written))


@dataclass(frozen=True, slots=True)
class _Place:
    """A text that decides what an amount is; in `text`, with the expressions that it writes."""

    said: str
    text: str
    written: list[str]
    is_given: bool = False  # to a variable, which may be any member of it


def _of_word(word: str, place: _Place, known: Known) -> Iterator[str]:
    """The fractions that a number, a path, or the dot may be; variables are followed."""
    if is_fraction(word):
        yield word
    elif word == "." and not place.is_given:
        given = (words for sets, words, _ in _every_given(place.text) if word in sets)
        every = [each for words in given for each in words]
        known.asked.update(every)
        yield from filter(is_fraction, every)
        yield from (known.holders[each] for each in every if each in known.holders)
    else:
        names = (_last(word), *known.given.get(_last(word), ()))
        known.asked.update(names if "." in word else ())
        for found in (known.members, known.holders)[: 1 + place.is_given]:
            yield from (found[each] for each in names if each in found)


@lru_cache(maxsize=2)
def _computed_dots(text: str) -> list[str]:
    """The fractions that the dot, or a member of it, may be since a block computes it."""
    every = (said for sets, _, said in _every_given(text) if "." in sets)
    return [found for said in every for found in computing.fractions(said, {})]


@lru_cache(maxsize=2)
def _every_given(text: str) -> list[tuple[set[str], list[str], str]]:
    """What each action gives values to, the words of its expression, and the expression."""
    return [
        ({*_WORD.findall(each["set"] or ""), "." if each["dot"] else ""}, words, each["value"])
        for each in _GIVES.finditer(text)
        if each["dot"] or each["set"]
        for words in [[_last(word) for word in _WORD.findall(each["value"])]]
    ]


def _last(word: str) -> str:
    """The last member of a path; a number as it is."""
    return word if is_fraction(word) else word.rpartition(".")[2].lstrip("$")


def is_fraction(value: object) -> bool:
    """Whether it is an amount, and no whole one."""
    amount = quantity.parse(value)
    return amount is not None and amount > 0 and amount.denominator != 1


def may_be(where: str, said: str) -> str:
    """The reason for held amounts: an action that may write a fraction."""
    return f"{where} may write {said}, and GPUs are whole: write a whole number there"
