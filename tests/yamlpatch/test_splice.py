"""Edits into texts: what stands there before, what is to change, what stands there then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.draft import Draft, copied
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.kube.pointer import Path
from webhook.yamlpatch import documents
from webhook.yamlpatch.splice import RefusedError, apply, splice
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from webhook.core.edits import Edit


def at(*tokens: str | int) -> Path:
    return Path(tokens)


def migrated(before: str, edits: list[Edit], *, json: bool = False) -> str:
    """The text with the edits, which must say what the edited object says."""
    (document,) = documents.read(before, json=json).documents
    draft = Draft(copied(document.data))
    draft.apply(edits)
    after = apply(before, splice(document, draft.changes()))
    (read,) = documents.read(after, json=json).documents
    assert is_same(read.data, draft.object)
    return after


def case(name: str, before: str, edits: list[Edit], after: str) -> Any:
    return pytest.param(before, edits, after, id=name)


NAMES_AND_SCALARS = [
    case("a name", "a:\n  old: 1\n", [Rename(at("a", "old"), "new")], "a:\n  new: 1\n"),
    case(
        "a name keeps its double quotes, and what is odd around it",
        'a: {"old"  :   1}   # why\n',
        [Rename(at("a", "old"), "b/c")],
        'a: {"b/c"  :   1}   # why\n',
    ),
    case("a name in single quotes", "'old': 1\n", [Rename(at("old"), "it's")], "'it''s': 1\n"),
    case("a new name that is true", "a: 1\n", [Set(at("y"), {"v": "n"})], 'a: 1\n"y":\n  v: "n"\n'),
    case("a bare name that needs quotes", "old: 1\n", [Rename(at("old"), "on")], '"on": 1\n'),
    case(
        "a name and its value",
        "l:\n  old:  0.5  # half\n",
        [Rename(at("l", "old"), "new"), Set(at("l", "new"), 1)],
        "l:\n  new:  1  # half\n",
    ),
    case("a bare number stays bare", "a: 1 # one\n", [Set(at("a"), 2)], "a: 2 # one\n"),
    case("a quoted number stays quoted", 'a: "1"\n', [Set(at("a"), "2")], 'a: "2"\n'),
    case("single quotes stay", "a: '1'\n", [Set(at("a"), "it's")], "a: 'it''s'\n"),
    case("a quoted number becomes a number", 'a: "0.5"\n', [Set(at("a"), 1)], "a: 1\n"),
    case("a text that looks like a number", "a: b\n", [Set(at("a"), "1")], 'a: "1"\n'),
    case("a text that is true to some", "a: b\n", [Set(at("a"), "yes")], 'a: "yes"\n'),
    case("a date", "a: b\n", [Set(at("a"), "2017-01-01")], 'a: "2017-01-01"\n'),
    case("base 60", "a: b\n", [Set(at("a"), "22:22")], 'a: "22:22"\n'),
    case("a colon and a blank", "a: b\n", [Set(at("a"), "c: d")], 'a: "c: d"\n'),
    case(
        "the quotes that are used elsewhere",
        "a: b\nc: 'x y'\n",
        [Set(at("a"), "1")],
        "a: '1'\nc: 'x y'\n",
    ),
    case("control characters", "a: 'b'\n", [Set(at("a"), "c\x07\n")], 'a: "c\\x07\\n"\n'),
    case(
        "what nobody sees",
        "a: 'b'\n",
        [Set(at("a"), "\u200b\U000e0001")],
        'a: "\\u200b\\U000e0001"\n',
    ),
    case("no number at all", "a: 1\n", [Set(at("a"), float("-inf"))], "a: -.inf\n"),
    case("what is beyond ASCII stays readable", "a: ü\n", [Set(at("a"), "ö: €")], 'a: "ö: €"\n'),
    case("null", "a: 1\n", [Set(at("a"), None)], "a: null\n"),
    case("true", "a: 1\n", [Set(at("a"), True)], "a: true\n"),
    case("a part of a number", "a: 1\n", [Set(at("a"), 1.5)], "a: 1.5\n"),
    case(
        "a folded text of several lines",
        "a: >  # why\n  one\n  two\n\nb: 1\n",
        [Set(at("a"), "three\n")],
        "a: >\n  three\n\nb: 1\n",
    ),
    case(
        "a literal keeps being one",
        "a: |\n    one\n    two\nb: 1\n",
        [Set(at("a"), "one\nthree\n")],
        "a: |\n    one\n    three\nb: 1\n",
    ),
    case("a literal without a last line end", "a: |\n  x\n", [Set(at("a"), "v")], "a: |-\n  v\n"),
    case("a literal that cannot be one", "a: |\n  x\n", [Set(at("a"), " y")], 'a: " y"\n'),
    case(
        "a text over several lines in quotes",
        "a: 'one\n  two'\nb: 1\n",
        [Set(at("a"), "three")],
        "a: 'three'\nb: 1\n",
    ),
    case("nothing becomes something", "a:\nb: 1\n", [Set(at("a"), "x")], "a: x\nb: 1\n"),
    case("nothing, and a comment", "a:  # c\nb: 1\n", [Set(at("a"), 3)], "a: 3  # c\nb: 1\n"),
    case("nothing behind a dash", "a:\n-\n- b\n", [Set(at("a", 0), "x")], "a:\n- x\n- b\n"),
    case("at the end of a file", "a: 1", [Set(at("a"), 2)], "a: 2"),
    case("with Windows line ends", "a: 1\r\nb: 2\r\n", [Set(at("a"), 3)], "a: 3\r\nb: 2\r\n"),
]

NEW_MEMBERS = [
    case(
        "behind the last one and its comment, before what follows",
        "a:\n  b: 1  # one\n\n  # about nothing\nc: 2\n",
        [Set(at("a", "x"), 3)],
        "a:\n  b: 1  # one\n  x: 3\n\n  # about nothing\nc: 2\n",
    ),
    case(
        "with the indent of its neighbours",
        "a:\n      b: 1\n",
        [Set(at("a", "x"), {"v": 2})],
        "a:\n      b: 1\n      x:\n            v: 2\n",
    ),
    case(
        "lists as the file has them: indented",
        "a:\n  - 1\nb: 2\n",
        [Set(at("c"), [{"d": 1, "e": 2}])],
        "a:\n  - 1\nb: 2\nc:\n  - d: 1\n    e: 2\n",
    ),
    case(
        "lists as the file has them: not indented",
        "a:\n- 1\nb: 2\n",
        [Set(at("c"), [{"d": [1, 2]}])],
        "a:\n- 1\nb: 2\nc:\n- d:\n  - 1\n  - 2\n",
    ),
    case(
        "the nearest list counts more than the others",
        "a:\n- 1\nb:\n  - 2\nc:\n- 3\nm:\n  n:\n    - 1\n",
        [Set(at("m", "o"), [4])],
        "a:\n- 1\nb:\n  - 2\nc:\n- 3\nm:\n  n:\n    - 1\n  o:\n    - 4\n",
    ),
    case(
        "in a map behind a dash",
        "a:\n-   b: 1\n    c: 2\nd: 1\n",
        [Set(at("a", 0, "x"), 3)],
        "a:\n-   b: 1\n    c: 2\n    x: 3\nd: 1\n",
    ),
    case(
        "behind a literal, and before the blank lines that follow it",
        "a:\n  b: |\n    text\n\nc: 1\n",
        [Set(at("a", "x"), 1)],
        "a:\n  b: |\n    text\n  x: 1\n\nc: 1\n",
    ),
    case(
        "behind a literal that keeps its blank lines",
        "a:\n  b: |+\n    text\n\nc: 1\n",
        [Set(at("a", "x"), 1)],
        "a:\n  b: |+\n    text\n\n  x: 1\nc: 1\n",
    ),
    case("at the end of a file without a line end", "a: 1", [Set(at("b"), [1])], "a: 1\nb:\n- 1"),
    case(
        "with Windows line ends",
        "a: 1\r\nb: 2",
        [Set(at("c"), {"d": 1})],
        "a: 1\r\nb: 2\r\nc:\r\n  d: 1",
    ),
    case(
        "before the end of the document",
        "--- # one\na: 1\n...\n",
        [Set(at("b"), 2)],
        "--- # one\na: 1\nb: 2\n...\n",
    ),
    case(
        "in two maps that end on one line",
        "a:\n  b:\n    c: 1\n",
        [Set(at("x"), 1), Set(at("a", "v"), 2), Set(at("a", "b", "z"), 3)],
        "a:\n  b:\n    c: 1\n    z: 3\n  v: 2\nx: 1\n",
    ),
    case(
        "names in quotes where all names are",
        '"a": 1\n"b": 2\n',
        [Set(at("c"), 3)],
        '"a": 1\n"b": 2\n"c": 3\n',
    ),
    case(
        "texts in quotes where all texts are",
        "a: 'x'\nb: 'y'\n",
        [Set(at("c"), "z")],
        "a: 'x'\nb: 'y'\nc: 'z'\n",
    ),
    case(
        "JSON in the quotes that it has none of",
        'a: "x y"\n',
        [Set(at("b"), '{"c": 1}')],
        'a: "x y"\nb: \'{"c": 1}\'\n',
    ),
    case(
        "a text of several lines as a literal",
        "a:\n  b: 1\n",
        [Set(at("a", "c"), "one\n\ntwo\n")],
        "a:\n  b: 1\n  c: |\n    one\n\n    two\n",
    ),
    case(
        "what is empty",
        "a: 1\n",
        [Set(at("b"), {}), Set(at("c"), []), Set(at("d"), {"e": [[]]})],
        "a: 1\nb: {}\nc: []\nd:\n  e:\n  - []\n",
    ),
    case("in the place of nothing", "a:\nb: 1\n", [Set(at("a", "x"), 1)], "a:\n  x: 1\nb: 1\n"),
    case(
        "in the place of null, below its comment",
        "a: null  # none\nb: 1\n",
        [Set(at("a", "x"), 1)],
        "a:  # none\n  x: 1\nb: 1\n",
    ),
    case(
        "in an empty map",
        "a: {}  # none\nb: 1\n",
        [Set(at("a", "x"), {"v": 1})],
        "a:  # none\n  x:\n    v: 1\nb: 1\n",
    ),
    case(
        "in a map that an anchor stands before",
        "a: &x\n  b: 1\nc: 1\n",
        [Set(at("a", "d"), 2)],
        "a: &x\n  b: 1\n  d: 2\nc: 1\n",
    ),
]

ITEMS = [
    case(
        "behind the last item",
        "a:\n- x: 1\n  v: 2   # two\n# about b\nb: 1\n",
        [Append(at("a"), {"x": 3})],
        "a:\n- x: 1\n  v: 2   # two\n- x: 3\n# about b\nb: 1\n",
    ),
    case(
        "with the indent behind the dash that the others have",
        "a:\n  -   x: 1\n",
        [Append(at("a"), {"x": 2, "v": 3})],
        "a:\n  -   x: 1\n  -   x: 2\n      v: 3\n",
    ),
    case("of an empty list", "a: []\n", [Append(at("a"), {"x": 1})], "a:\n- x: 1\n"),
    case("of nothing", "a:\n", [Append(at("a"), 1)], "a:\n- 1\n"),
    case("lists in lists", "a:\n- - 1\n", [Append(at("a"), [2, 3])], "a:\n- - 1\n- - 2\n  - 3\n"),
    case("to a list in a list", "- - 1\n- 2\n", [], "- - 1\n- 2\n"),
    case(
        "two at once",
        "a:\n- 1\n",
        [Append(at("a"), 2), Append(at("a"), 3)],
        "a:\n- 1\n- 2\n- 3\n",
    ),
    case(
        "another value of an item",
        "a:\n- one  # 1\n- two\n",
        [Set(at("a", 0), {"x": 1, "v": 2}), Set(at("a", 1), [3])],
        "a:\n-  # 1\n  x: 1\n  v: 2\n- - 3\n",
    ),
    case(
        "an item instead of the last one",
        "a:\n- 1\n- 2\n",
        [Remove(at("a", 1)), Append(at("a"), 3)],
        "a:\n- 1\n- 3\n",
    ),
    case(
        "all items are others",
        "a:\n  - x: 1\n  - x: 2\nb: 1\n",
        [Append(at("a"), 3), Remove(at("a", 0)), Remove(at("a", 1))],
        "a:\n  - 3\nb: 1\n",
    ),
]

REMOVALS = [
    case("one of several", "a: 1\nb: 2  # two\nc: 3\n", [Remove(at("b"))], "a: 1\nc: 3\n"),
    case("the first of a map", "m:\n  a: 1\n  b: 2\n", [Remove(at("m", "a"))], "m:\n  b: 2\n"),
    case(
        "with all that is in it",
        "a: 1\nb:   # c\n\n  - |\n    text\n\n  - {x: 1,\n     v: 2}\nc: 3\n",
        [Remove(at("b"))],
        "a: 1\nc: 3\n",
    ),
    case(
        "what it leaves empty goes with it",
        "a:\n  b:\n    c: 1\n  # about nothing\nd: 1\n",
        [Remove(at("a", "b", "c"))],
        "a: {}\n  # about nothing\nd: 1\n",
    ),
    case(
        "the first behind a dash: the next comes up",
        "a:\n- b: 1  # one\n  c: 2\n- d: 1\n",
        [Remove(at("a", 0, "b"))],
        "a:\n- c: 2\n- d: 1\n",
    ),
    case(
        "the first behind a dash, and a comment on the next: the dash stays alone",
        "a:\n- b: 1\n  # about c\n  c: 2\n",
        [Remove(at("a", 0, "b"))],
        "a:\n-\n  # about c\n  c: 2\n",
    ),
    case(
        "the only one behind a dash",
        "a:\n- b: 1\n- c: 2\n",
        [Remove(at("a", 0, "b"))],
        "a:\n- {}\n- c: 2\n",
    ),
    case(
        "an item behind a dash of another list",
        "a:\n- - 1\n  - 2\n",
        [Remove(at("a", 0, 0))],
        "a:\n- - 2\n",
    ),
    case(
        "the comment above stays, and the blank lines",
        "a: 1\n\n# about b\n# and more\nb: 2 # this one\n\nc: 3\n",
        [Remove(at("b"))],
        "a: 1\n\n# about b\n# and more\n\nc: 3\n",
    ),
    case(
        "the comment above stays with those that follow",
        "m:\n  # about both\n  a: 1\n  b: 2\n",
        [Remove(at("m", "a"))],
        "m:\n  # about both\n  b: 2\n",
    ),
    case(
        "the comment above stays though all go that it is about",
        "m:\n  # about both\n  a: 1\n  b: 2\n\n  c: 3\n",
        [Remove(at("m", "a")), Remove(at("m", "b"))],
        "m:\n  # about both\n\n  c: 3\n",
    ),
    case(
        "a comment between two that go, the first behind a dash",
        "l:\n- a: 1\n  # about b\n  b: 2\n  c: 3\n",
        [Remove(at("l", 0, "a")), Remove(at("l", 0, "b"))],
        "l:\n-\n  # about b\n  c: 3\n",
    ),
    case(
        "a comment that is a member itself stays",
        "m:\n  a: 1\n  # b: 2\n  # c: 3\n  d: 4\n",
        [Remove(at("m", "d"))],
        "m:\n  a: 1\n  # b: 2\n  # c: 3\n",
    ),
    case(
        "comments in a map that goes stay, at the indent of its name",
        "m:\n  n: 1\n  a:\n    # why b\n    b: 1  # of b\n\n    # why c\n    # and more\n    c: |\n"
        "      # of the text\n  o: 1\n",
        [Remove(at("m", "a"))],
        "m:\n  n: 1\n  # why b\n  # why c\n  # and more\n  o: 1\n",
    ),
    case(
        "those in maps inside it, too",
        "m:\n  a:\n    # why b\n    b:\n      # why c\n      c: {}\n  o: 1\n",
        [Remove(at("m", "a"))],
        "m:\n  # why b\n  # why c\n  o: 1\n",
    ),
    case(
        "and those between the items of a list, and in them",
        "m:\n  a:\n  # why b\n  - b: 1\n    # of b\n    d: 1\n  # why c\n  - c: 1\n  o: 1\n",
        [Remove(at("m", "a"))],
        "m:\n  # why b\n  # of b\n  # why c\n  o: 1\n",
    ),
    case(
        "those in one item that is removed",
        "a:\n- b: 1\n  # why d\n  d: 1\n- c: 1\n",
        [Remove(at("a", 0))],
        "a:\n# why d\n- c: 1\n",
    ),
    case(
        "those in a map that becomes empty",
        "a:  # a\n  # why b\n  b:\n    # why c\n    c: |\n      x\n# z\nd: 1\n",
        [Set(at("a"), {})],
        "a: {}  # a\n  # why b\n    # why c\n# z\nd: 1\n",
    ),
    case(
        "the same with other line ends",
        "a:\r\n  # why b\r\n  b: 1\r\nd: 1\r\n",
        [Set(at("a"), {})],
        "a: {}\r\n  # why b\r\nd: 1\r\n",
    ),
    case(
        "those in a map that becomes another",
        "a:\n  # why b\n  b: 1\n  # why c\n  c: 2\n",
        [Set(at("a"), {"d": {"e": 1}})],
        "a:\n  # why b\n  # why c\n  d:\n    e: 1\n",
    ),
    case(
        "those in a map that becomes a list",
        "a:\n  # why b\n  b: 1\n",
        [Set(at("a"), [1])],
        "a:\n  # why b\n- 1\n",
    ),
    case(
        "a comment behind a text above",
        "m:\n  t: |\n    text\n  a:\n    # why b\n    b: 1\n",
        [Remove(at("m", "a"))],
        "m:\n  t: |\n    text\n  # why b\n",
    ),
    case(
        "a comment below stays",
        "m:\n  a: 1\n  d: 4\n  # about nothing\nn: 1\n",
        [Remove(at("m", "d"))],
        "m:\n  a: 1\n  # about nothing\nn: 1\n",
    ),
    case(
        "a comment at another column stays",
        "m:\n  a: 1\n# outside\n  d: 4\n",
        [Remove(at("m", "d"))],
        "m:\n  a: 1\n# outside\n",
    ),
    case(
        "blank lines on both sides", "a: 1\n\nb: 2\n\nc: 3\n", [Remove(at("b"))], "a: 1\n\n\nc: 3\n"
    ),
    case("a blank line at the end", "a: 1\n\nb: 2\n", [Remove(at("b"))], "a: 1\n\n"),
    case(
        "a blank line before the next document",
        "a: 1\n\nb: 2\n...\n",
        [Remove(at("b"))],
        "a: 1\n\n...\n",
    ),
    case(
        "a blank line below a name",
        "m:\n  a: 1\n\n  b: 2\n",
        [Remove(at("m", "a"))],
        "m:\n\n  b: 2\n",
    ),
    case(
        "a blank line that would be a text's goes",
        "a: |+\n  x\nb: 2\n\nc: 3\n",
        [Remove(at("b"))],
        "a: |+\n  x\nc: 3\n",
    ),
    case(
        "a blank line that is a text's stays",
        "a: |+\n  x\n\nb: 2\n",
        [Remove(at("b"))],
        "a: |+\n  x\n\n",
    ),
    case("a file without a last line end", "a: 1\nb: 2", [Remove(at("b"))], "a: 1"),
    case("such a file on Windows", "a: 1\r\nb: 2", [Remove(at("b"))], "a: 1"),
    case(
        "two in a row",
        "a: 1\nb: 2\nc: 3\nd: 4\n",
        [Remove(at("b")), Remove(at("c"))],
        "a: 1\nd: 4\n",
    ),
    case(
        "the last one, and a new one",
        "m:\n  a: 1\n  b: 2\n\nc: 3\n",
        [Remove(at("m", "b")), Set(at("m", "x"), 4)],
        "m:\n  a: 1\n  x: 4\n\nc: 3\n",
    ),
    case(
        "all, and a new one",
        "m:\n  a: 1\n\nc: 3\n",
        [Set(at("m", "x"), 4), Remove(at("m", "a"))],
        "m:\n  x: 4\n\nc: 3\n",
    ),
    case(
        "items",
        "l:\n# one\n- a: 1\n  b: 2\n# two\n- a: 3\n",
        [Remove(at("l", 0))],
        "l:\n# one\n# two\n- a: 3\n",
    ),
]

FLOW = [
    case("a new member", "a: {b: 1}\n", [Set(at("a", "c"), 2)], "a: {b: 1, c: 2}\n"),
    case("a new item", "a: [1,2]\n", [Append(at("a"), {"b": [3]})], "a: [1,2,{b: [3]}]\n"),
    case("the first goes", "a: {b: 1, c: 2}\n", [Remove(at("a", "b"))], "a: {c: 2}\n"),
    case("the last goes", "a: { b: 1, c: 2 }\n", [Remove(at("a", "c"))], "a: { b: 1 }\n"),
    case("those between go", "[1, 2, 3, 4]\n", [], "[1, 2, 3, 4]\n"),
    case(
        "the middle goes",
        "a: [1, 2, 3, 4]\n",
        [Remove(at("a", 1)), Remove(at("a", 2))],
        "a: [1, 4]\n",
    ),
    case(
        "the last goes, another comes",
        "a: {b: 1, c: 2}\n",
        [Remove(at("a", "c")), Set(at("a", "d"), 3)],
        "a: {b: 1, d: 3}\n",
    ),
    case("all items go, in a list", "a: [[1], 2]\n", [Remove(at("a", 0, 0))], "a: [[], 2]\n"),
    case(
        "a comma before the bracket", "a: {b: 1,}\n", [Set(at("a", "c"), 2)], "a: {b: 1, c: 2,}\n"
    ),
    case("in an empty one in another", "a: [{}]\n", [Set(at("a", 0, "b"), 1)], "a: [{b: 1}]\n"),
    case(
        "over several lines",
        "a: {\n  b: 1,\n  c: 2\n}\n",
        [Set(at("a", "d"), "x"), Remove(at("a", "b"))],
        "a: {\n  c: 2,\n  d: x\n}\n",
    ),
    case(
        "comments keep what they are about",
        "a: {\n  b: 1, # one\n  c: 2 # two\n}\n",
        [Remove(at("a", "c"))],
        "a: {\n  b: 1, # one\n}\n",
    ),
    case(
        "a new one behind a comment",
        "a: [\n  1, # one\n  2 # two\n]\n",
        [Append(at("a"), 3)],
        "a: [\n  1, # one\n  2, # two\n  3\n]\n",
    ),
    case("another value", "a: [one, two]\n", [Set(at("a", 0), "x,y")], 'a: ["x,y", two]\n'),
    case("a map for a value", "a: [one]\n", [Set(at("a", 0), {"b": "c:d"})], 'a: [{b: "c:d"}]\n'),
    case("a name", 'a: {"b":1}\n', [Rename(at("a", "b"), "c")], 'a: {"c":1}\n'),
    case(
        "a name in a map without values", "a: {b, c}\n", [Rename(at("a", "b"), "d")], "a: {d, c}\n"
    ),
    case("not flow any more", "a: {b: 1}\n", [Set(at("a"), 2)], "a: 2\n"),
]

VALUES = [
    case(
        "a map becomes a text", "a:  # c\n  b: 1\nd: 1\n", [Set(at("a"), "x")], "a: x  # c\nd: 1\n"
    ),
    case("a list becomes nothing", "a:\n- 1\n- 2\nb: 1\n", [Set(at("a"), [])], "a: []\nb: 1\n"),
    case("a map becomes a list", "a:\n  b: 1\nc: 1\n", [Set(at("a"), [1])], "a:\n- 1\nc: 1\n"),
    case("a list becomes a map", "a:\n- 1\nc: 1\n", [Set(at("a"), {"b": 1})], "a:\n  b: 1\nc: 1\n"),
    case(
        "of a new map only what is new",
        "a:\n  # one\n  b: 1\n  c: 2\n",
        [Set(at("a"), {"b": 1, "c": 3, "d": 4})],
        "a:\n  # one\n  b: 1\n  c: 3\n  d: 4\n",
    ),
    case(
        "of a new list only what is new",
        "a:\n- b: 1 # one\n- c: 2\n- d: 3\n",
        [Set(at("a"), [{"b": 1}, {"d": 4}, {"e": 5}])],
        "a:\n- b: 1 # one\n- d: 4\n- e: 5\n",
    ),
    case(
        "a list with something new in front",
        "a:\n- 1\n- 2\n",
        [Set(at("a"), [0, 1, 2])],
        "a:\n- 0\n- 1\n- 2\n",
    ),
    case(
        "a list too long to compare",
        "a: [0" + ", 0" * 600 + "]\n",
        [Set(at("a"), [1])],
        "a: [1]\n",
    ),
    case("the whole document", "a: 1\n", [Set(at("b"), {"c": 1}), Remove(at("a"))], "b:\n  c: 1\n"),
    case("the whole document, in flow", "{a: 1}\n", [Set(at("b"), 1), Remove(at("a"))], "{b: 1}\n"),
    case("nothing is left of it", "# c\na: 1\n", [Remove(at("a"))], "# c\n{}\n"),
    case(
        "a map behind a dash becomes a text",
        "a:\n- b: 1\n  c: 2\n- d\n",
        [Set(at("a", 0), "x")],
        "a:\n- x\n- d\n",
    ),
    case(
        "a text becomes a map",
        "a: x  # c\nb: 1\n",
        [Set(at("a"), {"v": [1]})],
        "a:  # c\n  v:\n  - 1\nb: 1\n",
    ),
    case(
        "a literal becomes a map",
        "a: |\n  x\nb: 1\n",
        [Set(at("a"), {"v": 1})],
        "a:\n  v: 1\nb: 1\n",
    ),
]

ANCHORS = [
    case(
        "what all users want is edited once",
        "a: &x\n  old: 1\nb: *x\n",
        [Rename(at("a", "old"), "new"), Rename(at("b", "old"), "new")],
        "a: &x\n  new: 1\nb: *x\n",
    ),
    case(
        "a new member, for all users",
        "a: &x {b: 1}\nb: *x\n",
        [Set(at("a", "c"), 2), Set(at("b", "c"), 2)],
        "a: &x {b: 1, c: 2}\nb: *x\n",
    ),
    case(
        "a scalar, for all users",
        "a: &x 1\nb: *x\n",
        [Set(at("a"), 2), Set(at("b"), 2)],
        "a: &x 2\nb: *x\n",
    ),
    case("an alias alone", "a: &x 1\nb: *x\n", [Set(at("b"), 2)], "a: &x 1\nb: 2\n"),
    case(
        "an alias goes, and the anchor's value is another's",
        "a: &x 1\nb: *x\nc: 1\n",
        [Set(at("a"), 2), Remove(at("b"))],
        "a: &x 2\nc: 1\n",
    ),
    case(
        "each its own value",
        "a: &x 1\nb: *x\n",
        [Set(at("a"), 2), Set(at("b"), 3)],
        "a: &x 2\nb: 3\n",
    ),
    case("an alias goes", "a: &x 1\nb: *x\nc: 2\n", [Remove(at("b"))], "a: &x 1\nc: 2\n"),
    case(
        "both go",
        "a: &x 1\nb: *x\nc: 2\n",
        [Remove(at("a")), Remove(at("b"))],
        "c: 2\n",
    ),
    case(
        "an alias becomes a map",
        "a: &x 1\nb: *x\n",
        [Set(at("b"), {"c": 1})],
        "a: &x 1\nb:\n  c: 1\n",
    ),
    case(
        "merged content, for all users",
        "l:\n- &x\n  a: {old: 1}\n- <<: *x\n  b: 2\n",
        [Rename(at("l", 0, "a", "old"), "new"), Rename(at("l", 1, "a", "old"), "new")],
        "l:\n- &x\n  a: {new: 1}\n- <<: *x\n  b: 2\n",
    ),
    case(
        "a new member beside a merge key",
        "l:\n- &x\n  a: 1\n- <<: *x\n  b: 2\n",
        [Set(at("l", 1, "c"), 3)],
        "l:\n- &x\n  a: 1\n- <<: *x\n  b: 2\n  c: 3\n",
    ),
    case(
        "a member that stands beside a merge key",
        "l:\n- &x\n  a: 1\n- <<: *x\n  b: 2\n",
        [Remove(at("l", 1, "b"))],
        "l:\n- &x\n  a: 1\n- <<: *x\n",
    ),
    case("an anchor of nobody", "a: &x 1\n", [Set(at("a"), 2)], "a: &x 2\n"),
    case("an anchor before nothing", "a: &x\nb: 1\n", [Set(at("a"), 2)], "a: &x 2\nb: 1\n"),
    case(
        "an anchor of nobody before a map",
        "a: &x\n  b: 1\nc: 1\n",
        [Set(at("a"), [1])],
        "a: &x\n- 1\nc: 1\n",
    ),
]

EVERY = [*NAMES_AND_SCALARS, *NEW_MEMBERS, *ITEMS, *REMOVALS, *FLOW, *VALUES, *ANCHORS]


@pytest.mark.parametrize(("before", "edits", "after"), EVERY)
def test_only_what_must_change_changes(before: str, edits: list[Edit], after: str) -> None:
    assert migrated(before, edits) == after


JSON = [
    case("a name", '{"a":{"b":1}}', [Rename(at("a", "b"), 'c"d')], '{"a":{"c\\"d":1}}'),
    case("a value", '{"a": "1"}', [Set(at("a"), 2)], '{"a": 2}'),
    case("a text stays one", '{"a": "1"}', [Set(at("a"), "ü")], '{"a": "\\u00fc"}'),
    case("a text beside others", '{"a": "ä"}', [Set(at("a"), "ü")], '{"a": "ü"}'),
    case(
        "compact", '{"a":1,"b":2}', [Set(at("c"), {"d": [1, 2]})], '{"a":1,"b":2,"c":{"d":[1,2]}}'
    ),
    case(
        "with blanks",
        '{"a": 1, "b": 2}',
        [Set(at("c"), [{"d": 1}])],
        '{"a": 1, "b": 2, "c": [{"d": 1}]}',
    ),
    case("one member", '{"a":1}', [Set(at("c"), [1, 2])], '{"a":1,"c":[1,2]}'),
    case(
        "over several lines",
        '{\n    "a": {\n        "b": 1\n    }\n}\n',
        [Set(at("a", "c"), {"d": [1]})],
        '{\n    "a": {\n        "b": 1,\n        "c": {\n            "d": [\n                1\n'
        "            ]\n        }\n    }\n}\n",
    ),
    case(
        "tabs",
        '{\n\t"a": [\n\t\t1\n\t],\n\t"b": {}\n}',
        [Append(at("a"), {"x": 1}), Set(at("b", "c"), 1)],
        '{\n\t"a": [\n\t\t1,\n\t\t{\n\t\t\t"x": 1\n\t\t}\n\t],\n\t"b": {\n\t\t"c": 1\n\t}\n}',
    ),
    case(
        "a short list in a long text stays short",
        '{\n  "a": [1, 2],\n  "b": 3\n}',
        [Append(at("a"), 3)],
        '{\n  "a": [1, 2, 3],\n  "b": 3\n}',
    ),
    case(
        "Windows line ends",
        '{\r\n  "a": 1\r\n}\r\n',
        [Set(at("b"), {"c": 2})],
        '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n',
    ),
    case("the first goes", '{\n  "a": 1,\n  "b": 2\n}', [Remove(at("a"))], '{\n  "b": 2\n}'),
    case("the last goes", '{\n  "a": 1,\n  "b": 2\n}', [Remove(at("b"))], '{\n  "a": 1\n}'),
    case("null becomes a map", '{"a": null}', [Set(at("a", "b"), 1)], '{"a": {"b": 1}}'),
    case("a map becomes another", '{"a": {"b": 1}}', [Set(at("a"), {"c": 1})], '{"a": {"c": 1}}'),
    case(
        "what YAML does not take",
        '{"a"\t:\t"\\ud83d\\ude00\\/",\n\t"b": 1e3}',
        [Set(at("b"), 2)],
        '{"a"\t:\t"\\ud83d\\ude00\\/",\n\t"b": 2}',
    ),
]


@pytest.mark.parametrize(("before", "edits", "after"), JSON)
def test_json_stays_json(before: str, edits: list[Edit], after: str) -> None:
    assert migrated(before, edits, json=True) == after


def refused(name: str, before: str, edits: list[Edit], reason: str, there: str) -> Any:
    return pytest.param(before, edits, reason, there, id=name)


REFUSED = [
    refused(
        "an anchored node that only one of its users wants changed",
        "a: &x {old: 1}\nb: *x\n",
        [Rename(at("a", "old"), "new")],
        "by the anchor &x this is in 2 places of the object, and only one of them is to change",
        "1",
    ),
    refused(
        "inside an alias that only one wants changed",
        "a: &x {b: 1}\nb: *x\nc: *x\n",
        [Set(at("b", "b"), 2), Set(at("c", "b"), 2)],
        "by the anchor &x this is in 3 places of the object, and only 2 of them are to change",
        "1",
    ),
    refused(
        "two wishes for one node",
        "a: &x {b: 1}\nb: *x\n",
        [Set(at("a", "b"), 2), Set(at("b", "b"), 3)],
        "by anchor and alias this is two things",
        "1",
    ),
    refused(
        "an anchor that an alias still needs",
        "a: &x 1\nb: *x\n",
        [Remove(at("a"))],
        "*x elsewhere needs what &x stands at",
        "&x 1",
    ),
    refused(
        "an anchor within what goes",
        "a: {c: &x 1}\nb: *x\nd: 1\n",
        [Remove(at("a"))],
        "*x elsewhere needs what &x stands at",
        "&x 1",
    ),
    refused(
        "merged content that only one has to change",
        "l:\n- &x\n  a: 1\n- <<: *x\n",
        [Set(at("l", 1, "a"), 2)],
        "by the anchor &x this is in 2 places",
        "1",
    ),
    refused(
        "a name that is an alias",
        "a: &x b\n? *x\n: 1\n",
        [Rename(at("b"), "c")],
        "the name is an anchor or an alias",
        "*x",
    ),
    refused("a name that stands twice", "a: 1\na: 2\n", [Set(at("a"), 3)], "a stands twice", "a"),
    refused("a tag", "a: !!str 1\n", [Set(at("a"), "2")], "its tag says more", "!!str 1"),
    refused(
        "a member behind a question mark",
        "? a\n: 1\nb: 2\n",
        [Remove(at("a"))],
        "something stands before it on its line",
        "1",
    ),
    refused(
        "a member behind a question mark, not the first",
        "b: 2\n? a\n: 1\n",
        [Remove(at("a"))],
        "something stands before it on its line",
        "1",
    ),
    refused(
        "a member behind a question mark without a value",
        "b: 2\n? a\n",
        [Set(at("a"), 1)],
        "its name stands behind a question mark",
        "a",
    ),
    refused(
        "a tag on a map",
        "a: !x\n  b: 1\n",
        [Set(at("a"), 1)],
        "its tag says more",
        "!x",
    ),
    refused(
        "a comment of a neighbour that would go, too",
        "a: {b: 1, # one\n  c: 2, d: 3}\n",
        [Remove(at("a", "c"))],
        "a comment stands between it and what stays",
        "2",
    ),
    refused(
        "a comment that would be of the text above",
        "a: |\n  x\nb: 1\n  # far right\nc: 2\n",
        [Remove(at("b"))],
        "a comment below would become part of the text above",
        "|",
    ),
    refused("what does not exist", "a: 1\n", [Remove(at("b"))], "b is not in the text", "a: 1"),
    refused("what is nowhere", "a: 1\n", [Remove(at("b", "c"))], "b is not in the text", "a: 1"),
    refused(
        "a name without a colon",
        "a: {b, c}\n",
        [Set(at("a", "b"), 1)],
        "its tag or its form says more",
        "",
    ),
]


@pytest.mark.parametrize(("before", "edits", "reason", "there"), REFUSED)
def test_what_cannot_be_said_is_refused(
    before: str, edits: list[Edit], reason: str, there: str
) -> None:
    (document,) = documents.read(before).documents
    with pytest.raises(RefusedError) as error:
        splice(document, edits)
    assert error.value.reason.startswith(reason)
    assert before[error.value.start : error.value.end].startswith(there)


def test_nothing_to_do_is_nothing() -> None:
    (document,) = documents.read("a: 1\n").documents
    assert splice(document, []) == []
    assert splice(document, [Set(at("a"), 1)]) == []
