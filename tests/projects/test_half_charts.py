"""Where one file of a chart stays as it is, the others change only what is right without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.chart_flows import OLD, WHOLE, of, pod
from tests.projects.half_charts import (
    GOING_ON,
    ITSELF,
    LEFT_OUT,
    LINKED,
    NO_UTF8,
    READ_ONLY,
    SELECTED,
    TEMPLATE,
    WAITING,
    Half,
)
from tests.projects.test_chart_flows import CHART
from webhook.cli.main import main
from webhook.verifying import trial

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, half: Half) -> None:
    """Write the chart, with a sign that is not UTF-8 in the file that stays for that reason."""
    for name, text in {"Chart.yaml": CHART, **half.files}.items():
        raw = text.encode()
        if half.by == NO_UTF8 and name == half.stays:
            raw = "{{/* \xfc */ -}}\n".encode("latin-1") + raw
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)


def migrated(folder: Path, half: Half) -> int:
    """Write the chart and migrate it, without the file that stays; the exit code."""
    written(folder / "c", half)
    names = [str(folder / "c")]
    if half.by == LEFT_OUT:
        names = [str(folder / "c" / each) for each in half.files if each != half.stays]
    elif half.by == LINKED:
        target = folder / "elsewhere"
        (folder / "c" / half.stays).rename(target)
        (folder / "c" / half.stays).symlink_to(target)
    elif half.by == READ_ONLY:
        (folder / "c" / half.stays).chmod(0o444)
    return main(["migrate", "--write", *names])


@pytest.mark.parametrize("half", WAITING.values(), ids=WAITING)
def test_amounts_wait(half: Half, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrated(tmp_path, half) in {1, 3}
    assert half.said in capsys.readouterr().out
    for name, text in half.files.items():
        new = (tmp_path / "c" / name).read_bytes().decode(errors="replace")
        assert new.count(f"{OLD}:") == text.count(f"{OLD}:")


def test_amounts_wait_for_a_template_on_which_this_program_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trial, "tried", lambda *_: 1 / 0)
    half = Half(of(pod(WHOLE, SELECTED)), TEMPLATE, ITSELF)
    assert migrated(tmp_path, half) == 1
    assert f"since {tmp_path}/c/{TEMPLATE} was not checked" in capsys.readouterr().out
    for name, text in half.files.items():
        assert (tmp_path / "c" / name).read_text() == text


@pytest.mark.parametrize("half", GOING_ON.values(), ids=GOING_ON)
def test_the_rest_is_done(half: Half, tmp_path: Path) -> None:
    migrated(tmp_path, half)
    changed = [
        name for name, text in half.files.items() if (tmp_path / "c" / name).read_text() != text
    ]
    assert changed
    assert half.stays not in changed
