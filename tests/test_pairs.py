"""Which rows of a table run in `make unit`: those in which all pairs of values meet."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pairs import covering

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[1]
SIZES = [(2, 2, 2), (10, 2, 2, 4, 2), (5, 4, 3), (26, 2, 10, 5), (3, 1, 2, 2)]


def pairs(rows: Iterable[Sequence[int]]) -> set[tuple[int, int, int, int]]:
    columns = range(10)
    return {(a, row[a], b, row[b]) for row in rows for a, b in combinations(columns[: len(row)], 2)}


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_all_pairs_stay_in_far_fewer_rows(sizes: tuple[int, ...]) -> None:
    rows = [*product(*map(range, sizes))]
    kept = [rows[number] for number in covering(rows)]
    assert pairs(kept) == pairs(rows)
    assert len(kept) <= max(len(rows) // 2, 6)


def test_a_table_with_holes_keeps_the_pairs_that_it_has() -> None:
    rows = [row for row in product(range(4), range(3), range(3)) if sum(row) % 4]
    assert pairs(rows[number] for number in covering(rows)) == pairs(rows)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="none"),
        pytest.param([(1,), (2,)], id="one column"),
        pytest.param([*product(range(5), range(4))], id="two columns"),
        pytest.param(
            [(1, 1, 2), (2, 1, 3), (3, 1, 2)], id="a list: each row has a value of its own"
        ),
    ],
)
def test_all_rows_stay(rows: list[tuple[int, ...]]) -> None:
    assert covering(rows) == set(range(len(rows)))


TABLES = """
import pytest

@pytest.mark.large
@pytest.mark.parametrize(("a", "b"), [(1, True), (2, True), (3, True), (4, True)])
@pytest.mark.parametrize("c", [1, 2])
@pytest.mark.parametrize("d", ["x", "y"])
def test_marked(a, b, c, d): ...

@pytest.mark.parametrize("a", [1, 2])
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("c", [1, 2])
def test_not_marked(a, b, c): ...
"""


@pytest.mark.parametrize(("profile", "rows"), [("dev", 8 + 8), ("nightly", 16 + 8)])
def test_only_the_nightly_run_has_all_rows_of_marked_tables(
    tmp_path: Path, profile: str, rows: int
) -> None:
    (tmp_path / "test_tables.py").write_text(TABLES)
    words = ["-q", "--collect-only", "-p", "tests.conftest", "-c", "pyproject.toml", str(tmp_path)]
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, "HYPOTHESIS_PROFILE": profile},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sum("::test_" in line for line in listed.stdout.splitlines()) == rows
