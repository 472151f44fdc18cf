"""SARIF: held against the schema of OASIS, and its fixes applied as an editor would."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given

from tests.reports import report_samples
from tests.reports.report_strategies import FEW
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.sarif import sarif
from webhook.rules import ALL
from webhook.yamlpatch.places import Place

# The schema of the OASIS Technical Committee, as published, without its descriptions.
SCHEMA = Path(__file__).parents[1] / "schema" / "sarif-2.1.0.json"


@cache
def _validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))


def _run(report: Report) -> dict[str, Any]:
    log = json.loads(sarif(report))
    _validator().validate(log)
    run: dict[str, Any] = log["runs"][0]
    return run


def test_the_schema_refuses_what_is_not_sarif() -> None:
    log = json.loads(sarif(report_samples.everything()))
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert not _validator().is_valid(log)


@FEW
@given(DRAWN)
def test_it_is_valid_whatever_the_texts_hold(report: Report) -> None:
    run = _run(report)
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == [
        each["ruleId"] for each in run["results"]
    ]


def test_every_rule_is_there_with_its_manual() -> None:
    rules = {each["id"]: each for each in _run(report_samples.empty())["tool"]["driver"]["rules"]}
    assert set(rules) == {rule.CODE for rule in ALL}
    for rule in ALL:
        said = rules[rule.CODE]
        assert said["name"] == rule.NAME
        assert said["help"]["text"] == (rule.__doc__ or "").strip()
        assert "\n**Why:** " in said["help"]["markdown"]


@pytest.mark.parametrize(
    ("status", "level", "kind"),
    [
        pytest.param(Status.MANUAL, "error", "fail", id="what needs manual changes is an error"),
        pytest.param(Status.FIXABLE, "warning", "fail", id="what can be fixed is a warning"),
        pytest.param(Status.NOTICE, "note", "fail", id="what is worth knowing is a note"),
        pytest.param(Status.FIXED, "none", "informational", id="what is fixed is no failure"),
    ],
)
def test_a_status_is_a_level(status: Status, level: str, kind: str) -> None:
    located = Located("GPU101", "m", status, Place(1, 1, 1, 2))
    [result] = _run(Report((FileResult("a", text="ab", located=(located,)),)))["results"]
    assert (result["level"], result["kind"]) == (level, kind)


def _spliced(text: str, replacements: list[dict[str, Any]]) -> str:
    lines = text.split("\n")

    def index(line: int, column: int) -> int:
        return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1

    for each in reversed(replacements):
        region = each["deletedRegion"]
        start = index(region["startLine"], region["startColumn"])
        end = index(region["endLine"], region["endColumn"])
        text = text[:start] + each.get("insertedContent", {"text": ""})["text"] + text[end:]
    return text


def test_an_editor_that_applies_all_fixes_has_the_new_text() -> None:
    report = report_samples.everything()
    results = _run(report)["results"]
    for file in report.results:
        fixes = [
            fix
            for each in results
            if unquote(_artifact(each)["uri"]) == file.path
            for fix in each.get("fixes", ())
        ]
        changes = [change for fix in fixes for change in fix["artifactChanges"]]
        places = sorted((each for change in changes for each in change["replacements"]), key=_begin)
        fixed = any(each.status is Status.FIXED for each in file.located)
        assert bool(fixes) == (file.new_text is not None and not fixed)
        if fixes:
            assert _spliced(file.text, places) == file.new_text


def _begin(replacement: dict[str, Any]) -> tuple[int, int]:
    region = replacement["deletedRegion"]
    return region["startLine"], region["startColumn"]


def _artifact(result: dict[str, Any]) -> dict[str, str]:
    artifact: dict[str, str] = result["locations"][0]["physicalLocation"]["artifactLocation"]
    return artifact


def test_a_chart_has_its_true_line() -> None:
    [result] = [
        each
        for each in _run(report_samples.everything())["results"]
        if "charts/" in _artifact(each)["uri"] and each["ruleId"] == "GPU101"
    ]
    region = result["locations"][0]["physicalLocation"]["region"]
    line = report_samples.CHART.split("\n")[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == report_samples.LEGACY


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(
            "./a b/c.yaml", {"uri": "a%20b/c.yaml", "uriBaseId": "%SRCROOT%"}, id="relative"
        ),
        pytest.param("/etc/a b.yaml", {"uri": "file:///etc/a%20b.yaml"}, id="elsewhere"),
        pytest.param("-", {"uri": "-", "uriBaseId": "%SRCROOT%"}, id="standard input"),
    ],
)
def test_where_a_file_is(path: str, expected: dict[str, str]) -> None:
    located = Located("GPU101", "m", Status.MANUAL, Place(1, 1, 1, 1))
    [result] = _run(Report((FileResult(path, located=(located,)),)))["results"]
    assert _artifact(result) == expected


def _fingerprints(text: str, *words: str, code: str = "GPU101") -> list[str]:
    located = tuple(
        Located(code, "m", Status.MANUAL, report_samples.place(text, each)) for each in words
    )
    run = _run(Report((FileResult("a.yaml", text=text, located=located),)))
    return [next(iter(each["partialFingerprints"].values())) for each in run["results"]]


def test_a_fingerprint_stays_when_lines_move() -> None:
    before = _fingerprints("kind: Pod\n  gpu: 1\n", "gpu")
    assert before == _fingerprints("# more\n\nkind: Pod\nother: 2\n    gpu:  1\n", "gpu")


def test_a_fingerprint_is_of_one_finding() -> None:
    text = "a: 1\nb: 2\na: 1\n"
    prints = _fingerprints(text, "a", "b", "a") + _fingerprints(text, "a", code="GPU102")
    assert len(set(prints)) == len(prints)


def test_what_was_not_read_is_told_beside_the_results() -> None:
    [invocation] = _run(report_samples.everything())["invocations"]
    assert invocation["executionSuccessful"] is False
    levels = [each["level"] for each in invocation["toolExecutionNotifications"]]
    assert sorted(levels) == ["error", "warning", "warning", "warning"]
    assert _run(report_samples.empty())["invocations"][0]["executionSuccessful"] is True


def test_a_skipped_part_of_a_file_that_was_read_is_no_failed_run() -> None:
    report = report_samples.everything()
    read = replace(report, results=report.results[1:])
    assert _run(read)["invocations"][0]["executionSuccessful"] is True
