"""The page as a parser sees it: no text of a file becomes a tag, an attribute or a script."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser

from hypothesis import given

from tests.reports import report_samples
from tests.reports.report_strategies import FEW
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.escaping import sentence, visible
from webhook.reports.html import html
from webhook.yamlpatch.places import Place, Replacement

VOID = {"meta", "link", "input", "col"}


class _Page(HTMLParser):
    """Counts tags, keeps the text, and insists that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.comments: list[str] = []
        self.raw: dict[str, str] = {}
        self.policy = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        given_attrs = dict(attrs)
        if given_attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = given_attrs["content"] or ""
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"style", "script"}:
            self.raw[self._open[-1]] = data
        else:
            self.texts.append(data)


_EMPTY = _Page(html(report_samples.empty()))
_EVERYTHING = _Page(html(report_samples.everything()))


@FEW
@given(DRAWN)
def test_no_text_becomes_a_tag(report: Report) -> None:
    page = _Page(html(report))
    assert set(page.tags) <= set(_EVERYTHING.tags)
    assert page.attributes <= _EVERYTHING.attributes
    assert page.comments == []
    assert page.tags["script"] == page.tags["style"] == 1
    assert page.raw == _EMPTY.raw
    for result in report.results:
        for located in result.located:
            assert sentence(located.message) in page.texts or not sentence(located.message)
            assert visible(located.code) in page.texts or not located.code


def test_nothing_is_asked_of_the_network() -> None:
    text = html(report_samples.everything())
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", text)
    assert not re.search(r"url\(|@import|@font-face", text)


def test_only_the_pages_own_script_and_style_may_run() -> None:
    page = _Page(html(report_samples.hostile()))
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none';")


def test_each_finding_is_there_by_folder_and_by_rule() -> None:
    text = html(report_samples.many(80))
    assert len(re.findall(r'<details class="finding ', text)) == 80
    assert len(re.findall(r'<li class="\w+" data-finding="f\d+"', text)) == 80
    anchors = re.findall(r' id="(f\d+)"', text)
    assert sorted(anchors) == sorted(re.findall(r'href="#(f\d+)"', text))


def test_a_change_that_fixes_several_findings_is_shown_once_and_linked() -> None:
    def found(line: int, *fix: Replacement) -> Located:
        return Located("GPU109", "it goes", Status.FIXABLE, Place(line, 1, line, 2), fix=fix)

    both, other = Replacement(2, 6, ""), Replacement(8, 9, "E")
    located = (found(2, both), found(3, both), found(5, other), found(5, other), found(1))
    page = html(Report((FileResult("a.yaml", text="a\nb\nc\nd\ne\n", located=located),)))
    findings = page.split('<details class="finding ')[1:]
    assert [each.count('<tr class="removed">') for each in findings] == [2, 0, 1, 0, 0]
    links = [re.findall(r'the fix, <a href="#(f\d+)">shown at line (\d+)</a>', e) for e in findings]
    assert links == [[], [("f1", "2")], [], [("f3", "5")], []]


def test_one_long_line_makes_no_large_page() -> None:
    text = "{" + '"a": 1, ' * 100_000 + f'"{report_samples.LEGACY}": 1' + "}"
    start = text.index(report_samples.LEGACY)
    fix = Replacement(start, start + len(report_samples.LEGACY), report_samples.TODAY)
    new = report_samples.applied(text, fix)
    page = html(Report((FileResult("a.json", "json", text, new),)))
    assert len(page) < len(_PLAIN) + 5_000
    assert "<del>alpha.kubernetes.io/nvidia-gpu&quot;: 1}</del>" in page


_PLAIN = html(report_samples.empty())
