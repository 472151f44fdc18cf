"""The text report in colour, on a terminal that has them: NO_COLOR and TERM are rich's to read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from webhook.files.results import Status
from webhook.reports.text import Style, diff_segments, findings, segments, summary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from webhook.files.results import FileResult, Report
    from webhook.reports.text import Segment

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


def remarks(found: Report, on: Console) -> None:
    """Print what a diff does not show, and the summary of all."""
    shown = (Status.FIXABLE, Status.FIXED)
    rest = [
        replace(each, located=tuple(f for f in each.located if f.status not in shown))
        for each in found.results
    ]
    _print(findings(replace(found, results=tuple(rest))), on)
    on.print(Text(summary(found), style=_COLOURS[Style.HEADING]))


def diff(result: FileResult, on: Console) -> None:
    """Print what changes in the file."""
    _print(diff_segments(result), on)


def _print(pieces: Iterable[Segment], on: Console) -> None:
    if not on.is_terminal:  # nothing to colour: a third of the time of a whole scan
        on.file.writelines(piece.text for piece in pieces)
        return
    line = Text()
    for piece in pieces:
        if piece.text == "\n":
            on.print(line)
            line = Text()
        else:
            line.append(piece.text, style=_COLOURS[piece.style])
