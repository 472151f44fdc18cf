"""The report as JUnit XML, which CI servers show as tests: a file is a suite, a finding a case."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.escaping import sentence, visible
from webhook.reports.excerpt import Lines
from webhook.reports.text import WORDS, Style, marked, summary

_FAILED = (Status.FIXABLE, Status.MANUAL)


def junit(report: Report) -> str:
    """The document.

    A report without findings has one case that passed, because some servers need one.
    """
    tests = sum(each.remarks for each in report.results) if report.results else 1
    failed = sum(map(_failures, report.results))
    root = Element("testsuites", _texts(_counts("gpu-webhook", tests, failed, report.errors)))
    for result in report.results:
        _add_suite(root, result)
    if not report.results:
        suite = _added(root, "testsuite", **_counts("gpu-webhook", 1, 0, 0), skipped=0)
        _added(suite, "testcase", classname="gpu-webhook", name=summary(report))
    indent(root, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, "unicode")}\n'


def _counts(name: str, tests: int, failures: int, errors: int) -> dict[str, str | int]:
    return {"name": name, "tests": tests, "failures": failures, "errors": errors}


def _failures(result: FileResult) -> int:
    return sum(1 for located in result.located if located.status in _FAILED)


def _add_suite(root: Element, result: FileResult) -> None:
    path, errors = result.path, int(bool(result.error))
    counts = _counts(path, result.remarks, _failures(result), errors)
    suite = _added(root, "testsuite", **counts, skipped=len(result.skipped))
    lines = Lines(result.text)
    if result.error:
        case = _added(suite, "testcase", classname=path, name="the file can be read", file=path)
        _added(case, "error", message=sentence(result.error))
    for located in result.located:
        _add_case(suite, path, located, lines)
    for skipped in result.skipped:
        where = {"file": path} | ({"line": skipped.place.line} if skipped.place else {})
        at = f"line {skipped.place.line}: " if skipped.place else ""
        name = f"{at}a manifest that can be read"
        case = _added(suite, "testcase", classname=path, name=name, **where)
        _added(case, "skipped", message=sentence(skipped.reason))


def _add_case(suite: Element, path: str, located: Located, lines: Lines) -> None:
    code, message, line = visible(located.code), sentence(located.message), located.place.line
    name = f"{code} line {line}: {message}"
    case = _added(suite, "testcase", classname=path, name=name, file=path, line=line)
    if located.status in _FAILED:
        said = _added(case, "failure", type=code, message=message)
    else:
        said = _added(case, "system-out")
    source = "".join(
        segment.text
        for excerpt in lines.around(located.place)
        for segment in marked(excerpt, len(str(excerpt.number)), Style.PLAIN)
    )
    where = f"{visible(path)}:{line}:{located.place.column}: {code} {message}\n"
    said.text = where + source + WORDS[located.status]


def _added(holder: Element, tag: str, **attributes: str | int) -> Element:
    return SubElement(holder, tag, _texts(attributes))


def _texts(attributes: dict[str, str | int]) -> dict[str, str]:
    return {name: visible(str(value)) for name, value in attributes.items()}
