"""Which charts belong together: inside, around and beside one another."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.files.reading import text_of
from webhook.files.source import CHART
from webhook.projects.chart_files import DEPENDENCIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_NAME = re.compile(r"^name:[ \t]*[\"']?(?P<name>[-\w.]+)", re.MULTILINE)
_BESIDE = re.compile(r"file://([^\s\"'},]+)")


def closed(
    charts: list[Path], step: Callable[[Path, object], Iterable[Path]], run: object
) -> list[Path]:
    """These charts, and all that are reached by such steps."""
    found = list(charts)
    for each in found:  # the list grows
        found += [other for other in dict.fromkeys(step(each, run)) if other not in found]
    return found


def around(chart: Path, run: object) -> Iterator[Path]:
    yield from users(chart, run)
    yield from used(chart, run)


def users(chart: Path, run: object) -> Iterator[Path]:
    """The chart around this one, and the charts around and beside it that name it."""
    outer = chart.parent.parent
    if chart.parent.name == "charts" and (outer / CHART).is_file():
        yield outer
    neighbours = (mark.parent for mark in sorted(chart.parent.glob(f"*/{CHART}")))
    yield from (each for each in (*neighbours, *chart.parents) if chart in beside(each, run))


def used(chart: Path, run: object) -> Iterator[Path]:
    """The charts inside this one, and the charts beside it that it names."""
    yield from (mark.parent for mark in sorted(chart.glob(f"charts/*/{CHART}")))
    yield from (each for each in beside(chart, run) if (each / CHART).is_file())


@lru_cache(maxsize=4096)
def beside(chart: Path, _run: object) -> list[Path]:
    """The places beside a chart that it names."""
    texts = (text_of(str(chart / name)) for name in DEPENDENCIES)
    named = (place for text in texts for place in _BESIDE.findall(text))
    return [Path(os.path.normpath(chart / place)) for place in named]


def chart_of(path: str) -> Path | None:
    """The folder of the chart around a file; None if it is in none."""
    above = Path(os.path.abspath(path)).parents  # noqa: PTH100  # a link keeps its own name
    return next((each for each in above if (each / CHART).is_file()), None)


def own_name(chart: Path) -> str:
    """The name in a chart; without one, that of its folder."""
    found = _NAME.search(text_of(str(chart / CHART)))
    return found["name"] if found else chart.name


def names_of(chart: Path) -> set[str]:
    """The names by which others may call a chart."""
    return {own_name(chart), chart.name}
