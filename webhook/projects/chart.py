"""Manual findings in one file of a Helm chart that concern pods in another file.

Values are inserted into templates, and templates include one another.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.core.errors import InputError
from webhook.files.reading import UnreadableError, read_regular, stamp_of, text_of
from webhook.files.source import Source
from webhook.formats import legacy_pods
from webhook.formats.migrate import migrate_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.files.results import FileResult, Plan

_MARK = "Chart.yaml"
_DEPENDENCIES = (_MARK, "requirements.yaml")  # of Helm 3, and of Helm 2
_BESIDE = re.compile(r"file://([^\s\"'},]+)")
_READ = (".yaml", ".yml", ".tpl", ".json")
_MOST = 2_000  # files of a chart that are read


def migrated(path: str, source: Source, plan: Plan) -> FileResult:
    """The result for a file; its amounts wait for manual findings in the rest of its chart."""
    result = migrate_text(source, plan)
    chart = _chart_of(path) if legacy_pods.does_amounts(result) else None
    left: dict[str, str] = {}
    for each in _meeting(path, chart) if chart is not None else ():
        if os.path.realpath(path) != os.path.realpath(each):
            left = {**_left(_asked(each, os.path.relpath(each, chart), plan)), **left}
    return migrate_text(source, replace(plan, left=left)) if left else result


def _chart_of(path: str) -> Path | None:
    above = Path(os.path.abspath(path)).parents  # noqa: PTH100  # a link keeps its own name
    return next((each for each in above if (each / _MARK).is_file()), None)


def _meeting(path: str, chart: Path) -> Iterator[str]:
    """The files that may produce a part of a pod in this file.

    Templates may include those of all charts of a release. Values go from a chart to its subcharts,
    and so do the amounts in a file of values.
    """
    above = _closed([chart], _users)
    is_template = "templates" in Path(os.path.relpath(path, chart)).parts
    with_values = above if is_template else [*above, *_closed([chart], _used)]
    for each in _closed(above, _used):
        for file, is_part in _files(each):
            if is_part or each in with_values:
                yield file


def _closed(charts: list[Path], step: Callable[[Path], Iterator[Path]]) -> list[Path]:
    """These charts, and all that are reached by such steps."""
    found = list(charts)
    for each in found:  # the list grows
        found += [other for other in dict.fromkeys(step(each)) if other not in found]
    return found


def _users(chart: Path) -> Iterator[Path]:
    """The chart around this one, and the charts around and beside it that name it."""
    outer = chart.parent.parent
    if chart.parent.name == "charts" and (outer / _MARK).is_file():
        yield outer
    neighbours = (mark.parent for mark in sorted(chart.parent.glob(f"*/{_MARK}")))
    yield from (each for each in (*neighbours, *chart.parents) if chart in _beside(each))


def _used(chart: Path) -> Iterator[Path]:
    """The charts inside this one, and the charts beside it that it names."""
    yield from (mark.parent for mark in sorted(chart.glob(f"charts/*/{_MARK}")))
    yield from (each for each in _beside(chart) if (each / _MARK).is_file())


def _beside(chart: Path) -> Iterator[Path]:
    for name in _DEPENDENCIES:
        for place in _BESIDE.findall(text_of(str(chart / name))):
            yield Path(os.path.normpath(chart / place))


def _files(chart: Path) -> Iterator[tuple[str, bool]]:
    """The files of one chart that its templates can use, and whether each is a template."""
    number = 0
    for folder, inner, files in os.walk(chart):
        here = Path(folder)
        is_part = "templates" in here.relative_to(chart).parts
        inner[:] = sorted(i for i in inner if i != ".git" and not (here / i / _MARK).is_file())
        for name in sorted(files):
            number += 1
            if number > _MOST:
                return
            is_read = name.endswith(_READ) and name not in _DEPENDENCIES
            if name.endswith(".txt") and name != "NOTES.txt":
                is_read = is_part or _is_got(chart, name)
            if is_read:
                yield str(here / name), is_part


def _is_got(chart: Path, name: str) -> bool:
    """Whether a template reads files that are not templates, and this may be one of them."""
    texts = map(text_of, map(str, islice((chart / "templates").rglob("*.*"), _MOST)))
    return any(".Files.Glob" in text or (".Files." in text and name in text) for text in texts)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A file as it is now, and the options of the run."""

    path: str
    name: str
    changed: tuple[int, int]
    codes: tuple[tuple[str, ...], tuple[str, ...]]
    plan: Plan = field(compare=False)


def _asked(path: str, name: str, plan: Plan) -> _Asked:
    codes = tuple(plan.codes), tuple(plan.ignored)
    return _Asked(path, name, stamp_of(path), codes, plan)


@lru_cache(maxsize=4096)
def _left(asked: _Asked) -> dict[str, str]:
    """The manual findings in one file of a chart."""
    with suppress(UnreadableError, InputError):
        source = Source.of(asked.path, read_regular(asked.path)[0])
        if any(True for _ in legacy_pods.words(source.text, asked.plan)):
            return legacy_pods.left(migrate_text(source, asked.plan), asked.plan, asked.name)
    return {}
