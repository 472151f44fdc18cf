"""Files are judged in several processes: the same comes of it, whatever becomes of the others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_scan import CLEAN, LEGACY, PERSON, put
from webhook.cli import workers
from webhook.cli.workers import judge_all
from webhook.files.results import Plan

if TYPE_CHECKING:
    from webhook.cli.workers import Judged

ROOT = Path(__file__).parents[2]
FILES = 150


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    texts = (LEGACY, PERSON, CLEAN, f"\ufeff{LEGACY}", "a: [", "a: \xff")
    for number in range(FILES):
        put(tmp_path, **{f"{number:03}": texts[number % len(texts)]})
    (tmp_path / "000.yaml").write_bytes(b"\xff\xfe")
    return [*map(str, sorted(tmp_path.glob("*.yaml"))), str(tmp_path / "gone.yaml")]


def results(paths: list[str], processes: int) -> list[Judged]:
    found = list(judge_all(paths, Plan(), processes))
    return sorted(found, key=lambda each: each.result.path)


def test_several_processes_say_what_one_says(paths: list[str]) -> None:
    alone, together = results(paths, 1), results(paths, 3)
    assert [each.result for each in together] == [each.result for each in alone]
    assert len(together) == FILES + 1
    for mine, theirs in zip(alone, together, strict=True):
        if mine.result.new_text is not None:
            assert mine.source is not None
            assert theirs.source is not None
            assert theirs.source.raw == mine.source.raw


def test_there_are_others_for_many_files_only(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def start(most: int, _: Plan) -> list[object]:
        started.append(most)
        return []

    monkeypatch.setattr(workers, "_start", start)
    list(judge_all(paths[:40], Plan(), 3))
    assert started == []
    list(judge_all(paths, Plan(), 3))
    assert started == [2]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("raise SystemExit(1)", id="it does not start"),
        pytest.param("print('x')", id="it ends in the middle of an answer"),
        pytest.param(
            "import os, webhook.cli.workers as j; j.judge = lambda *_: os._exit(9); j.answer()",
            id="it dies in the middle",
        ),
    ],
)
def test_the_files_of_a_process_that_died_are_judged_here(
    program: str, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [each.result for each in results(paths, 1)]
    monkeypatch.setattr(workers, "_PROGRAM", program)
    assert [each.result for each in results(paths, 3)] == alone


def test_modules_beside_the_manifests_are_not_ours(paths: list[str], tmp_path: Path) -> None:
    """Whoever scans a stranger's repository must not run it."""
    (tmp_path / "webhook").mkdir()
    for name in ("webhook/__init__", "yaml", "pickle", "struct"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n")
    program = Path(sys.executable).with_name("gpu-webhook")
    done = subprocess.run(
        [program, "scan", *map(os.path.basename, paths)],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"147.yaml" in done.stdout
    assert not (tmp_path / "run").exists()


def test_a_process_ends_with_the_one_that_started_it() -> None:
    program = (
        "import time; from webhook.cli.workers import _Other; from webhook.files.results "
        "import Plan; other = _Other(Plan()); print(other._popen.pid, flush=True); time.sleep(60)"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    started = Path("/proc") / starter.stdout.readline().strip()
    assert started.exists()
    starter.kill()
    starter.communicate()
    end = time.monotonic() + 20
    while is_running(started):
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.05)


def is_running(process: Path) -> bool:
    """Whether it is there and is no zombie that nobody has asked for yet."""
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
