"""Tests of helm-unittest give a chart no values: they are changed as a whole, or reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.test_values import MADE, NEW, OLD, assert_all_wait, limit, looked_at, pod
from tests.projects.test_values import resources as given
from webhook.files.results import Status

if TYPE_CHECKING:
    from pathlib import Path

SUITE = "suite: p\ntests:\n- it: works\n  set:\n    resources: {{limits: {{{}: 2}}}}\n  asserts:\n"
PATH = '  - equal:\n      path: spec.containers[0].resources.limits["{}"]\n      value: 2\n'
OTHER = "  - isKind: {of: Pod}\n"
CHART = {"templates/p.yaml": pod(MADE), "values.yaml": given(1)}
NAMES = ["tests/p_test.yaml", "tests/gpu/p_test.yml", "tests/values_test.yaml"]


@pytest.mark.parametrize("name", NAMES)
def test_a_test_that_asks_for_the_legacy_name_is_reported(name: str, tmp_path: Path) -> None:
    results = looked_at(tmp_path, {**CHART, name: (SUITE + PATH).format(OLD, OLD)})
    assert results["values.yaml"].new_text == given(1, name=NEW)
    assert results[name].new_text is None
    said = [each.message for each in results[name].located if each.status is Status.MANUAL]
    assert f"the legacy name stays in {name.rpartition('/')[2]} (line 8)" in said[0]
    assert "change the test as a whole" in said[0]


def test_a_test_that_only_sets_amounts_is_migrated(tmp_path: Path) -> None:
    name = NAMES[0]
    results = looked_at(tmp_path, {**CHART, name: SUITE.format(OLD) + OTHER})
    assert results[name].new_text == SUITE.format(NEW) + OTHER
    assert results["values.yaml"].new_text == given(1, name=NEW)


def test_a_test_waits_with_its_chart(tmp_path: Path) -> None:
    read = limit(f'{{{{ index .Values.resources.limits "{OLD}" }}}}')
    test = {NAMES[0]: SUITE.format(OLD) + OTHER}
    assert_all_wait(tmp_path, {**CHART, "templates/p.yaml": read, **test}, "templates/p.yaml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("tests/gpu_test.yaml", f"names: [{OLD}]\n", id="values of such a name"),
        pytest.param("tests/p.yaml", (SUITE + PATH).format(OLD, OLD), id="another name"),
    ],
)
def test_other_files_of_a_chart_are_values(name: str, text: str, tmp_path: Path) -> None:
    assert_all_wait(tmp_path, {**CHART, name: text}, f"the legacy name stays in {name}")


def test_a_fraction_in_a_test_holds_nothing(tmp_path: Path) -> None:
    test = SUITE.replace("resources: {{limits: {{{}: 2}}}}", "gpu: 0.5") + OTHER
    files = {"templates/p.yaml": limit("{{ .Values.gpu }}"), "values.yaml": "gpu: 1\n"}
    results = looked_at(tmp_path, {**files, NAMES[0]: test})
    assert NEW in (results["templates/p.yaml"].new_text or "")
