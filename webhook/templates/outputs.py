"""What an action certainly does not write: its text in, whether it may write nothing out.

`default 1 .x` writes a text, whatever the value of .x is, but `.x | quote` writes nothing without
one: sprig's `quote` leaves out nil.
"""

from __future__ import annotations

import re

from webhook.templates.expressions import At, Call, Constant, Expression, Text, inside, read

_QUOTES, _JSON = {"quote", "squote"}, {"toJson", "toRawJson", "toPrettyJson", "to_json"}
_QUOTED = re.compile(r"\|\s*(?:quote|squote)\s*$|^\s*(?:quote|squote)\b(?!.*\|)", re.DOTALL)
_AS_JSON = re.compile(rf"\|\s*(?:{'|'.join(sorted(_JSON))})\s*$|^\s*toJson\b(?!.*\|)", re.DOTALL)
# Functions whose result is a number, or true or false.
_COUNTING = {
    *("abs", "add", "add1", "ceil", "count", "div", "eq", "float", "float64", "floor", "ge", "gt"),
    *(
        "int",
        "int64",
        "le",
        "len",
        "length",
        "lt",
        "max",
        "min",
        "mod",
        "mul",
        "ne",
        "not",
        "round",
    ),
    "sub",
}
# Functions that make a text of each value: of nothing an empty one.
_WRITING = {
    *("cat", "include", "indent", "join", "lower", "nindent", "print", "printf", "replace"),
    *("title", "toString", "toYaml", "tpl", "trim", "trimSuffix", "trunc", "upper", "b64enc"),
}
# Functions whose result is empty only if their last argument is.
_KEEPING = {*("lower", "title", "toString", "trunc", "upper"), *_QUOTES}
_VERB = re.compile(r"%[-+# 0-9.]*(?P<verb>[a-zA-Z%])")
# What Helm always sets.
_SET = {("Release", "Name"), ("Release", "Namespace"), ("Release", "Service"), ("Chart", "Name")}
_OF_JINJA = re.compile(r"\|\s*\w+\(")  # a template of Jinja may have no sign of it but this
_DEFAULT_OF_JINJA = re.compile(
    r"\|\s*(?:default|d)\(\s*(?:[1-9][0-9]*|'[^'\s]+'|\"[^\"\s]+\")\s*,\s*(?:boolean\s*=\s*)?[tT]rue\s*\)"
    r"(?:\s*\|\s*(?:int|string|lower|upper))*\s*$"
)
_NUMBER_OF_JINJA = re.compile(r"\|\s*(?:int|float|length|count)\s*$")
_CASES_OF_JINJA = re.compile(r"\b(?:and|else|or)\b")  # filters are of the last case alone


def is_quoted(action: str) -> bool:
    """Whether it writes its text in quotes."""
    return _QUOTED.search(inside(action)) is not None


def is_json(action: str) -> bool:
    """Whether it writes JSON: of nothing `null`."""
    return _AS_JSON.search(inside(action)) is not None


def is_never_empty(action: str, *, in_jinja: bool) -> bool:
    """Whether it writes more than an empty text, quotes apart, whatever the values are."""
    said = inside(action)
    if in_jinja or _OF_JINJA.search(said):
        found = _DEFAULT_OF_JINJA.search(said) or _NUMBER_OF_JINJA.search(said)
        return found is not None and not _CASES_OF_JINJA.search(said)
    return _is_never_empty(read(said))


def is_never_nothing(action: str, *, in_jinja: bool) -> bool:
    """Whether it always writes something, if only quotes."""
    if is_never_empty(action, in_jinja=in_jinja):
        return True
    if in_jinja or not is_quoted(action):
        return False
    made = read(inside(action))
    return isinstance(made, Call) and any(map(_is_never_nil, made.arguments))


def _is_never_empty(made: Expression) -> bool:
    if isinstance(made, Text):
        return bool(made.value.strip())
    if isinstance(made, Constant):
        return made.value != "nil"
    if isinstance(made, At):
        if isinstance(made.root, str):
            return made.root in {"", "$"} and made.members in _SET
        return made.members == () and _is_never_empty(made.root)
    return _is_call_never_empty(made.name, made.arguments)


def _is_call_never_empty(name: str, given: tuple[Expression, ...]) -> bool:
    if name == "printf" and given and isinstance(given[0], Text):
        return bool(_VERB.sub(_certain, given[0].value).strip())
    if name in {"print", "cat"}:
        return any(map(_is_never_empty, given))
    if name in {"default", "or", "coalesce"}:
        last = {"default": given[:1], "or": given[-1:], "coalesce": ()}[name]
        return any(map(_is_never_empty, last)) or any(map(_is_never_false, given))
    if name == "ternary":
        return len(given) > 1 and all(map(_is_never_empty, given[:2]))
    if name in _KEEPING:
        return bool(given) and _is_never_empty(given[-1])
    return name == "required" or name in _COUNTING


def _is_never_false(made: Expression) -> bool:
    """Whether `default` keeps it, whatever the values are: a number may be 0."""
    if isinstance(made, At) and isinstance(made.root, Call):
        return made.members == () and _is_never_false(made.root)
    if isinstance(made, Constant):
        return False
    of_text = not isinstance(made, Call) or made.name in {"print", "printf", "cat", *_KEEPING}
    return of_text and _is_never_empty(made)


def _certain(verb: re.Match[str]) -> str:
    return "1" if verb["verb"] in "dtc%" else ""


def _is_never_nil(made: Expression) -> bool:
    if isinstance(made, Text) or _is_never_empty(made):
        return True
    if not isinstance(made, Call):
        return False
    of_default = made.name == "default" and any(map(_is_never_nil, made.arguments[:1]))
    return of_default or made.name in _WRITING
