"""Twice the review, at most 2.2 times the work: in every list, map and text that a tenant writes.

And no more work for a byte than 150 times what json.loads does. What is counted are steps
(meter.py), so no other work on the machine can make this fail or pass.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.costs.court import Court
from tests.costs.meter import Copy, Meter, counting
from tests.costs.shapes import BOMBS, PATHS, review, reviews

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.programs

# Beyond 100 things there is another way for some, so the last size is larger. A square grows most
# in the last doubling; `make nightly` also has those before it, and a larger one, where a square of
# few steps shows. It sends each shape in every way.
_IS_NIGHTLY = settings.get_current_profile_name() == "nightly"
SIZES = (40, 80, 160, 320) if _IS_NIGHTLY else (60, 120)
MOST_GROWTH = 2.1  # steps know no logarithm; a square has 4
# One doubling may have more: where a cap is reached (100 terms that are joined), another way is
# taken from there on. The last one may not.
MOST_AT_LAST = 2.2
# 150 times json.loads of a byte takes some 0.9 us, and a step 30 ns.
MOST_STEPS_OF_A_BYTE = 32
# A template of 17 bytes: in custom kinds, which have no defaults of the API server that make it
# longer, the budget keeps their number low. A container of 64, which the API server refuses.
SHORTEST = {"many templates without anything": 37, "containers without a name": 36}
REVIEWS = list(reviews(whole=_IS_NIGHTLY))


class Scales:
    """The counting copy of the endpoint."""

    def __init__(self) -> None:
        self._copy = Copy()
        self._court = Court(self._copy.module)
        # Small reviews are not held against the budget: that is a step, and no growth.
        self._copy.module("webhook.admission.decide").is_heavy = bool
        # Nor are as many templates as the budget allows enough to see how the work grows.
        self._copy.module("webhook.core.object_size").MOST_TEMPLATES = SIZES[-1] + 1
        # The index of the shipped models is one for each profile, as long as the process lives.
        table = self._copy.module("webhook.capacity.models")._table
        self._copy.keep(table)
        for shared in (False, True):
            table("gfd", shared)
        for path in PATHS:  # what is made once is made now
            self._court.answer(path, review(BOMBS["ldpath"](1)))

    def steps(self, path: str, body: bytes) -> int:
        """How many steps this review takes."""
        self._copy.forget()
        return self._copy.meter.steps(lambda: self._court.answer(path, body))


@pytest.fixture(scope="module")
def scales() -> Scales:
    return Scales()


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "path", "body"),
    [pytest.param(name, path, body, id=f"{path} {name}") for name, path, body in REVIEWS],
)
def test_the_work_grows_no_faster_than_the_review_and_is_little_for_each_byte(
    scales: Scales, name: str, path: str, body: Callable[[int], bytes]
) -> None:
    bodies = [body(size) for size in SIZES]
    seen = [scales.steps(path, each) for each in bodies]
    growth = [after / before for before, after in itertools.pairwise(seen)]
    assert all(each <= MOST_GROWTH for each in sorted(growth)[:-1]), (growth, seen)
    assert growth[-1] <= MOST_AT_LAST, (growth, seen)
    most = SHORTEST.get(name.partition(" (")[0], MOST_STEPS_OF_A_BYTE)
    assert seen[-1] <= most * len(bodies[-1]), seen[-1] / len(bodies[-1])


def test_the_same_review_takes_the_same_steps(scales: Scales) -> None:
    name, path, body = REVIEWS[0]
    assert len({scales.steps(path, body(size)) for size in (40, 40)}) == 1, name


QUADRATIC = {
    "in a list": "[x for x in a if x in b]",
    "not in the values of a map": "[x for x in a if x not in c.values()]",
    "list.index": "[b.index(x) for x in b]",
    "a list that is copied in each round": "[list(a) for x in a]",
    "a slice in each round": "[a[1:] for x in a]",
    "a text that is searched in each round": "[text.split('x') for x in a]",
    "a text that is written in each round": "[f'{text} {x}' for x in a]",
    "lists that are equal but for the end": "[x for x in a if a == [*a[:-1], -1]]",
    "a map that is merged in each round": "[{**c} for x in a]",
    "loops in one another": "[x for x in a for y in a]",
}
LINEAR = {
    "in a set": "[x for x in a if x in s]",
    "list.append": "[b.append(x) for x in a]",
    "dict.get": "[c.get(x) for x in a]",
    "one text of many": "''.join(str(x) for x in a)",
    "sorted": "sorted(a)",
    "two loops": "[x for x in a] + [y for y in a]",
}
REMOVAL = """
def work(a):
    while a:
        del a[0]
"""


@pytest.mark.parametrize(
    ("text", "square"),
    [
        *(pytest.param(text, True, id=name) for name, text in QUADRATIC.items()),
        *(pytest.param(text, False, id=name) for name, text in LINEAR.items()),
    ],
)
def test_what_the_meter_sees(text: str, square: bool) -> None:  # noqa: FBT001  # a table
    grown = _growth(
        "def work(a):\n"
        "    b, c, s, text = [-x for x in a], {x: x for x in a}, set(a), 'x' * 16 * len(a)\n"
        f"    return {text}\n"
    )
    assert (grown > 3) is square
    assert (grown <= MOST_GROWTH) is not square


def test_the_meter_sees_removals_from_the_front() -> None:
    assert _growth(REMOVAL) > 3


def _growth(source: str) -> float:
    meter, names = Meter(), dict[str, Any]()
    exec(counting(source, "snippet"), {"__meter__": meter}, names)  # noqa: S102  # its purpose
    few, many = (meter.steps(partial(names["work"], list(range(n)))) for n in (200, 400))
    return many / few
