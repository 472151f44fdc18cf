"""What is noted of a repair, and what is made of a note that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.core import record

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
    assert record.written(noted, others) == ""


def test_a_record_that_takes_the_place_of_another_needs_no_more_room() -> None:
    assert record.written(RECORD, {record.ANNOTATION: "x" * 300_000, "other": "x" * 200_000})
