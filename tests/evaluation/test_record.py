"""What is noted of a repair, and what is made of a note that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.evaluation import record

LEGACY = ("spec", "containers", "c", "resources", "limits", "alpha.kubernetes.io/nvidia-gpu")
GPU = (*LEGACY[:-1], "nvidia.com/gpu")
RECORD: record.Record = {"/spec/template": {LEGACY: ("1", None), GPU: (None, "1")}}


def test_what_was_noted_is_read_again() -> None:
    text = record.written(RECORD, {})
    assert record.read({"annotations": {record.ANNOTATION: text}}) == RECORD
    assert "/limits/alpha.kubernetes.io~1nvidia-gpu" in text


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "{",
        "[]",
        "null",
        '"x"',
        "[" * 50_000,
        '{"/spec/template":' + " " * record.LARGEST + "{}}",
    ],
)
def test_any_other_text_is_no_record(text: object) -> None:
    assert record.read({"annotations": {record.ANNOTATION: text}}) == {}


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": []}])
def test_metadata_without_one_have_no_record(metadata: Any) -> None:
    assert record.read(metadata) == {}


@pytest.mark.parametrize(
    ("sent", "by", "expected"),
    [
        pytest.param("new", None, "new", id="of an earlier round of the request"),
        pytest.param("new", "kubectl", "stored", id="somebody sent another one"),
        pytest.param(None, None, "stored", id="none was sent"),
    ],
)
def test_the_latest_record_is_read(sent: str | None, by: str | None, expected: str) -> None:
    def noted(value: str | None) -> dict[str, Any]:
        text = record.written({"/a": {LEGACY: (value, None)}}, {}) if value else ""
        return {"metadata": {"annotations": {record.ANNOTATION: text}}}

    obj = noted(sent)
    if by:
        fields: Any = {"f:metadata": {"f:annotations": {f"f:{record.ANNOTATION}": {}}}}
        obj["metadata"]["managedFields"] = [{"manager": by, "fieldsV1": fields}]
    assert record.latest(obj, noted("stored")) == {"/a": {LEGACY: (expected, None)}}
    assert record.latest(noted("new"), None) == {"/a": {LEGACY: ("new", None)}}


def test_of_a_record_only_pairs_are_read() -> None:
    pairs = {"/spec/x": [1, 2], "/spec/y": [1], "/spec/z": 7, "w": [3, 4], "/w": [5, 6]}
    text = json.dumps({"/a": pairs, "/b": 7})
    found = record.read({"annotations": {record.ANNOTATION: text}})
    assert found == {"/a": {("spec", "x"): (1, 2)}, "/b": {}}


@pytest.mark.parametrize(
    ("noted", "others"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"/spec/template": {}}, {}, id="nothing in a template"),
        pytest.param(
            {"/spec/template": {GPU: (None, "1")}}, {}, id="no word of an author: none comes back"
        ),
        pytest.param(
            {"/spec/template": {LEGACY: ("x" * record.LARGEST, None)}}, {}, id="a text too long"
        ),
        pytest.param(RECORD, {"other": "ü" * 130_990}, id="no room in the annotations"),
    ],
)
def test_no_record_is_kept(noted: Any, others: dict[str, str]) -> None:
    assert record.written(noted, {"metadata": {"annotations": others}}) == ""


def test_what_the_settings_asked_for_is_noted_though_no_word_stands_for_it() -> None:
    noted: record.Record = {"/a": {("spec", "volumes", "v"): (None, {"name": "v"})}}
    assert record.read({"annotations": {record.ANNOTATION: record.written(noted, {})}}) == noted


def test_a_record_that_takes_the_place_of_another_needs_no_more_room() -> None:
    assert record.written(
        RECORD,
        {"metadata": {"annotations": {record.ANNOTATION: "x" * 300_000, "other": "x" * 200_000}}},
    )


@pytest.mark.parametrize(
    ("field", "change", "expected"),
    [
        pytest.param("runtimeClassName", ("1", "2"), True, id="a word was translated"),
        pytest.param("runtimeClassName", (None, "nvidia"), False, id="a field was added"),
        pytest.param("nodeSelector/disk", ("ssd", "ssd"), False, id="a field stayed"),
        pytest.param("tolerations", ([{}], [{}, {}]), False, id="a toleration was added"),
    ],
)
def test_a_record_has_words_if_something_of_the_author_was_translated(
    field: str, change: object, *, expected: bool
) -> None:
    text = json.dumps({"/spec/template": {f"/spec/{field}": change}})
    assert record.has_words({"annotations": {record.ANNOTATION: text}}) is expected


def test_no_record_has_no_words() -> None:
    assert not record.has_words({})


def test_an_object_has_a_record_whatever_it_says() -> None:
    assert record.is_on({"metadata": {"annotations": {record.ANNOTATION: "?"}}})
    assert not record.is_on({"metadata": {"annotations": {"other": "?"}}})
    assert not record.is_on({"metadata": None})
