"""The page of `report --cluster` in a real headless Chromium."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.reports.browser import Page, started
from tests.reports.test_html import (
    AXE,
    BACKGROUND,
    CONTRASTS,
    DARK,
    LIGHT,
    NARROW,
    VIOLATIONS,
    WIDE,
)
from tests.reports.usage_samples import EMPTY, LEFT, SAFE
from webhook.reports.usage import html

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.reports.browser import Browser

pytestmark = [pytest.mark.programs, pytest.mark.browser]

PAGES = {"left": LEFT, "unknown": EMPTY, "safe": SAFE}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", PAGES)
def test_each_page_can_be_read_and_asks_the_network_for_nothing(
    name: str, size: tuple[int, int], browser: Browser, tmp_path: Path, *, dark: bool
) -> None:
    file = tmp_path / "report.html"
    file.write_text(html(PAGES[name]))
    page = Page(browser, dark=dark, size=size)
    page.open(file.as_uri())
    assert page.run(BACKGROUND) == (DARK if dark else LIGHT)
    assert page.run(CONTRASTS) == []
    assert page.run("document.documentElement.scrollWidth") <= size[0]
    assert page.run("document.querySelectorAll('script, img, b').length") == 0
    assert page.run("document.querySelectorAll('th:not([scope])').length") == 0
    assert page.complaints == []
    assert page.requests == [file.as_uri()]
    folder = Path(os.environ.get("GPU_WEBHOOK_SCREENSHOTS", tmp_path))
    picture = folder / f"usage-{name}-{'dark' if dark else 'light'}-{size[0]}.png"
    page.screenshot(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    page.call("Page.setBypassCSP", enabled=True)  # of the page that is opened next
    page.open(file.as_uri())
    page.run(f"{AXE}; 0")
    assert page.run(VIOLATIONS) == []


def test_a_wide_table_is_scrolled_with_keys(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html(LEFT))
    page = Page(browser, size=NARROW)
    page.open(file.as_uri())
    page.press("Tab")
    assert page.run("document.activeElement.getAttribute('aria-label')") == "Left, of 1,204 objects"
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert page.run("document.activeElement.scrollWidth > document.activeElement.clientWidth")


def test_it_is_the_page_of_a_cluster_even_if_a_name_is_html(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(html(replace(LEFT, last={"<script>document.title='x'</script>": LEFT.now})))
    page = Page(browser, size=WIDE)
    page.open(file.as_uri())
    assert page.run("document.title") == "Legacy GPU use in this cluster"
    assert "<script>" in page.run("document.querySelector('main').textContent")
