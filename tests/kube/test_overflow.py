"""Amounts that overflow; the cluster tests compare with Kubernetes' parser and scheduler."""

from __future__ import annotations

import pytest

from webhook.kube import overflow

BIG = 2**63


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([None], 0, id="null"),
        pytest.param(["8"], 8, id="a plain amount"),
        pytest.param(["1500m", "500m"], 2, id="parts are summed up, then rounded up"),
        pytest.param(["0", "4", "0"], 4, id="zeros beside it"),
        pytest.param(["1k", "1"], 1001, id="two powers of ten"),
        pytest.param([str(BIG - 1)], BIG - 1, id="the largest that fits"),
        pytest.param([str(BIG)], -BIG, id="one more is less than nothing"),
        pytest.param([BIG], -BIG, id="also as a number"),
        pytest.param(["20000000000000000000"], 2 * 10**19 - 2**64, id="the low 64 bits remain"),
        pytest.param(["10E"], 0, id="with a suffix it is nothing"),
        pytest.param(["1e19"], 0, id="and with an exponent"),
        pytest.param(["100E", "8"], (10**20 + 8) % 2**64, id="a sum is a big number: the low bits"),
        pytest.param(["9E", "9E"], 0, id="a sum of whole suffixes stays one"),
        pytest.param([str(BIG - 1), "1"], -BIG, id="a sum that just overflows"),
        pytest.param(["9Ei"], BIG - 1, id="binary amounts are cut at the largest"),
        pytest.param(["1e-12"], 1, id="finer than a nano"),
        pytest.param(["0" * 5000 + "2"], 2, id="zeros before a number"),
    ],
)
def test_what_the_scheduler_reads(amounts: list[object], expected: int) -> None:
    total = overflow.ZERO
    for text in amounts:
        amount = overflow.read(text)
        assert amount is not None
        total += amount
    assert total.value == expected


def test_what_is_no_amount() -> None:
    assert overflow.read("many") is None
    assert overflow.read("9" * 301) is None, "whose low 64 bits nobody has worked out"
    assert overflow.read("-" + "9" * 5000) is None
