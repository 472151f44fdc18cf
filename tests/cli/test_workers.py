"""Files are judged in several processes: the same comes of it, whatever becomes of the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_scan import CLEAN, LEGACY, MANUAL, put
from webhook.cli.workers import judge_all
from webhook.files.results import Plan

if TYPE_CHECKING:
    from webhook.cli.workers import Judged

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
FILES = 150


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    texts = (LEGACY, MANUAL, CLEAN, f"\ufeff{LEGACY}", "a: [", "a: \xff")
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


def test_there_are_others_for_many_files_only(paths: list[str]) -> None:
    found = judge_all(paths[:80], Plan(), 3)
    assert [bool(active_children()) for _ in found] == [False] * 80
    more = judge_all(paths, Plan(), 3)
    assert max(len(active_children()) for _ in more) == 2
    assert active_children() == []


def test_an_interrupt_is_for_the_one_that_started_the_others(paths: list[str]) -> None:
    """From their first moment: before they can ignore it, they would print a traceback."""
    masks: dict[int, str] = {}
    for _ in judge_all(paths, Plan(), 3):
        for other in active_children():
            status = Path(f"/proc/{other.pid}/status").read_text()
            masks.setdefault(other.pid or 0, status.partition("SigBlk:")[2].split()[0])
    assert len(masks) == 2
    assert all(int(mask, 16) & 1 << signal.SIGINT - 1 for mask in masks.values())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_the_files_of_processes_that_died_are_judged_here(paths: list[str]) -> None:
    alone = [each.result for each in results(paths, 1)]
    found, killed = [], False
    for each in judge_all(paths, Plan(), 3):
        found.append(each.result)
        if not killed and (others := active_children()):
            others[0].kill()
            killed = True
    assert killed
    assert sorted(found, key=lambda each: each.path) == alone


def test_nothing_is_left_of_those_that_nobody_listens_to(paths: list[str]) -> None:
    found = judge_all(paths, Plan(), 3)
    for _ in found:
        if active_children():
            break
    found.close()  # type: ignore[attr-defined]  # a generator
    assert active_children() == []


@pytest.mark.parametrize("files", [8, 12, 14])
def test_a_machine_with_no_room_for_others_goes_without(
    files: int, paths: list[str], tmp_path: Path
) -> None:
    program = Path(sys.executable).with_name("gpu-webhook")
    command = [str(program), "scan", "-o", "json", *paths]
    limited = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    done, free = (
        subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
        for words in (limited, command)
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, free.stdout, free.stderr)


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


def test_a_process_ends_with_the_one_that_started_it(paths: list[str]) -> None:
    program = (
        "import sys, time; from multiprocessing import active_children; "
        "from webhook.cli.workers import judge_all; from webhook.files.results import Plan\n"
        "for _ in judge_all(sys.argv[1:], Plan(), 2):\n"
        "    for each in active_children(): print(each.pid, flush=True); time.sleep(60)"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program, *paths], cwd=ROOT, stdout=subprocess.PIPE, text=True
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
