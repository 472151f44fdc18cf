"""The report as one page that needs no network: report.html filled in, with report.js."""

from __future__ import annotations

import html as html_text
import re
import shlex
from collections import defaultdict
from difflib import SequenceMatcher
from itertools import count
from posixpath import dirname
from string import Template
from typing import TYPE_CHECKING

from webhook import __version__
from webhook.files import diff
from webhook.files.results import FileResult, Located, Report, Skipped, Status
from webhook.kube.times import date
from webhook.reports.escaping import sentence, visible
from webhook.reports.excerpt import ChangedLines, Excerpt, Lines, shortened
from webhook.reports.frame import escaped as _text
from webhook.reports.frame import framed, part
from webhook.reports.rules import Manual, manuals
from webhook.reports.text import WORDS, shown, summary, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.files.diff import Line
    from webhook.yamlpatch.places import Replacement

_FEW = 25  # files whose changes are unfolded at first
_CONTEXT = 2
_LONG = 400  # characters: longer lines are not compared word by word
_UNREAD = "unread"  # a status of the page: errors and skipped parts
_WORD = re.compile(r"[\w./-]+|\s+|.")  # names of resources and images are one word


def html(report: Report) -> str:
    """The page, as text."""
    folders = _Folders(report)
    body = folders.html()
    said = summary(report)
    title = _text(said[:1].upper() + said[1:])
    page = Template(part("report.html")).substitute(
        summary=title,
        about=_text(f"{report.repository} · {date(report.time)}") if report.repository else "",
        version=_text(__version__),
        filters="".join(_filters(report)),
        folders=body,
        folder_list=folders.list(),
        rules="".join(_rules(report, folders.anchors)),
    )
    return framed(f"GPU manifests: {title}", page, part("report.js"))


def _source(text: str) -> str:
    return html_text.escape(shown(text))


def _filters(report: Report) -> Iterator[str]:
    counts: dict[str, int] = dict(report.counts().items())
    counts[_UNREAD] = report.skipped + report.errors
    order = (Status.MANUAL, Status.FIXABLE, Status.FIXED, Status.NOTICE, _UNREAD)
    for key, status in enumerate((each for each in order if counts.get(each)), 1):
        yield (
            f'<button type="button" class="filter {status}" data-status="{status}" '
            f'aria-pressed="false" aria-keyshortcuts="{key}"><b>{counts[status]:,}</b> '
            f"{'not read' if status == _UNREAD else words(Status(status), counts[status])}</button>"
        )


class _Folders:
    """The files by folder; each finding gets an anchor, to which the rules link."""

    def __init__(self, report: Report) -> None:
        self._folders: dict[str, list[FileResult]] = defaultdict(list)
        for result in sorted(report.results, key=_urgency):
            self._folders[dirname(result.path) or "."].append(result)
        self._open = len(report.results) <= _FEW
        self._are_files = bool(report.repository)
        self._numbers = count(1)
        self.anchors: list[tuple[str, FileResult, Located]] = []

    def list(self) -> str:
        """Those with manual work come first, as everywhere on the page."""
        return "".join(
            f'<li><button type="button" data-folder="{_text(folder)}">'
            f"<span>{_text(folder)}</span> "
            f"<b>{sum(each.remarks for each in inside):,}</b></button></li>"
            for folder, inside in self._folders.items()
        )

    def html(self) -> str:
        return "".join(
            f'<section class="folder" data-folder="{_text(folder)}"><h2>{_text(folder)}</h2>'
            f"{''.join(map(self._file, inside))}</section>"
            for folder, inside in self._folders.items()
        )

    def _file(self, result: FileResult) -> str:
        lines = Lines(result.text)
        shown_at: dict[tuple[Replacement, ...], str] = {}  # each change, with a link to it
        name = result.path.rpartition("/")[2]
        return (
            f'<details class="file" data-path="{_text(result.path)}" open>'
            f'<summary><h3 title="{_text(result.path)}">{_text(name)}</h3>'
            f'<span class="kind">{_text(result.kind)}</span>'
            f'<span class="count">{result.remarks:,}</span></summary>'
            f"{_unread(result)}"
            f"{''.join(self._finding(result, each, lines, shown_at) for each in result.located)}"
            f"{''.join(_skipped(each, lines) for each in result.skipped)}"
            f"{_command(result) if self._are_files else ''}{self._changes(result)}</details>"
        )

    def _finding(
        self,
        result: FileResult,
        located: Located,
        lines: Lines,
        shown_at: dict[tuple[Replacement, ...], str],
    ) -> str:
        anchor = f"f{next(self._numbers)}"
        self.anchors.append((anchor, result, located))
        at = located.place
        fix = _fix(lines.replaced(located.fix))
        if located.fix in shown_at:
            fix = _fix_row(f"the fix, {shown_at[located.fix]}")
        elif fix:
            shown_at[located.fix] = f'<a href="#{anchor}">shown at line {at.line}</a>'
        facts = "".join(
            f"<dt>{name}</dt><dd>{_text(value)}</dd>"
            for name, value in (("object", located.object), ("path", located.path))
            if value
        )
        return (
            f'<details class="finding {located.status}" id="{anchor}" '
            f'data-status="{located.status}"{" open" * (located.status is Status.MANUAL)}><summary>'
            f'<span class="badge">{WORDS[located.status]}</span> '
            f'<span class="code">{_text(located.code)}</span> '
            f'<span class="at">{at.line}:{at.column}</span> '
            f'<span class="message">{_text(sentence(located.message))}</span></summary>'
            f"{_excerpt(lines.around(at, _CONTEXT), at.line, fix)}"
            f"{f'<dl>{facts}</dl>' if facts else ''}</details>"
        )

    def _changes(self, result: FileResult) -> str:
        if result.new_text is None:
            return ""
        rows = "".join(_rows(result.text, result.new_text))
        if not rows:
            return ""
        return (
            f'<details class="changes"{" open" if self._open else ""}>'
            "<summary>Before and after</summary>"
            '<table><colgroup><col class="number"><col><col class="number"><col></colgroup>'
            '<thead><tr><th colspan="2" scope="colgroup">before</th>'
            f'<th colspan="2" scope="colgroup">after</th></tr></thead><tbody>{rows}</tbody></table>'
            "</details>"
        )


def _urgency(result: FileResult) -> int:
    """What needs manual work comes first, then what was not read."""
    if any(each.status is Status.MANUAL for each in result.located):
        return 0
    return 1 if result.error or result.skipped else 2


def _command(result: FileResult) -> str:
    """What fixes the file, to be copied; nothing if its name cannot be shown as it is."""
    fixes = any(each.status is Status.FIXABLE for each in result.located)
    if not fixes or visible(result.path) != result.path:
        return ""
    words = f"gpu-webhook migrate --write {shlex.quote(result.path)}"
    return f'<p class="command"><code>{_text(words)}</code> <button type="button">Copy</button></p>'


def _unread(result: FileResult) -> str:
    if not result.error:
        return ""
    return _remark("not read", "", sentence(result.error), "")


def _skipped(skipped: Skipped, lines: Lines) -> str:
    at = skipped.place
    where = f"{at.line}:{at.column}" if at else ""
    source = _excerpt(lines.around(at, _CONTEXT), at.line) if at else ""
    return _remark("skipped", where, sentence(skipped.reason), source)


def _remark(badge: str, where: str, message: str, source: str) -> str:
    bare = "" if source else " bare"
    return (
        f'<details class="finding {_UNREAD}{bare}" data-status="{_UNREAD}" open><summary>'
        f'<span class="badge">{badge}</span> <span class="code"></span> '
        f'<span class="at">{where}</span> '
        f'<span class="message">{_text(message)}</span></summary>{source}</details>'
    )


def _excerpt(excerpts: Iterator[Excerpt], line: int, fix: str = "") -> str:
    """The lines around the finding, then the rows of the fix."""
    rows = [
        f'<tr{" class=here" if each.number == line else ""}><th scope="row">{each.number}</th><td>'
        f"{_source(each.before)}{_marked(each.marked)}{_source(each.after)}</td></tr>"
        for each in excerpts
    ]
    return f'<table class="excerpt"><tbody>{"".join(rows)}{fix}</tbody></table>'


def _fix(replaced: Iterable[ChangedLines]) -> str:
    """The lines that a fix changes, before and after it."""
    rows = [
        f'<tr class="{kind}"><th scope="row">{number}</th><td>{_source(text)}</td></tr>'
        for fix in replaced
        for kind, lines in (("removed", fix.removed), ("added", fix.added))
        for number, text in enumerate(lines, fix.number)
    ]
    return f"{_fix_row('the fix')}{''.join(rows)}" if rows else ""


def _fix_row(words: str) -> str:
    return f'<tr class="hunk"><td colspan="2">{words}</td></tr>'


def _marked(text: str) -> str:
    return f"<mark>{_source(text)}</mark>" if text else ""


def _rows(old: str, new: str) -> Iterator[str]:
    for hunk in diff.hunks(old, new):
        yield f'<tr class="hunk"><td colspan="4">{_text(diff.heading(hunk))}</td></tr>'
        for before, after in diff.pairs(hunk):
            if before is not None and after is not None and before.sign != " ":
                left, right = _compared(_bare(before), _bare(after))
            else:
                left, right = (_source(shortened(_bare(each))) for each in (before, after))
            yield (
                f"<tr>{_cells(before, left, 'removed', before.old if before else 0)}"
                f"{_cells(after, right, 'added', after.new if after else 0)}</tr>"
            )


def _bare(line: Line | None) -> str:
    return diff.without_end(line.text) if line else ""


def _cells(line: Line | None, code: str, what: str, number: int) -> str:
    if line is None:
        return '<td class="none"></td><td class="none"></td>'
    kind = what if line.sign != " " else "same"
    return f'<th class="{kind}" scope="row">{number}</th><td class="{kind}">{code}</td>'


def _compared(old: str, new: str) -> tuple[str, str]:
    """Both lines, with the differing words marked."""
    if max(len(old), len(new)) > _LONG:
        return _far(old, new)
    one, other = _WORD.findall(old), _WORD.findall(new)
    left, right = [], []
    for tag, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        mine, theirs = "".join(one[a:b]), "".join(other[c:d])
        left.append(_source(mine) if tag == "equal" else _wrapped("del", mine))
        right.append(_source(theirs) if tag == "equal" else _wrapped("ins", theirs))
    return "".join(left), "".join(right)


def _far(old: str, new: str) -> tuple[str, str]:
    """The part of long lines (such as JSON on one line) where they begin to differ."""
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    start = max(same - _LONG // 4, 0)
    cut = [f"{'…' * bool(start)}{each[start:same]}" for each in (old, new)]
    rest = [each[same : same + _LONG // 2] for each in (old, new)]
    left, right = (
        f"{_source(head)}{_wrapped(tag, differs)}…"
        for head, tag, differs in zip(cut, ("del", "ins"), rest, strict=True)
    )
    return left, right


def _wrapped(tag: str, text: str) -> str:
    return f"<{tag}>{_source(text)}</{tag}>" if text else ""


def _rules(report: Report, anchors: list[tuple[str, FileResult, Located]]) -> Iterator[str]:
    mine: dict[str, list[tuple[str, FileResult, Located]]] = defaultdict(list)
    for each in anchors:
        mine[each[2].code].append(each)
    for code, manual in manuals(report).items():
        if code in mine:
            links = "".join(_rule_link(*each) for each in mine[code])
            yield (
                f'<section class="rule"><h2><span class="code">{_text(code)}</span> '
                f'{_text(manual.name)} <span class="count">{len(mine[code]):,}</span></h2>'
                f"{_manual(manual)}<ul>{links}</ul></section>"
            )


def _manual(manual: Manual) -> str:
    if not manual.text:
        return ""
    paragraphs = "".join(f"<p>{_paragraph(each)}</p>" for each in manual.text.split("\n\n")[1:])
    return (
        f'<details class="about"><summary>{_text(manual.headline)}</summary>{paragraphs}</details>'
    )


def _paragraph(text: str) -> str:
    text = _text(" ".join(text.split()))
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"^(\w+:)", r"<b>\1</b>", text))


def _rule_link(anchor: str, result: FileResult, located: Located) -> str:
    return (
        f'<li class="{located.status}" data-finding="{anchor}">'
        f'<span class="badge">{WORDS[located.status]}</span> <a href="#{anchor}">'
        f'{_text(result.path)}<span class="at">:{located.place.line}</span></a> '
        f'<span class="message">{_text(sentence(located.message))}</span></li>'
    )
