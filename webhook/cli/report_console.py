"""The text report in colour, on a terminal that has them: NO_COLOR and TERM are rich's to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from webhook.migration.report_text import Style, diff_segments, segments

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from webhook.migration.report_text import Segment
    from webhook.migration.results import FileResult, Report

_COLOURS = {
    Style.PLAIN: "",
    Style.PLACE: "bold",
    Style.FIXED: "green",
    Style.FIXABLE: "yellow",
    Style.PERSON: "bold red",
    Style.NOTICE: "blue",
    Style.ERROR: "bold red",
    Style.FAINT: "dim",
    Style.HEADING: "bold",
    Style.GONE: "red",
    Style.COME: "green",
}


def console(stream: TextIO) -> Console:
    """A console that writes lines as they are: no wrapping, no guesses about what is a number."""
    return Console(file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False)


def report(found: Report, on: Console, *, wide: bool = False) -> None:
    """Print the report, line by line: it may be long."""
    _print(segments(found, wide=wide), on)


def diff(result: FileResult, on: Console) -> None:
    """Print what changes in the file."""
    _print(diff_segments(result), on)


def _print(pieces: Iterable[Segment], on: Console) -> None:
    line = Text()
    for piece in pieces:
        if piece.text == "\n":
            on.print(line)
            line = Text()
        else:
            line.append(piece.text, style=_COLOURS[piece.style])
