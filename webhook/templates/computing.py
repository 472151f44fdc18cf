"""What an action computes: its expression in, why it may write a fraction of a GPU out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.templates.expressions import At, Call, Constant, Expression, Text, assigned, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# What they write is no amount, whatever they get.
_ANSWERS = {
    *("contains", "empty", "eq", "ge", "gt", "has", "hasKey", "hasPrefix", "hasSuffix", "kindIs"),
    *("kindOf", "le", "lt", "ne", "not", "semverCompare", "typeIs", "typeOf"),
}
# They write whole numbers, or answers.
_WHOLE = _ANSWERS | {
    *("add", "add1", "atoi", "ceil", "div", "floor", "int", "int64", "len", "max", "min", "mod"),
    *("mul", "sub", "fail", "until", "untilStep"),
    *("include", "template"),  # what these include is read by itself
}
# They give back what they get, or a member of it: a whole number stays one.
_KEEPS = {
    *("and", "coalesce", "deepCopy", "default", "dict", "first", "float64", "last"),
    *("list", "merge", "mergeOverwrite", "omit", "or", "pick", "quote"),
    *("required", "set", "squote", "ternary", "toJson", "toString", "toYaml", "trim", "tuple"),
    *("keys", "sortAlpha", "uniq"),
}
FUNCTIONS = _WHOLE | _KEEPS | {"index", "get", "pluck", "dig", "tpl", "printf", "range", "with"}
# Where the keys are among the arguments: of the last one it depends which member is read.
_KEYS = {
    "index": slice(1, None), "get": slice(1, None), "pluck": slice(0, 1), "dig": slice(0, -2),
}  # fmt: skip
_FORMAT = re.compile(r"%[dvsq]")
_CONTROLS = re.compile(r"(?:/\*|(?:if|else|end|with|range|define|block|break|continue)\b)")
_TEXT = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`")
_OF_JINJA = re.compile(r"(?<![.\w$])[A-Za-z_]\w*[.(\[]")
_DIVIDES = re.compile(r"(?<!/)/(?!/)|~|\|\s*float\b")


def fractions(said: str, holders: Mapping[str, str]) -> Iterator[str]:
    """The fractions that an expression may write because of what it does with its values.

    `holders` are the members of values with a fraction below them, and which.
    """
    said = " ".join(said.split())
    bare = _TEXT.sub('""', said)
    if not said or _CONTROLS.match(said) or assigned(said)[0]:
        return
    if _OF_JINJA.search(bare):
        is_computed = _DIVIDES.search(bare) is not None
    else:
        made = read(said)
        yield from _any_member(made, holders)
        is_answer = isinstance(made, Call) and made.name in _ANSWERS
        is_computed = is_answer or _computes(made)
    if is_computed:
        yield f"a fraction with {said}"


def pieces(texts: Iterable[str]) -> Iterator[str]:
    """Those of the texts beside the actions of an amount that may make it a fraction."""
    for each in texts:
        piece = each.strip().strip("\"'").strip()
        if piece and not piece.isdecimal():
            yield piece


def _computes(made: Expression) -> bool:
    if isinstance(made, At):
        return not isinstance(made.root, str) and _computes(made.root)
    if not isinstance(made, Call) or not made.arguments or made.name in _WHOLE:
        return False
    inside = made.arguments
    if made.name in _KEYS:
        inside = tuple(each for each in inside if each not in inside[_KEYS[made.name]])
    elif made.name == "printf" and isinstance(inside[0], Text):
        if _FORMAT.fullmatch(inside[0].value) is None:
            return True
    elif made.name == "print":
        return len(inside) > 1 or _computes(inside[0])
    elif made.name not in _KEEPS:
        return True
    return any(map(_computes, inside))


def _any_member(made: Expression, holders: Mapping[str, str]) -> Iterator[str]:
    """Fractions below a map of which a member is read whose name is not known."""
    if isinstance(made, At) and not isinstance(made.root, str) and not made.members:
        yield from _any_member(made.root, holders)
    if not isinstance(made, Call):
        return
    keys = made.arguments[_KEYS[made.name]] if made.name in _KEYS else ()
    if keys and not isinstance(keys[-1], Text | Constant):
        yield from (holders[each] for each in _names(made) if each in holders)
    for each in made.arguments:
        yield from _any_member(each, holders)


def _names(made: Expression) -> Iterator[str]:
    """The last members of all paths."""
    if isinstance(made, At):
        if made.members:
            yield made.members[-1]
        if not isinstance(made.root, str):
            yield from _names(made.root)
    elif isinstance(made, Call):
        for each in made.arguments:
            yield from _names(each)
