"""The same rules, the same result: what road 2 writes is what road 1 would make of the object."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cases import cases
from tests.engine import run
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.evaluation.workloads import around, objects, template_at, templates_of
from webhook.files import search_words
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.file_objects import context
from webhook.formats.migrate import migrate_text
from webhook.rules import (
    GUARD,
    POLICY,
    RULES,
    affinity_annotation,
    legacy_resource,
    model_label,
    tolerations_annotation,
)
from webhook.yamlpatch import documents
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from tests.cases import Case
    from webhook.files.results import FileResult

CASES = [case for case in cases() if case.rule not in {rule.NAME for rule in GUARD}]
every_case = pytest.mark.parametrize("case", CASES, ids=map(str, CASES))

SHARED = Path(__file__).parents[3] / "shared" / "corpus"
ON_PODS = tuple(rule.CODE for rule in (*RULES, *POLICY))


# What the webhook chooses for a pod, its author chooses in a file: see test_what_waits.py.
CHOOSING = tuple(
    rule.CODE
    for rule in (legacy_resource, model_label, affinity_annotation, tolerations_annotation)
)


@cache
def plan(case: Case, codes: tuple[str, ...] = ()) -> Plan:
    cx = case.context(case.object())
    settings = replace(cx.settings, scope="all-legacy", unsafe=CHOOSING)
    return Plan(settings, cx.inventory, codes, unsafe=cx.unsafe)


def migrated(source: Source, asked: Plan) -> FileResult:
    """What road 2 says, once its new text was held against the replacements of its findings."""
    result = migrate_text(source, asked)
    assert not any("not done here" in each.message for each in result.located)
    return result


def data_of(text: str, *, json: bool = False) -> list[Any]:
    stream = documents.read(text, json=json)
    return [document.data for document in stream.documents]


@every_case
def test_road_2_writes_what_road_1_patches(case: Case) -> None:
    source = Source.of(str(case.file), case.file.read_bytes())
    if case.is_on_manifest:
        asked, wanted = plan(case), case.object()
        case.judge(wanted)
        golden = yaml.safe_load(case.beside(".fixed.yaml").read_text())
        assert is_same(wanted, golden)
    else:
        asked, wanted = plan(case, ON_PODS), case.object()
        cx = context(wanted, asked)
        at = template_at(wanted)
        assert at is not None
        run((*RULES, *POLICY), wanted, cx if not at else around(cx, wanted), at)
    result = migrated(source, asked)
    text = source.text if result.new_text is None else result.new_text
    assert is_same(data_of(text), [wanted])


@every_case
def test_a_second_run_changes_nothing(case: Case) -> None:
    source = Source.of(str(case.file), case.file.read_bytes())
    once = migrated(source, plan(case))
    if once.new_text is not None:
        again = migrate_text(Source.of_text(source.path, once.new_text), plan(case))
        assert again.new_text is None
        assert not [each for each in again.located if each.status is Status.FIXABLE]


def test_goldens_of_the_narrow_scope_are_mostly_those_of_the_wide_one() -> None:
    """So that road 2 is held against files that were looked at, too."""
    same = 0
    for case in CASES:
        source = Source.of(str(case.file), case.file.read_bytes())
        result = migrated(source, plan(case, () if case.is_on_manifest else ON_PODS))
        text = source.text if result.new_text is None else result.new_text
        golden = yaml.safe_load(case.beside(".fixed.yaml").read_text())
        same += is_same(data_of(text), [golden])
    assert same >= len(CASES) * 3 // 4


@every_case
def test_a_file_that_is_to_change_holds_one_of_the_words(case: Case) -> None:
    asked = plan(case)
    result = migrated(Source.of(str(case.file), case.file.read_bytes()), asked)
    if result.new_text is not None and case.rule != "kind-case":  # no word for all kinds there are
        raw = case.file.read_bytes()
        words = search_words.words(asked.settings)
        assert any(word in raw for word in words), words


def shared_files() -> list[Path]:
    found = [*SHARED.glob("files/*"), *SHARED.glob("guides/*")] if SHARED.is_dir() else []
    return sorted(file for file in found if file.suffix in {".yaml", ".yml", ".json"})


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared corpus is not here")
def test_the_shared_corpus_is_the_same_down_both_roads() -> None:
    compared = edited = 0
    for file in shared_files():
        source = Source.of(str(file), file.read_bytes())
        if source.kind not in {"yaml", "json"}:
            continue
        is_json = source.kind == "json"
        result = migrated(source, Plan(codes=ON_PODS))
        wanted = data_of(source.text, json=is_json)
        for document in wanted:
            for _, obj in objects(document):
                _down_road_1(obj)
        text = source.text if result.new_text is None else result.new_text
        assert is_same(data_of(text, json=is_json), wanted), file.name
        compared, edited = compared + 1, edited + (result.new_text is not None)
    assert compared > 80
    assert edited > 40


def _down_road_1(obj: dict[str, Any]) -> None:
    cx = Context(Settings(scope="all-legacy"))
    for at in templates_of(obj, cx.settings):
        run((*RULES, *POLICY), obj, cx if not at else around(cx, obj), at)
