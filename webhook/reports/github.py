"""Annotations in GitHub's pull requests: workflow commands on a job's output."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from webhook.files.results import Report, Status
from webhook.reports.escaping import sentence, visible
from webhook.reports.rules import manuals
from webhook.reports.text import summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.yamlpatch.places import Place

_MOST = 10  # of each level in a step: GitHub shows no more
_LEVELS = {
    Status.MANUAL: "error",
    Status.FIXABLE: "warning",
    Status.NOTICE: "notice",
    Status.FIXED: "notice",
}
_ORDER = ("error", "warning", "notice")


def github(report: Report) -> str:
    """The most severe findings as annotations, the others as plain lines of the log."""
    given: Counter[str] = Counter()
    rest = []
    made = []
    for level, where, title, message in sorted(
        _all(report), key=lambda each: _ORDER.index(each[0])
    ):
        given[level] += 1
        if given[level] <= _MOST:
            made.append(_command(level, {**where, "title": title}, message))
        else:
            at = ":".join(where[name] for name in ("file", "line", "col") if name in where)
            rest.append(_log(f"{at}: {title}: {message}"))
    if rest:
        made.append(_log(f"and {len(rest):,} more, which GitHub would not show as annotations:"))
    return "".join(f"{line}\n" for line in (*made, *rest, _log(summary(report))))


def _all(report: Report) -> Iterator[tuple[str, dict[str, str], str, str]]:
    names = {code: manual.name for code, manual in manuals(report).items()}
    for result in report.results:
        file = {"file": visible(result.path)}
        if result.error:
            yield "error", file, "not read", sentence(result.error)
        for located in result.located:
            title = f"{visible(located.code)} {names[located.code]}".rstrip()
            where = file | _where(located.place)
            yield _LEVELS[located.status], where, title, sentence(located.message)
        for skipped in result.skipped:
            where = file | (_where(skipped.place) if skipped.place else {})
            yield "notice", where, "skipped", sentence(skipped.reason)


def _where(place: Place) -> dict[str, str]:
    where = {"line": str(place.line), "endLine": str(place.end_line)}
    if place.line == place.end_line:  # GitHub rejects columns over several lines
        where |= {"col": str(place.column), "endColumn": str(place.end_column)}
    return where


def _command(level: str, properties: dict[str, str], message: str) -> str:
    words = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {words}::{_data(message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def _log(line: str) -> str:
    """A line that no runner takes for a command, whatever the name of the file."""
    return f"| {line.replace('##[', '## [')}"
