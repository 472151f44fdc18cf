"""What `scan` and `migrate` print: --statistics, -q, --color, --select and --ignore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.test_scan import CLEAN, LEGACY, MANUAL, put

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

BARE = LEGACY[: LEGACY.index("  tolerations:")]
GPU101 = "GPU101 container main requests alpha.kubernetes.io/nvidia-gpu, which no node offers; "
LINE = f"a.yaml:11:9: {GPU101}write nvidia.com/gpu: 1\n"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.setenv(name, "")  # so that it is restored
    put(tmp_path, a=LEGACY, b=BARE, clean=CLEAN)


def test_statistics_count_rules(gpu_webhook: Command) -> None:
    told = (
        "2 GPU101 legacy-resource: 2 can be fixed\n"
        "1 GPU201 missing-toleration: 1 can be fixed\n"
        "3 findings in 2 of 3 files: 3 can be fixed\n"
    )
    for command in ("scan", "migrate"):
        done = gpu_webhook(command, "--statistics", ".")
        assert (done.code, done.out) == (2, told)
    assert gpu_webhook("scan", "--statistics", "clean.yaml").out == "no findings in 1 file\n"


@pytest.mark.parametrize(
    "words", [("-o", "json"), ("--diff",), ("-q",)], ids=["a format", "the diff", "quiet"]
)
def test_statistics_are_no_other_output(words: tuple[str, ...], gpu_webhook: Command) -> None:
    done = gpu_webhook("scan", "--statistics", *words, ".")
    assert (done.code, done.out) == (1, "")
    assert "--statistics prints numbers" in done.err


@pytest.mark.parametrize(
    ("words", "out"),
    [
        pytest.param(("scan", "-q", "a.yaml"), LINE, id="a line for each finding"),
        pytest.param(("scan", "-q", "clean.yaml"), "", id="nothing where nothing is found"),
        pytest.param(("migrate", "-q", "-w", "a.yaml"), LINE, id="what was written"),
        pytest.param(("migrate", "-q", "--check", "a.yaml"), "a.yaml\n", id="names alone"),
        pytest.param(
            ("scan", "-q", "nowhere"), "nowhere: error: is not there\n", id="an error is no noise"
        ),
    ],
)
def test_quiet_leaves_out_lines_and_summaries(
    words: tuple[str, ...], out: str, gpu_webhook: Command
) -> None:
    done = gpu_webhook(*words)
    assert (done.out, done.err) == (out, "")


def test_quiet_still_says_what_a_diff_does_not_show(gpu_webhook: Command, tmp_path: Path) -> None:
    put(tmp_path, m=MANUAL)
    done = gpu_webhook("migrate", "-q", "m.yaml")
    assert (done.code, done.out) == (3, "")
    assert done.err
    assert all(line.startswith("m.yaml:") for line in done.err.splitlines())


def test_each_file_with_several_findings_has_a_summary(gpu_webhook: Command) -> None:
    lines = gpu_webhook("scan", ".").out.splitlines()
    assert "b.yaml: 2 can be fixed" in lines
    assert not any(line.startswith("a.yaml: ") for line in lines)
    assert "b.yaml: 2 can be fixed" not in gpu_webhook("scan", "b.yaml").out.splitlines()


@pytest.mark.parametrize(
    ("words", "environment", "coloured"),
    [
        pytest.param((), {}, False, id="not in a pipe"),
        pytest.param(("--color=always",), {}, True, id="always"),
        pytest.param(("--color=always",), {"NO_COLOR": "1"}, True, id="the flag wins"),
        pytest.param(("--color=never",), {"FORCE_COLOR": "1"}, False, id="never"),
        pytest.param(("--color=auto",), {"FORCE_COLOR": "1"}, True, id="auto, and forced"),
        pytest.param((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, id="NO_COLOR, nor bold"),
    ],
)
def test_colours(
    words: tuple[str, ...],
    environment: dict[str, str],
    *,
    coloured: bool,
    gpu_webhook: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for command in ("scan", "migrate"):
        assert ("\x1b[" in gpu_webhook(command, *words, "a.yaml").out) == coloured


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        pytest.param(("--select", "GPU101"), {"GPU101"}, id="select, as in linters"),
        pytest.param(("--select=GPU101,missing-toleration",), {"GPU101", "GPU201"}, id="several"),
        pytest.param(("--ignore=GPU101,GPU201",), set(), id="ignore"),
        pytest.param(("--select=GPU101", "--ignore=GPU101"), set(), id="ignore wins"),
    ],
)
def test_rules_are_chosen_by_select_and_ignore(
    words: tuple[str, ...], codes: set[str], gpu_webhook: Command
) -> None:
    lines = gpu_webhook("scan", "-q", *words, "b.yaml").out.splitlines()
    assert {line.split()[1] for line in lines} == codes
