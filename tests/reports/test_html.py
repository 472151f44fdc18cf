"""The HTML page in a real headless Chromium, used with mouse and keys.

Without a Chromium these tests fail: `make browser` installs one. The screenshots that they look at
are kept where GPU_WEBHOOK_SCREENSHOTS says.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.reports import report_samples
from tests.reports.browser import Page, started
from webhook.reports.html import html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.reports.browser import Browser
    from webhook.files.results import Report

pytestmark = [pytest.mark.programs, pytest.mark.browser]

WIDE, NARROW, PHONE = (1280, 900), (420, 900), (390, 900)

AXE = (files("axe_core_python") / "axe.min.js").read_text()
VIOLATIONS = "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html)]))"

VISIBLE = (
    "[...document.querySelectorAll('.finding')].filter(e => e.checkVisibility()"
    " && e.closest('.file').open).length"
)
LINKS = "[...document.querySelectorAll('.rule li')].filter(e => e.checkVisibility()).length"
FOCUS = "document.activeElement.closest('.finding')?.id ?? document.activeElement.id"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(244, 246, 248)", "rgb(16, 20, 26)"

# Each text with its colour and that of what is behind it, as WCAG 2.2 computes their contrast.
CONTRASTS = """
(() => {
  const numbers = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => {
    const [r, g, b] = numbers(c).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (numbers(c)[3] !== 0) return c;
    }
  };
  const low = [];
  for (const e of document.body.querySelectorAll('*')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push([e.className, e.tagName, e.textContent.slice(0, 20), contrast]);
  }
  return low;
})()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open the page of a report; when the test is over it must have asked and told nothing."""
    pages = []

    def shown(
        report: Report, *, dark: bool = False, size: tuple[int, int] = WIDE, anchor: str = ""
    ) -> Page:
        file = tmp_path / "report.html"
        file.write_text(html(report))
        page = Page(browser, dark=dark, size=size)
        page.open(f"{file.as_uri()}{anchor}")
        pages.append((page, file.as_uri()))
        return page

    yield shown
    assert pages
    for page, url in pages:
        assert page.complaints == []
        assert {each.partition("#")[0] for each in page.requests} == {url}


def test_search_leaves_what_has_all_words(show: Callable[..., Page]) -> None:
    page = show(report_samples.many(80))
    assert page.run(VISIBLE) == 80
    page.click("#search")
    page.type("trainer-12.yaml GPU101")
    assert page.run(VISIBLE) == 2
    assert page.run("document.querySelector('#shown').textContent") == "2 of 80 shown."
    page.press("Escape")
    assert page.run(VISIBLE) == 80
    assert page.run("document.querySelector('#shown').textContent") == ""


def test_search_knows_objects_and_says_when_there_is_nothing(show: Callable[..., Page]) -> None:
    page = show(report_samples.many(80))
    page.press("/")
    page.type("pod/trainer-3 resources")
    assert page.run(VISIBLE) == 5
    page.type(" nowhere")
    assert page.run(VISIBLE) == 0
    said = "document.querySelector('#nothing').checkVisibility()"
    assert page.run(said) is True


def test_status_filters_add_up(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything())
    whole = page.run(VISIBLE)
    page.click(".filter.manual")
    assert page.run(VISIBLE) == 2
    assert page.run("document.querySelector('.filter.manual').ariaPressed") == "true"
    page.click(".filter.fixable")
    assert page.run(VISIBLE) == 6
    page.click(".filter.manual")
    page.click(".filter.fixable")
    assert page.run(VISIBLE) == whole == 12
    page.click(".filter.unread")
    assert page.run(VISIBLE) == 4


def test_a_folder_shows_what_is_in_it(show: Callable[..., Page]) -> None:
    page = show(report_samples.many(80))
    page.click("#folder-list [data-folder='team-3/deploy']")
    assert page.run(VISIBLE) == 10
    page.click("#folder-list [data-folder='']")
    assert page.run(VISIBLE) == 80


def test_by_rule_links_to_the_finding(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything())
    page.click("[data-view=rules]")
    assert (page.run(VISIBLE), page.run(LINKS)) == (0, 8)
    page.click(".filter.manual")
    assert page.run(LINKS) == 2
    page.click(".rule li:not([hidden]) a")
    finding = page.run(FOCUS)
    assert page.run("location.hash") == f"#{finding}"
    assert page.run(f"document.querySelector('#{finding}').open") is True
    assert "GPU109" in page.run("document.activeElement.textContent")


def test_a_link_to_a_finding_opens_it(show: Callable[..., Page]) -> None:
    page = show(report_samples.many(80), anchor="#f42")
    assert page.run(FOCUS) == "f42"
    assert page.run("document.querySelector('#f42').open") is True


def test_keys_alone_go_everywhere(show: Callable[..., Page]) -> None:
    page = show(report_samples.many(10))
    for key, expected in [("j", "f1"), ("j", "f2"), ("j", "f3"), ("k", "f2")]:
        page.press(key)
        assert page.run(FOCUS) == expected
    page.press("Enter")
    assert page.run("document.querySelector('#f2').open") is True
    page.press("Enter")
    assert page.run("document.querySelector('#f2').open") is False
    page.press("1")
    assert page.run(VISIBLE) == 2
    page.press("Escape")
    assert page.run(VISIBLE) == 10
    page.press("r")
    assert page.run(LINKS) == 10
    page.press("f")
    assert page.run(LINKS) == 0
    page.press("e")
    assert page.run("document.querySelectorAll('.finding[open]').length") == 10
    page.press("?")
    assert page.run("document.querySelector('#help').open") is True
    page.press("j")
    assert page.run("document.querySelector('#help').open") is True
    page.press("Escape")
    assert page.run("document.querySelector('#help').open") is False


def test_tab_reaches_every_control_and_shows_where_it_is(show: Callable[..., Page]) -> None:
    page = show(report_samples.many(5))
    seen = []
    for _ in range(20):
        page.press("Tab")
        seen.append(page.run("document.activeElement.id || document.activeElement.className"))
        assert page.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
        if page.run("document.activeElement.matches('.finding > summary')"):
            break
    assert seen[:3] == ["theme", "keys", "search"]
    assert "unfold" in seen
    assert page.run("document.activeElement.matches('.finding > summary')")


def test_light_and_dark_follow_the_system_until_someone_chooses(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything())
    assert page.run(BACKGROUND) == LIGHT
    page.prefer(dark=True)
    page.becomes(BACKGROUND, DARK)
    page.becomes("document.querySelector('#theme').textContent", "Light")
    page.click("#theme")
    assert page.run(BACKGROUND) == LIGHT
    page.press("t")
    assert page.run(BACKGROUND) == DARK
    page.prefer(dark=False)
    assert page.run(BACKGROUND) == DARK


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", ["f", "r"], ids=["by folder", "by rule"])
def test_every_text_can_be_read(show: Callable[..., Page], view: str, *, dark: bool) -> None:
    page = show(report_samples.everything(), dark=dark, size=(1280, 4000))
    page.press(view)
    page.press("e")
    assert page.run(CONTRASTS) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "390 px"])
@pytest.mark.parametrize("view", ["f", "r"], ids=["by folder", "by rule"])
def test_axe_finds_no_violation(
    show: Callable[..., Page], view: str, size: tuple[int, int], *, dark: bool
) -> None:
    page = show(report_samples.everything(), dark=dark, size=size)
    page.press(view)
    page.press("e")
    page.run(f"{AXE}; 0")
    assert page.run(VIOLATIONS) == []
    assert page.run("[...document.querySelectorAll('th')].filter(e => !e.textContent).length") == 0


def test_it_opens_with_what_needs_manual_work(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything())
    order = "[...document.querySelectorAll('.file')].map(e => e.dataset.path)"
    *first, third, fourth, _, _ = page.run(order)
    assert first == ["charts/train/templates/job.yaml", "deploy/trainer.yaml"]
    assert {third, fourth} == {"bad/broken.yaml", "bad/half read.yaml"}
    opened = "[...document.querySelectorAll('.finding.manual')].map(e => e.open)"
    assert page.run(opened) == [True, True]
    assert page.run("document.querySelector('.finding.fixable').open") is False
    assert page.run("document.querySelector('.summary').textContent") == (
        "training · 2026-11-23 11:23 UTC"
    )


def test_the_command_for_a_file_can_be_copied(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything())
    commands = page.run("[...document.querySelectorAll('.command code')].map(e => e.textContent)")
    assert commands == [
        "gpu-webhook migrate --write charts/train/templates/job.yaml",
        "gpu-webhook migrate --write deploy/trainer.yaml",
    ]
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 0")
    page.click(".command button")
    page.becomes("document.querySelector('.command button').textContent", "Copied")
    assert page.run("window.copied") == commands[0]
    page.run("navigator.clipboard.writeText = async () => { throw new Error(); }; 0")
    page.click("[data-path$='trainer.yaml'] .command button")
    page.becomes("getSelection().toString()", commands[1])


def test_below_700_px_the_new_line_is_below_the_old_one(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything(), size=PHONE)
    page.press("e")
    sides = page.run(
        "(([a, b]) => [a.bottom <= b.top, Math.abs(a.left - b.left) < 1])"
        "(['removed', 'added'].map(name => document.querySelector("
        "`[data-path$='trainer.yaml'] .changes td.${name}`).getBoundingClientRect()))"
    )
    assert sides == [True, True]
    same = "[...document.querySelectorAll('.changes tr')].map(e => e.querySelectorAll('td.same'))"
    assert page.run(
        f"{same}.filter(e => e.length).map(e => [...e].filter(d => d.checkVisibility()).length)"
        ".every(n => n === 1)"
    )


def test_before_and_after_are_side_by_side(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything())
    sides: Any = page.run(
        "(([a, b]) => [a.textContent, b.textContent,"
        " a.getBoundingClientRect().right < b.getBoundingClientRect().left,"
        " Math.abs(a.getBoundingClientRect().top - b.getBoundingClientRect().top) < 20])"
        "([document.querySelector('[data-path$=\"trainer.yaml\"] del:not(:empty)'),"
        " document.querySelector('[data-path$=\"trainer.yaml\"] ins')])"
    )
    assert sides == [report_samples.LEGACY, report_samples.TODAY, True, True]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_is_wider_than_the_screen(show: Callable[..., Page], size: tuple[int, int]) -> None:
    for report in (report_samples.everything(), report_samples.hostile()):
        page = show(report, size=size)
        page.press("e")
        assert page.run("document.documentElement.scrollWidth") <= size[0]


def test_no_text_runs(show: Callable[..., Page]) -> None:
    page = show(report_samples.hostile())
    page.press("e")
    page.press("r")
    assert page.run("document.querySelectorAll('script, img, iframe').length") == 1
    assert "</script>" in page.run("document.querySelector('#folders').textContent")


def test_even_a_script_in_the_page_would_not_run(browser: Browser, tmp_path: Path) -> None:
    """The policy is a second wall: what is no part of the page is refused by the browser."""
    file = tmp_path / "report.html"
    broken = html(report_samples.empty()).replace(
        "<main>", "<main><script>document.title='x'</script>"
    )
    file.write_text(broken.replace("<footer>", "<img src='http://evil.example/a.png'><footer>"))
    page = Page(browser, size=WIDE)
    page.open(file.as_uri())
    assert page.run("document.title") != "x"
    assert page.complaints
    assert all("Content Security Policy" in each for each in page.complaints)


def test_what_stands_below_one_another_is_aligned_in_all_states(show: Callable[..., Page]) -> None:
    page = show(report_samples.everything())
    for each, edge in ((".filter", "height"), (".finding > summary", "x"), (".finding .code", "x")):
        edges = f"Array.from(document.querySelectorAll('{each}'), e => e.getBoundingClientRect())"
        seen = page.run(f"{edges}.filter(e => e.width).map(e => Math.round(e.{edge}))")
        assert len(seen) > 4, each
        assert len(set(seen)) == 1, each
    badges = "Array.from(document.querySelectorAll('.badge'))"
    assert page.run(f"{badges}.filter(e => e.scrollWidth > e.clientWidth).length") == 0, "cut"


def test_two_thousand_findings_are_searched_at_once(show: Callable[..., Page]) -> None:
    page = show(report_samples.many(2_000, 40))
    milliseconds = page.run(
        "(() => { const input = document.querySelector('#search'); const start = performance.now();"
        " for (const words of ['t', 'trainer-7', 'gpu301 trainer-1'])"
        " { input.value = words; input.dispatchEvent(new Event('input'));"
        " document.body.getBoundingClientRect(); }"
        " return performance.now() - start; })()"
    )
    assert page.run(VISIBLE) == 111  # trainer-1, -10 to -19, -100 to -199
    assert milliseconds < 3_000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("everything", report_samples.everything()),
        ("80-findings", report_samples.many(80)),
        ("empty", report_samples.empty()),
    ],
    ids=["everything", "80 findings", "empty"],
)
def test_a_picture_of_it(
    show: Callable[..., Page], tmp_path: Path, name: str, report: Report, *, dark: bool
) -> None:
    page = show(report, dark=dark)
    folder = Path(os.environ.get("GPU_WEBHOOK_SCREENSHOTS", tmp_path))
    file = folder / f"{name}-{'dark' if dark else 'light'}.png"
    page.screenshot(file)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert page.run("document.querySelector('h1').getBoundingClientRect().height") < 40
