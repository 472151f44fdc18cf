"""Files that wait for an overlay or for data values of ytt: the results of a run in, reasons out.

An overlay finds the members of another file by their names, data values have the names of their
schema, and code may look a name up. Templates of ytt are not edited. So while one of these has
something to migrate, what belongs to it stays as it is: any file of the repository outside of
charts.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from webhook.files.reading import text_of
from webhook.files.results import Status
from webhook.files.source import STREAM, TEMPLATES, Source
from webhook.formats.migrate import migrate_text
from webhook.projects import chart_graph, named_files
from webhook.templates import ytt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.files.results import FileResult, Plan

_MERGED = re.compile("#@(?:overlay/|data/values)")
_SIGN = "#@"
_READ = ("yaml", *TEMPLATES)  # kinds of files that ytt may read


def waiting(results: Iterable[FileResult], plan: Plan) -> dict[str, str]:
    """Why files stay as they are, by the paths of their results."""
    by_root: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for each in results:
        file = os.path.realpath(each.path)
        if each.new_text is None or each.path == STREAM or each.kind == "markdown":
            continue
        if chart_graph.chart_of(file) is not None:
            continue
        root = named_files.root_of(file, plan)
        if root not in by_root:
            by_root[root] = _left(file, plan)
        if by_root[root]:
            reasons[each.path] = by_root[root]
    return reasons


def _left(file: str, plan: Plan) -> str:
    """The first overlay in the repository of a file that needs manual work; empty without one."""
    for each in named_files.with_words(file, plan, (_SIGN,)):
        text = text_of(each)
        name = os.path.relpath(each)
        source, is_merged = Source.of_text(name, text), _MERGED.search(text) is not None
        if source.kind not in _READ or not ytt.has_code(text):
            continue
        for found in migrate_text(source, plan).located:
            place = found.place
            before = text[source.index(place.line) : source.index(place.line, place.column)]
            if found.status is Status.MANUAL and (is_merged or _SIGN in before):
                return (
                    f"ytt may merge it with {name}, in which {found.code} needs manual work (line "
                    f"{place.line}): change them together"
                )
    return ""
