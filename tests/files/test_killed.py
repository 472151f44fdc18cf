"""`migrate --write` killed at random moments: every file is the old text or the new one, whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest
from hypothesis import settings

from tests.files.trees import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER = Path(__file__).with_name("killed_driver.py")
# Kills between the first and the last write; on a busy machine many come too early.
BETWEEN = 100 if settings.get_current_profile_name() == "nightly" else 30
MOST_KILLS = 1_000
_FILES = 500
_TEMPORARY = ".gpu-webhook~"
_LONGEST = 0.1  # seconds of writing until a kill, at first: see there
_OLD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web-{number}
  annotations:
    team: a  # who to ask
    scheduler.alpha.kubernetes.io/nvidiaGPU: '{{}}'
spec:
  containers:
  - name: web
    image: registry.example.com/web:{number}
"""
_HINT = "    scheduler.alpha.kubernetes.io/nvidiaGPU: '{}'\n"


def old_text(number: int) -> bytes:
    """Every tenth file is long enough to be written in many pieces."""
    more = f"# {'-' * 60} {number}\n" * 600 if number % 10 == 0 else ""
    return (_OLD.format(number=number) + more).encode()


@dataclass
class Tree:
    """Files with their old and new texts."""

    root: Path
    old: dict[str, bytes] = field(init=False)
    new: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        numbers = {f"{n // 100:02}/{n:04}.yaml": n for n in range(_FILES)}
        self.old = {name: old_text(number) for name, number in numbers.items()}
        self.new = {name: text.replace(_HINT.encode(), b"") for name, text in self.old.items()}
        self.reset()

    def reset(self) -> None:
        tree(self.root, self.old)

    def written(self) -> set[str]:
        """The files with the new text; fails if one has neither."""
        done = set()
        for name, old in self.old.items():
            text = (self.root / name).read_bytes()
            assert text in {old, self.new[name]}, f"{name} is torn"
            if text != old:
                done.add(name)
        return done

    def others(self) -> set[str]:
        """Files that are none of these."""
        there = {
            str(each.relative_to(self.root)) for each in self.root.rglob("*") if each.is_file()
        }
        return there - self.old.keys()


def written_for(temporary: str) -> str:
    """The file that a temporary file beside it is for."""
    folder, name = os.path.split(temporary)
    assert name.startswith(".")
    assert name.endswith(_TEMPORARY)
    return f"{folder}/{name[1 : -len(_TEMPORARY)]}"


@dataclass
class Driver:
    """The process that starts those that are killed."""

    told: IO[str]
    heard: IO[str]

    def run(self, folder: Path, seconds: float | None = None) -> None:
        """Let one run at the folder, and kill it so many seconds after it began to write."""
        self.told.write(f"{folder}\n")
        self.told.flush()
        pid = int(self.heard.readline())
        said = self.heard.readline()
        if said == "writing\n":
            if seconds is not None:
                time.sleep(seconds)
                # Ours: the driver has not reaped it yet, so that the number is nobody else's.
                os.kill(pid, signal.SIGKILL)
            said = self.heard.readline()
        assert said == "ended\n"


@contextmanager
def driver(folder: Path, *arguments: str) -> Iterator[Driver]:
    tree(folder, {"warm.yaml": old_text(1)})
    with subprocess.Popen(
        [sys.executable, str(DRIVER), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        told, heard = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        told.write(f"{folder}\n")
        told.flush()
        assert heard.readline() == "ready\n"
        yield Driver(told, heard)
        told.close()
        assert process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.nightly
def test_killed_at_random_moments_every_file_is_old_or_new(tmp_path: Path) -> None:
    draw = random.Random()  # noqa: S311  # another time each run: that is what it is about
    files = Tree(tmp_path / "tree")
    between, longest = 0, _LONGEST
    with driver(tmp_path / "warm") as runs:
        done: set[str] = set()
        for _ in range(MOST_KILLS):
            if len(done) > _FILES * 9 // 10:
                files.reset()
                done = set()
            runs.run(files.root, draw.uniform(0, longest))
            now = files.written()
            assert now >= done
            between += len(done) < len(now) < _FILES
            longest *= 1.1 if now == done else 0.98  # a busy machine begins to write later
            done = now
            left = files.others()
            assert {written_for(each) for each in left} <= files.old.keys() - now, (
                "what a killed run leaves goes when its file is written"
            )
            if between == BETWEEN:
                break
        runs.run(files.root)
        assert files.written() == set(files.old)
        assert files.others() == set()
    assert between == BETWEEN, "kills between the first and the last write"


@pytest.mark.slow
def test_a_careless_writer_would_be_noticed(tmp_path: Path) -> None:
    draw = random.Random()  # noqa: S311
    files = Tree(tmp_path / "tree")
    with driver(tmp_path / "warm", "--in-place") as runs:
        for _ in range(MOST_KILLS):
            runs.run(files.root, draw.uniform(_LONGEST / 2, _LONGEST))
            try:
                files.written()
            except AssertionError:
                return
            files.reset()
    pytest.fail("no file was torn")
