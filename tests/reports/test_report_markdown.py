"""Markdown: read by a real parser, so that no text becomes mark-up; never too long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from tests.reports import report_samples
from tests.reports.report_strategies import FEW, WORDS
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.escaping import visible
from webhook.reports.markdown import escaped, markdown
from webhook.yamlpatch.places import Place, Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

PARSER = MarkdownIt("gfm-like", {"linkify": False})
TAGS = re.compile(r"</?(?:details|summary|code)>|<!-- -->")


def _tokens(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


@given(WORDS)
def test_an_escaped_text_shows_as_it_is(words: str) -> None:
    tokens = list(_tokens(f"- said: {escaped(words)}"))
    shown = "".join(each.content for each in tokens if each.type in {"text", "text_special"})
    assert {each.type for each in tokens if each.level > 3 or not each.nesting} <= {
        "inline",
        "text",
        "text_special",
        "html_inline",
    }
    assert {each.content for each in tokens if each.type == "html_inline"} <= {"<!-- -->"}
    assert shown.strip() == f"said: {visible(words)}".strip()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("@octocat", id="a person"),
        pytest.param("see #12", id="an issue"),
        pytest.param("https://evil.example", id="a link"),
        pytest.param("www.evil.example", id="a link without scheme"),
    ],
)
def test_nobody_is_called_and_nothing_is_linked(words: str) -> None:
    assert not re.search(r"@\w|#\d|https?://|www\.", escaped(words))


@FEW
@given(DRAWN)
def test_no_text_becomes_mark_up(report: Report) -> None:
    said = markdown(report)
    for token in _tokens(said):
        if token.type in {"html_block", "html_inline"}:
            assert "<" not in TAGS.sub("", token.content)
        assert token.type not in {"image", "s_open", "em_open", "hr", "blockquote_open"}
        if token.type == "heading_open":
            assert token.tag == "h3"
        if token.type == "link_open":
            assert re.search(r"#L\d+$", str(token.attrs["href"]))


@pytest.mark.parametrize("findings", [200, 2_000, 5_000])
def test_it_is_never_too_long_and_counts_what_it_leaves_out(findings: int) -> None:
    said = markdown(report_samples.many(findings, 40))
    assert len(said) <= 65_000
    listed = said.count("\n- [line ")
    left_out = re.search(r"… and ([\d,]+) more", said)
    assert listed + int(left_out[1].replace(",", "") if left_out else 0) == findings
    assert said.count("<details>") == said.count("</details>")
    assert bool(left_out) == (listed < findings)


@FEW
@given(DRAWN)
def test_a_small_limit_is_kept_too(report: Report) -> None:
    most = 2_500
    assert len(markdown(report, most=most)) <= most or not report.results


def test_patches_go_before_findings() -> None:
    report = report_samples.everything()
    whole = markdown(report)
    shorter = markdown(report, most=len(whole) - 200)
    assert shorter.count("```diff") < whole.count("```diff")
    assert shorter.count("\n- [line ") == whole.count("\n- [line ")


def test_links_are_relative() -> None:
    report = report_samples.everything()
    assert "[line 14](deploy/trainer.yaml#L14)" in markdown(report)
    assert "(docs/F%C3%BChrer%20%3Cb%3E%20%26%20100%25%2C%20%5Ba%5D%20%231.md#L1)" in markdown(
        report
    )


def test_a_fence_in_a_file_does_not_end_the_patch() -> None:
    text = "````\nx: 1\n</details>\n"
    fix = Replacement(text.index("x"), text.index("x") + 1, "y")
    located = Located("GPU101", "m", Status.FIXABLE, Place(2, 1, 2, 2), fix=(fix,))
    result = FileResult("a.md", "markdown", text, text.replace("x", "y"), (located,))
    said = markdown(Report((result,)))
    [fence] = [each for each in _tokens(said) if each.type == "fence"]
    assert "+y: 1\n </details>" in fence.content
