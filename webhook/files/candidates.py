"""Selects the files that may have findings."""

# ruff: noqa: PTH119
# Paths are texts here: to make Path objects would take longer than to read the files.

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from webhook.files.folder import shown
from webhook.files.prefilter import BINARY, HIT, LIMIT, TOO_LARGE
from webhook.files.reading import too_large, why
from webhook.files.results import FileResult, Skipped
from webhook.files.search import SearchBatch, search
from webhook.files.source import is_read
from webhook.files.walk import Wanted, find, leads_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Progress = Callable[[int, int], None]  # files searched and bytes read, so far

__all__ = ["Wanted", "candidates", "leads_out"]

_NO_UTF8 = "has a name that is not UTF-8, so that no report could name it: rename it"


def candidates(
    wanted: Wanted,
    words: Sequence[bytes],
    progress: Progress | None = None,
    processes: int | None = None,
    others: Counter[str] | None = None,
) -> Iterator[str | FileResult]:
    """The files that contain one of the words, or that cannot be read: reading.py finds out which.

    A result stands for an entry that is not a readable file, with the reason. Binary files are not
    among them, unless their names are those of manifests. `processes`: see search.py. `others`
    counts the texts that are only searched, by the ends of their names.
    """
    files = size = 0
    named = {*wanted.arguments, *map(os.path.normpath, wanted.arguments)}
    counted: Counter[str] = Counter() if others is None else others
    for found in search(find(wanted), words, processes):
        if not isinstance(found, SearchBatch):
            yield found
            continue
        files, size = files + found.files, size + found.size
        if progress is not None:
            progress(files, size)
        counted.update(end(n) for _, names in found.batch for n in names if not is_read(n))
        for path, verdict in found.paths():
            is_other = not is_read(path)
            if is_other and verdict != HIT:
                counted[end(path)] -= 1
            if shown(path) != path:
                yield FileResult(shown(path), error=_NO_UTF8)
            elif verdict == HIT or not is_other or path in named:
                yield path
            elif verdict != BINARY:
                yield FileResult(path, skipped=(Skipped(_reason(verdict)),))


def end(name: str) -> str:
    """The end of a name, such as `.rst`; the whole name if it has none."""
    _, dot, ending = name.rpartition(".")
    return dot + ending.lower() if dot and os.sep not in ending else os.path.basename(name)


def _reason(verdict: int) -> str:
    return too_large(LIMIT, LIMIT) if verdict == TOO_LARGE else why(OSError(verdict, ""))
