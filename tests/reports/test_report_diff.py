"""The patch is judged by git itself; both sides of side by side give the texts back."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webhook.files import diff

if TYPE_CHECKING:
    from pathlib import Path

LINES = st.lists(
    st.sampled_from(["a", "b", "  c: 1", "", "d\r", "é显", "\\ No newline"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def _applied(folder: Path, path: str, old: str, new: str) -> str:
    """What git makes of the old text with our patch."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(old.encode())
    patch = diff.unified(path, old, new)
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(folder)}
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=patch.encode(),
        capture_output=True,
        env=quiet,
        check=False,
    )
    assert done.returncode == 0, (patch, done.stderr)
    return file.read_bytes().decode()


@settings(max_examples=min(settings().max_examples, 500))  # each starts git
@given(old=TEXTS, new=TEXTS)
@example(old="a\r\nb", new="a\r\nc")
@example(old="", new="a")
@example(old="a", new="a\n")
def test_git_makes_the_new_text_of_it(
    tmp_path_factory: pytest.TempPathFactory, old: str, new: str
) -> None:
    if old == new:
        assert diff.unified("pod.yaml", old, new) == ""
    elif new and old:  # git takes an empty side for a file that is made or deleted
        assert _applied(tmp_path_factory.mktemp("git"), "pod.yaml", old, new) == new


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("a b/c d.yaml", id="spaces"),
        pytest.param('quo"te.yaml', id="a quote"),
        pytest.param("back\\slash.yaml", id="a backslash"),
        pytest.param("tab\tline\nend.yaml", id="a tab and a line end"),
        pytest.param("Führer/显卡.yaml", id="letters beyond ASCII"),
        pytest.param("esc\x1b[2J.yaml", id="a terminal's escape"),
        pytest.param("byte\udcff.yaml", id="a byte that is no UTF-8"),
        pytest.param("./deploy/pod.yaml", id="a path that begins here"),
    ],
)
def test_git_finds_a_file_with_any_name(path: str, tmp_path: Path) -> None:
    assert _applied(tmp_path, path, "a\nb\n", "a\nc\n") == "a\nc\n"


@given(old=TEXTS, new=TEXTS)
def test_side_by_side_holds_all_that_changed(old: str, new: str) -> None:
    pairs = [pair for hunk in diff.hunks(old, new, context=100) for pair in diff.pairs(hunk)]
    if old != new:
        assert "".join(left.text for left, _ in pairs if left) == old
        assert "".join(right.text for _, right in pairs if right) == new
    else:
        assert pairs == []


@given(old=TEXTS, new=TEXTS)
def test_a_line_has_its_numbers_in_both_texts(old: str, new: str) -> None:
    before, after = diff.split(old), diff.split(new)
    for hunk in diff.hunks(old, new):
        for line in hunk:
            assert not line.old or before[line.old - 1] == line.text
            assert not line.new or after[line.new - 1] == line.text


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    old = [f"line {number}\n" for number in range(5_000)]
    new = [*old]
    new[10], new[4_000] = "ten\n", "many\n"
    headings = [diff.heading(hunk) for hunk in diff.hunks("".join(old), "".join(new))]
    assert headings == ["@@ -8,7 +8,7 @@", "@@ -3998,7 +3998,7 @@"]
