"""Holds back files together: results and reasons against some in, results without new texts out.

Files of a chart, and of kustomizations that belong together, are changed together or not at all.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.files.source import CHART
from webhook.projects import kustomizations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.files.results import FileResult, Plan


def held(
    changed: Mapping[str, FileResult], reasons: Mapping[str, str], plan: Plan
) -> dict[str, FileResult]:
    """The results whose texts stay as they are; all by the names of their files."""
    if not reasons:
        return {}
    together: dict[str, list[str]] = defaultdict(list)
    for path in changed:
        together[_group(path, plan)].append(path)
    return {
        path: changed[path].undone(why)
        for group in together.values()
        if (why := next((reasons[path] for path in group if path in reasons), ""))
        for path in group
    }


def _group(path: str, plan: Plan) -> str:
    """The chart, or the first file of the kustomizations, that this file belongs to."""
    real = Path(os.path.realpath(path))
    charts = [each for each in real.parents if (each / CHART).is_file()]
    files = kustomizations.together(path, plan) or {str(charts[-1] if charts else real)}
    return min(files)
