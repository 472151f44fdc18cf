"""Our quantities against Kubernetes' own parser (the Go program in tools/quantity)."""

from __future__ import annotations

import json
import string
import subprocess
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster import build
from webhook.kube import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

_INT64 = 2**63 - 1
_NANO = 10**9

_EDGES = [
    "", " ", "0", "00", "1", "+1", "-1", "--1", "01", "1.", ".5", ".", "+", "-", "1.5", "1,5",
    "1_0", "0x1", "1 ", " 1", "1 k", "1k ", "1K", "1ki", "1Ki", "1KI", "1i", "k", "Ki", "Ei",
    "m", "e", "E", "1e", "1E", "1e3", "1E3", "1e+3", "1e-3", "1e3k", "1e1.5", "1Ee3", "1E+",
    "e3", "1ek", "1eE3", "0.1n", "0.000000001", "0.0000000001", "-0.0000000001", "1n", "1u",
    "999999u", "999m", "1000m", "1001m", "500m", "2.5", "0.5Ki", "0.0001Ki", "1.5Gi", "7Ei",
    "8Ei", "12Ei", "-12Ei", "9.2E", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "18446744073709551616", "99999999999999999999999999", "1e18",
    "1e19", "1e30", "1e-9", "1e-10", "1e-30", "1e100", "inf", "NaN", "true", "null", "one",
    "100E", "10E", "9.3E", "10e18", "123456789012345678e1", "1234567890123456789e1",
    "20000000000000000000",
    "1\u00a0", "\u0661", "\uff11", "1\n", "\t1", "1\u0000",
]  # fmt: skip

_digits = st.text("0123456789", max_size=22)
_suffixes = st.sampled_from(
    ["", *"numkKMGTPEe", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "mi", "ni", "ki", "i"]
) | st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-40, 40))
_likely = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "", "", "+", "-"]),
    _digits,
    st.sampled_from(["", "", "."]),
    _digits,
    _suffixes,
)
_near = st.text("0123456789.+-eEnumkKMGTPi ", max_size=12).filter(
    lambda text: _exponent(text) < 200
)
_any = st.text(st.characters(codec="utf-8"), max_size=8)


def _exponent(text: str) -> int:
    """Give the size of the exponent: Kubernetes' parser takes minutes over 1e1000000000."""
    digits = text.lower().rpartition("e")[2].strip(" +-")
    return int(digits) if digits and set(digits) <= set(string.digits) else 0


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [build.quantities()], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.terminate()


def _read(process: subprocess.Popen[bytes], texts: list[str]) -> list[dict[str, Any]]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(texts, ensure_ascii=False).encode() + b"\n")
    process.stdin.flush()
    readings: list[dict[str, Any]] = json.loads(process.stdout.readline())
    return readings


def _compare(text: str, theirs: dict[str, Any]) -> None:
    ours = quantity.parse(text)
    assert (ours is not None) == theirs["accepted"], (text, theirs)
    if ours is None:
        return
    assert ours == Fraction(theirs["nanos"]) / _NANO, (text, theirs)
    if abs(ours) <= _INT64:  # 1000E is printed as 1
        assert quantity.parse(theirs["canonical"]) == ours, (text, theirs)
    if 0 <= ours <= _INT64:  # Value() of more is an overflow
        assert quantity.whole(ours) == theirs["value"], (text, theirs)
    if quantity.is_whole(ours) and 0 <= ours < _INT64 / 1000:  # MilliValue() of more, too
        assert theirs["whole"], (text, theirs)


@pytest.mark.parametrize("text", _EDGES, ids=repr)
def test_an_edge_of_the_grammar_is_read_as_kubernetes_reads_it(
    text: str, kubernetes: subprocess.Popen[bytes]
) -> None:
    _compare(text, _read(kubernetes, [text])[0])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(_likely | _near | _any, min_size=1, max_size=100))
def test_any_text_is_read_as_kubernetes_reads_it(
    texts: list[str], kubernetes: subprocess.Popen[bytes]
) -> None:
    for text, theirs in zip(texts, _read(kubernetes, texts), strict=True):
        _compare(text, theirs)


def test_most_of_the_drawn_texts_are_quantities(kubernetes: subprocess.Popen[bytes]) -> None:
    """Else the comparison above would compare refusals only."""
    accepted: list[bool] = []

    @settings(max_examples=50, deadline=None, database=None, derandomize=True)
    @given(texts=st.lists(_likely, min_size=20, max_size=20))
    def draw(texts: list[str]) -> None:
        accepted.extend(theirs["accepted"] for theirs in _read(kubernetes, texts))

    draw()
    assert sum(accepted) / len(accepted) > 0.5
