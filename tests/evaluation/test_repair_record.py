"""What is noted of a repair, and what is made of a note that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.evaluation import repair_record

LEGACY = ("spec", "containers", "c", "resources", "limits", "alpha.kubernetes.io/nvidia-gpu")
GPU = (*LEGACY[:-1], "nvidia.com/gpu")
RECORD: repair_record.Record = {"/spec/template": {LEGACY: ("1", None), GPU: (None, "1")}}


def test_what_was_noted_is_read_again() -> None:
    text = repair_record.written(RECORD, {})
    assert repair_record.read({"annotations": {repair_record.ANNOTATION: text}}) == RECORD
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
        '{"/spec/template":' + " " * repair_record.LARGEST + "{}}",
    ],
)
def test_any_other_text_is_no_record(text: object) -> None:
    assert repair_record.read({"annotations": {repair_record.ANNOTATION: text}}) == {}


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": []}])
def test_metadata_without_one_have_no_record(metadata: Any) -> None:
    assert repair_record.read(metadata) == {}


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
        text = repair_record.written({"/a": {LEGACY: (value, None)}}, {}) if value else ""
        return {"metadata": {"annotations": {repair_record.ANNOTATION: text}}}

    obj = noted(sent)
    if by:
        fields: Any = {"f:metadata": {"f:annotations": {f"f:{repair_record.ANNOTATION}": {}}}}
        obj["metadata"]["managedFields"] = [{"manager": by, "fieldsV1": fields}]
    assert repair_record.latest(obj, noted("stored")) == {"/a": {LEGACY: (expected, None)}}
    assert repair_record.latest(noted("new"), None) == {"/a": {LEGACY: ("new", None)}}


def test_of_a_record_only_pairs_are_read() -> None:
    pairs = {"/spec/x": [1, 2], "/spec/y": [1], "/spec/z": 7, "w": [3, 4], "/w": [5, 6]}
    text = json.dumps({"/a": pairs, "/b": 7})
    found = repair_record.read({"annotations": {repair_record.ANNOTATION: text}})
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
            {"/spec/template": {LEGACY: ("x" * repair_record.LARGEST, None)}},
            {},
            id="a text too long",
        ),
        pytest.param(RECORD, {"other": "ü" * 130_990}, id="no room in the annotations"),
    ],
)
def test_no_record_is_kept(noted: Any, others: dict[str, str]) -> None:
    assert repair_record.written(noted, {"metadata": {"annotations": others}}) == ""


def test_what_the_settings_asked_for_is_noted_though_no_word_stands_for_it() -> None:
    noted: repair_record.Record = {"/a": {("spec", "volumes", "v"): (None, {"name": "v"})}}
    assert (
        repair_record.read(
            {"annotations": {repair_record.ANNOTATION: repair_record.written(noted, {})}}
        )
        == noted
    )


def test_a_record_that_takes_the_place_of_another_needs_no_more_room() -> None:
    assert repair_record.written(
        RECORD,
        {
            "metadata": {
                "annotations": {repair_record.ANNOTATION: "x" * 300_000, "other": "x" * 200_000}
            }
        },
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
    assert repair_record.has_words({"annotations": {repair_record.ANNOTATION: text}}) is expected


def test_no_record_has_no_words() -> None:
    assert not repair_record.has_words({})


def test_an_object_has_a_record_whatever_it_says() -> None:
    assert repair_record.is_on({"metadata": {"annotations": {repair_record.ANNOTATION: "?"}}})
    assert not repair_record.is_on({"metadata": {"annotations": {"other": "?"}}})
    assert not repair_record.is_on({"metadata": None})
