"""Parses JSON into nodes: also if it differs from YAML, and several values in one text."""

from __future__ import annotations

import json
import re

from webhook.yamlpatch.nodes import (
    Collection,
    Item,
    List,
    Map,
    Member,
    Node,
    Scalar,
    UnreadableError,
)
from webhook.yamlpatch.yaml_words import of_plain

DEEPEST = 100  # no API object is so deep; deeper texts are attacks on parsers
_TOKEN = re.compile(
    r'[ \t\r\n]*(?:(?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")'
    r"|(?P<word>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)"
    r"|(?P<sign>[\[\]{},:])|(?P<end>\Z))"
)


class NotJsonError(UnreadableError):
    """The text is not JSON."""


class _Reader:
    """Tokens, with one token of lookahead."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.end = at
        self.step()

    def step(self) -> None:
        found = _TOKEN.match(self.text, self.end)
        if found is None:
            raise NotJsonError(self.end, "is not JSON")
        self.kind = str(found.lastgroup)
        self.token = found[self.kind]
        self.start, self.end = found.span(self.kind)

    def expect(self, *signs: str) -> str:
        sign = self.token
        if self.kind != "sign" or sign not in signs:
            raise NotJsonError(self.start, f"is not JSON: {' or '.join(signs)} is missing here")
        return sign


def read(text: str) -> list[Node]:
    """The values in the text, one after the other; NotJsonError if it is not JSON."""
    reader = _Reader(text, 0)
    found: list[Node] = []
    while reader.kind != "end":
        found.append(_value(reader))
    return found


def _value(reader: _Reader) -> Node:
    """The value that begins here; without recursion, because the text may be deep."""
    open_: list[Collection] = []
    while True:
        node = _begin(reader, open_)
        if not isinstance(node, Map | List):
            reader.step()
        elif not _closes(reader, node):
            open_.append(node)
            if len(open_) > DEEPEST:
                raise NotJsonError(reader.start, "is too deeply nested")
            continue
        # A value is complete, and perhaps its parents with it.
        while open_:
            sign = reader.expect(",", "}" if isinstance(open_[-1], Map) else "]")
            if sign == ",":
                reader.step()
                break
            node = open_.pop()
            _close(reader, node)
        else:
            return node


def _begin(reader: _Reader, open_: list[Collection]) -> Node:
    """A scalar, or the beginning of a map or list, put into its parent."""
    holder = open_[-1] if open_ else None
    key = _key(reader, holder) if isinstance(holder, Map) else None
    start = reader.start
    node: Node
    if reader.kind in {"text", "word"}:
        node = _scalar(reader)
    elif reader.expect("{", "[") == "{":
        node = Map(start, start, start, holder, flow=True)
    else:
        node = List(start, start, start, holder, flow=True)
    node.parent = holder
    if isinstance(holder, Map) and key is not None:
        holder.members.append(Member(key, node))
    elif isinstance(holder, List):
        holder.items.append(Item(start, node))
    return node


def _key(reader: _Reader, holder: Map) -> Scalar:
    if reader.kind != "text":
        raise NotJsonError(reader.start, "is not JSON: a name in quotes is missing here")
    key = _scalar(reader)
    key.parent = holder
    reader.step()
    reader.expect(":")
    reader.step()
    return key


def _closes(reader: _Reader, node: Node) -> bool:
    """Enter a map or a list; True if it is empty and so at its end."""
    reader.step()
    closing = "}" if isinstance(node, Map) else "]"
    if reader.kind != "sign" or reader.token != closing:
        return False
    _close(reader, node)
    return True


def _close(reader: _Reader, node: Node) -> None:
    node.end = reader.end
    reader.step()


def _scalar(reader: _Reader) -> Scalar:
    if reader.kind == "word":
        value = of_plain(reader.token)
        return Scalar(reader.start, reader.start, reader.end, text=reader.token, value=value)
    try:
        text = json.loads(reader.token)
    except ValueError as error:
        raise NotJsonError(reader.start, "is not JSON: a wrong escape") from error
    return Scalar(reader.start, reader.start, reader.end, text=text, style='"', value=text)
