"""P12: the quantity parser agrees with a port of Kubernetes' own, text for text.

The port follows the scanner of apimachinery step by step and has no grammar of its own. The real
parser is asked in tests/cluster.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil

from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from webhook.kube import quantity

_SUFFIX_LETTERS = "eEinumkKMGTP"
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


# unicode.IsSpace, less what JSON writes with a backslash and so cannot be trimmed there.
_SPACES = "".join(each for each in map(chr, range(0x3001)) if each.isspace() and each >= " ")


def _take(text: str, at: int, letters: str) -> int:
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def _scan(text: str) -> tuple[str, str, str] | None:
    """parseQuantityString: the digits before and after the point, and the suffix."""
    start = 1 if text[:1] in ("+", "-") else 0
    end = _take(text, start, "0123456789")
    whole, part = text[start:end], ""
    if text[end : end + 1] == ".":
        point = end + 1
        end = _take(text, point, "0123456789")
        part = text[point:end]
    suffix_at = end
    end = _take(text, end, _SUFFIX_LETTERS)
    if text[end : end + 1] in ("+", "-"):
        end += 1
    end = _take(text, end, "0123456789")
    return (whole, part, text[suffix_at:]) if end == len(text) else None


def _exponents(suffix: str) -> tuple[int, int] | None:
    """quantitySuffixer.interpret: the powers of ten and of two."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 0
    if suffix in _BINARY:
        return 0, _BINARY[suffix]
    if len(suffix) > 1 and suffix[0] in "eE":
        digits = suffix[1:].removeprefix("+").removeprefix("-" if suffix[1] == "-" else "")
        if digits and all(each in "0123456789" for each in digits):
            return int(suffix[1:]), 0
    return None


def kubernetes(text: str) -> Fraction | None:
    """UnmarshalJSON, which trims, and ParseQuantity, without its canonical forms."""
    text = text.strip(_SPACES)
    scanned = _scan(text) if text else None
    exponents = _exponents(scanned[2]) if scanned else None
    if scanned is None or exponents is None:
        return None
    (whole, part, _), (tens, twos) = scanned, exponents
    if not whole and not part and (tens < -9 or twos > 40):
        return None  # inf.Dec is asked to read a number without digits
    value = Fraction(int(whole + part or "0")) * Fraction(10) ** (tens - len(part)) * 2**twos
    value = Fraction(ceil(value * 10**9), 10**9)
    if twos:
        value = min(value, Fraction(2**63 - 1))
    return -value if text[0] == "-" else value


_digits = st.text("0123456789", max_size=25)
_suffixes = st.sampled_from([*_DECIMAL, *_BINARY, "e", "K", "mi", "i", " "]) | st.builds(
    "{}{}{}".format,
    st.sampled_from("eE"),
    st.sampled_from(["", "+", "-", "+-"]),
    st.integers(0, 99),
)
_likely = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "", "+", "-"]),
    _digits,
    st.sampled_from(["", ".", ".."]),
    _digits,
    _suffixes,
)
_near = st.text("0123456789.+-eEnumkKMGTPi", max_size=6)


@given(_likely | _near | st.text(max_size=6))
@example("٣")
@example("1\n")
@example("1e+-1")
@example(".Ei")
def test_p12_a_text_is_read_as_kubernetes_reads_it(text: str) -> None:
    assume(not re.search("[eE][+]?0*[1-9][0-9]{2,}$", text))  # beyond 10^99 nobody counts devices
    expected = kubernetes(text)
    event("refused" if expected is None else "accepted")
    assert quantity.parse(text) == expected


@given(st.fractions(0, 10**6))
def test_devices_are_the_least_whole_number_that_is_enough(value: Fraction) -> None:
    devices = quantity.whole(value)
    assert devices - 1 < value <= devices
    assert quantity.is_whole(value) is (devices == value)


@given(st.integers(-(2**80), 2**80))
def test_a_whole_number_is_read_from_any_form(number: int) -> None:
    for form in (number, str(number), f"{number}.0", f"{number}e0", f"{number}000m"):
        assert quantity.parse(form) == number
