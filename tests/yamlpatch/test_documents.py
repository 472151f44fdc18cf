"""Texts as documents: what Kubernetes reads, and where it stands."""

from __future__ import annotations

import math
from typing import Any

import pytest

from webhook.kube.pointer import ROOT, Path
from webhook.yamlpatch import documents, yaml_words
from webhook.yamlpatch.nodes import Alias, Item, List, Map, Member, Scalar, entries
from webhook.yamlpatch.yaml_words import is_same


def read(text: str, *, json: bool = False) -> list[Any]:
    stream = documents.read(text, json=json)
    assert stream.unread == ()
    return [document.data for document in stream.documents]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("on", True),
        ("Yes", True),
        ("y", True),
        ("OFF", False),
        ("n", False),
        ("tRUE", "tRUE"),
        ("~", None),
        ("", None),
        ("Null", None),
        ("1", 1),
        ("-1_000", -1000),
        ("0644", 420),
        ("0o644", 420),
        ("0" * 90 + "644", 420),
        ("0x1F", 31),
        ("-0b11", -3),
        ("089", 89.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("+.inf", math.inf),
        ("-.Inf", -math.inf),
        (".nan", math.nan),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("8080:80", "8080:80"),
        ("2017-01-01", "2017-01-01"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_bare_words_are_what_kubernetes_takes_them_for(word: str, value: Any) -> None:
    assert is_same(yaml_words.of_plain(word), value)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("a: !!str 1\n", {"a": "1"}, id="a tag that makes it a text"),
        pytest.param("a: !!float 1\n", {"a": 1.0}, id="a tag that makes it a number"),
        pytest.param('a: !!int "1"\n', {"a": 1}, id="a tag on what is quoted"),
        pytest.param("a: ! 1\n", {"a": "1"}, id="the tag that says: not plain"),
        pytest.param("a: !x 1\n", {"a": "1"}, id="a tag of somebody's own"),
        pytest.param("1: a\non: b\n~: c\n0.5: d\n", None, id="names of all kinds"),
        pytest.param("%YAML 1.1\n--- {a: 1}\n...\n", {"a": 1}, id="a directive"),
        pytest.param("a: 'it''s'\nb: \"\\u00fc\"\n", {"a": "it's", "b": "ü"}, id="quotes"),
        pytest.param("a: >-\n b\n c\n\n d\n", {"a": "b c\nd"}, id="a folded text"),
        pytest.param("a: b # c\t'x\n", {"a": "b"}, id="a comment with a tab"),
        pytest.param("a:\n\t# c\n  b: 1\n", {"a": {"b": 1}}, id="a tab before a comment"),
        pytest.param("a:\n-\t# c\n  b\n\t\n", {"a": ["b"]}, id="a tab behind a dash, and alone"),
        pytest.param("a: 1\r\nb: |\r\n  x\r\n", {"a": 1, "b": "x\n"}, id="Windows line ends"),
        pytest.param("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}, id="an alias"),
        pytest.param(
            "a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n",
            {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}},
            id="a merge key",
        ),
        pytest.param(
            "a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}\n",
            {"a": {"b": 1}, "c": {"b": 2, "d": 3}, "e": {"b": 1, "d": 3}},
            id="two merged: the first counts",
        ),
        pytest.param('"<<": 1\n', {"<<": 1}, id="what only looks like a merge key"),
        pytest.param("a: 1\na: 2\n", {"a": 2}, id="twice: the last counts"),
    ],
)
def test_data_is_what_kubernetes_reads(text: str, data: Any) -> None:
    if data is None:
        data = {"1": "a", "true": "b", "null": "c", "0.5": "d"}
    assert is_same(read(text), [data])


def test_no_part_of_the_data_is_in_two_places() -> None:
    (data,) = read("a: &x {b: [1]}\nc: *x\nd: {<<: *x}\n")
    assert len({id(each["b"]) for each in data.values()}) == len(data)


def test_a_stream_has_documents_and_empty_ones() -> None:
    assert read("# c\n---\na: 1\n---\n---\n- b\n...\n") == [{"a": 1}, None, ["b"]]
    assert read("") == []


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param('{"a":\t"\\ud83d\\ude00\\/",\n\t"b": [1e3, -0.5, null]}', None, id="JSON"),
        pytest.param('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}], id="one after the other"),
        pytest.param("[]", [[]], id="a list"),
        pytest.param('{"a": 1, "a": 2}', [{"a": 2}], id="a name twice"),
        pytest.param("a: 1 # no JSON\n", [{"a": 1}], id="YAML after all"),
    ],
)
def test_json_is_read_as_json(text: str, data: Any) -> None:
    stream = documents.read(text, json=True)
    assert stream.unread == ()
    data = [{"a": "😀/", "b": [1000.0, -0.5, None]}] if data is None else data
    assert is_same([each.data for each in stream.documents], data)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('{"a": 1', "is not JSON: , or } is missing here", id="no end"),
        pytest.param('{"a" 1}', "is not JSON: : is missing here", id="no colon"),
        pytest.param("{1: 2}", "is not JSON: a name in quotes is missing here", id="no name"),
        pytest.param('{"a": 1, // c\n}', "is not JSON", id="a comment"),
        pytest.param('["\\x"]', "is not JSON: a wrong escape", id="a wrong escape"),
        pytest.param("[}", "is not JSON: { or [ is missing here", id="a wrong bracket"),
        pytest.param("[" * 200 + "]" * 200, "is too deeply nested", id="deep"),
    ],
)
def test_what_is_no_json_is_told(text: str, why: str) -> None:
    stream = documents.read(text, json=True)
    assert [each.reason for each in stream.unread] == [why]


def test_one_bad_document_spoils_no_other() -> None:
    text = "a: 1\n---\nb: [\n---\nc: 3\n...\n%YAML 1.1\n---\nd: *x\n"
    stream = documents.read(text)
    assert [each.data for each in stream.documents] == [{"a": 1}, {"c": 3}]
    unread = [text[each.start : each.end] for each in stream.unread]
    assert unread == ["---\nb: [\n", "%YAML 1.1\n---\nd: *x\n"]
    document = stream.documents[1]
    member = document.find(Path(("c",)))
    assert member is not None
    assert text[member.start : member.end] == "3"


@pytest.mark.parametrize(
    ("text", "data", "places"),
    [
        pytest.param("a: 1\n...\n...\n", [{"a": 1}], [(0, 8)], id="ended twice"),
        pytest.param(
            "a: 1\n...\n# c\n...\n--- 2\n", [{"a": 1}, 2], [(0, 8), (17, 23)], id="and another"
        ),
        pytest.param(
            "a: 1\n# c\n%YAML 1.1\n\n%TAG !e! x:\n--- 2\n",
            [{"a": 1}, 2],
            [(0, 9), (9, 38)],
            id="directives without an end before them",
        ),
        pytest.param("\r\n%YAML 1.1\r\n--- 2\r\n", [2], [(2, 20)], id="an empty line first"),
        pytest.param("{a: 1}\n--- {a: 2}\n", [{"a": 1}, {"a": 2}], [(0, 7), (7, 18)], id="flow"),
    ],
)
def test_a_part_has_all_lines_of_its_document(
    text: str, data: list[Any], places: list[tuple[int, int]]
) -> None:
    """A text is read part by part; libyaml reads the whole text in the same way."""
    assert read(text) == data
    assert [(each.start, each.end) for each in documents.read(text).documents] == places
    assert [each.start for each in documents.parts(text)] == [
        each.start for each in documents.parts(text) if each.documents
    ]


def test_a_bomb_of_aliases_is_not_expanded() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    stream = documents.read("\n".join(levels))
    assert [each.reason for each in stream.unread] == [
        "holds over 1,000,000 values, by its aliases"
    ]


def test_what_is_deep_by_aliases_is_too_deep() -> None:
    levels = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 150))]
    stream = documents.read("\n".join(levels))
    assert [each.reason for each in stream.unread] == ["is too deeply nested"]


def test_empty_documents_beside_bad_ones_are_nothing() -> None:
    stream = documents.read("---\n---\na: [\n...\n")
    assert [each.data for each in stream.documents] == [None]


def test_tabs_are_taken_for_blanks_only_so_often() -> None:
    text = "a:\n" + "\t# c\n" * 101 + "  b: 1\n"
    stream = documents.read(text)
    assert [each.reason for each in stream.unread] == ["is not YAML: tabs before its lines"]


def test_a_bomb_of_merge_keys_is_not_expanded() -> None:
    wide = "a: &a {" + ", ".join(f"k{n}: 1" for n in range(2_000)) + "}"
    stream = documents.read("\n".join([wide, *(f"b{n}: {{<<: *a}}" for n in range(2_000))]))
    assert len(stream.unread) == 1
    assert "over 1,000,000 values" in stream.unread[0].reason


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a: &x [*x]\n", "holds itself by *x", id="a list in itself"),
        pytest.param("a: *x\n", "*x stands for nothing", id="an alias for nothing"),
        pytest.param("[" * 100_000, "is too deeply nested", id="so deep that libyaml would crash"),
        pytest.param("- " * 100_000, "is too deeply nested", id="the same in blocks"),
        pytest.param("{a: 1}: 2\n", "has a map or a list for a name", id="a map for a name"),
        pytest.param("<<: 1\n", "merges what is no map", id="nothing to merge"),
        pytest.param("a: \x07\n", "a control character, '\\x07'", id="a control character"),
        pytest.param("a: 'b\n", "found unexpected end of stream", id="a quote without an end"),
    ],
)
def test_what_no_manifest_is_like_is_told(text: str, why: str) -> None:
    stream = documents.read(text)
    assert stream.documents == ()
    assert [why in each.reason for each in stream.unread] == [True]


def test_nodes_are_where_they_stand() -> None:
    text = (
        "# head\n"
        "a: &x   # c\n"
        "- 1  # one\n"
        '-  "b" :  {c: d,  e: [f]}\n'
        "   g: |\n"
        "     text\n"
        "\n"
        "  # after\n"
        "h: *x\n"
        "i:\n"
        "j: !!str\n"
        "  k\n"
    )
    (document,) = documents.read(text).documents
    said = [
        (type(node).__name__, text[node.start : node.end])
        for node in document.nodes
        if isinstance(node, Scalar | Alias) or (isinstance(node, Map | List) and node.flow)
    ]
    assert said == [
        *(("Scalar", "a"), ("Scalar", "1"), ("Scalar", '"b"'), ("Map", "{c: d,  e: [f]}")),
        *(("Scalar", "c"), ("Scalar", "d"), ("Scalar", "e"), ("List", "[f]"), ("Scalar", "f")),
        *(("Scalar", "g"), ("Scalar", "|\n     text"), ("Scalar", "h"), ("Alias", "*x")),
        *(("Scalar", "i"), ("Scalar", ""), ("Scalar", "j"), ("Scalar", "k")),
    ]
    listed = document.find(Path(("h",)))
    assert isinstance(listed, Alias)
    items = entries(listed.target)  # type: ignore[arg-type]
    assert [text[item.start] for item in items] == ["-", "-"]
    assert text[items[-1].end :].startswith("\n\n  # after")
    assert listed.target.outer == text.index("&x")


def test_a_list_without_indent_begins_at_its_dash() -> None:
    text = "a: &x\n- 1\n- 2\nb:\n  - 3\nc:\n-\n  d: 1\n"
    (document,) = documents.read(text).documents
    starts = [text[n.start : n.start + 3] for n in document.nodes if isinstance(n, List)]
    assert starts == ["- 1", "- 3", "-\n "]


@pytest.mark.parametrize(
    ("path", "there"),
    [
        pytest.param(ROOT, "a: {b: [1,\n 2]}", id="all"),
        pytest.param(Path(("a", "b", 1)), "2", id="an item"),
        pytest.param(Path(("a", "b")), "b: [1,\n 2]", id="a member"),
        pytest.param(Path(("a", "x", "y")), "a: {b: [1,\n 2]}", id="the nearest that is there"),
    ],
)
def test_a_path_has_a_place(path: Path, there: str) -> None:
    text = "a: {b: [1,\n 2]}\n"
    (document,) = documents.read(text).documents
    start, end = document.place(path)
    assert text[start:end] == there


def test_names_that_stand_twice_are_told_with_their_place() -> None:
    text = "a: {b: 1, 'b': 2}\nc:\n- d: 1\n  d: 2\n"
    (document,) = documents.read(text).documents
    said = [(each.at.dotted, text[each.key.start : each.key.end]) for each in document.duplicates]
    assert said == [("a.b", "'b'"), ("c[0].d", "d")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (1, "1"),
        ([], {}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ([1], [1, 2]),
        (0, None),
    ],
)
def test_what_kubernetes_tells_apart_is_not_the_same(one: Any, other: Any) -> None:
    assert not is_same({"x": [one]}, {"x": [other]})


def test_members_and_items_have_their_ends() -> None:
    key = Scalar(0, 0, 1, text="a")
    assert Member(key, Scalar(0, 0, 0)).end == 1
    assert Item(4, Scalar(0, 0, 0)).end == 5
