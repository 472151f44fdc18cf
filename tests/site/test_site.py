"""What `make site` builds: pages as on GitHub, nothing from other hosts, nothing for axe-core."""

from __future__ import annotations

import html
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.reports import browser

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
# What stays in the text if the site reads a page otherwise than GitHub does.
_UNREAD = re.compile(r"^(?:[-*+] |\d+\. |\||```|#{1,6} |<!--)", re.MULTILINE)


def _articles() -> dict[str, str]:
    """The pages by their paths, without the frame of the theme."""
    made = {str(file.relative_to(SITE)): file.read_text() for file in SITE.rglob("*.html")}
    assert made, "there is no site: run `make site`"
    made.pop("404.html")
    return {path: re.split(r"</?article[^>]*>", text)[1] for path, text in made.items()}


@pytest.fixture(scope="module")
def articles() -> dict[str, str]:
    sources = [*ROOT.glob("*.md"), ROOT / "mkdocs.yml", *(ROOT / "docs").rglob("*.*")]
    newest = max(file.stat().st_mtime for file in sources if "__pycache__" not in file.parts)
    made = _articles()
    assert (SITE / "index.html").stat().st_mtime >= newest, "the site is old: run `make site`"
    return made


def test_every_page_of_the_repository_is_there(articles: dict[str, str]) -> None:
    sources = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    sources += [ROOT / "manifests" / "README.md", ROOT / "bench" / "README.md"]
    pages = {str(file.relative_to(ROOT).with_suffix(".html")) for file in sources}
    assert {page.replace("README", "index") for page in pages} == set(articles)


def test_the_navigation_names_the_rules() -> None:
    frame = re.split(r"<article", (SITE / "docs" / "settings.html").read_text())[0]
    links = re.findall(r'href="rules/(GPU\d+)\.html".*?>\s*(GPU\d+ [a-z-]+)\s*<', frame, re.DOTALL)
    assert len(links) == len(list((ROOT / "docs" / "rules").glob("GPU*.md")))
    assert all(name.startswith(code) for code, name in links)


def test_names_of_metrics_break_where_a_word_ends(address: str, chromium: browser.Browser) -> None:
    page = browser.Page(chromium, size=(1280, 900))
    page.open(f"{address}docs/metrics.html")
    name = "gpu_webhook_legacy_objects_total".replace("_", "_<wbr>")
    names = "Array.from(document.querySelectorAll('td code'), e => e.innerHTML)"
    page.becomes(f"{names}.includes('{name}')", True)


def test_pages_are_read_as_on_github(articles: dict[str, str]) -> None:
    found = [
        f"{page}: {paragraph[:80]}"
        for page, text in articles.items()
        for paragraph in re.findall(r"<p>(.*?)</p>", text, re.DOTALL)
        if _UNREAD.search(html.unescape(re.sub(r"<[^>]+>", "", paragraph)))
    ]
    assert found == []


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    with browser.started() as program:
        yield program


PAGES = (
    "index.html",
    "docs/settings.html",
    "docs/metrics.html",
    "docs/rules/GPU106.html",
    "docs/uninstall.html",
    "docs/comparison.html",
)
_AXE = (files("axe_core_python") / "axe.min.js").read_text()
_LOOKS = {"light and wide": (False, (1280, 900)), "dark and narrow": (True, (390, 844))}
IS_NIGHTLY = settings.get_current_profile_name() == "nightly"


def opened(program: browser.Browser, url: str, look: str) -> browser.Page:
    dark, size = _LOOKS[look]
    page = browser.Page(program, dark=dark, size=size)
    page.open(url)
    return page


@pytest.mark.parametrize("look", _LOOKS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_and_loads_nothing_from_elsewhere(
    path: str, look: str, address: str, chromium: browser.Browser
) -> None:
    page = opened(chromium, address + path, look)
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith((address, "data:"))] == []
    _, size = _LOOKS[look]
    assert page.run("document.documentElement.scrollWidth") == size[0], "it scrolls sideways"
    assert page.run("document.querySelector('h1').innerText.length > 0") is True


# axe-core takes seconds for a long page: one look for each, `make nightly` has both.
_LOOKED_AT = [
    (path, look)
    for number, path in enumerate(PAGES)
    for turn, look in enumerate(_LOOKS, number)
    if IS_NIGHTLY or turn % 2 == 0
]


@pytest.mark.nightly
@pytest.mark.parametrize(("path", "look"), _LOOKED_AT)
def test_a_page_is_accessible(
    path: str, look: str, address: str, chromium: browser.Browser
) -> None:
    page = opened(chromium, address + path, look)
    page.run(f"{_AXE};0")
    found = page.run(
        "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]))"
    )
    assert found == []
    assert page.complaints == []


def test_search_finds_a_rule(address: str, chromium: browser.Browser) -> None:
    page = browser.Page(chromium, size=(1280, 900))
    page.open(address)
    page.click(".md-search__input")
    page.type("GPU106")
    page.becomes(
        "document.querySelector('.md-search-result__item a')?.href.includes('GPU106')", True
    )
