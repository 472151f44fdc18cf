"""Kubernetes quantities, exactly.

The grammar is that of apimachinery's `resource.Quantity` (pkg/api/resource/quantity.go):
a signed decimal number, then one of

- decimal SI: n u m (none) k M G T P E
- binary SI: Ki Mi Gi Ti Pi Ei
- a decimal exponent: e or E and a signed integer

Two facts of that parser are kept: an amount beyond 2^63-1 becomes 2^63-1, and an amount finer
than a nano is rounded up, away from zero, to a whole nano.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_LARGEST = 2**63 - 1
_NANO = 10**9

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}

# [0-9], not \d: Python's \d takes the digits of every script.
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<only>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)

# Beyond this the value is certainly capped or rounded up to a nano; 10**exponent is never computed.
_EXPONENT_LIMIT = 2**31
_FAR = 100
_LONGEST = 300


def parse(amount: object) -> Fraction | None:
    """The amount as a number, or None if Kubernetes would refuse it.

    Takes what YAML or JSON give: a text, an integer or a float. A boolean is no amount.
    """
    if isinstance(amount, bool):
        return None
    if isinstance(amount, int):
        return _bounded(Fraction(amount))
    if isinstance(amount, float):
        amount = repr(amount)  # 'inf' and 'nan' fail the grammar
    return _parse(amount) if isinstance(amount, str) and len(amount) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _parse(text: str) -> Fraction | None:
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        return None
    whole = match["whole"] or ""
    part = match["part"] or match["only"] or ""
    digits = Fraction(int((whole + part) or "0"), 10 ** len(part))
    if match["exponent"] is not None:
        exponent = int(match["exponent"])
        if abs(exponent) >= _EXPONENT_LIMIT:
            return None  # Go reads the exponent as an int32
        scale = Fraction(10) ** max(-_FAR - _LONGEST, min(_FAR + _LONGEST, exponent))
    else:
        scale = _SUFFIXES[match["suffix"] or ""]
    value = digits * scale
    return _bounded(-value if match["sign"] == "-" else value)


def _bounded(value: Fraction) -> Fraction:
    nanos = _away_from_zero(value * _NANO)
    return max(Fraction(-_LARGEST), min(Fraction(_LARGEST), Fraction(nanos, _NANO)))


def whole(value: Fraction) -> int:
    """The amount as whole devices: rounded up, away from zero, as `Quantity.Value()` does."""
    return min(_away_from_zero(value), _LARGEST)


def _away_from_zero(value: Fraction) -> int:
    if value >= 0:
        return -(-value.numerator // value.denominator)
    return value.numerator // value.denominator


def is_whole(value: Fraction) -> bool:
    """True where the API server takes the amount for a device: a whole number."""
    return value.denominator == 1
