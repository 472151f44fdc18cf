"""What was measured, and what follows from it: medians of rounds, ratios within a round."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Sample:
    """What the load generator saw in one window; times in milliseconds."""

    calls_per_second: float
    p50: float
    p90: float
    p99: float
    max: float
    calls: int  # with those of the warm-up
    load_average: float  # of the machine just before: says who else was at work


@dataclass(frozen=True, slots=True)
class Window:
    """One contender, so many connections, one round."""

    contender: str
    connections: int
    round: int
    sample: Sample
    cpu_ms: float | None = None  # processor time of the server for a call, where it can be told
    kind: str = ""  # of the pods, where they are apart


@dataclass(frozen=True, slots=True)
class Line:
    """All rounds of one contender over so many connections."""

    contender: str
    connections: int
    windows: tuple[Window, ...]

    def median(self, of: Callable[[Sample], float]) -> float:
        return median(of(each.sample) for each in self.windows)

    def cpu_ms(self) -> float | None:
        known = [each.cpu_ms for each in self.windows if each.cpu_ms is not None]
        return median(known) if known else None

    def ratios_to(self, other: Line) -> list[float]:
        """Give calls per second over the other's, round by round, the smallest first.

        The two windows of a round are seconds apart, so a machine that is slower for a minute
        slows both; windows of different rounds are not compared.
        """
        return sorted(
            mine.sample.calls_per_second / theirs.sample.calls_per_second
            for mine, theirs in zip(self.windows, other.windows, strict=True)
        )

    def cpu_ratios_to(self, other: Line) -> list[float]:
        """Give processor time over the other's in the same way; none where it is not known."""
        return sorted(
            mine.cpu_ms / theirs.cpu_ms
            for mine, theirs in zip(self.windows, other.windows, strict=True)
            if mine.cpu_ms and theirs.cpu_ms
        )


def by_kind(windows: Sequence[Window]) -> dict[str, list[Window]]:
    """Put the windows of each kind of pod together, in the order in which the kinds came first."""
    found: dict[str, list[Window]] = {}
    for each in windows:
        found.setdefault(each.kind, []).append(each)
    return found


def lines(windows: Sequence[Window]) -> list[Line]:
    """Put the rounds together, in the order in which the contenders came first."""
    keys = dict.fromkeys((each.connections, each.contender) for each in windows)
    return [
        Line(
            contender,
            connections,
            tuple(w for w in windows if (w.connections, w.contender) == (connections, contender)),
        )
        for connections, contender in keys
    ]
