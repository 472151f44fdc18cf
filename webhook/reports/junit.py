"""The report as JUnit XML, which CI servers show as tests: a file is a suite, a finding a case."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.excerpt import Lines
from webhook.reports.text import WORDS, Style, marked, summary
from webhook.reports.visible import sentence, visible

if TYPE_CHECKING:
    from collections.abc import Iterator


_FAILED = (Status.FIXABLE, Status.MANUAL)


def junit(report: Report) -> str:
    """The document.

    A report without findings has one case that passed, because some servers need one.
    """
    suites = [line for result in report.results for line in _suite(result)]
    tests = sum(each.remarks for each in report.results)
    if not suites:
        suites, tests = list(_clean(report)), 1
    head = _open(
        "testsuites",
        name="gpu-webhook",
        tests=tests,
        failures=sum(map(_failures, report.results)),
        errors=report.errors,
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"]
    return "".join(f"{line}\n" for line in lines)


def _failures(result: FileResult) -> int:
    return sum(1 for located in result.located if located.status in _FAILED)


def _clean(report: Report) -> Iterator[str]:
    yield _open("testsuite", name="gpu-webhook", tests=1, failures=0, errors=0, skipped=0)
    yield f'<testcase classname="gpu-webhook" name={_quoted(summary(report))}/>'
    yield "</testsuite>"


def _suite(result: FileResult) -> Iterator[str]:
    path = visible(result.path)
    yield _open(
        "testsuite",
        name=path,
        tests=result.remarks,
        failures=_failures(result),
        errors=int(bool(result.error)),
        skipped=len(result.skipped),
    )
    lines = Lines(result.text)
    if result.error:
        yield _open("testcase", classname=path, name="the file can be read", file=path)
        yield f"<error message={_quoted(sentence(result.error))}/></testcase>"
    for located in result.located:
        yield from _case(path, located, lines)
    for skipped in result.skipped:
        where = {"file": path} | ({"line": skipped.place.line} if skipped.place else {})
        at = f"line {skipped.place.line}: " if skipped.place else ""
        yield _open("testcase", classname=path, name=f"{at}a manifest that can be read", **where)
        yield f"<skipped message={_quoted(sentence(skipped.reason))}/></testcase>"
    yield "</testsuite>"


def _case(path: str, located: Located, lines: Lines) -> Iterator[str]:
    code, message = visible(located.code), sentence(located.message)
    name = f"{code} line {located.place.line}: {message}"
    yield _open("testcase", classname=path, name=name, file=path, line=located.place.line)
    where = f"{path}:{located.place.line}:{located.place.column}: {code} {message}\n"
    source = "".join(
        segment.text
        for excerpt in lines.around(located.place)
        for segment in marked(excerpt, len(str(excerpt.number)), Style.PLAIN)
    )
    body = escape(where + source + WORDS[located.status], quote=False)
    if located.status in _FAILED:
        yield f"<failure type={_quoted(code)} message={_quoted(message)}>{body}</failure>"
    else:
        yield f"<system-out>{body}</system-out>"
    yield "</testcase>"


def _open(tag: str, **attributes: str | int) -> str:
    words = "".join(f" {name}={_quoted(str(value))}" for name, value in attributes.items())
    return f"<{tag}{words}>"


def _quoted(value: str) -> str:
    return f'"{escape(visible(value))}"'
