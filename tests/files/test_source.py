"""Files as they were read: bytes, texts, places, and what kind of text it is."""

from __future__ import annotations

import pytest

from webhook.core.errors import InputError
from webhook.files.source import Source, kind_of
from webhook.yamlpatch.places import Place

MARK = b"\xef\xbb\xbf"


def test_a_byte_order_mark_is_kept_aside_and_comes_back() -> None:
    source = Source.of("a.yaml", MARK + "a: ü\r\n".encode())
    assert source.text == "a: ü\r\n"
    assert source.bytes_of("a: ö\r\n") == MARK + "a: ö\r\n".encode()


def test_without_a_mark_none_comes() -> None:
    assert Source.of("a.yaml", b"a: 1\n").bytes_of("a: 2\n") == b"a: 2\n"


def test_a_text_that_was_read_before_has_its_bytes() -> None:
    source = Source.of_text("part", "a: ü", "yaml")
    assert (source.raw, source.kind) == ("a: ü".encode(), "yaml")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(
            "a".encode("utf-16"),
            "f: is UTF-16, which this program does not read: make it UTF-8, as with "
            "`iconv -f UTF-16 -t UTF-8`",
            id="UTF-16 with a mark",
        ),
        pytest.param("﻿a".encode("utf-16-be"), "f: is UTF-16", id="the other way round"),
        pytest.param("a".encode("utf-32"), "f: is UTF-32, .*iconv -f UTF-32 -t UTF-8", id="UTF-32"),
        pytest.param(b"a\0b", "f: is a binary file", id="a NUL"),
        pytest.param(b"a\xff", r"f: is not UTF-8 \(byte 1\)", id="another encoding"),
        pytest.param(MARK + b"\xff", r"f: is not UTF-8 \(byte 3\)", id="the same behind a mark"),
    ],
)
def test_what_is_no_text_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Source.of("f", raw)


def test_a_text_in_another_encoding_may_be_searched() -> None:
    source = Source.of("f", b"kind: Pod # \xff\n", lossy=True)
    assert (source.text, source.kind) == ("kind: Pod # \ufffd\n", "other")
    assert source.is_lossy
    assert not Source.of("f", b"a", lossy=True).is_lossy


@pytest.mark.parametrize(
    ("start", "end", "place", "excerpt"),
    [
        pytest.param(0, 1, Place(1, 1, 1, 2), "ab", id="the first character"),
        pytest.param(1, 2, Place(1, 2, 1, 3), "ab", id="the end of a line"),
        pytest.param(4, 7, Place(2, 1, 3, 2), "ü\nd", id="over two lines"),
        pytest.param(7, 7, Place(3, 2, 3, 2), "d", id="nothing, at the end"),
        pytest.param(3, 0, Place(1, 4, 1, 4), "ab", id="never backwards"),
    ],
)
def test_places_count_from_one(start: int, end: int, place: Place, excerpt: str) -> None:
    source = Source.of_text("a.yaml", "ab\r\nü\nd")
    assert source.place(start, end) == place
    assert source.excerpt(place) == excerpt
    assert source.index(place.line, place.column) == start


OBJECTS = "apiVersion: v1\nkind: Pod\n---\n# a\n---\napiVersion: v1\nkind: Pod\n"
CHART = "a: {{ .Values.a }}\nkind: Pod\n"
JINJA = "kind: Pod\n{% if a %}\nb: {{ c }}\n{% endif %}\n"


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        pytest.param("a.yaml", "a: 1\n", "yaml", id="a YAML file"),
        pytest.param("A.YML", "", "yaml", id="in capitals, empty"),
        pytest.param("a.yaml", '{"a": 1}', "yaml", id="JSON in a YAML file"),
        pytest.param("a.json", '{"a": 1}', "json", id="a JSON file"),
        pytest.param("stdin", "kind: Pod\n", "yaml", id="what looks like a manifest on stdin"),
        pytest.param("pod", OBJECTS, "yaml", id="objects, without an ending"),
        pytest.param("x.injected", OBJECTS, "yaml", id="objects in a file of another name"),
        pytest.param("pod", '{"apiVersion": "v1", "kind": "Pod"}', "json", id="an object in JSON"),
        pytest.param("pod", f"{OBJECTS}---\na: 1\n", "other", id="objects and something else"),
        pytest.param("pod", f"{OBJECTS}a: b: c\n", "other", id="what is no YAML"),
        pytest.param("pod", "kind: Pod\n", "other", id="a part of an object"),
        pytest.param("x.ipynb", '{"cells": []}', "other", id="a notebook"),
        pytest.param("x.yaml.old", "kind: Pod\n", "yaml", id="a manifest of earlier"),
        pytest.param("x.cue", OBJECTS, "other", id="a language that looks like YAML"),
        pytest.param("x.rst", f"Title\n=====\n\n{OBJECTS}", "other", id="reStructuredText"),
        pytest.param("x.tpl", "kind: Pod\n", "yaml", id="a template without actions"),
        pytest.param("a.yaml.tmpl", "kind: Pod\n", "yaml", id="a template of nothing"),
        pytest.param("LICENSE", "a: 1\n", "other", id="what looks like nothing"),
        pytest.param("a.go", "x := `\nkind: Pod\n`\n", "other", id="a program"),
        pytest.param("a.md", "kind: Pod\n", "markdown", id="Markdown"),
        pytest.param("c/templates/a.yaml", 'a: "{{ .b }}"\n', "helm", id="below templates/"),
        pytest.param("c/templates/a.yaml", "a: 1\n", "yaml", id="below templates/, but plain"),
        pytest.param("c/templates/_h.tpl", '{{ define "a" }}x{{ end }}', "helm", id="helpers"),
        pytest.param("c/templates/NOTES.txt", "Done.\n", "other", id="a chart's last words"),
        pytest.param("a.yaml", CHART, "helm", id="actions that are no YAML"),
        pytest.param("a.yaml", 'a: "{{ b }}"\n', "yaml", id="actions in quotes"),
        pytest.param("a.yaml", JINJA, "jinja", id="Jinja"),
        pytest.param("a.yaml.j2", "a: 1\n", "jinja", id="Jinja by its name"),
        pytest.param("x.tpl", '{{- include "a" . }}', "helm", id="a chart's other text"),
        pytest.param("kustomization.yaml", "resources: []\n", "kustomize", id="a kustomization"),
        pytest.param("d/Kustomization", "resources: []\n", "kustomize", id="the same, no ending"),
    ],
)
def test_the_kind_is_told_by_name_and_text(path: str, text: str, kind: str) -> None:
    assert kind_of(path, text) == kind
    assert Source.of_text(path, text).kind == kind
