"""Each case of tests/corpus down road 1. `pytest tests/test_corpus.py --update-golden` rewrites."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING

import jsonpatch
import pytest

from tests.cases import CORPUS, GIVEN, OUTPUTS, cases

if TYPE_CHECKING:
    from tests.cases import Case

CASES = cases()
every_case = pytest.mark.parametrize("case", CASES, ids=map(str, CASES))


@every_case
def test_golden(case: Case, *, update_golden: bool) -> None:
    for file, text in case.outputs().items():
        if update_golden:
            file.write_text(text)
        assert file.read_text() == text, f"{file} is stale: run pytest with --update-golden"


@every_case
def test_patch_applies_and_a_second_run_finds_nothing_to_do(case: Case) -> None:
    before = case.object()
    obj = copy.deepcopy(before)
    verdict = case.judge(obj)
    assert verdict.failed == ()
    assert jsonpatch.apply_patch(before, verdict.patch) == obj
    assert case.judge(obj).patch == []


def test_no_golden_file_has_lost_its_case() -> None:
    known = {case.beside(ending) for case in CASES for ending in (".yaml", *OUTPUTS, *GIVEN)}
    assert {file for file in CORPUS.rglob("*") if file.is_file()} <= known


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    wanted: bool = request.config.getoption("--update-golden")
    if wanted and os.environ.get("CI"):
        pytest.fail("CI must see what is committed: rewrite the golden files at home")
    return wanted
