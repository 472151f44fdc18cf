"""Selects the files that may have findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.files.folder import shown
from webhook.files.results import FileResult
from webhook.files.search import Lot, search
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
) -> Iterator[str | FileResult]:
    """The files that contain one of the words, or that cannot be read: reading.py finds out which.

    A result stands for an entry that is not a readable file, with the reason. `processes`: see
    search.py.
    """
    files = size = 0
    for found in search(find(wanted), words, processes):
        if not isinstance(found, Lot):
            yield found
            continue
        files, size = files + found.files, size + found.size
        if progress is not None:
            progress(files, size)
        for path, _ in found.paths():
            yield path if shown(path) == path else FileResult(shown(path), error=_NO_UTF8)
