"""Holds back files together: results and reasons against some in, results without new texts out.

Files of a chart, and of kustomizations that belong together, are changed together or not at all.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from webhook.projects import chart, kustomizations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.files.results import FileResult, Plan


def held(
    changed: Mapping[str, FileResult], reasons: Mapping[str, str], plan: Plan
) -> dict[str, FileResult]:
    """The results whose texts stay as they are; all by the names of their files."""
    return {
        path: changed[path].undone(why)
        for group in (groups(changed, plan) if reasons else ())
        if (why := next((reasons[path] for path in group if path in reasons), ""))
        for path in group
    }


def groups(paths: Iterable[str], plan: Plan) -> list[list[str]]:
    """The files that are changed together or not at all."""
    together: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        together[_group(path, plan)].append(path)
    return [*together.values()]


def _group(path: str, plan: Plan) -> str:
    """The first chart of those that need one another, or file of kustomizations, of this file."""
    files = kustomizations.together(path, plan) or chart.connected(path, plan)
    return min(files or {os.path.realpath(path)})
