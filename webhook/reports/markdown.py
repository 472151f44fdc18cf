"""The report as a comment on a pull request: a table, then a part to unfold for each file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webhook.files import diff
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.escaping import relative_uri, sentence, visible
from webhook.reports.rules import manuals
from webhook.reports.text import WORDS, shown, summary

if TYPE_CHECKING:
    from collections.abc import Iterator


_MOST = 65_000  # characters: GitHub allows 65,536
_ROOM = 200  # for the last line
_MARKS = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ADDRESS = re.compile(r"([@#])(?=[0-9A-Za-z])")
_LINK = re.compile(r"(https?)(?=://)|(www)(?=\.)", re.IGNORECASE)
_NOTHING = "<!-- -->"  # between a sign and its word: it mentions no user and links no issue


def markdown(report: Report, most: int = _MOST) -> str:
    """The comment, never longer than `most`.

    Patches are left out first, then findings, which are counted.
    """
    head = _head(report)
    room = most - len(head) - _ROOM
    bodies, left_out = _bodies(report, room)
    room -= sum(len(_folded(result, body, "")) for result, body in bodies)
    parts = [head]
    for result, body in bodies:
        patch = _patch(result)
        if len(patch) > room:
            patch = ""
        room -= len(patch)
        parts.append(_folded(result, body, patch))
    if left_out:
        parts.append(f"\n… and {left_out:,} more: the other formats have them all.\n")
    return "".join(parts)


def _bodies(report: Report, room: int) -> tuple[list[tuple[FileResult, str]], int]:
    """The findings of each file, as many as fit, and the number of those that do not fit."""
    bodies = []
    left_out = 0
    for result in report.results:
        body = ""
        for line in _lines(result):
            if left_out or len(_folded(result, body + line, "")) > room:
                left_out += 1
            else:
                body += line
        if body:
            bodies.append((result, body))
            room -= len(_folded(result, body, ""))
    return bodies, left_out


def _head(report: Report) -> str:
    counts = report.counts()
    lines = ["### GPU manifests", "", f"{summary(report)}.", ""]
    if counts:
        lines += [
            "| rule | " + " | ".join(WORDS[status] for status in Status if counts[status]) + " |",
            "|---|" + "--:|" * len(counts),
        ]
        lines += _table(report, [status for status in Status if counts[status]])
        lines.append("")
    return "\n".join(lines) + "\n"


def _table(report: Report, columns: list[Status]) -> Iterator[str]:
    found = [*report.located]
    for code, manual in manuals(report).items():
        mine = [located.status for located in found if located.code == code]
        if mine:
            cells = " | ".join(str(mine.count(status) or "") for status in columns)
            yield f"| {escaped(f'{code} {manual.name}'.rstrip())} | {cells} |"


def _lines(result: FileResult) -> Iterator[str]:
    if result.error:
        yield f"- **not read**: {escaped(sentence(result.error))}\n"
    for located in result.located:
        yield _finding(result.path, located)
    for skipped in result.skipped:
        where = f" {_link(result.path, skipped.place.line)}" if skipped.place else ""
        yield f"- skipped{where}: {escaped(sentence(skipped.reason))}\n"


def _finding(path: str, located: Located) -> str:
    where = _link(path, located.place.line)
    words = f"{escaped(located.code)} ({WORDS[located.status]})"
    return f"- {where} **{words}**: {escaped(sentence(located.message))}\n"


def _link(path: str, line: int) -> str:
    return f"[line {line}]({relative_uri(path)}#L{line})"


def _folded(result: FileResult, body: str, patch: str) -> str:
    title = f"<code>{_html(visible(result.path))}</code> ({result.remarks})"
    return f"\n<details><summary>{title}</summary>\n\n{body}{patch}\n</details>\n"


def _patch(result: FileResult) -> str:
    if result.new_text is None:
        return ""
    patch = diff.unified(result.path, result.text, result.new_text)
    lines = [shown(line.removesuffix("\r")) for line in patch.split("\n")[2:]]
    text = "\n".join(lines).rstrip("\n")
    if not text:
        return ""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"\n{fence}diff\n{text}\n{fence}\n"


def escaped(text: str) -> str:
    """Text that is shown unchanged: no mark-up, no HTML, no mention of users, no link to issues."""
    text = _MARKS.sub(r"\\\1", visible(text))
    text = "".join(_ENTITIES.get(each, each) for each in text)
    return _LINK.sub(rf"\g<0>{_NOTHING}", _ADDRESS.sub(rf"\1{_NOTHING}", text))


def _html(text: str) -> str:
    """Text for the inside of an HTML tag on one line."""
    return "".join(_ENTITIES.get(each, each) for each in text)
