"""Finds the new texts that are not proven: results with their files in, reasons out.

Each file is compared alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.verifying import comparison, read_side
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.files.results import FileResult, Plan
    from webhook.files.source import Source


def reasons(changed: Mapping[str, tuple[FileResult, Source]], plan: Plan) -> dict[str, str]:
    """Why the texts of some files are not proven, by the names of the files."""
    found = {path: _why_not(*each, plan) for path, each in changed.items()}
    return {path: why for path, why in found.items() if why}


def _why_not(result: FileResult, source: Source, plan: Plan) -> str:
    """The first object that is not proven to be equal, and why."""
    new = source.bytes_of(result.new_text or "")
    old_side, new_side = (read_side.of_text(source.path, raw) for raw in (source.raw, new))
    # The webhook makes no unsafe edits: what they change is different.
    for each in comparison.compare(old_side, new_side, replace(plan, unsafe=False)):
        if each.result is not Result.EQUAL:
            named = "" if each.name == each.path else f"{each.name} is "
            return f"--verify: {source.path}: {named}{each.result}: {each.why}"
    return ""
