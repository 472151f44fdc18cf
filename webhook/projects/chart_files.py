"""The files of a Helm chart that its templates can use: its folder in, their paths out."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.files.reading import text_of
from webhook.files.source import CHART
from webhook.templates import actions

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPENDENCIES = (CHART, "requirements.yaml")  # of Helm 3, and of Helm 2
NOTES = "NOTES.txt"
_INSTALLS = re.compile(
    r"^kind:[ \t]*[\"']?(?:Application(?:Set)?|Helm\w+|\w*Release|App)\b", re.MULTILINE
)
_DEPENDENCY = re.compile(
    r"(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)[\"']?name[\"']?:[ \t]*[\"']?(?P<name>[-\w.]+)",
    re.MULTILINE,
)
_MAY_END = re.compile(r"\{\{[^{}]*\b(?:fail|include|required|template)\b")
_TEST = re.compile(r"_tests?\.ya?ml$")
_SUITE = [re.compile(rf"^{each}:", re.MULTILINE) for each in ("tests", "[ \\t-]+asserts")]
_READ = (".yaml", ".yml", ".tpl", ".json")
_MOST = 2_000  # files of a chart that are read


def files(chart: Path) -> Iterator[tuple[str, bool]]:
    """The files of one chart that its templates can use, and whether each is a template."""
    number, readers = 0, None
    for folder, inner, names in os.walk(chart):
        here = Path(folder)
        is_part = "templates" in here.relative_to(chart).parts
        inner[:] = sorted(i for i in inner if i != ".git" and not (here / i / CHART).is_file())
        for name in sorted(names):
            number += 1
            if number > _MOST:
                return
            is_read = name.endswith(_READ) and name not in DEPENDENCIES
            if name.endswith(".txt") and name != NOTES:
                readers = _readers(chart) if readers is None else readers
                is_read = is_part or any(".Files.Glob" in e or name in e for e in readers)
            if is_read and not is_test(str(here / name)):
                yield str(here / name), is_part


@lru_cache(maxsize=4096)
def gives(chart: Path, _run: object) -> frozenset[str] | None:
    """The names of the charts that get values from this one; None: of any."""
    if any(is_part and _INSTALLS.search(text_of(file)) for file, is_part in files(chart)):
        return None
    named = (text_of(str(chart / each)).partition("dependencies:")[2] for each in DEPENDENCIES)
    return frozenset(each["name"] for said in named for each in _DEPENDENCY.finditer(said))


def is_test(file: str) -> bool:
    """Whether a file has tests of helm-unittest, whose values no release gets."""
    return bool(_TEST.search(file)) and all(each.search(text_of(file)) for each in _SUITE)


def notes(chart: Path) -> tuple[str, str]:
    """The notes that Helm prints, if they may end its work: the file, and its actions.

    Their text has no effect.
    """
    file = str(chart / "templates" / NOTES)
    text = text_of(file)
    if not _MAY_END.search(text):
        return file, ""
    pieces, here = [], 0
    for each in actions.read_apart(text).actions:
        pieces += [actions.blank(text[here : each.start]), text[each.start : each.end]]
        here = each.end
    return file, "".join(pieces)


def _readers(chart: Path) -> list[str]:
    """The templates that read files that are not templates."""
    texts = map(text_of, map(str, islice((chart / "templates").rglob("*.*"), _MOST)))
    return [text for text in texts if ".Files." in text]
