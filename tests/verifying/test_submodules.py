"""`gpu-webhook verify --git` of a repository with submodules."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.verifying.test_command import (
    DIFFERENT,
    EQUAL,
    NOT_PROVABLE,
    git,
    new,
    old,
    repository,
    verify,
    written,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.verifying.test_command import Verify

pytestmark = pytest.mark.programs

__all__ = ["repository", "verify"]


@pytest.fixture
def nested(repository: Path) -> Path:
    """A repository with a submodule that has one, too: `sub` and `sub/inner`."""
    for name in ("inner", "sub"):
        other = written(repository.parent / name, {"m.yaml": old(name)})
        git(other, "init", "-q")
        if name == "sub":
            git(other, *ADD, str(repository.parent / "inner"), "inner")
        git(other, "add", ".")
        git(other, "commit", "-q", "-m", "x")
    git(repository, *ADD, str(repository.parent / "sub"), "sub")
    git(repository, *UPDATE)
    git(repository, "commit", "-q", "-a", "-m", "y")
    return repository


LOCAL = ("-c", "protocol.file.allow=always", "submodule", "-q")
ADD, UPDATE = (*LOCAL, "add"), (*LOCAL, "update", "--init", "--recursive")


def migrated(folder: Path) -> None:
    written(folder, {"a/p.yaml": new()})
    written(folder / "sub", {"m.yaml": new("sub"), "inner/m.yaml": new("inner")})


def committed(folder: Path) -> None:
    """The submodules move on; the revision names their commits of before."""
    migrated(folder)
    for each in (folder / "sub" / "inner", folder / "sub", folder):
        git(each, "commit", "-q", "-a", "-m", "z")


def one_lost(folder: Path) -> None:
    migrated(folder)
    (folder / "sub" / "m.yaml").unlink()


def emptied(folder: Path) -> None:
    """As after a clone without `--recurse-submodules`."""
    written(folder, {"a/p.yaml": new()})
    git(folder, "submodule", "-q", "deinit", "-f", "--all")


def forgotten(folder: Path) -> None:
    """Another commit, without those of before: a shallow clone of the submodule."""
    written(folder, {"a/p.yaml": new()})
    shutil.rmtree(folder / "sub")
    written(folder / "sub", {"m.yaml": new("sub")})
    git(folder / "sub", "init", "-q")
    git(folder / "sub", "add", ".")
    git(folder / "sub", "commit", "-q", "-m", "x")


def removed(folder: Path) -> None:
    written(folder, {"a/p.yaml": new()})
    git(folder, "rm", "-q", "-r", "-f", "sub")


MISSING = "HEAD:sub: not provable: it is a submodule of git, and its commit "
# What happens after the revision, which one it is, the exit code, and a line of the output.
TABLE: dict[str, tuple[Callable[[Path], None], str, int, str]] = {
    "the files are migrated": (migrated, "HEAD", EQUAL, "sub/inner/m.yaml: Pod/inner: equal"),
    "and committed": (committed, "HEAD~1", EQUAL, "4 compared: 4 equal"),
    "a file of it is lost": (one_lost, "HEAD", DIFFERENT, "HEAD:sub/m.yaml: Pod/sub: different"),
    "it is not checked out on either side": (emptied, "HEAD", EQUAL, "2 compared: 2 equal"),
    "its commit is not there": (forgotten, "HEAD", DIFFERENT, MISSING),
    "it is removed": (removed, "HEAD", NOT_PROVABLE, MISSING),
}


@pytest.mark.parametrize(("change", "revision", "code", "words"), TABLE.values(), ids=TABLE)
def test_submodules(
    change: Callable[[Path], None],
    revision: str,
    code: int,
    words: str,
    nested: Path,
    verify: Verify,
) -> None:
    change(nested)
    found, said = verify("--git", revision)
    assert (found, words in said) == (code, True), said


def test_only_submodules_below_the_paths_are_named(nested: Path, verify: Verify) -> None:
    removed(nested)
    assert verify("--git", "HEAD", "a")[0] == EQUAL
