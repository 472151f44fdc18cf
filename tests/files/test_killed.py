"""`migrate --write` killed before any system call: every file is the old text or the new one.

A moment is a number of calls, not a time: it is the same on a busy machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest

from tests.files.trees import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.programs

DRIVER = Path(__file__).with_name("killed_driver.py")
MOMENTS = 60  # system calls: some files' worth
_FILES = 12
_TEMPORARY = ".gpu-webhook~"
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
    """Every fourth file is long enough to be written in many pieces."""
    more = f"# {'-' * 60} {number}\n" * 200 if number % 4 == 0 else ""
    return (_OLD.format(number=number) + more).encode()


@dataclass
class Tree:
    """Files with their old and new texts."""

    root: Path
    old: dict[str, bytes] = field(init=False)
    new: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        numbers = {f"{n % 2}/{n}.yaml": n for n in range(_FILES)}
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

    def run(self, folder: Path, calls: int) -> str:
        """Let one run at the folder that is killed before this call; give how it ended."""
        self.told.write(f"{folder} {calls}\n")
        self.told.flush()
        return self.heard.readline().strip()


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


def test_killed_before_any_call_every_file_is_old_or_new(tmp_path: Path) -> None:
    files = Tree(tmp_path / "tree")
    done: set[str] = set()
    kept: set[int] = set()
    with driver(tmp_path / "warm") as runs:
        for moment in range(MOMENTS):
            if len(done) > _FILES // 3:
                files.reset()
                done = set()
            assert runs.run(files.root, moment) == "killed", moment
            now = files.written()
            assert done <= now, moment
            assert len(now) < _FILES, moment
            left = files.others()
            assert {written_for(each) for each in left} <= files.old.keys() - now, (
                "what a killed run leaves goes when its file is written"
            )
            done, kept = now, kept | {(files.root / each).stat().st_size for each in left}
        assert runs.run(files.root, -1) == "ended"
        assert files.written() == set(files.old)
        assert files.others() == set()
    assert kept > {0, 4096}, "texts that were written in part"


def test_killed_with_backups_each_new_text_has_its_whole_old_one_beside_it(tmp_path: Path) -> None:
    files = Tree(tmp_path / "tree")
    done: set[str] = set()
    with driver(tmp_path / "warm", "--backup") as runs:
        for moment in range(MOMENTS):
            assert runs.run(files.root, moment) == "killed", moment
            done, now = files.written(), files.others()
            kept = {each.removesuffix(".orig") for each in now if each.endswith(".orig")}
            assert done <= kept, moment
            for name in kept:
                assert (files.root / f"{name}.orig").read_bytes() == files.old[name], moment
            if len(done) > _FILES // 3:
                files.reset()
                for each in now:
                    (files.root / each).unlink()
        assert runs.run(files.root, -1) == "ended"
        assert files.written() == set(files.old)
        assert files.others() == {f"{name}.orig" for name in files.old}


def test_a_careless_writer_would_be_noticed(tmp_path: Path) -> None:
    files = Tree(tmp_path / "tree")
    with driver(tmp_path / "warm", "--in-place") as runs:
        for moment in range(MOMENTS):
            assert runs.run(files.root, moment) == "killed"
            try:
                files.written()
            except AssertionError:
                return
            files.reset()
    pytest.fail("no file was torn")
