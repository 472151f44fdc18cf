"""The report as SARIF 2.1.0, for code scanning and editors.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from webhook import __version__
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.escaping import relative_uri, sentence, storable, visible
from webhook.reports.excerpt import Lines
from webhook.reports.rules import Manual, manuals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.yamlpatch.places import Place, Replacement

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"  # the name of the repository root, for GitHub and others
_LEVELS = {
    Status.MANUAL: "error",
    Status.FIXABLE: "warning",
    Status.NOTICE: "note",
    Status.FIXED: "none",  # 3.27.10: the level of a result that is no failure
}
_FINGERPRINT = "gpuWebhook/v1"
_INDENT = 1


def sarif(report: Report) -> str:
    """The log with its one run."""
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(report)]}
    return json.dumps(log, indent=_INDENT, ensure_ascii=False) + "\n"


def _run(report: Report) -> dict[str, Any]:
    rules = manuals(report)
    indexes = {code: index for index, code in enumerate(rules)}
    notes = [note for result in report.results for note in _notes(result)]
    return {
        "tool": {
            "driver": {
                "name": "gpu-webhook",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(manual) for manual in rules.values()],
            }
        },
        "automationDetails": {"id": "gpu-webhook/"},
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.errors,
                "toolExecutionNotifications": notes,
            }
        ],
        "results": [found for result in report.results for found in _results(result, indexes)],
    }


def _rule(manual: Manual) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": visible(manual.code)}
    if manual.name:
        rule |= {
            "name": manual.name,
            "shortDescription": {"text": manual.headline},
            "fullDescription": {"text": manual.text},
            "help": {"text": manual.text, "markdown": manual.markdown},
        }
    return rule


def _results(result: FileResult, indexes: dict[str, int]) -> Iterator[dict[str, Any]]:
    lines = Lines(result.text)
    alike: Counter[str] = Counter()
    for located in result.located:
        print_ = _fingerprint(result, located, lines)
        alike[print_] += 1
        yield _result(result, located, indexes[located.code]) | {
            "partialFingerprints": {_FINGERPRINT: f"{print_}:{alike[print_]}"},
            **_fixes(result, located, lines),
        }


def _result(result: FileResult, located: Located, index: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(result.path),
            "region": _region(located.place),
        }
    }
    names = [
        {"name": storable(name), "fullyQualifiedName": storable(name), "kind": kind}
        for name, kind in ((located.object, "resource"), (located.path, "member"))
        if name
    ]
    return {
        "ruleId": visible(located.code),
        "ruleIndex": index,
        "kind": "informational" if located.status is Status.FIXED else "fail",
        "level": _LEVELS[located.status],
        "message": {"text": sentence(located.message)},
        "locations": [place | ({"logicalLocations": names} if names else {})],
        "properties": {"status": located.status.value},
    }


def _fixes(result: FileResult, located: Located, lines: Lines) -> dict[str, Any]:
    """The fixes for an editor. Findings that are fixed already have none."""
    fix = located.fix or located.suggestion
    if not fix or located.status is Status.FIXED:
        return {}
    change = {
        "artifactLocation": _artifact(result.path),
        "replacements": [_replacement(each, lines) for each in fix],
    }
    words = f"As `gpu-webhook migrate --write` does for {visible(located.code)}"
    if not located.fix:
        words = "Renames the constant: check the code that uses it"
    return {"fixes": [{"description": {"text": words}, "artifactChanges": [change]}]}


def _replacement(each: Replacement, lines: Lines) -> dict[str, Any]:
    made: dict[str, Any] = {"deletedRegion": _region(lines.place(each.start, each.end))}
    if each.text:
        made["insertedContent"] = {"text": storable(each.text)}
    return made


def _notes(result: FileResult) -> Iterator[dict[str, Any]]:
    """Unreadable parts of the file: not results, but they must be visible."""
    artifact = {"artifactLocation": _artifact(result.path)}
    if result.error:
        yield _note("error", result.error, artifact)
    for skipped in result.skipped:
        region = {"region": _region(skipped.place)} if skipped.place else {}
        yield _note("warning", skipped.reason, artifact | region)


def _note(level: str, words: str, place: dict[str, Any]) -> dict[str, Any]:
    return {
        "level": level,
        "message": {"text": sentence(words)},
        "locations": [{"physicalLocation": place}],
    }


def _artifact(path: str) -> dict[str, Any]:
    """A file of the repository by its relative path; another file by its own URI."""
    uri = relative_uri(path)
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": _ROOT}


def _region(place: Place) -> dict[str, int]:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _fingerprint(result: FileResult, located: Located, lines: Lines) -> str:
    """Stays the same if lines move: from the code, the object and the words of the line."""
    words = " ".join(lines.line(located.place.line).split())
    parts = (result.path, located.code, located.object, located.path, words)
    hashed = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()[:32]
