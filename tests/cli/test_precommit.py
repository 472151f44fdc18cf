"""The hooks for pre-commit, run by the real pre-commit on a git repository of its own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cli.installed import ROOT, demand, empty_environment, of_building, run
from tests.cli.test_migrate import MIGRATED
from tests.cli.test_scan import CLEAN, LEGACY, MANUAL, put

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.programs, pytest.mark.slow]

VERSION = "4.3.0"
_GIT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def git(folder: Path, *words: str) -> str:
    return demand("git", *words, cwd=folder, **_GIT).strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as it is now, committed: the repository that the hooks come from."""
    folder = tmp_path_factory.mktemp("hooks")
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    present = "\0".join(name for name in listed.split("\0") if name and (ROOT / name).is_file())
    packed = subprocess.run(
        ["tar", "--create", "--null", "--files-from=-"],
        cwd=ROOT,
        input=present.encode(),
        capture_output=True,
        check=True,
    )
    subprocess.run(["tar", "--extract"], cwd=folder, input=packed.stdout, check=True)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "as it is")
    return folder


@pytest.fixture(scope="module")
def pre_commit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The program, and its variables: where it keeps what it installs, and what is here already."""
    folder = tmp_path_factory.mktemp("pre-commit")
    programs = empty_environment(folder / "venv", f"pre-commit=={VERSION}")
    offline = of_building(tmp_path_factory.mktemp("packages"))
    return programs / "pre-commit", {"PRE_COMMIT_HOME": str(folder / "home"), **offline, **_GIT}


class Repository:
    """A git repository with one of our hooks."""

    def __init__(
        self, folder: Path, hook: str, hooks: Path, pre_commit: tuple[Path, dict[str, str]]
    ) -> None:
        self.folder = folder
        self._program, self._variables = pre_commit
        git(folder, "init", "-q")
        source = {"repo": str(hooks), "rev": git(hooks, "rev-parse", "HEAD")}
        config = {"repos": [{**source, "hooks": [{"id": hook}]}]}
        (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))

    def pre_commit(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(self._program, *words, cwd=self.folder, **self._variables)

    def commit(self) -> subprocess.CompletedProcess[str]:
        git(self.folder, "add", "-A")
        return run("git", "commit", "-q", "-m", "x", cwd=self.folder, **self._variables)


def test_gpu_migrate_rewrites_what_is_committed_and_then_lets_it_pass(
    tmp_path: Path, hooks: Path, pre_commit: tuple[Path, dict[str, str]]
) -> None:
    repository = Repository(tmp_path, "gpu-migrate", hooks, pre_commit)
    assert repository.pre_commit("install").returncode == 0
    put(tmp_path, legacy=LEGACY, **{"a folder__with blanks": LEGACY}, clean=CLEAN)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0")
    refused = repository.commit()
    assert refused.returncode == 1
    assert "files were modified by this hook" in refused.stderr
    assert "legacy.yaml:11:9: GPU101 " in refused.stderr
    assert (tmp_path / "legacy.yaml").read_text() == MIGRATED
    assert (tmp_path / "a folder" / "with blanks.yaml").read_text() == MIGRATED
    assert (tmp_path / "clean.yaml").read_text() == CLEAN
    taken = repository.commit()
    assert taken.returncode == 0, taken.stderr
    assert git(tmp_path, "show", "HEAD:legacy.yaml") == MIGRATED.strip()


def test_gpu_migrate_fails_while_a_person_is_needed(
    tmp_path: Path, hooks: Path, pre_commit: tuple[Path, dict[str, str]]
) -> None:
    repository = Repository(tmp_path, "gpu-migrate", hooks, pre_commit)
    put(tmp_path, odd=MANUAL)
    git(tmp_path, "add", "-A")
    done = repository.pre_commit("run", "--all-files")
    assert done.returncode == 1
    assert "- exit code: 3" in done.stdout
    assert "odd.yaml:11:9: GPU101 " in done.stdout


def test_gpu_scan_finds_and_changes_nothing(
    tmp_path: Path, hooks: Path, pre_commit: tuple[Path, dict[str, str]]
) -> None:
    repository = Repository(tmp_path, "gpu-scan", hooks, pre_commit)
    put(tmp_path, legacy=LEGACY, clean=CLEAN)
    git(tmp_path, "add", "-A")
    done = repository.pre_commit("run", "--all-files")
    assert done.returncode == 1
    assert "- exit code: 2" in done.stdout
    assert "legacy.yaml:11:9: GPU101 " in done.stdout
    assert (tmp_path / "legacy.yaml").read_text() == LEGACY
    put(tmp_path, legacy=MIGRATED)
    git(tmp_path, "add", "-A")
    assert repository.pre_commit("run", "--all-files").returncode == 0


def test_the_hooks_are_what_pre_commit_takes_for_hooks(
    hooks: Path, pre_commit: tuple[Path, dict[str, str]]
) -> None:
    done = run(pre_commit[0], "validate-manifest", ".pre-commit-hooks.yaml", cwd=hooks)
    assert (done.returncode, done.stdout) == (0, "")
