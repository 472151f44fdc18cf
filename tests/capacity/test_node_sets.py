"""Sets of nodes as texts, and tables of them, against a plain walk over the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from webhook.capacity.node_sets import NOTHING, Table, as_int64, decode, encode, numbers, of

if TYPE_CHECKING:
    from collections.abc import Callable

EVEN = list(range(0, 400, 2))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([0], "0", id="the first"),
        pytest.param([20], "20", id="one"),
        pytest.param([3, 4, 5], "3-5", id="a run"),
        pytest.param([0, 2], "0,2", id="runs where a bitmap is as long"),
        pytest.param([*range(3, 18), 20], "3-17,20", id="a run and one more"),
        pytest.param([0, *range(2, 15_000)], "0,2-14999", id="nearly all of 15,000"),
        pytest.param([0, 2, 4, 6], "x55", id="a bitmap where it is shorter"),
        pytest.param([*range(0, 8, 2), 30], "x40000055", id="a bitmap of bytes"),
        pytest.param(EVEN, "x" + "55" * 50, id="a bitmap of half of 400"),
    ],
)
def test_a_set_is_written_in_the_shorter_way(numbers: list[int], text: str) -> None:
    assert encode(numbers) == text
    assert decode(text) == of(numbers)


@given(st.sets(st.integers(0, 300)).map(sorted))
def test_the_numbers_in_a_set(members: list[int]) -> None:
    assert list(numbers(of(members))) == members


def runs_of(numbers: list[int]) -> str:
    """The set as runs, made number by number."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in runs)


_pieces = st.tuples(st.integers(0, 40), st.integers(1, 300), st.integers(1, 3))
_numbers = st.sets(st.integers(0, 300)).map(sorted) | st.lists(_pieces, max_size=12).map(
    lambda pieces: sorted({n for low, size, step in pieces for n in _piece(low, size, step)})
)


def _piece(low: int, size: int, step: int) -> range:
    return range(low * 50, low * 50 + size, step)


@given(_numbers)
@example([14_999])
@example([7])
@example([8, 10, 12])
def test_a_set_comes_back_and_no_other_way_to_write_it_is_shorter(numbers: list[int]) -> None:
    text = encode(numbers)
    bits = of(numbers)
    event("bitmap" if text.startswith("x") else "runs")
    assert decode(text) == bits
    assert [number for number in range(bits.bit_length()) if bits >> number & 1] == numbers
    assert len(text) <= len(runs_of(numbers))
    assert decode(runs_of(numbers)) == bits
    if numbers:
        bitmap = "x" + bits.to_bytes(bits.bit_length() // 8 + 1).lstrip(b"\0").hex()
        assert len(text) <= len(bitmap)
        assert decode(bitmap) == bits


INTEGERS = [
    pytest.param("0", 0, id="nothing"),
    pytest.param("-0", 0, id="minus nothing"),
    pytest.param("5", 5, id="a number"),
    pytest.param("+5", 5, id="a plus"),
    pytest.param("-5", -5, id="a minus"),
    pytest.param("007", 7, id="zeros in front"),
    pytest.param("-007", -7, id="zeros behind a minus"),
    pytest.param("0" * 5000 + "5", 5, id="thousands of zeros in front"),
    pytest.param("9223372036854775807", 2**63 - 1, id="the largest"),
    pytest.param("-9223372036854775808", -(2**63), id="the smallest"),
    pytest.param("9223372036854775808", None, id="one more than the largest"),
    pytest.param("-9223372036854775809", None, id="one less than the smallest"),
    pytest.param("1" * 5000, None, id="thousands of digits"),
    pytest.param("", None, id="no text"),
    pytest.param("+", None, id="a plus alone"),
    pytest.param("-", None, id="a minus alone"),
    pytest.param("+-5", None, id="two signs"),
    pytest.param("--5", None, id="two of the same"),
    pytest.param(" 5", None, id="a blank in front"),
    pytest.param("5\n", None, id="a line end"),
    pytest.param("1_000", None, id="an underscore, which Python would read"),
    pytest.param("٣", None, id="a digit of another script, which Python would read"),
    pytest.param("²", None, id="a raised digit"),
    pytest.param("1.0", None, id="a fraction"),
    pytest.param("1e3", None, id="an exponent"),
    pytest.param("0x10", None, id="another base"),
    pytest.param("a100", None, id="a word"),
]


@pytest.mark.parametrize(("text", "number"), INTEGERS)
def test_numbers_are_read_as_go_does(text: str, number: int | None) -> None:
    assert as_int64(text) == number
    assert parse_int(text) == number


def parse_int(text: str) -> int | None:
    """strconv.ParseInt(text, 10, 64) and ParseUint below it, step by step."""
    if not text:
        return None
    negative, digits = text[0] == "-", text[1:] if text[0] in "+-" else text
    if not digits:
        return None
    number = 0
    for each in digits:
        if not "0" <= each <= "9":
            return None
        number = number * 10 + ord(each) - ord("0")
        if number >= 2**64:
            return None
    cutoff = 2**63
    if (not negative and number >= cutoff) or (negative and number > cutoff):
        return None
    return -number if negative else number


_integers = st.integers(-(2**65), 2**65) | st.integers(-300, 300)
_spelled = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "+", "-"]),
    st.sampled_from(["", "0", "00"]),
    _integers,
)
_values = st.one_of(
    st.integers(-200, 200).map(str), _spelled, st.text(max_size=4), st.text("0123456789+-_ ٣")
)


@given(_values)
def test_any_text_is_read_as_go_does(text: str) -> None:
    assert as_int64(text) == parse_int(text)


def table_of(nodes: list[str | None]) -> Table:
    """The table of nodes with these values; a node of None has no such label."""
    found: dict[str, list[int]] = {}
    for number, value in enumerate(nodes):
        if value is not None:
            found.setdefault(value, []).append(number)
    return Table({value: encode(numbers) for value, numbers in found.items()})


def where(nodes: list[str | None], fits: Callable[[str], bool]) -> int:
    """The nodes whose value fits, by a walk."""
    return of(n for n, value in enumerate(nodes) if value is not None and fits(value))


def agrees(nodes: list[str | None], asked: list[str], bounds: list[int]) -> None:
    """Compare every question, twice each: the second answer may be a remembered one."""
    table = table_of(nodes)
    numbers = [None if value is None else parse_int(value) for value in nodes]
    for _ in range(2):
        assert set(table) == {value for value in nodes if value is not None}
        assert table.present == where(nodes, lambda _: True)
        for value in {*asked, *filter(None, nodes), ""}:
            assert table.having(value) == where(nodes, value.__eq__)
        for bound in bounds:
            above = of(
                n for n, number in enumerate(numbers) if number is not None and number > bound
            )
            below = of(
                n for n, number in enumerate(numbers) if number is not None and number < bound
            )
            assert table.above(bound) == above
            assert table.below(bound) == below


@given(
    st.lists(st.none() | _values, max_size=40),
    st.lists(_values, max_size=3),
    st.lists(st.sampled_from([-(2**63), 2**63 - 1, 0]) | _integers, max_size=4),
)
def test_a_table_says_what_a_walk_over_the_nodes_says(
    nodes: list[str | None], asked: list[str], bounds: list[int]
) -> None:
    agrees(nodes, asked, bounds)


@given(
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(0, 200),
    st.lists(st.integers(-5, 210), min_size=1, max_size=6),
)
@example(64, 64, 0, [0, 63, 64])
@example(65, 65, 0, [63, 64, 65])
@example(128, 128, 0, [63, 64, 127, 128])
@example(200, 129, 3, [0, 1, 64, 65, 128, 129])
def test_a_table_of_many_numbers_says_so_too(
    size: int, distinct: int, first: int, bounds: list[int]
) -> None:
    nodes: list[str | None] = [str((first + 7 * n) % distinct) for n in range(size)]
    agrees([*nodes, None, "x", "+3"], ["", "0003"], bounds)


def test_a_table_that_was_asked_for_many_bounds_still_answers_right() -> None:
    nodes: list[str | None] = [str(n) for n in range(150)]
    agrees(nodes, [], [*range(-1, 151)])


@pytest.mark.parametrize("value", ["", "a", "5"])
def test_a_label_that_no_node_has_has_no_nodes(value: str) -> None:
    assert NOTHING.having(value) == NOTHING.present == 0
    assert NOTHING.above(-1) == NOTHING.below(1) == 0
    assert not list(NOTHING)
