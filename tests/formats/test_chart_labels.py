"""Selectors and labels of charts: no finding on what is right, and no copy that is another text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.formats.chart_labels import (
    CHANGING,
    CHANGING_VARIABLES,
    COPIED,
    MODERN,
    UNCOPIED,
    UNDER_CONDITIONS,
    legacy,
)
from webhook.cli.main import main
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult


def migrated(text: str) -> FileResult:
    return migrate_text(Source.of_text("templates/x.yaml", text), Plan())


@pytest.mark.parametrize("text", MODERN.values(), ids=MODERN)
def test_nothing_is_said_of_a_chart_of_today(text: str) -> None:
    result = migrated(text)

    assert result.located == ()
    assert result.skipped == ()
    assert result.new_text is None


@pytest.mark.parametrize("command", [["scan"], ["migrate", "--check"]], ids=" ".join)
def test_a_folder_of_charts_of_today_is_clean(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, text in enumerate(MODERN.values()):
        templates = tmp_path / f"chart-{number}" / "templates"
        templates.mkdir(parents=True)
        (templates / "x.yaml").write_text(text)

    assert main([*command, "-R", "-f", str(tmp_path)]) == 0
    assert "GPU" not in capsys.readouterr().out


WRONG = {
    "another word": ("app: a", "app: b"),
    "a name that the labels do not have": ("app: x\n      b: c", "app: x"),
    "in quotes": ('app: "a"', "app: 'b'"),
}


@pytest.mark.parametrize(("selector", "labels"), WRONG.values(), ids=WRONG)
def test_a_selector_that_is_wrong_for_all_to_see_is_told(selector: str, labels: str) -> None:
    """With all of both in sight there is no doubt, whatever else the template makes."""
    text = (
        MODERN["a word and an action"]
        .replace("      app: x\n", f"      {selector}\n")
        .replace("        app: {{ .Chart.Name }}\n", f"        {labels}\n")
    )

    assert [each.code for each in migrated(text).located] == ["GPU121"]


def test_a_template_without_labels_is_told() -> None:
    text = MODERN["a word and an action"]
    text = text.replace("    metadata:\n      labels:\n        app: {{ .Chart.Name }}\n", "")

    assert [each.code for each in migrated(text).located] == ["GPU121"]


def test_a_selector_that_is_nowhere_is_told_where_the_labels_are_made() -> None:
    text = (
        MODERN["helm create"]
        .replace("  selector:\n    matchLabels:\n", "")
        .replace('      {{- include "x.selectorLabels" . | nindent 6 }}\n', "")
    )

    (told,) = migrated(text).located
    assert (told.code, told.status) == ("GPU121", Status.MANUAL)
    assert "the template makes the labels" in told.message


@pytest.mark.parametrize("labels", COPIED.values(), ids=COPIED)
def test_labels_are_copied_as_they_are_written(labels: str) -> None:
    result = migrated(legacy(labels))

    assert result.new_text is not None
    assert "apiVersion: apps/v1\n" in result.new_text
    assert "matchLabels:" in result.new_text
    assert migrated(result.new_text).new_text is None


@pytest.mark.parametrize("labels", UNCOPIED.values(), ids=UNCOPIED)
def test_labels_of_which_a_part_is_made_are_not_copied(labels: str) -> None:
    """A selector of some of them could select the pods of others."""
    text = legacy(labels)
    result = migrated(text)

    assert result.new_text == text.replace("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")
    told = {each.code: each for each in result.located}
    assert told["GPU120"].status is told["GPU121"].status is Status.MANUAL
    assert "not in sight" in told["GPU120"].message


def test_a_version_stays_where_the_selector_is_in_the_style_of_old() -> None:
    text = legacy("        app: {{ .Values.name }}\n").replace(
        "  template:\n", "  selector:\n    app: {{ .Values.name }}\n  template:\n"
    )

    assert "extensions/v1beta1" in (migrated(text).new_text or text)


def assert_version_is_held(text: str, why: str) -> None:
    result = migrated(text)

    assert "apiVersion: extensions/v1beta1\n" in (result.new_text or text)
    told = {each.code: each for each in result.located}
    assert told["GPU120"].status is Status.MANUAL
    assert why in told["GPU120"].message


@pytest.mark.parametrize("labels", CHANGING.values(), ids=CHANGING)
def test_labels_that_may_change_are_no_selector(labels: str) -> None:
    assert_version_is_held(legacy(labels), "may differ at each rendering")


@pytest.mark.parametrize("text", CHANGING_VARIABLES.values(), ids=CHANGING_VARIABLES)
def test_labels_by_a_variable_that_may_change_are_no_selector(text: str) -> None:
    assert_version_is_held(text, "may differ at each rendering")


@pytest.mark.parametrize("name", ["$n", "$n | quote"])
def test_labels_by_a_variable_that_stays_are_copied(name: str) -> None:
    text = '{{- $m := .Values.name }}\n{{- $n := printf "%s-x" $m }}\n'
    text += legacy(f"        app: {{{{ {name} }}}}\n")

    assert "apiVersion: apps/v1\n" in (migrated(text).new_text or "")


def test_a_variable_that_is_first_set_below_the_selector_is_not_copied() -> None:
    text = legacy("        app: {{ $n }}\n")
    text = text.replace(
        "    metadata:\n      labels:", '    {{- $n := "a" }}\n    metadata:\n      labels:'
    )

    assert_version_is_held(text, "may differ at each rendering")


@pytest.mark.parametrize("text", UNDER_CONDITIONS.values(), ids=UNDER_CONDITIONS)
def test_a_version_that_needs_a_selector_stays_where_some_renderings_have_none(text: str) -> None:
    assert_version_is_held(text, "")


def test_a_selector_under_the_condition_of_its_version_is_always_there() -> None:
    selector = "  selector: {matchLabels: {app: x}}\n  template:\n"
    text = legacy("        app: x\n").replace("  template:\n", selector)

    both = f"{{{{- if .Values.gpus }}}}\n{text}{{{{- end }}}}\n"
    assert "apiVersion: apps/v1\n" in (migrated(both).new_text or "")
