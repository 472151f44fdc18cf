"""The consoles for tables and the text report; rich reads NO_COLOR and TERM."""

from __future__ import annotations

import os
from operator import attrgetter
from typing import TYPE_CHECKING, TextIO

from webhook.files.results import FileResult, Report, Status
from webhook.reports.text import Segment, Style, diff_segments, findings, segments, summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console


_PIPED_WIDTH = 140  # columns
_FORCING = ("FORCE_COLOR", "TTY_COMPATIBLE")  # variables that rich reads


def for_tables() -> Console:
    """A console for tables, as wide as the terminal; a table that goes into a file is wider."""
    from rich.console import Console

    found = Console(highlight=False)
    if found.is_terminal or "COLUMNS" in os.environ:
        return found
    return Console(highlight=False, width=_PIPED_WIDTH)


def console(stream: TextIO) -> Console | None:
    """A console that writes lines unchanged; None if there is nothing to colour.

    Loading rich takes as long as scanning a file.
    """
    if os.environ.get("NO_COLOR") or not (stream.isatty() or any(map(os.environ.get, _FORCING))):
        return None
    from rich.console import Console

    made = Console(file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False)
    return made if made.is_terminal else None


def report(found: Report, stream: TextIO, *, wide: bool = False, quiet: bool = False) -> None:
    """Print the report line by line, because it may be long."""
    write(findings(found.results, brief=True) if quiet else segments(found, wide=wide), stream)


def remarks(found: Report, stream: TextIO, *, quiet: bool = False) -> None:
    """Print the findings that a diff does not show, and the summary."""
    shown = (Status.FIXABLE, Status.FIXED)
    write(findings(found.results, brief=quiet, without=shown), stream)
    if not quiet:
        write((Segment(summary(found), Style.HEADING), Segment("\n")), stream)


def diff(result: FileResult, stream: TextIO) -> None:
    """Print the changes of the file."""
    write(diff_segments(result), stream)


def write(pieces: Iterable[Segment], stream: TextIO) -> None:
    """Print pieces, with colours if the stream is to have them."""
    on = console(stream)
    if on is None:
        stream.writelines(map(attrgetter("text"), pieces))
        return
    from rich.text import Text

    line = Text()
    for piece in pieces:
        if piece.text == "\n":
            on.print(line)
            line = Text()
        else:
            line.append(piece.text, style=piece.style)
