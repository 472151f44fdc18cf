"""Amounts of a chart are renamed only where its templates would give each pod the same GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.chart_flows import (
    CHECKSUMS,
    COMBINED,
    ENDING,
    KEPT,
    LOOKING,
    NEW,
    OLD,
    UNSURE,
    helper,
    of,
    pod,
)
from webhook.cli.workers import judge
from webhook.files.results import Plan, Status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects.chart_flows import Files
    from webhook.files.results import FileResult

CHART = "apiVersion: v2\nname: c\nversion: 0.1.0\n"


def looked_at(folder: Path, files: Files) -> dict[str, FileResult]:
    whole = {"Chart.yaml": CHART, **files}
    for name, text in whole.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return {name: judge(str(folder / name), Plan()).result for name in files}


def assert_all_wait(results: dict[str, FileResult], *said: str) -> None:
    for each in results.values():
        assert (each.new_text or each.text).count(OLD) == each.text.count(OLD)
    manual = [
        located.message for each in results.values() for located in each.located
        if located.status is Status.MANUAL
    ]  # fmt: skip
    assert manual
    for text in said:
        assert text in " ".join(manual)


@pytest.mark.parametrize("files", COMBINED.values(), ids=COMBINED)
def test_amounts_wait_where_templates_put_unlike_ones_together(
    files: Files, tmp_path: Path
) -> None:
    assert_all_wait(looked_at(tmp_path, files), "may put amounts of several places together")


@pytest.mark.parametrize(("files", "function"), (LOOKING | ENDING).values(), ids=LOOKING | ENDING)
def test_amounts_wait_where_templates_look_at_names(
    files: Files, function: str, tmp_path: Path
) -> None:
    assert_all_wait(looked_at(tmp_path, files), f", {function}) looks at names of resources")


@pytest.mark.parametrize(("files", "said"), UNSURE.values(), ids=UNSURE)
def test_amounts_wait_where_not_only_resources_of_containers_get_them(
    files: Files, said: str, tmp_path: Path
) -> None:
    assert_all_wait(looked_at(tmp_path, files), "(line ", said)


@pytest.mark.parametrize("files", (KEPT | CHECKSUMS).values(), ids=KEPT | CHECKSUMS)
def test_amounts_are_renamed_where_templates_keep_them(files: Files, tmp_path: Path) -> None:
    results = looked_at(tmp_path, files)
    for each in results.values():
        assert not [found.message for found in each.located if found.status is Status.MANUAL]
        assert OLD not in (each.new_text or each.text)
    assert any(NEW in (each.new_text or "") for each in results.values())


def test_amounts_wait_where_helpers_give_values_on_too_often(tmp_path: Path) -> None:
    def call(number: int, given: str) -> str:
        return f'{{{{- include "h{number}" (dict "v{number}" {given}) }}}}'

    links = [helper(call(n, f".v{n + 1}"), f"h{n + 1}") for n in range(20)]
    files = of(pod(call(20, ".Values.resources")), h="".join(links))
    assert_all_wait(looked_at(tmp_path, files), "give values to others too often")
