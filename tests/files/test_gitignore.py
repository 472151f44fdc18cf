"""What .gitignore files ignore, held against git itself."""

from __future__ import annotations

import random
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.files.trees import tree
from webhook.files.candidates import Wanted
from webhook.files.gitignore import Patterns
from webhook.files.search import SearchBatch
from webhook.files.walk import find

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# Pieces of patterns, those that wildmatch.c treats in a way of its own among them.
_PIECES = (
    *("a", "b", "c", "*", "?", "/", "**/", "/**", "[ab]", "[!a]", "[^b]", "[a-b]", "[b-a]", "[]a]"),
    *("\\", "]", "[", "-", " ", "!", "#", ".", "\\*", "[[:alpha:]]", "[[:punct:]]", "[[:x:]]"),
)
# ** that is no whole segment: what git does depends on addresses in its memory (2.39), its manual
# says that it is as good as one *.
_UNSURE = re.compile(r"[^/!]\*\*|^!?\*\*[^/]|/\*\*[^/]|\*\*\*")


def ignored(lines: Sequence[str], path: str) -> bool:
    """What somebody who walks finds: nobody enters a folder that is ignored."""
    patterns = Patterns.of(lines)
    if patterns is None:
        return False
    above = [path[:end] for end, character in enumerate(path) if character == "/"]
    return any(patterns.decide(each, folder=True) for each in above) or bool(
        patterns.decide(path, folder=False)
    )


def git_ignores(repository: Path, paths: Iterable[str]) -> set[str]:
    told = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,  # 1: none is ignored
    )
    assert told.returncode in {0, 1}, told.stderr
    return {each for each in told.stdout.decode().split("\0") if each}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def drawn_path(draw: random.Random) -> str:
    names = ("".join(draw.choices("aabbc-.]* ", k=draw.randint(1, 3))) for _ in range(4))
    return "/".join(name for name in list(names)[: draw.randint(1, 4)] if name not in {".", ".."})


def drawn_lines(draw: random.Random) -> list[str]:
    lines = ("".join(draw.choices(_PIECES, k=draw.randint(1, 7))) for _ in range(40))
    return [line for line in lines if not _UNSURE.search(line)][: draw.randint(1, 4)]


def test_drawn_patterns_ignore_what_git_ignores(repository: Path) -> None:
    draw = random.Random(5)  # noqa: S311
    paths = sorted({path for _ in range(150) if (path := drawn_path(draw))})
    total = 0
    for _ in range(120):
        lines = drawn_lines(draw)
        (repository / ".gitignore").write_text("\n".join(lines) + "\n")
        theirs = git_ignores(repository, paths)
        assert {path for path in paths if ignored(lines, path)} == theirs, lines
        total += len(theirs)
    assert total > 1_000, "the patterns fit something"


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        pytest.param(["*.log", "!keep.log"], "a/keep.log", False, id="the last pattern decides"),
        pytest.param(["!keep.log", "*.log"], "keep.log", True, id="not the first"),
        pytest.param(["build/"], "a/build/x.yaml", True, id="a folder at any depth"),
        pytest.param(["build/"], "build", False, id="a file is no folder"),
        pytest.param(["/build"], "a/build", False, id="a slash in front: only here"),
        pytest.param(["a/*.yaml"], "b/a/x.yaml", False, id="a slash within: only from here"),
        pytest.param(["**/a/*.yaml"], "b/a/x.yaml", True, id="two stars: at any depth"),
        pytest.param(["a/**"], "a/b/c", True, id="two stars at the end: all that is inside"),
        pytest.param(["x.yaml\r"], "x.yaml", True, id="lines of Windows"),
        pytest.param(["x.yaml  "], "x.yaml", True, id="spaces at the end are none of it"),
        pytest.param(["x\\ "], "x ", True, id="unless behind a backslash"),
        pytest.param(["# x", "\\#x"], "#x", True, id="a comment, and none"),
        pytest.param(["[[:nonsense:]]x", "[x"], "[x", False, id="what git cannot read"),
    ],
)
def test_patterns(repository: Path, lines: list[str], path: str, *, expected: bool) -> None:
    assert ignored(lines, path) is expected
    (repository / ".gitignore").write_text("\n".join(lines) + "\n", newline="")
    assert (path in git_ignores(repository, [path])) is expected, "git agrees"


@pytest.mark.timeout(60)  # what is tried in too many ways never ends
def test_patterns_that_would_be_tried_in_too_many_ways() -> None:
    assert not ignored(["*a" * 40 + "b"], "a" * 255)
    assert not ignored(["**/a/" * 20 + "b"], "a/" * 200 + "c")


def found(root: Path, *, start: str = "") -> set[str]:
    lots = find(Wanted([str(root / start)], recursive=True))
    assert root.is_dir()
    return {
        str(folder + name).removeprefix(f"{root}/")
        for lot in lots
        if isinstance(lot, SearchBatch)
        for folder, names in lot.batch
        for name in names
        if name.endswith(".yaml")
    }


_TREE = {
    ".gitignore": "out/\n*.gen.yaml\n/deep/a/only.yaml\n",
    "x.yaml": "",
    "x.gen.yaml": "",
    "out/x.yaml": "",
    "deep/.gitignore": "!keep.gen.yaml\n",
    "deep/keep.gen.yaml": "",
    "deep/a/only.yaml": "",
    "deep/a/b/only.yaml": "",
    "deep/excluded.yaml": "",
}


def test_nested_files_decide_as_in_git(repository: Path) -> None:
    tree(repository, _TREE)
    (repository / ".git/info/exclude").write_text("excluded.yaml\n")
    names = [name for name in _TREE if name.endswith(".yaml")]
    assert found(repository) == {*names} - git_ignores(repository, names)
    assert found(repository) == {"x.yaml", "deep/keep.gen.yaml", "deep/a/b/only.yaml"}


def test_what_is_above_counts_for_a_folder_of_the_repository(repository: Path) -> None:
    tree(repository, _TREE)
    (repository / ".git/info/exclude").write_text("excluded.yaml\n")
    assert found(repository, start="deep") == {"deep/keep.gen.yaml", "deep/a/b/only.yaml"}
    assert found(repository, start="deep/a") == {"deep/a/b/only.yaml"}


def test_a_repository_within_has_rules_of_its_own(repository: Path) -> None:
    tree(repository, {".gitignore": "x.yaml\n", "x.yaml": "", "sub/.git": "", "sub/x.yaml": ""})
    assert found(repository) == {"sub/x.yaml"}


def test_without_a_repository_the_files_count_all_the_same(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "x.yaml\n", "x.yaml": "", "y.yaml": ""})
    assert found(tmp_path) == {"y.yaml"}


def test_helmignore_counts_in_charts_alone(tmp_path: Path) -> None:
    files = {".helmignore": "ci/\n", "ci/x.yaml": ""}
    tree(tmp_path / "chart", {**files, "Chart.yaml": ""})
    tree(tmp_path / "other", files)
    assert found(tmp_path) == {"chart/Chart.yaml", "other/ci/x.yaml"}
