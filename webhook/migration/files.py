"""Road 2's way to files: which of those that are meant matter, what they hold, and the new text."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.core.errors import InputError
from webhook.migration import replacing
from webhook.migration.listing import STDIN, Wanted, find, shown
from webhook.migration.reading import UnreadableError, read_all, read_regular
from webhook.migration.results import FileResult, Skipped
from webhook.migration.search import Lot, search
from webhook.migration.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Progress = Callable[[int, int], None]  # files looked at and bytes read, so far

__all__ = ["STDIN", "FileResult", "Wanted", "candidates", "read", "write"]

_NO_UTF8 = "has a name that is not UTF-8, so that no report could name it: rename it"


def candidates(
    wanted: Wanted,
    words: Sequence[bytes],
    progress: Progress | None = None,
    processes: int | None = None,
) -> Iterator[str | FileResult]:
    """Give the files that hold one of the words or cannot be read: `read` tells which.

    A result stands for what is no file to read, and says why. `processes`: see search.py.
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


def read(path: str) -> Source | FileResult:
    """Read a file, or the standard input for `-`; a result says why it cannot be read."""
    try:
        raw = read_all(sys.stdin.buffer) if path == STDIN else read_regular(path)[0]
        return Source.of(path, raw)
    except UnreadableError as error:
        return FileResult(path, error=str(error))
    except InputError as error:
        return FileResult(path, error=str(error).removeprefix(f"{path}: "))


def write(result: FileResult) -> FileResult:
    """Write the new text, unless the file is no longer what it was read as.

    Gives the result with what there is to say: an error if the file was left as it is.
    """

    def new_text(raw: bytes) -> bytes | None:
        try:
            source = Source.of(result.path, raw)
        except InputError:
            return None
        same = source.text == result.text and result.new_text is not None
        return source.bytes_of(result.new_text or "") if same else None

    try:
        said = replacing.replace(result.path, new_text)
    except replacing.UnwritableError as error:
        return replace(result, error=str(error))
    return replace(result, skipped=(*result.skipped, Skipped(said))) if said else result
