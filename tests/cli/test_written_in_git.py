"""`migrate --write` in a git work tree: nothing is overwritten that git could not bring back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.installed import environment
from tests.cli.test_migrate import MIGRATED
from tests.cli.test_scan import CLEAN, LEGACY, put
from webhook.files import work_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Command

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec:
  hard:
    requests.alpha.kubernetes.io/nvidia-gpu: 4
"""
MINE = f"{LEGACY}# mine\n"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    put(tmp_path, a=LEGACY, b=LEGACY, deep__c=LEGACY, clean=CLEAN)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    return tmp_path


def change(tree: Path, text: str = MINE) -> None:
    (tree / "a.yaml").write_text(text)


def stage(tree: Path, text: str = MINE) -> None:
    change(tree, text)
    git(tree, "add", ".")


def stage_and_change(tree: Path) -> None:
    stage(tree)
    change(tree, MINE + "# more\n")


def touch(tree: Path) -> None:
    os.utime(tree / "a.yaml", (1, 1))


def change_and_go_below(tree: Path) -> None:
    (tree / "deep/c.yaml").write_text(MINE)
    os.chdir(tree / "deep")


def add_untracked(tree: Path) -> None:
    put(tree, new=LEGACY)


def break_git(tree: Path) -> None:
    (tree / ".git/index").write_bytes(b"not an index")


def remove_git(tree: Path) -> None:
    for path in sorted((tree / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def make_chart(tree: Path) -> None:
    (tree / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 1.0.0\n")
    git(tree, "add", ".")
    change(tree)


def make_charts_beside(tree: Path) -> None:
    """`deep` uses `used`, in which a file is changed; `b.yaml` is of no chart."""
    (tree / "used").mkdir()
    (tree / "a.yaml").rename(tree / "used" / "a.yaml")
    head = "apiVersion: v2\nname: x\nversion: 1.0.0\n"
    (tree / "used" / "Chart.yaml").write_text(head)
    needs = "dependencies: [{name: x, version: 1.0.0, repository: file://../used}]\n"
    (tree / "deep" / "Chart.yaml").write_text(head + needs)
    git(tree, "add", ".")
    (tree / "used" / "a.yaml").write_text(MINE)


def link_hard(tree: Path) -> None:
    os.link(tree / "a.yaml", tree / "deep/a2.txt")


def commit_executable(tree: Path) -> None:
    (tree / "a.yaml").chmod(0o755)


# What was done in the work tree before; which flags; the exit code; which files stay as they are.
CASES: dict[str, tuple[Callable[[Path], None], tuple[str, ...], int, set[str]]] = {
    "nothing was changed": (lambda _: None, (), 0, set()),
    "an unstaged change": (change, (), 3, {"a.yaml"}),
    "an unstaged change, with --force": (change, ("--force",), 0, set()),
    "a staged change": (stage, (), 0, set()),
    "a staged change with another on top": (stage_and_change, (), 3, {"a.yaml"}),
    "only the time was changed": (touch, (), 0, set()),
    "only a mode was changed": (commit_executable, (), 3, {"a.yaml"}),
    "a run in a subfolder": (change_and_go_below, (), 3, {"c.yaml"}),
    "a file that git does not know": (add_untracked, (), 0, set()),
    "the index cannot be read": (break_git, (), 3, {"a.yaml", "b.yaml", "deep/c.yaml"}),
    "a .git that is none": (remove_git, (), 0, set()),
    "a file of a chart holds the chart": (make_chart, (), 3, {"a.yaml", "b.yaml", "deep/c.yaml"}),
    "a file of a chart holds the chart beside it that uses it": (
        make_charts_beside,
        (),
        3,
        {"used/a.yaml", "deep/c.yaml"},
    ),
    "a hard link": (link_hard, (), 3, {"a.yaml"}),
    "a hard link, with --force": (link_hard, ("--force",), 0, set()),
}


@pytest.mark.parametrize(("before", "flags", "code", "stays"), CASES.values(), ids=CASES)
def test_what_is_written(
    before: Callable[[Path], None],
    flags: tuple[str, ...],
    code: int,
    stays: set[str],
    tree: Path,
    gpu_webhook: Command,
) -> None:
    before(tree)
    was = {path: path.read_text() for path in Path().rglob("*.yaml")}
    done = gpu_webhook("migrate", "-w", *flags, ".")
    kept = {str(path) for path, text in was.items() if path.read_text() == text}
    assert {each for each in kept if not each.endswith(("clean.yaml", "Chart.yaml"))} == stays
    assert (done.code, all(path in done.out for path in stays)) == (code, True)
    assert ("use --force" in done.out) == bool(stays)


WRITES = """\
import sys
from pathlib import Path
from webhook.files import work_tree
file = sys.argv[1]
for number in range(40):
    work_tree.remember({file: f"{file} {number}".encode()})
"""


def test_runs_at_the_same_time_forget_nothing(tree: Path) -> None:
    """Each of them adds to a record that is whole at any time, also if one is killed."""
    files = [str(tree / name) for name in ("a.yaml", "b.yaml", "clean.yaml")]
    runs = [subprocess.Popen([sys.executable, "-c", WRITES, file]) for file in files]
    record = tree / ".git" / "gpu-webhook-written"
    while any(run.poll() is None for run in runs):
        if record.exists():
            lines = record.read_text().splitlines(keepends=True)
            assert {len(line) for line in lines} == {65}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len(record.read_text().split()) == 120
    contents = {file: f"{file} 7".encode() for file in files}
    for file in files:
        Path(file).write_text("changed")
    assert work_tree.unstaged(contents) == {}


def test_what_an_earlier_run_wrote_is_no_change_of_others(tree: Path, gpu_webhook: Command) -> None:
    stage(tree, f"{LEGACY}---\n{QUOTA}")
    assert gpu_webhook("migrate", "-w", "a.yaml").code == 3
    assert gpu_webhook("migrate", "-w", "b.yaml").code == 0
    half = (tree / "a.yaml").read_text()
    assert half == f"{MIGRATED}---\n{QUOTA}"
    (tree / "a.yaml").write_text(f"{half}# mine\n")
    assert gpu_webhook("migrate", "-w", "--unsafe", "a.yaml").code == 3
    (tree / "a.yaml").write_text(half)
    assert gpu_webhook("migrate", "-w", "--unsafe", "a.yaml").code == 0
    assert "alpha" not in (tree / "a.yaml").read_text()


@pytest.mark.parametrize("words", [("migrate",), ("migrate", "--check"), ("scan",)])
def test_what_writes_nothing_is_not_refused(
    words: tuple[str, ...], tree: Path, gpu_webhook: Command
) -> None:
    change(tree)
    done = gpu_webhook(*words, ".")
    assert (done.code, "unstaged" in done.out + done.err) == (2, False)
    (tree / "clean.yaml").write_text(f"{CLEAN}# mine\n")
    assert gpu_webhook("migrate", "-w", "clean.yaml").code == 0


def test_a_backup_keeps_the_old_text_and_is_no_manifest(
    tmp_path: Path, gpu_webhook: Command
) -> None:
    put(tmp_path, a=LEGACY, clean=CLEAN)
    (tmp_path / "a.yaml").chmod(0o640)
    assert gpu_webhook("migrate", "-w", "--backup", ".").code == 0
    kept = tmp_path / "a.yaml.orig"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (LEGACY, 0o640)
    assert not (tmp_path / "clean.yaml.orig").exists()
    assert gpu_webhook("scan", ".").code == 0
    put(tmp_path, a=LEGACY)
    assert gpu_webhook("migrate", "-w", "--backup", ".").code == 0, "it has this text"
    (tmp_path / "a.yaml").write_text(MINE)
    done = gpu_webhook("migrate", "-w", "--backup", ".")
    assert (done.code, (tmp_path / "a.yaml").read_text()) == (1, MINE)
    assert "a.yaml.orig is another text" in done.out


ENDED = {
    "the report cannot be written": (">/dev/full", 1, "No space left on device"),
    "who reads it has closed it": ("| :", 141, ""),
}


@pytest.mark.parametrize(("to", "code", "why"), ENDED.values(), ids=ENDED)
def test_what_is_written_is_said_where_no_report_can_say_it(
    to: str, code: int, why: str, tree: Path
) -> None:
    program = (
        f"{sys.executable} -c 'import sys; from webhook.cli.main import main; sys.exit(main())'"
    )
    done = subprocess.run(
        ["bash", "-c", f"{program} migrate -w {tree} {to}; exit ${{PIPESTATUS[0]}}"],
        env=environment(PYTHONPATH=str(ROOT)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [
        f"gpu-webhook: {tree}/{name} is written" for name in ("a.yaml", "b.yaml", "deep/c.yaml")
    ]
    assert done.returncode == code
    assert [line for line in done.stderr.splitlines() if "is written" in line] == said
    assert len(done.stderr.splitlines()) == len(said) + bool(why)
    assert why in done.stderr
