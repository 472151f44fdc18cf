"""Quantities: what Kubernetes' own parser says, text for text, and how many devices that is."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from webhook.kube import quantity

# One line a text: [text, unscaled value, scale], or [text] where it is refused. That is what
# resource.ParseQuantity of k8s.io/apimachinery v0.36.3 gave: AsDec().UnscaledBig() and .Scale().
KUBERNETES = [
    json.loads(line)
    for line in Path(__file__).with_name("kubernetes_quantities.jsonl").read_text().splitlines()
]


@pytest.fixture(autouse=True)
def _forget() -> None:
    quantity._parse.cache_clear()  # what an earlier test has read is read again


@pytest.mark.large
@pytest.mark.parametrize("row", [pytest.param(row, id=repr(row[0])) for row in KUBERNETES])
def test_a_text_is_read_as_kubernetes_reads_it(row: list[Any]) -> None:
    value = quantity.parse(row[0])
    if len(row) == 1:
        assert value is None
    else:
        assert value == Fraction(int(row[1])) / Fraction(10) ** row[2]


def test_the_kubernetes_table_has_texts_of_both_kinds() -> None:
    accepted = sum(len(row) > 1 for row in KUBERNETES)
    assert accepted > 400
    assert len(KUBERNETES) - accepted > 60


@pytest.mark.parametrize(
    ("amount", "value"),
    [
        pytest.param(2, Fraction(2), id="an integer"),
        pytest.param(-1, Fraction(-1), id="a negative integer"),
        pytest.param(2**70, Fraction(2**70), id="an integer beyond 63 bits"),
        pytest.param(0.5, Fraction(1, 2), id="a float is read by its digits"),
        pytest.param(0.1, Fraction(1, 10), id="a float that binary cannot say exactly"),
        pytest.param(1e22, Fraction(10**22), id="a float that prints with an exponent"),
        pytest.param(1e-12, Fraction(1, 10**9), id="a float finer than a nano"),
        pytest.param(float("inf"), None, id="infinity is no amount"),
        pytest.param(float("nan"), None, id="nor is NaN"),
        pytest.param(True, None, id="a boolean is no amount, though Python counts with it"),
        pytest.param(False, None, id="nor is the other one"),
        pytest.param(None, Fraction(0), id="null is 0 (Quantity.UnmarshalJSON)"),
        pytest.param([], None, id="a list is no amount"),
        pytest.param({}, None, id="a map is no amount"),
        pytest.param(b"1", None, id="bytes are no amount"),
        pytest.param(" 2\xa0", Fraction(2), id="blanks around a text do not count (UnmarshalJSON)"),
        pytest.param("   ", None, id="blanks alone are no amount"),
        pytest.param("2\n", None, id="a line end after it"),
        pytest.param("e-9", Fraction(0), id="an exponent without digits is nothing"),
        pytest.param("e-10", None, id="below a nano it is refused"),
        pytest.param("9" * 300, Fraction(int("9" * 300)), id="300 digits are read"),
        pytest.param("9" * 301, quantity.BEYOND, id="more digits are as good as 10^300"),
        pytest.param("9" * 5000, quantity.BEYOND, id="more than Python reads into an integer"),
        pytest.param("-" + "9" * 301, -quantity.BEYOND, id="and below zero"),
        pytest.param("0" * 5000 + "2", Fraction(2), id="zeros before a number are no digits"),
        pytest.param("2." + "0" * 5000, Fraction(2), id="nor are zeros after the point"),
        pytest.param("0." + "0" * 5000 + "1", Fraction(1, 10**9), id="a nano in 5,000 digits"),
        pytest.param("1." + "9" * 5000, Fraction(2), id="rounded up to a nano, in 5,000 digits"),
        pytest.param("0" * 400, Fraction(0), id="nothing in 400 digits"),
        pytest.param("2" + "0" * 400 + "e-400", Fraction(2), id="digits that the exponent undoes"),
        pytest.param("0e" + "9" * 400, Fraction(0), id="nothing, however often"),
        pytest.param("2e" + "0" * 400 + "1", Fraction(20), id="an exponent with many zeros"),
        pytest.param("2e+" + "0" * 400 + "1", Fraction(20), id="and with a sign"),
        pytest.param("1e-" + "9" * 400, Fraction(1, 10**9), id="an exponent far below zero"),
        pytest.param("9" * 400 + "Ki", Fraction(2**63 - 1), id="a binary amount has its own end"),
        pytest.param("9" * 400 + "x", None, id="400 digits and no unit"),
        pytest.param("1e300", quantity.BEYOND, id="the largest exponent that is told apart"),
        pytest.param("1e301", quantity.BEYOND, id="an amount beyond 10^300 is one of these"),
        pytest.param("9" * 300 + "E", quantity.BEYOND, id="a suffix beyond it"),
        pytest.param("1e-300", Fraction(1, 10**9), id="a far exponent is a nano"),
        pytest.param("1e-99999999999", Fraction(1, 10**9), id="a farther one too, at no cost"),
        pytest.param("9" * 290 + "e-600", Fraction(1, 10**9), id="with many digits too"),
        pytest.param("1e99999999999", quantity.BEYOND, id="an exponent that nobody could compute"),
    ],
)
def test_what_yaml_and_json_give_is_read(amount: object, value: Fraction | None) -> None:
    assert quantity.parse(amount) == value


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        pytest.param("0", 0, id="nothing is nothing"),
        pytest.param("1n", 1, id="the least amount is one device"),
        pytest.param("500m", 1, id="half a device is one"),
        pytest.param("1", 1, id="one is one"),
        pytest.param("1000m", 1, id="a thousand thousandths are one"),
        pytest.param("1001m", 2, id="a little more than one is two"),
        pytest.param("1.0", 1, id="a zero after the point adds nothing"),
        pytest.param("2.000000001", 3, id="a nano too much counts"),
        pytest.param("1Ki", 1024, id="binary suffixes count by 1024"),
        pytest.param("0.1Ki", 103, id="a part of one is rounded up"),
        pytest.param("1e2", 100, id="an exponent"),
    ],
)
def test_devices_are_counted_by_rounding_up(text: str, devices: int) -> None:
    value = quantity.parse(text)
    assert value is not None
    assert quantity.whole(value) == devices


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        pytest.param("2", True, id="an integer"),
        pytest.param("1000m", True, id="thousandths that come to one"),
        pytest.param("1.0", True, id="a zero after the point"),
        pytest.param("0.5Ki", True, id="half of 1024"),
        pytest.param("0", True, id="nothing"),
        pytest.param("-1", True, id="a negative integer"),
        pytest.param("500m", False, id="half a device"),
        pytest.param("1n", False, id="a nano"),
    ],
)
def test_only_whole_amounts_pass_as_devices(text: str, *, is_whole: bool) -> None:
    value = quantity.parse(text)
    assert value is not None
    assert quantity.is_whole(value) is is_whole


NANO = Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(f"1e{'9' * 5_000}", quantity.BEYOND, id="an exponent of 5,000 digits"),
        pytest.param(f"1e-{'9' * 5_000}", NANO, id="and a negative one"),
        pytest.param(f"0.{'0' * 301}1Ei", NANO, id="too small for any suffix"),
        pytest.param(f"1{'0' * 299}.{'0' * 309}1", 10**299 + NANO, id="a last digit far behind"),
        pytest.param(f"1{'0' * 299}.{'0' * 310}", Fraction(10**299), id="zeros far behind"),
    ],
)
def test_very_long_texts_are_rounded_up_as_others_are(text: str, value: Fraction) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("amount", "nanos", "devices"),
    [
        pytest.param("1500m", 1_500_000_000, 2, id="one and a half"),
        pytest.param(2, 2_000_000_000, 2, id="an integer"),
        pytest.param("1n", 1, 1, id="the least amount"),
        pytest.param(None, 0, 0, id="null"),
        pytest.param("-1", -1_000_000_000, -1, id="a negative one"),
        pytest.param(str(2**53 + 1), (2**53 + 1) * 10**9, 2**53 + 1, id="too many for a float"),
    ],
)
def test_nanos_are_added_up_and_are_whole_devices_again(
    amount: object, nanos: int, devices: int
) -> None:
    assert quantity.nanos(amount) == nanos
    assert quantity.whole_of(nanos) == devices


def test_what_is_no_amount_has_no_nanos() -> None:
    assert quantity.nanos("one") is None


@pytest.mark.parametrize(
    ("amount", "was", "wanted"),
    [
        ("1", 0.5, 1),
        ("2000m", 1, 2),
        ("1", "500m", "1"),
        ("1", None, "1"),
        ("500m", 1, "500m"),
        ("many", 1, "many"),
        (2, "1", 2),
    ],
)
def test_a_number_stays_a_number_and_a_text_a_text(
    amount: object, was: object, wanted: object
) -> None:
    assert repr(quantity.like(amount, was)) == repr(wanted)
