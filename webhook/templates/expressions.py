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
_ASSIGNED = re.compile(r"(\$\w+)\s*(?:,\s*(\$\w+)\s*)?:?=(?!=)")
_CONSTANTS = {"true", "false", "nil"}
_MOST = 50  # parentheses and pipes of one expression


@dataclass(frozen=True, slots=True)
class Text:
    """A text in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class At:
    """Members of something: of a variable, of the dot, or of what a call returns."""

    root: Expression | str  # the name of a variable; empty for the dot
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; `?` is what could not be read. A constant has no arguments."""

    name: str
    arguments: tuple[Expression, ...] = ()


Expression = Text | At | Call


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


def read(text: str) -> Expression:
    """The expression; what is not one of Go's is a call of `?` with all its texts."""
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
            return _unread(text)
        if len(open_) + pipes > _MOST:
            return _unread(text)
        before = said
    return open_[0].ended() if len(open_) == 1 else _unread(text)


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
    return At(Call("")) if kind == "number" or said in _CONSTANTS else Call(said)


def _unread(text: str) -> Call:
    texts = (each.group()[1:-1] for each in _TOKEN.finditer(text) if each.lastgroup == "text")
    return Call("?", (At(""), *map(Text, texts)))
