"""JUnit: XML that parses whatever the texts hold, with counts that are true."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hypothesis import given

from tests.reports import report_samples
from tests.reports.report_strategies import FEW
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook.files.results import Status
from webhook.reports.escaping import sentence, visible
from webhook.reports.junit import junit

if TYPE_CHECKING:
    from webhook.files.results import Report


def _root(report: Report) -> ET.Element:
    return ET.fromstring(junit(report).encode())  # noqa: S314 - it is our own


@FEW
@given(DRAWN)
def test_it_parses_and_its_counts_are_true(report: Report) -> None:
    root = _root(report)
    for element in (root, *root.iter("testsuite")):
        assert int(element.attrib["tests"]) == len(list(element.iter("testcase")))
        assert int(element.attrib["failures"]) == len(list(element.iter("failure")))
        assert int(element.attrib["errors"]) == len(list(element.iter("error")))
    failures = [each.attrib["message"] for each in root.iter("failure")]
    assert failures == [
        sentence(each.message)
        for result in report.results
        for each in result.located
        if each.status in {Status.FIXABLE, Status.MANUAL}
    ]
    if report.results:
        assert [each.attrib["name"] for each in root] == [visible(r.path) for r in report.results]


def test_a_failure_shows_the_line() -> None:
    failures = [each.text or "" for each in _root(report_samples.everything()).iter("failure")]
    assert any(
        "14 |         alpha.kubernetes.io/nvidia-gpu: 2  # both\n"
        "   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "can be fixed" in each
        for each in failures
    )


def test_what_is_worth_knowing_or_fixed_is_a_case_that_passed() -> None:
    passed = [
        case
        for case in _root(report_samples.everything()).iter("testcase")
        if case.find("system-out") is not None
    ]
    assert len(passed) == 2
    assert all(case.find("failure") is None for case in passed)


def test_no_findings_are_one_case_that_passed() -> None:
    [case] = _root(report_samples.empty()).iter("testcase")
    assert case.attrib["name"] == "no findings in 42 files"
    assert list(case) == []
