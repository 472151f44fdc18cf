"""The annotation with the codes of what was repaired: who wrote it, and when there is none."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest

from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.modes import Mode
from webhook.core.repaired_annotation import (
    REPAIRED,
    annotate,
    codes_in,
    codes_of,
    is_noted,
    withdraw,
)
from webhook.kube.pointer import ROOT

EDIT = (Set(ROOT / "spec" / "a", 1),)
DONE = (Finding("GPU107", ROOT, "m", EDIT), Finding("GPU101", ROOT, "m", EDIT))
LARGEST = 256 * 1024


def wrote(*keys: str) -> list[dict[str, Any]]:
    """The managedFields of whoever wrote these annotations."""
    fields: Any = {"f:metadata": {"f:annotations": {".": {}, **{f"f:{key}": {} for key in keys}}}}
    return [{"manager": "kubelet"}, {"manager": "kubectl", "fieldsV1": fields}]


def noted(obj: dict[str, Any]) -> object:
    """The annotation of the object as the patch leaves it, which is the object as edited."""
    before = copy.deepcopy(obj)
    patch = annotate(obj, DONE)
    assert jsonpatch.apply_patch(before, patch) == obj
    return obj["metadata"]["annotations"][REPAIRED]


def having(text: object, *written: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {REPAIRED: text}, "managedFields": wrote(*written)}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({}, "GPU101,GPU107", id="no metadata"),
        pytest.param({"metadata": None}, "GPU101,GPU107", id="null metadata"),
        pytest.param({"metadata": {"annotations": None}}, "GPU101,GPU107", id="null annotations"),
        pytest.param({"metadata": {"name": "a"}}, "GPU101,GPU107", id="no annotations"),
        pytest.param({"metadata": {"annotations": {}}}, "GPU101,GPU107", id="empty annotations"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, "GPU101,GPU107", id="others"),
        pytest.param(having("GPU106"), "GPU101,GPU106,GPU107", id="an earlier round's: merged"),
        pytest.param(having("GPU106", "other"), "GPU101,GPU106,GPU107", id="others were sent"),
        pytest.param(having("GPU106", REPAIRED), "GPU101,GPU107", id="it was sent: replaced"),
        pytest.param(having("GPU101,GPU107"), "GPU101,GPU107", id="it says so already"),
        pytest.param(having("GPU106,me"), "GPU101,GPU106,GPU107", id="what is no code goes"),
        pytest.param(having("GPU301,GPU999"), "GPU101,GPU107", id="codes that never repair go"),
        pytest.param(having(7), "GPU101,GPU107", id="no text"),
        pytest.param(
            {"metadata": {"annotations": {REPAIRED: "GPU106"}}},
            "GPU101,GPU106,GPU107",
            id="without managedFields a code is believed",
        ),
        pytest.param(
            {"metadata": {"annotations": {REPAIRED: "x"}, "managedFields": [{"fieldsV1": 7}, 7]}},
            "GPU101,GPU107",
            id="odd managedFields",
        ),
        pytest.param(
            {"metadata": {"annotations": {"a": "x" * (LARGEST - 38)}}},
            "GPU101,GPU107",
            id="all that the API server takes",
        ),
    ],
)
def test_the_annotation_is_the_truth(obj: dict[str, Any], expected: str) -> None:
    assert noted(obj) == expected


@pytest.mark.parametrize(
    "findings",
    [
        pytest.param((), id="nothing was found"),
        pytest.param((Finding("GPU101", ROOT, "m"),), id="only reported"),
        pytest.param((Finding("GPU101", ROOT, "m", EDIT, mode=Mode.WARN),), id="only warned of"),
    ],
)
def test_what_was_not_changed_is_not_annotated(findings: Any) -> None:
    obj = having("forged", REPAIRED)
    assert annotate(obj, findings) == []
    assert obj == having("forged", REPAIRED)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param([], id="metadata are a list"),
        pytest.param({"annotations": []}, id="annotations are a list"),
        pytest.param({"annotations": "x"}, id="annotations are a text"),
        pytest.param({"annotations": {"a": "x" * (LARGEST - 37)}}, id="one byte too many"),
        pytest.param({"annotations": {"a": "ü" * (LARGEST // 2)}}, id="bytes count, not letters"),
    ],
)
def test_where_there_is_no_place_there_is_none(metadata: Any) -> None:
    obj = {"metadata": metadata}
    assert annotate(obj, DONE) == []
    assert obj == {"metadata": metadata}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("GPU106,GPU101,GPU106", ("GPU101", "GPU106")),
        ("GPU303,GPU201", ("GPU201", "GPU303")),
        ("GPU10,gpu101, GPU101,GPU1011,GPU301", ()),
        ("GPU101," * 100_000, ("GPU101",)),
        ("", ()),
        (None, ()),
    ],
)
def test_codes_are_read_and_nothing_else(text: object, codes: tuple[str, ...]) -> None:
    assert codes_in(text) == codes


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param(having("GPU101"), True, id="ours"),
        pytest.param(having("x"), False, id="another text"),
        pytest.param(having("GPU101", REPAIRED), False, id="the author's"),
    ],
)
def test_a_note_is_ours_where_nobody_sent_it(obj: dict[str, Any], *, expected: bool) -> None:
    assert is_noted(obj) is expected


def test_codes_of_the_stored_object_stay_whoever_sends_it() -> None:
    obj, stored = having("GPU106", REPAIRED), having("GPU109,x", REPAIRED)
    annotate(obj, DONE, codes_of(stored))
    assert obj["metadata"]["annotations"][REPAIRED] == "GPU101,GPU107,GPU109"


def test_a_code_whose_rule_only_warns_now_goes() -> None:
    obj = having("GPU105,GPU106")
    annotate(obj, (*DONE, Finding("GPU105", ROOT, "m", EDIT, mode=Mode.WARN)), ("GPU105",))
    assert obj["metadata"]["annotations"][REPAIRED] == "GPU101,GPU106,GPU107"


def test_a_note_of_ours_is_withdrawn_and_no_other() -> None:
    ours, sent = having("GPU106"), having("GPU106", REPAIRED)
    assert withdraw(ours)
    assert not is_noted(ours)
    assert withdraw(sent) == []
    assert sent == having("GPU106", REPAIRED)
