"""The report as JSON and YAML, for programs. docs/reports.md describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook import __version__
from webhook.files import diff
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports import printing
from webhook.reports.escaping import storable
from webhook.reports.excerpt import Lines
from webhook.rules import is_legacy

if TYPE_CHECKING:
    from webhook.yamlpatch.places import Place, Replacement

# Of the format: it grows when a member changes its meaning or is removed, but not for new members.
VERSION = 1


def as_json(report: Report) -> str:
    """The report as one JSON document."""
    return printing.as_json(data(report))


def as_yaml(report: Report) -> str:
    """The same as YAML."""
    return printing.as_yaml(data(report))


def data(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    counts = report.counts()
    return {
        "version": VERSION,
        "tool": {"name": "gpu-webhook", "version": __version__},
        "summary": {
            "files": report.files,
            **{status.value: counts[status] for status in Status},
            "skipped": report.skipped,
            "errors": report.errors,
        },
        "files": [_file(result) for result in report.results],
    }


def _file(result: FileResult) -> dict[str, Any]:
    lines = Lines(result.text)
    made: dict[str, Any] = {"path": storable(result.path), "kind": storable(result.kind)}
    if result.error:
        made["error"] = storable(result.error)
    made["findings"] = [_finding(each, lines) for each in result.located]
    made["skipped"] = [
        {"reason": storable(each.reason), **(_place(each.place) if each.place else {})}
        for each in result.skipped
    ]
    if result.new_text is not None:
        made["diff"] = storable(diff.unified(result.path, result.text, result.new_text))
    return made


def _finding(located: Located, lines: Lines) -> dict[str, Any]:
    return {
        "code": storable(located.code),
        "status": located.status.value,
        "legacy": is_legacy(located.code),
        "message": storable(located.message),
        **_place(located.place),
        "object": storable(located.object),
        "path": storable(located.path),
        "fix": [_replacement(each, lines) for each in located.fix],
    }


def _replacement(each: Replacement, lines: Lines) -> dict[str, Any]:
    return {**_place(lines.place(each.start, each.end)), "text": storable(each.text)}


def _place(place: Place) -> dict[str, int]:
    return {
        "line": place.line,
        "column": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
