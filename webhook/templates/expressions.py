"""The expression of an action of a Go template: its text in, its calls, paths and texts out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

_TOKEN = re.compile(
    r"(?P<text>\"(?:\\.|[^\"\\])*\"|`[^`]*`)"
    r"|(?P<path>\$\w*(?:\.\w+)*|(?:\.\w+)+|\.(?![\w.]))"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>[-+]?\d[\w.]*|'(?:\\.|[^'\\])*')"
    r"|(?P<sign>[()|])"
    r"|(?P<blank>\s+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_INSIDE = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
_ASSIGNED = re.compile(r"(\$\w+)\s*(?:,\s*(\$\w+)\s*)?:?=(?!=)")
_CONSTANTS = {"true", "false", "nil"}
_MOST = 50  # parentheses and pipes of one expression
_FORMS = {"int", "int64", "quote", "squote", "toString"}  # an amount in one of them stays the same
_FORM = re.compile(rf"\|\s*(?:{'|'.join(sorted(_FORMS))})\b|\s")


@dataclass(frozen=True, slots=True)
class Text:
    """A text in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a character, true, false or nil, as it is written."""

    value: str


@dataclass(frozen=True, slots=True)
class At:
    """Members of something: of a variable, of the dot, or of what a call returns."""

    root: Expression | str  # the name of a variable; empty for the dot
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; `?` is what could not be read."""

    name: str
    arguments: tuple[Expression, ...] = ()


Expression = Text | Constant | At | Call


@dataclass(slots=True)
class _Open:
    """A pipeline that is being read: the operands of its last command, and what is piped in."""

    operands: list[Expression] = field(default_factory=list)
    piped: list[Expression] = field(default_factory=list)

    def ended(self) -> Expression:
        """The command as a call; a value may stand alone."""
        first, given = self.operands[:1], (*self.operands[1:], *self.piped)
        if first and isinstance(first[0], Call) and not first[0].arguments:
            return replace(first[0], arguments=given)
        if first and not given:
            return first[0]
        name = "?"
        if first and isinstance(first[0], At) and first[0].members:
            name = first[0].members[-1]  # a method, such as .Files.Get
        return Call(name, (*first, *given))


def assigned(text: str) -> tuple[tuple[str, ...], str]:
    """The variables that an action sets, and the rest of its text."""
    found = _ASSIGNED.match(text)
    if found is None:
        return (), text
    return tuple(each for each in found.groups() if each), text[found.end() :]


def inside(action: str) -> str:
    """The text of an action without its braces; empty if it is none that writes something."""
    found = _INSIDE.fullmatch(action)
    return found[1].strip() if found else ""


def meaning(action: str) -> Expression | str:
    """What an action writes as an amount: equal ones write the same where the values are the same.

    `default 1 .x` and `.x | default 1` are equal; quotes and types are left out. Text that is no
    action, such as `$X` in a script, is what it is.
    """
    text = inside(action) or action
    made = None if text is action else _read(text)
    if made is None:
        return _FORM.sub("", text)
    while True:
        if isinstance(made, Call) and made.name in _FORMS and len(made.arguments) == 1:
            (made,) = made.arguments
        elif isinstance(made, At) and not made.members and not isinstance(made.root, str):
            made = made.root
        else:
            return made


def read(text: str) -> Expression:
    """The expression; what is not one of Go's is a call of `?` with all its texts."""
    made = _read(text)
    if made is not None:
        return made
    texts = (each.group()[1:-1] for each in _TOKEN.finditer(text) if each.lastgroup == "text")
    return Call("?", (At(""), *map(Text, texts)))


def _read(text: str) -> Expression | None:
    open_ = [_Open()]
    before, pipes = "", 0  # the token directly before, for members of what is in parentheses
    for token in _TOKEN.finditer(text):
        kind, said = token.lastgroup, token.group()
        last = open_[-1]
        if said == "(":
            open_.append(_Open())
        elif said == ")" and len(open_) > 1:
            open_.pop()
            open_[-1].operands.append(_closed(last.ended()))
        elif said == "|" and last.operands:
            last.piped, last.operands, pipes = [last.ended()], [], pipes + 1
        elif kind == "path" and before == ")" and said.startswith(".") and len(said) > 1:
            last.operands[-1] = At(last.operands[-1], tuple(said[1:].split(".")))
        elif kind not in {"blank", "other", "sign"}:
            last.operands.append(_operand(kind, said))
        elif kind != "blank":
            return None
        if len(open_) + pipes > _MOST:
            return None
        before = said
    return open_[0].ended() if len(open_) == 1 else None


def _closed(inner: Expression) -> Expression:
    """What parentheses hold; as the first operand a call without arguments takes no others."""
    is_bare = isinstance(inner, Call) and not inner.arguments
    return At(inner) if is_bare else inner


def _operand(kind: str | None, said: str) -> Expression:
    if kind == "text":
        return Text(said[1:-1].replace('\\"', '"').replace("\\\\", "\\"))
    if kind == "path":
        root, *members = said.split(".")
        return At(root, tuple(each for each in members if each))
    return Constant(said) if kind == "number" or said in _CONSTANTS else Call(said)
