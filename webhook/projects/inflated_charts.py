"""Charts that a kustomization inflates: its fields in, each chart's files and its values out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.kube.pod import as_items, as_map
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Raw = dict[str, Any]

_MOST = 2_000  # files of a chart


class Chart(NamedTuple):
    """A chart: its own files, if it is on this machine, and the values that are given to it."""

    name: str
    files: tuple[str, ...]
    values: tuple[tuple[str, str], ...]  # each with the file that has it


def charts_of(file: str, fields: Raw, text_of: Callable[[str], str]) -> Iterator[Chart]:
    """The charts of a kustomization (its fields in small letters), and of what it generates."""
    home = as_map(fields.get("helmglobals")).get("chartHome")
    for member in ("helmcharts", "helmchartinflationgenerator"):
        for _, entry in as_items(fields.get(member)):
            yield _chart(file, {"chartHome": home, **entry}, text_of)
    for each in fields.get("generators") or ():
        place = os.path.realpath(Path(file).parent / str(each)) if "\n" not in str(each) else file
        text = text_of(place) if place != file else str(each)
        read = documents.read(text).documents
        for document in read:
            yield _chart(place, as_map(document.data), text_of)
        if not read:
            yield Chart(str(each).partition("\n")[0], (), ())


def _chart(file: str, entry: Raw, text_of: Callable[[str], str]) -> Chart:
    folder = Path(file).parent
    name = str(entry.get("name") or entry.get("chartName") or "")
    home = folder / str(entry.get("chartHome") or "charts")
    inside = sorted(home.glob(f"{name}*/**/*"))[:_MOST] if name and "/" not in name else []
    files = tuple(os.path.realpath(each) for each in inside if each.is_file())
    named = [
        entry.get("valuesFile"),
        entry.get("values"),
        *(entry.get("additionalValuesFiles") or ()),
    ]
    places = [os.path.realpath(folder / each) for each in named if isinstance(each, str)]
    values = [(place, text_of(place)) for place in places]
    values.append((file, json.dumps(entry, default=str)))
    return Chart(name, files, tuple(values))
