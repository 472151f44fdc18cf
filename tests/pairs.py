"""A table of tests goes in, and the rows come out that `make unit` leaves to `make nightly`.

Most faults show by one value of one column, nearly all others where two values meet. So each two
values of two columns stay together in at least one row of a table that has the mark `pairs`, or
`large`. Tables of two columns, and lists, keep all of their rows.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pytest

    Row = Sequence[object]


def beyond_pairs(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Give the rows of marked tables whose pairs are all in other rows."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        is_marked = item.get_closest_marker("pairs") or item.get_closest_marker("large")
        if is_marked and hasattr(item, "callspec"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for table in tables.values() for item in _rest(table)]


def _rest(table: list[pytest.Item]) -> list[pytest.Item]:
    marks = [mark.args[0] for mark in table[0].iter_markers("parametrize")]
    columns = [names.split(",") if isinstance(names, str) else names for names in marks]
    rows = [[tuple(_value(each, name) for name in column) for column in columns] for each in table]
    kept = covering(rows)
    return [item for number, item in enumerate(table) if number not in kept]


def _value(item: pytest.Item, name: str) -> int:
    """Stand for a value of a table, which may be a map: values are made once, for all rows."""
    return id(item.callspec.params[name.strip()])  # type: ignore[attr-defined]


def covering(rows: Sequence[Row]) -> set[int]:
    """Give the numbers of rows that have all pairs of the table; the richest are taken first."""
    width = len(rows[0]) if rows else 0
    if width < 3:
        return set(range(len(rows)))
    pairs = {
        number: {(a, row[a], b, row[b]) for a, b in combinations(range(width), 2)}
        for number, row in enumerate(rows)
    }
    kept, seen = set[int](), set[tuple[object, ...]]()
    for least in range(width * (width - 1) // 2, 0, -1):
        for number in [*pairs]:
            if len(pairs[number] - seen) >= least:
                seen |= pairs.pop(number)
                kept.add(number)
    return kept
