"""JSON and YAML say the same, in the shape of docs/reports.md, whatever the texts hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given

from tests.reports import report_samples
from tests.reports.report_strategies import FEW
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports import printing
from webhook.reports.data import as_json, as_yaml
from webhook.reports.escaping import storable
from webhook.yamlpatch.places import Place

FINDING = {
    "code",
    "status",
    "legacy",
    "message",
    "line",
    "column",
    "endLine",
    "endColumn",
    "object",
    "path",
    "fix",
}


@FEW
@given(DRAWN)
def test_both_parse_and_are_equal_whatever_the_texts_hold(report: Report) -> None:
    data = json.loads(as_json(report))
    assert yaml.safe_load(as_yaml(report)) == data
    for made, result in zip(data["files"], report.results, strict=True):
        assert made["path"] == storable(result.path)
        assert [each["message"] for each in made["findings"]] == [
            storable(each.message) for each in result.located
        ]


def test_counts_are_by_status() -> None:
    assert json.loads(as_json(report_samples.everything()))["summary"] == {
        "files": 120,
        "fixed": 1,
        "fixable": 4,
        "manual": 2,
        "notice": 1,
        "skipped": 3,
        "errors": 1,
    }
    assert {status.value for status in Status} <= json.loads(as_json(Report(())))["summary"].keys()


def test_each_member_is_there_in_every_finding() -> None:
    data = json.loads(as_json(report_samples.everything()))
    findings = [finding for file in data["files"] for finding in file["findings"]]
    assert findings
    assert all(set(finding) == FINDING for finding in findings)


def test_a_fix_is_where_a_program_finds_it() -> None:
    data = json.loads(as_json(report_samples.everything()))
    file = next(each for each in data["files"] if each["path"] == "old/pod.json")
    lines = report_samples.OLD_JSON.split("\n")
    [fix] = file["findings"][0]["fix"]
    assert fix["line"] == fix["endLine"] == 3
    begin, end = fix["column"] - 1, fix["endColumn"] - 1
    assert lines[2][begin:end] == report_samples.LEGACY
    assert fix["text"] == report_samples.TODAY


def test_what_has_nothing_to_say_is_left_out() -> None:
    data: dict[str, Any] = json.loads(as_json(report_samples.everything()))
    by_path = {file["path"]: file for file in data["files"]}
    assert "error" in by_path["bad/broken.yaml"]
    assert "error" not in by_path["old/pod.json"]
    assert "diff" not in by_path["bad/half read.yaml"]
    assert by_path["old/pod.json"]["diff"].startswith("--- a/old/pod.json\n+++ b/old/pod.json\n@@")


@pytest.mark.parametrize(
    ("code", "legacy"), [("GPU101", True), ("GPU103", False), ("GPU201", False), ("GPU301", False)]
)
def test_each_finding_says_whether_it_is_legacy(code: str, *, legacy: bool) -> None:
    """As the logs and metrics of the webhook count it."""
    located = Located(code, "words", Status.MANUAL, Place(1, 1, 1, 2))
    data = json.loads(as_json(Report((FileResult("x.yaml", text="x\n", located=(located,)),))))

    assert data["files"][0]["findings"][0]["legacy"] is legacy


def test_what_stands_in_two_places_is_written_twice() -> None:
    shared = {"x": 1}
    text = printing.as_yaml({"a": None, "b": None, "c": shared, "d": shared})
    assert text == "a: null\nb: null\nc:\n  x: 1\nd:\n  x: 1\n"
