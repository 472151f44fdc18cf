"""What holds for every rule, whoever adds one."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.cases import MadeRule, cases
from tests.laws import rule_pages
from webhook import rules as room
from webhook.admission.response import LONGEST_WARNING
from webhook.evaluation.workloads import templates_of
from webhook.kube.labels import LONGEST_VALUE
from webhook.kube.pod import Pod
from webhook.rules import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tests.cases import Case
    from webhook.core.findings import Finding
    from webhook.core.rule import Context, Named

TESTS = Path(__file__).parents[1]
CASES = cases()
every_rule = pytest.mark.parametrize("rule", ALL, ids=[rule.NAME for rule in ALL])


@every_rule
def test_a_rule_is_a_manual(rule: Named) -> None:
    paragraphs = (rule.__doc__ or "").strip().split("\n\n")
    assert re.fullmatch(r"Finds .+\.", paragraphs[0]), "the first line completes `Finds ...`"
    words = [
        text.partition(":")[0] for text in paragraphs if re.match(r"(Why|Does|Safety): ", text)
    ]
    assert words == ["Why", "Does", "Safety"]


@every_rule
def test_a_rule_has_a_code_and_the_name_of_its_module(rule: Named) -> None:
    assert re.fullmatch(r"GPU[123]\d\d", rule.CODE)
    module = cast("ModuleType", rule).__name__.rpartition(".")[2]
    assert module.replace("_", "-") == rule.NAME


def test_codes_and_names_are_given_once() -> None:
    assert len({rule.CODE for rule in ALL}) == len(ALL)
    assert len({rule.NAME for rule in ALL}) == len(ALL)


def test_the_rules_with_unsafe_edits_are_those_that_have_some() -> None:
    texts = {rule.CODE: inspect.getsource(cast("ModuleType", rule)) for rule in ALL}
    said = {
        code
        for code, text in texts.items()
        if re.search(r"Safety\.(?:UNSAFE|CHOICE)|unsafe\(", text)
    }
    assert {rule.CODE for rule in ALL if rule.FACTS.unsafe} == said


def test_every_module_of_the_room_is_in_the_list() -> None:
    modules = {file.stem for file in Path(room.__path__[0]).glob("*.py")} - {"__init__"}
    assert modules == {rule.NAME.replace("-", "_") for rule in ALL}


@every_rule
def test_a_rule_has_a_table_and_a_case_that_shows_it(rule: Named) -> None:
    table = TESTS / "rules" / f"test_{rule.NAME.replace('-', '_')}.py"
    assert "@pytest.mark.parametrize" in table.read_text()
    case = next(case for case in CASES if str(case) == f"{rule.NAME}/example")
    found = case.judge(case.object()).findings
    assert rule.CODE in {each.code for each in found}


def test_the_corpus_has_a_folder_for_rules_only() -> None:
    assert {case.rule for case in CASES} == {rule.NAME for rule in ALL}


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_rule_speaks_only_for_itself(case: Case) -> None:
    strangers: list[tuple[str, str]] = []

    def watched(rule: Any) -> MadeRule:
        def check(subject: Any, cx: Context) -> Iterator[Finding]:
            for finding in rule.check(subject, cx):
                if finding.code != rule.CODE:
                    strangers.append((rule.NAME, finding.code))
                yield finding

        return MadeRule(NAME=rule.NAME, CODE=rule.CODE, FACTS=rule.FACTS, check=check)

    verdict = case.judge(case.object(), watched)
    assert verdict.findings
    assert strangers == []


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_warning_fits_also_where_names_are_as_long_as_they_may_be(case: Case) -> None:
    obj = case.object()
    for at in templates_of(obj, case.context(obj).settings):
        for position, container in enumerate(Pod(obj, at).containers):
            container.raw["name"] = f"{position:x<{LONGEST_VALUE}}"
    for finding in case.judge(obj).findings:
        assert len(f"{finding.code}: {finding.message}") <= LONGEST_WARNING
        assert finding.message.isprintable()


@pytest.mark.parametrize("file", rule_pages.pages(), ids=lambda file: file.name)
def test_pages_are_fresh(file: Path) -> None:
    stale = f"docs/rules/{file.name} is stale: run `{rule_pages.RENEW}`"
    assert file.exists(), stale
    assert file.read_text() == rule_pages.pages()[file], stale


def test_no_page_has_lost_its_rule() -> None:
    assert set(rule_pages.PAGES.iterdir()) <= set(rule_pages.pages())
