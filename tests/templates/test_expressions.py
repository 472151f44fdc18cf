"""Expressions of Go templates, as text/template reads them."""

from __future__ import annotations

import pytest

from webhook.templates.expressions import At, Call, Constant, Expression, Text, assigned, read

VALUES = At("", ("Values", "a"))

READ: dict[str, tuple[str, Expression]] = {
    "members": (".Values.a", VALUES),
    "members of a variable": ("$.Values.a", At("$", ("Values", "a"))),
    "a variable": ("$x", At("$x")),
    "the dot": (".", At("")),
    "a text": ('"a \\"b\\""', Text('a "b"')),
    "a raw text": ("`a\\`", Text("a\\")),
    "a number": ("-1.5e3", Constant("-1.5e3")),
    "a function without arguments": ("dict", Call("dict")),
    "a function with arguments": ('get .Values.a "b"', Call("get", (VALUES, Text("b")))),
    "a function as an argument": (
        "default dict .Values.a", Call("default", (Call("dict"), VALUES)),
    ),
    "parentheses": ("toYaml (.Values.a)", Call("toYaml", (VALUES,))),
    "a function in parentheses": (
        "default (dict) .Values.a", Call("default", (At(Call("dict")), VALUES)),
    ),
    "members of parentheses": (
        "(index . 0).b", At(Call("index", (At(""), Constant("0"))), ("b",)),
    ),
    "a member behind a blank": (
        "merge (dict) .b", Call("merge", (At(Call("dict")), At("", ("b",)))),
    ),
    "a pipe": (".Values.a | toYaml", Call("toYaml", (VALUES,))),
    "pipes with arguments": (
        ".Values.a | default dict | nindent 2",
        Call("nindent", (Constant("2"), Call("default", (Call("dict"), VALUES)))),
    ),
    "a method": ('.Files.Get "a"', Call("Get", (At("", ("Files", "Get")), Text("a")))),
    "lines": ("merge\n  .Values.a\n  .b", Call("merge", (VALUES, At("", ("b",))))),
}  # fmt: skip
UNREAD = ["a ? b : c", "x['y']", "((", ")", "(" * 100_000, "a" + "|a" * 100_000, "| a", '"open']


@pytest.mark.parametrize(("text", "wanted"), READ.values(), ids=READ)
def test_an_expression_is_read(text: str, wanted: Expression) -> None:
    assert read(text) == wanted


@pytest.mark.parametrize("text", UNREAD, ids=lambda text: text[:10])
def test_what_is_no_expression_may_be_anything(text: str) -> None:
    made = read(text)
    assert isinstance(made, Call)
    assert made.name == "?"
    assert At("") in made.arguments


def test_the_variables_of_an_assignment() -> None:
    assert assigned("$k, $v := .a") == (("$k", "$v"), " .a")
    assert assigned("$k = .a") == (("$k",), " .a")
    assert assigned("eq $k .a") == ((), "eq $k .a")
