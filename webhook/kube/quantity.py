"""Kubernetes quantities, exactly.

The grammar is that of apimachinery's `resource.Quantity` (pkg/api/resource/quantity.go):
a signed decimal number, then one of

- decimal SI: n u m (none) k M G T P E
- binary SI: Ki Mi Gi Ti Pi Ei
- a decimal exponent: e or E and a signed integer

Facts of that parser that are kept (checked against v0.36.3): a number may lack its digits and is
mostly 0 then (`k`, `+`, `.`); a binary SI amount beyond 2^63-1 becomes 2^63-1, a decimal one does
not; an amount finer than a nano is rounded up, away from zero, to a whole nano; null is 0, and
blanks around a text do not count (`Quantity.UnmarshalJSON` trims the text as it stands in JSON,
where a tab or a line end is written with a backslash, and so is no blank).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

_LARGEST = 2**63 - 1
_NANO = 10**9

_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL = {suffix: Fraction(10) ** power for suffix, power in _POWERS.items()}
_BINARY = {
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}

# [0-9], not \d: Python's \d takes the digits of every script.
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)

# Without digits a number is 0 in the parser's fast path, and an error otherwise.
_LONG_WAY = ("Pi", "Ei")
_NANO_EXPONENT = -9

# White space of Go's unicode.IsSpace that JSON does not escape.
_BLANKS = (
    " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

LONGEST = 300  # characters of a text that is cached, and digits that are distinguished
# Stands for all larger amounts. The API server accepts a thousand digits, and the scheduler and the
# kubelet read their last 64 bits, so such an amount must count as very large.
BEYOND = Fraction(10**LONGEST)
_FINEST = 2 * LONGEST + 9  # digits that are read of a number: further digits are below a nano


def parse(amount: object) -> Fraction | None:
    """The amount as a number, or None if Kubernetes would reject it.

    Takes values of YAML or JSON: a text, an integer, a float or null. A boolean is not an amount.
    """
    if isinstance(amount, str):
        return _parse(amount) if len(amount) <= LONGEST else _read(amount)
    if amount is None:
        return Fraction(0)
    if isinstance(amount, float):
        return _read(repr(amount))  # 'inf' and 'nan' fail the grammar
    return Fraction(amount) if isinstance(amount, int) and not isinstance(amount, bool) else None


def _read(text: str) -> Fraction | None:
    text = text.strip(_BLANKS)
    match = _GRAMMAR.fullmatch(text)
    if match is None or not text:
        return None
    whole, part, suffix = match["whole"], match["part"] or "", match["suffix"] or ""
    exponent = _exponent(match["exponent"] or "0")
    if not (whole or part) and (suffix in _LONG_WAY or exponent < _NANO_EXPONENT):
        return None
    value = _scaled(whole, part, exponent)
    if suffix in _BINARY:
        value = min(value * _BINARY[suffix], Fraction(_LARGEST))
    else:
        value = min(value * _DECIMAL[suffix], BEYOND)
    value = Fraction(ceil(value * _NANO), _NANO)
    return -value if match["sign"] == "-" else value


def _exponent(text: str) -> int:
    """The exponent; beyond a million its value does not matter."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text.lstrip("+"))
    digits = digits.lstrip("0") or "0"
    return int(f"{sign}{digits}") if len(digits) <= _MILLION else int(f"{sign}1{'0' * _MILLION}")


_MILLION = 6  # digits


def _scaled(whole: str, part: str, exponent: int) -> Fraction:
    """`whole.part` times ten to the exponent, rounded up to a whole nano."""
    digits = (whole + part).lstrip("0")
    places = len(digits) - len(part) + exponent  # digits before the point
    if not digits:
        return Fraction(0)
    if places > LONGEST:
        return BEYOND
    if places < -LONGEST:
        return Fraction(1, _NANO * 2**60)  # a nano, whatever the suffix
    read = int(digits[:_FINEST]) + bool(digits[_FINEST:].strip("0"))
    return read * Fraction(10) ** (places - min(len(digits), _FINEST))


_parse = lru_cache(maxsize=1024)(_read)  # pods use the same few amounts


def nanos(amount: object) -> int | None:
    """The same in nanos: no amount is finer, and integers are added quickly."""
    value = parse(amount)
    return None if value is None else value.numerator * (_NANO // value.denominator)


def whole_of(nanos: int) -> int:
    """This number of nanos as whole devices, rounded up."""
    return -(-nanos // _NANO)


def whole(value: Fraction) -> int:
    """The amount as whole devices: rounded up, as `Quantity.Value()` does with amounts above 0."""
    return value.numerator if value.denominator == 1 else ceil(value)


def like(amount: object, was: object) -> object:
    """The amount, as a number if it is a whole one in a text that replaces a number."""
    value = parse(amount) if isinstance(amount, str) and isinstance(was, int | float) else None
    return amount if value is None or not is_whole(value) else value.numerator


def is_whole(value: Fraction) -> bool:
    """True if the API server accepts the amount for a device: a whole number."""
    return value.denominator == 1
