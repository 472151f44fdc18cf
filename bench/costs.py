"""What a review costs as it grows in one place: `python -m bench.costs [words of a shape's name]`.

Takes the shapes of tests/costs at 1x, 2x, 4x and 8x, the last as large as the budget of an object
allows, or 3 MiB. Prints processor milliseconds of the whole answer (parsing, rules, patch, log
line), how many times they grow from one size to the next, and how many times json.loads of the same
body fits in. The dearest come last; all of them with --all.

A size that takes less than 2 ms counts as 2 ms where growth is judged: that is a constant cost, or
the count of a budget that no small review is held against. Where json.loads itself grows more than
twice, since no cache of the processor holds the body, growth is divided by as much as that is more.
The milliseconds and the last column are as they were measured.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
from functools import partial
from itertools import pairwise
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.table import Table

from tests.costs.court import Court
from tests.costs.shapes import reviews
from webhook.core.object_size import excess
from webhook.core.settings import Settings
from webhook.evaluation.workloads import templates_of

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 3 * 1024 * 1024
STEPS = (1, 2, 4, 8)
RUNS, ENOUGH_SECONDS = 3, 0.5  # of one body: the fastest of so many, or of so much time
SHOWN = 30
CONSTANT_SECONDS = 0.002
MOST_GROWTH, MOST_RATIO = 2.2, 150
LIGHT_SECONDS = 0.05  # what a light review may take (webhook/admission/review.py)


class Cost(NamedTuple):
    """What one shape costs on one path."""

    name: str
    path: str
    size: int  # of the largest body
    seconds: list[float]
    parsing: list[float]  # json.loads of the same bodies

    @property
    def growth(self) -> float:
        """The most from one size to the next, beyond a constant cost and what parsing grows."""
        return max(
            after / max(before, CONSTANT_SECONDS) / max(1.0, parsed[1] / parsed[0] / 2)
            for (before, after), parsed in zip(
                pairwise(self.seconds), pairwise(self.parsing), strict=True
            )
        )

    @property
    def ratio(self) -> float:
        return self.seconds[-1] / self.parsing[-1]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.costs", description=__doc__)
    parser.add_argument("words", nargs="*", help="only shapes whose name or path has all of these")
    parser.add_argument("--all", action="store_true", help=f"print all, not the {SHOWN} dearest")
    args = parser.parse_args()
    court = Court(importlib.import_module)
    chosen = [
        each
        for each in reviews(whole=True)
        if all(word in f"{each[1]} {each[0]}" for word in args.words)
    ]
    sizes: dict[str, int] = {}
    costs = []
    for name, path, make in chosen:
        shape = name.partition(" (")[0]  # the same pod on another path is as large
        sizes[shape] = sizes.get(shape) or _largest(make)
        largest = sizes[shape] if not _excess(make(sizes[shape])) else _largest(make)
        costs.append(measured(court, name, path, make, largest))
    costs.sort(key=lambda cost: cost.ratio)
    table = Table("path", "shape", "KB", *(f"{step}x ms" for step in STEPS), "growth", "json.loads")
    for cost in costs if args.all else costs[-SHOWN:]:
        table.add_row(
            cost.path,
            cost.name,
            f"{cost.size / 1000:.0f}",
            *(f"{seconds * 1000:.1f}" for seconds in cost.seconds),
            f"{cost.growth:.2f}",
            f"{cost.ratio:.0f}x",
        )
    if costs:
        Console(width=120).print(table, _summary(costs))
    return 0


def _summary(costs: list[Cost]) -> str:
    grown = [cost for cost in costs if cost.growth > MOST_GROWTH]
    dear = [cost for cost in costs if cost.ratio > MOST_RATIO]
    slow = [cost for cost in dear if cost.seconds[-1] > LIGHT_SECONDS]
    return (
        f"{len(costs)} shapes and paths. Growth at most {max(cost.growth for cost in costs):.2f} a "
        f"doubling, more than {MOST_GROWTH} in {len(grown)}. Cost at most {costs[-1].ratio:.0f} "
        f"times json.loads, more than {MOST_RATIO} in {len(dear)}, of which {len(slow)} take more "
        f"than {LIGHT_SECONDS * 1000:.0f} ms. The slowest takes "
        f"{max(cost.seconds[-1] for cost in costs) * 1000:.0f} ms"
    )


def measured(
    court: Court, name: str, path: str, make: Callable[[int], bytes], largest: int
) -> Cost:
    """Answer reviews of this shape; what is made once is made before."""
    bodies = [make(max(largest * step // STEPS[-1], 1)) for step in STEPS]
    court.answer(path, bodies[0])
    seconds = [_fastest(partial(court.answer, path, body)) for body in bodies]
    parsing = [_fastest(partial(json.loads, body)) for body in bodies]
    return Cost(name, path, len(bodies[-1]), seconds, parsing)


def _largest(make: Callable[[int], bytes]) -> int:
    """The largest number whose object is within the budget, and 3 MiB."""
    low, high = 8, 16
    while _fits(make(high)):
        low, high = high, 2 * high
    while high - low > low // 16:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(make(middle)) else (low, middle)
    return low


def _fits(body: bytes) -> bool:
    return len(body) <= LARGEST and not _excess(body)


def _excess(body: bytes) -> str:
    obj = json.loads(body)["request"]["object"]
    return excess(obj, len(templates_of(obj, Settings())))


def _fastest(work: Callable[[], object]) -> float:
    seen: list[float] = []
    while len(seen) < RUNS and sum(seen) < ENOUGH_SECONDS:
        gc.collect()
        gc.disable()
        began = process_time()
        work()
        seen.append(process_time() - began)
        gc.enable()
    return min(seen)


if __name__ == "__main__":
    sys.exit(main())
