"""One report that shows everything, in each format. `--update-golden` writes the files anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from tests.reports import report_samples
from tests.reports.report_strategies import FEW
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook import __version__
from webhook.reports.formats import REPORTS

if TYPE_CHECKING:
    from webhook.files.results import Report

_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff\uffff]")
GOLDEN = Path(__file__).with_name("reports")
ENDINGS = {
    "text": "txt",
    "wide": "wide.txt",
    "json": "json",
    "yaml": "yaml",
    "markdown": "md",
    "sarif": "sarif",
    "junit": "xml",
    "github": "github.txt",
    "html": "html",
}


def _kept(form: str, text: str) -> str:
    """Leave out what other tests look at and every new rule or style would change."""
    if form == "sarif":
        log: dict[str, Any] = json.loads(text)
        del log["runs"][0]["tool"]["driver"]["rules"]
        for result in log["runs"][0]["results"]:
            del result["ruleIndex"]
        text = json.dumps(log, indent=1, ensure_ascii=False) + "\n"
    if form == "html":
        begin, end = text.index('<div id="folders">'), text.index('<div id="rules"')
        text = text[begin:end].replace("<section", "\n<section").replace("<details", "\n<details")
        text = text.replace("<tr", "\n<tr")
    return text.replace(__version__, "VERSION")


def test_each_format_has_a_golden_file() -> None:
    assert set(ENDINGS) == set(REPORTS)


@pytest.mark.parametrize("form", REPORTS)
def test_a_report_that_shows_everything(form: str, request: pytest.FixtureRequest) -> None:
    file = GOLDEN / f"everything.{ENDINGS[form]}"
    text = _kept(form, REPORTS[form](report_samples.everything()))
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, newline="")
    assert file.read_bytes().decode() == text, f"{file} is stale: pytest --update-golden"


@pytest.mark.parametrize("form", REPORTS)
def test_a_report_is_the_same_each_time_and_can_be_written(form: str) -> None:
    one, other = (REPORTS[form](report_samples.hostile()) for _ in range(2))
    assert one == other
    assert one.encode().decode() == one
    assert one.endswith("\n")


@pytest.mark.parametrize("form", REPORTS)
def test_an_empty_report_says_so(form: str) -> None:
    said = REPORTS[form](report_samples.empty())
    assert {
        "json": '"findings": []' not in said and '"files": 42' in said,
        "yaml": "files: 42" in said,
        "sarif": '"results": []' in said,
    }.get(form, "o findings in 42 files" in said)


@FEW
@given(report=DRAWN)
def test_whatever_the_texts_hold_no_control_character_comes_out(report: Report) -> None:
    for form in set(REPORTS) - {"json", "yaml", "sarif"}:  # they have escapes of their own
        said = REPORTS[form](report)
        assert not _CONTROLS.search(said), form
