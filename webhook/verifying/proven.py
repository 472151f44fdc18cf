"""Holds back the new texts that are not proven: results with their files in, results out.

Each file is compared alone. Files of a chart, and of kustomizations that belong together, are
changed together or not at all.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.files.source import CHART
from webhook.projects import kustomizations
from webhook.verifying import comparison, sides
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.files.results import FileResult, Plan
    from webhook.files.source import Source

    Changed = Mapping[str, tuple[FileResult, Source]]


def held(changed: Changed, plan: Plan) -> dict[str, FileResult]:
    """The results whose texts stay as they are, by the names of their files."""
    together: dict[str, list[str]] = defaultdict(list)
    reasons: dict[str, str] = {}
    for path, (result, source) in changed.items():
        group = _group(path, plan)
        together[group].append(path)
        if why := _why_not(result, source, plan):
            reasons.setdefault(group, why)
    return {
        path: changed[path][0].undone(why)
        for group, why in reasons.items()
        for path in together[group]
    }


def _why_not(result: FileResult, source: Source, plan: Plan) -> str:
    """The first object that is not proven to be equal, and why."""
    new = source.bytes_of(result.new_text or "")
    old_side, new_side = (sides.of_text(source.path, raw) for raw in (source.raw, new))
    # The webhook makes no unsafe edits: what they change is different.
    for each in comparison.compare(old_side, new_side, replace(plan, unsafe=False)):
        if each.result is not Result.EQUAL:
            named = "" if each.name == each.path else f"{each.name} is "
            return f"--verify: {source.path}: {named}{each.result}: {each.why}"
    return ""


def _group(path: str, plan: Plan) -> str:
    """The chart, or the first file of the kustomizations, that this file belongs to."""
    real = Path(os.path.realpath(path))
    charts = [each for each in real.parents if (each / CHART).is_file()]
    files = kustomizations.together(path, plan) or {str(charts[-1] if charts else real)}
    return min(files)
