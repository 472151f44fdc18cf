"""Amounts of 2^63 and more, as kube-scheduler reads them: `Quantity.Value()` overflows an int64.

The API server accepts such amounts, and the scheduler places their pods: an amount that overflows
counts as 0, or as its low 64 bits, which may be negative. Only the question whether a pod can run
may use this: a limit compares what the author wrote. (apimachinery v0.36.3, pkg/api/resource:
ParseQuantity, Quantity.Add, int64Amount, scaledValue.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from webhook.kube import quantity

_LOW = 2**64 - 1
_INT64 = range(-(2**63), 2**63)
_FAST_DIGITS = 18  # a text of no more digits is read into an int64 and a power of ten
_NANO = -9
_AT_ONCE = (1, 2, 3, 6, 9)  # powers of ten by which positiveScaleInt64 multiplies in one step


@dataclass(frozen=True, slots=True)
class Amount:
    """A Quantity: its value, and the int64Amount in which it is stored while that is possible.

    An int64Amount is a number that fits an int64, and a power of ten.
    """

    exact: Fraction
    small: tuple[int, int] | None

    def __add__(self, other: Amount) -> Amount:
        """Quantity.Add."""
        return Amount(self.exact + other.exact, _sum(self.small, other.small))

    def __gt__(self, other: Amount) -> bool:
        """Quantity.Cmp."""
        return self.exact > other.exact

    @property
    def value(self) -> int:
        """Quantity.Value: the number that the scheduler compares."""
        whole = ceil(self.exact)
        if whole in _INT64:
            return whole
        if self.small is not None and self.small[1] not in _AT_ONCE:
            return 0  # positiveScaleInt64 multiplies by ten repeatedly, and gives up
        low = whole & _LOW  # the result of big.Int.Int64, and of a product of two int64
        return low if low in _INT64 else low - _LOW - 1


ZERO = Amount(Fraction(0), (0, 0))


def read(text: object) -> Amount | None:
    """The amount as ParseQuantity reads it.

    None if Kubernetes would reject it, or if it has more digits than are distinguished here.
    """
    exact = quantity.parse(text)
    if exact is None or abs(exact) >= quantity.BEYOND:
        return None
    if isinstance(text, str) and len(text) > quantity.LONGEST:
        return Amount(exact, None)
    digits, exponent = quantity.decimal(text)
    fast = len(str(abs(digits))) <= _FAST_DIGITS and exponent >= _NANO
    return Amount(exact, (digits, exponent) if fast else None)


def _sum(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    """int64Amount.Add; None if it gives up, and the sum is stored as a big number."""
    if a is None or b is None:
        return None
    if not (a[0] and b[0]):
        return a if a[0] else b
    scale = min(a[1], b[1])
    parts = [value * 10 ** (power - scale) for value, power in (a, b)]
    fits = all(each in _INT64 for each in (*parts, sum(parts)))
    return (sum(parts), scale) if fits else None
