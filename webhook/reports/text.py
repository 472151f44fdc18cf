"""The report for a terminal: `path:line:col: CODE message`, the lines, and the new text."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from webhook.files import diff
from webhook.files.results import FileResult, Located, Report, Skipped, Status
from webhook.reports.escaping import sentence, visible
from webhook.reports.excerpt import ChangedLines, Excerpt, Lines
from webhook.reports.rules import manuals

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from webhook.yamlpatch.places import Replacement

_TAB = "    "


class Style(StrEnum):
    """The meaning of a piece of text, and how rich shows it on a terminal."""

    PLAIN = ""
    PLACE = HEADING = "bold"
    FIXED = ADDED = "green"
    FIXABLE = "yellow"
    MANUAL = ERROR = "bold red"
    NOTICE = "blue"
    FAINT = "dim"
    REMOVED = "red"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text in one style. No segment continues over a line end."""

    text: str
    style: Style = Style.PLAIN


STYLES = {
    Status.FIXED: Style.FIXED,
    Status.FIXABLE: Style.FIXABLE,
    Status.MANUAL: Style.MANUAL,
    Status.NOTICE: Style.NOTICE,
}
WORDS = {
    Status.FIXED: "fixed",
    Status.FIXABLE: "can be fixed",
    Status.MANUAL: "needs manual changes",
    Status.NOTICE: "worth knowing",
}
_END = Segment("\n")


def text(report: Report) -> str:
    """The report without colours."""
    return "".join(segment.text for segment in segments(report))


def wide(report: Report) -> str:
    """The report with the object and path of each finding."""
    return "".join(segment.text for segment in segments(report, wide=True))


def segments(report: Report, *, wide: bool = False) -> Iterator[Segment]:
    """The report piece by piece, file by file; of several files, each has a summary, too."""
    for result in report.results:
        yield from findings((result,), wide=wide)
        if len(report.results) > 1 and len(result.located) > 1:
            yield from (Segment(f"{visible(result.path)}:", Style.PLACE), Segment(" "))
            yield from (Segment(", ".join(_parts(result.located)), Style.HEADING), _END, _END)
    yield from (Segment(summary(report), Style.HEADING), _END)


def statistics(report: Report) -> str:
    """How many findings each rule has, instead of the findings; the most frequent come first."""
    names = manuals(report)
    of_rules: dict[str, list[Located]] = defaultdict(list)
    for located in report.located:
        of_rules[located.code].append(located)
    width = max((len(f"{len(each):,}") for each in of_rules.values()), default=0)
    lines = [
        f"{len(each):>{width},} {visible(code)} {names[code].name}: {', '.join(_parts(each))}"
        for code, each in sorted(of_rules.items(), key=lambda each: (-len(each[1]), each[0]))
    ]
    return "".join(f"{line}\n" for line in (*lines, summary(report)))


def findings(
    results: Iterable[FileResult],
    *,
    wide: bool = False,
    brief: bool = False,
    without: Container[Status] = (),
) -> Iterator[Segment]:
    """The findings without a summary; if brief, each in one line."""
    for result in results:
        lines = Lines(result.text)
        path = visible(result.path)
        changes: dict[tuple[Replacement, ...], Located] = {}
        if result.error:
            yield from (Segment(f"{path}:", Style.PLACE), Segment(" "))
            yield from (Segment(f"error: {sentence(result.error)}", Style.ERROR), _END)
            yield from () if brief else (_END,)
        for located in (each for each in result.located if each.status not in without):
            yield from _head(path, located)
            first = changes.setdefault(located.fix, located) if located.fix else located
            yield from () if brief else _body(located, lines, first, wide=wide)
        for skipped in result.skipped:
            yield from _skipped(path, skipped, lines, brief=brief)


def diff_segments(result: FileResult) -> Iterator[Segment]:
    """The file's patch for a terminal; for programs it is `diff.unified`."""
    if result.new_text is None:
        return
    signs = {"-": Style.REMOVED, "+": Style.ADDED, " ": Style.PLAIN}
    name = visible(result.path)
    for position, hunk in enumerate(diff.hunks(result.text, result.new_text)):
        if not position:
            yield from (Segment(f"--- a/{name}", Style.HEADING), _END)
            yield from (Segment(f"+++ b/{name}", Style.HEADING), _END)
        yield from (Segment(diff.heading(hunk), Style.FAINT), _END)
        for line in hunk:
            bare = shown(diff.without_end(line.text))
            yield from (Segment(f"{line.sign}{bare}", signs[line.sign]), _END)


def summary(report: Report) -> str:
    """One line with the number of findings of each status."""
    parts = _parts(report.located)
    found = sum(len(result.located) for result in report.results)
    files = sum(1 for result in report.results if result.located)
    looked_at = _amount(max(report.files, len(report.results)), "file")
    line = f"no findings in {looked_at}"
    if found:
        line = f"{_amount(found, 'finding')} in {files:,} of {looked_at}"
    if parts:
        line += f": {', '.join(parts)}"
    if report.errors:
        line += f"; {_amount(report.errors, 'file')} with an error"
    if report.skipped:
        line += f"; {_amount(report.skipped, 'part')} skipped"
    return line


def _parts(located: Iterable[Located]) -> list[str]:
    """The number of findings of each status."""
    counts = Counter(each.status for each in located)
    return [f"{counts[each]:,} {words(each, counts[each])}" for each in Status if counts[each]]


def words(status: Status, number: int) -> str:
    """The words for this number of findings of a status."""
    return "need manual changes" if status is Status.MANUAL and number > 1 else WORDS[status]


def _amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _head(path: str, located: Located) -> Iterator[Segment]:
    at = located.place
    yield Segment(f"{path}:{at.line}:{at.column}:", Style.PLACE)
    yield from (Segment(" "), Segment(visible(located.code), STYLES[located.status]))
    yield from (Segment(f" {sentence(located.message)}"), _END)


def _body(located: Located, lines: Lines, first: Located, *, wide: bool) -> Iterator[Segment]:
    """The lines of a finding, and its change where it is the `first` one that needs this change."""
    style = STYLES[located.status]
    at = located.place
    replaced = list(lines.replaced(located.fix)) if first is located else []
    width = len(str(max([at.line, *(fix.number + len(fix.added) for fix in replaced)])))
    for excerpt in lines.around(at):
        yield from marked(excerpt, width, style)
    change = ":" if replaced else ""
    if first is not located:
        line = first.place.line
        change = f" by the change shown {'above' if line == at.line else f'at line {line}'}"
    yield from _note(WORDS[located.status] + change, width)
    for fix in replaced:
        yield from _fix(fix, width)
    if wide and located.object:
        yield from _note(f"object: {visible(located.object)}", width)
    if wide and located.path:
        yield from _note(f"path: {visible(located.path)}", width)
    yield _END


def _note(words: str, width: int) -> Iterator[Segment]:
    yield from (Segment(f"{'':{width}} = {words}", Style.FAINT), _END)


def marked(excerpt: Excerpt, width: int, style: Style) -> Iterator[Segment]:
    """The line with carets below it, aligned with its characters on any terminal."""
    before, middle = shown(excerpt.before), shown(excerpt.marked)
    if not (before or middle or excerpt.after):
        return
    yield Segment(f"{excerpt.number:>{width}} | ", Style.FAINT)
    yield from (Segment(before + middle + shown(excerpt.after)), _END)
    yield Segment(f"{'':{width}} | ", Style.FAINT)
    carets = "^" * max(_cells(middle.rstrip()), 1)
    yield from (Segment(f"{' ' * _cells(before)}{carets}", style), _END)


def _fix(fix: ChangedLines, width: int) -> Iterator[Segment]:
    for number, line in enumerate(fix.removed, fix.number):
        if not fix.added:
            yield Segment(f"{number:>{width}} - ", Style.FAINT)
            yield from (Segment(shown(line), Style.REMOVED), _END)
    for number, line in enumerate(fix.added, fix.number):
        yield Segment(f"{number:>{width}} + ", Style.FAINT)
        yield from (Segment(shown(line), Style.ADDED), _END)


def _skipped(path: str, skipped: Skipped, lines: Lines, *, brief: bool) -> Iterator[Segment]:
    at = skipped.place
    yield Segment(f"{path}:{at.line}:{at.column}:" if at else f"{path}:", Style.PLACE)
    yield from (Segment(f" skipped: {sentence(skipped.reason)}"), _END)
    if brief:
        return
    if at:
        for excerpt in lines.around(at):
            yield from marked(excerpt, len(str(at.line)), Style.FAINT)
    yield _END


def shown(line: str) -> str:
    """A source line for every terminal: tabs become spaces, and control characters are visible."""
    return visible(line.replace("\t", _TAB))


def _cells(line: str) -> int:
    return len(line) if line.isascii() else sum(map(_width, line))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
