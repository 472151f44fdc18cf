"""The files of a Helm chart that its templates can use: its folder in, their paths out."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.files.reading import text_of
from webhook.files.source import CHART

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPENDENCIES = (CHART, "requirements.yaml")  # of Helm 3, and of Helm 2
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
            if name.endswith(".txt") and name != "NOTES.txt":
                readers = _readers(chart) if readers is None else readers
                is_read = is_part or any(".Files.Glob" in e or name in e for e in readers)
            if is_read:
                yield str(here / name), is_part


def _readers(chart: Path) -> list[str]:
    """The templates that read files that are not templates."""
    texts = map(text_of, map(str, islice((chart / "templates").rglob("*.*"), _MOST)))
    return [text for text in texts if ".Files." in text]
