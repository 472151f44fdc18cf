"""Writes values as text: in block style, flow style, as JSON, or in the style of a scalar."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.yamlpatch import yaml_words

if TYPE_CHECKING:
    from webhook.yamlpatch.nodes import Scalar
    from webhook.yamlpatch.style import Style


def is_nested(value: object) -> bool:
    """Whether the value is a map or a list that is not empty."""
    return isinstance(value, dict | list) and bool(value)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes YAML in the style of the text."""

    style: Style

    def name(self, name: str, *, flow: bool = False) -> str:
        """The name of a member."""
        if name in self.style.as_written:
            return self.style.as_written[name]
        if self.style.name_quote:
            return yaml_words.quoted(name, self.style.name_quote)
        return name if yaml_words.is_plain(name, flow=flow) else self._quoted(name)

    def scalar(self, value: Any, *, flow: bool = False) -> str:
        """A scalar on one line, or an empty map or list."""
        if isinstance(value, dict | list):
            return "[]" if isinstance(value, list) else "{}"
        if not isinstance(value, str):
            return yaml_words.bare(value)
        if value in self.style.as_written:
            return self.style.as_written[value]
        if not yaml_words.is_plain(value, flow=flow):
            return self._quoted(value)
        quote = self.style.text_quote
        return yaml_words.quoted(value, quote) if quote else value

    def _quoted(self, text: str) -> str:
        quote = self.style.quote
        if quote == '"' and '"' in text and "'" not in text:
            quote = "'"  # usually JSON in an annotation
        return yaml_words.quoted(text, quote)

    def flow(self, value: Any) -> str:
        """The value on one line."""
        if isinstance(value, dict):
            pairs = (f"{self.name(k, flow=True)}: {self.flow(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.flow, value))}]"
        return self.scalar(value, flow=True)

    def block(self, value: Any) -> list[str]:
        """The lines of a map or a list that is not empty, without indent."""
        if isinstance(value, dict):
            return [line for name, item in value.items() for line in self.member(name, item)]
        return [line for item in value for line in self.item(item)]

    def member(self, name: str, value: Any) -> list[str]:
        """The lines of one member."""
        head = f"{self.name(name)}:"
        if not is_nested(value):
            return self._scalar_lines(head, value, self.style.step)
        indent = self.style.step if isinstance(value, dict) else self.style.list_indent
        return [head, *(indented(line, indent) for line in self.block(value))]

    def item(self, value: Any) -> list[str]:
        """The lines of one item."""
        if not is_nested(value):
            return self._scalar_lines("-", value, self.style.item_indent)
        lines = [indented(line, self.style.item_indent) for line in self.block(value)]
        return ["-" + lines[0][1:], *lines[1:]]

    def _scalar_lines(self, head: str, value: Any, indent: int) -> list[str]:
        literal = _literal(value) if isinstance(value, str) else None
        if literal is None:
            return [f"{head} {self.scalar(value)}"]
        header, lines = literal
        return [f"{head} {header}", *(indented(line, indent) for line in lines)]

    def scalar_like(self, value: Any, was: Scalar, indent: int, newline: str, *, flow: bool) -> str:
        """The value in the style of the present value.

        `indent` is that of the lines of a block scalar.
        """
        if not isinstance(value, str):
            return self.scalar(value)
        if was.style in {"'", '"'}:
            return yaml_words.quoted(value, was.style)
        if was.style in {"|", ">"}:
            return self._block_scalar_like(value, was, indent, newline)
        return value if yaml_words.is_plain(value, flow=flow) else self._quoted(value)

    def _block_scalar_like(self, value: str, was: Scalar, indent: int, newline: str) -> str:
        literal = _literal(value, few=1)
        if literal is not None:
            header, lines = literal
            if was.style == ">" and len(lines) == 1:
                header = header.replace("|", ">")
            return newline.join([header, *(indented(line, indent) for line in lines)])
        return self._quoted(value)


def indented(line: str, columns: int) -> str:
    """The line with more indent, unless it is blank."""
    return " " * columns + line if line else line


def _literal(text: str, few: int = 2) -> tuple[str, list[str]] | None:
    """A long text as a literal: header and lines; None if that is not possible."""
    body = text.rstrip("\n")
    lines = body.split("\n")
    ends = len(text) - len(body)
    if len(lines) < few or not body or lines[0][:1] in {" ", "\t", ""} or ends > 1:
        return None
    if not all(line.replace("\t", " ").isprintable() and line == line.rstrip() for line in lines):
        return None
    return ("|" if ends else "|-"), lines


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """The style of a JSON text; `unit` is the indent of one level, empty on one line."""

    unit: str = ""
    colon: str = ": "
    comma: str = ", "
    ascii_only: bool = False

    def write(self, value: Any, indent: str = "") -> str:
        """A value, over several lines if there is an indent."""
        if not self.unit:
            pair = (self.comma, self.colon)
            return json.dumps(value, separators=pair, ensure_ascii=self.ascii_only)
        text = json.dumps(
            value,
            indent=self.unit,
            separators=(",", self.colon),
            ensure_ascii=self.ascii_only,
        )
        return text.replace("\n", f"\n{indent}")
