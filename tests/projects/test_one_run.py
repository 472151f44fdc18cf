"""What is known of the files of a chart is worked out once in a run, however many they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.projects.chart_flows import OLD, given, pod
from webhook.cli.workers import judge
from webhook.files.results import Plan
from webhook.projects import chart

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _judged(folder: Path, templates: int, plan: Plan) -> None:
    """Migrate all templates of a chart, in which nothing stays to be done."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: a\nversion: 0.1.0\n")
    for number in range(templates):
        (folder / f"templates/{number}.yaml").write_text(pod(given(1), name=f"p{number}"))
    for number in range(templates):
        assert judge(f"{folder}/templates/{number}.yaml", plan).result.new_text is not None


def _calls(name: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note each call of a function of this module."""
    function, calls = getattr(chart, name), list[Any]()

    def noted(about: Any) -> Any:
        calls.append(about)
        return function(about)

    monkeypatch.setattr(chart, name, noted)
    return calls


def test_a_chart_is_listed_as_often_if_it_has_more_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _calls("files", monkeypatch)
    _judged(tmp_path / "few", 3, Plan())
    few = len(calls)
    _judged(tmp_path / "many", 12, Plan())
    assert 0 < few == len(calls) - few


def test_a_file_in_which_nothing_is_left_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _calls("_left", monkeypatch)
    _judged(tmp_path, 12, Plan())
    assert 12 <= len(calls) <= 24


def test_another_run_looks_at_the_files_as_they_are_then(tmp_path: Path) -> None:
    _judged(tmp_path, 2, Plan())
    (tmp_path / "templates/1.yaml").write_text(f'a: {{{{ get .Values.limits "{OLD}" }}}}\n')
    result = judge(f"{tmp_path}/templates/0.yaml", Plan()).result
    assert result.new_text is None
    assert "1.yaml (line 1)" in str([each.message for each in result.located])
