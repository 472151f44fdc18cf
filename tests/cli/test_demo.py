"""`make demo` fits on one screen and shows what a real server repaired."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.cli import demo_picture
from tests.cluster.webhook import ROOT
from tests.reports import browser

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.programs


def shown(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "examples/demo.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_the_demo_fits_on_one_screen_and_repairs_all_pods() -> None:
    made = shown()
    assert made.returncode == 0, made.stderr
    lines = made.stdout.splitlines()
    assert len(lines) <= 25
    assert "Insufficient alpha.kubernetes.io/nvidia-gpu" in " ".join(lines[:2])
    assert "6 of 6 pods repaired." in made.stdout
    assert {"-         alpha.kubernetes.io/nvidia-gpu: 2", "+         nvidia.com/gpu: 2"} <= {
        line.strip() for line in lines
    }


def test_the_picture_in_the_readme_is_what_the_demo_prints_now() -> None:
    drawn = demo_picture.drawn()
    assert demo_picture.PICTURE.read_text() == drawn, f"stale: run `{demo_picture.RENEW}`"
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text()
    assert re.findall(r"url\((?!#)|href|@import", drawn) == [], "nothing comes from elsewhere"
    assert "<script" not in drawn
    assert len(drawn) < 60_000
    ET.fromstring(drawn)  # noqa: S314 (our own)


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    with browser.started() as program:
        yield program


# How many lines can be seen; one that is typed or fades in counts.
LINES = """
new Set(Array.from(document.querySelectorAll('.demo-matrix text'))
    .filter(e => getComputedStyle(e).opacity > 0 && e.textContent.trim())
    .map(e => e.getAttribute('y'))).size"""
AT = "document.getAnimations().forEach(a => { a.pause(); a.currentTime = %d })"


def test_the_lines_appear_one_after_the_other_and_stay(chromium: browser.Browser) -> None:
    page = browser.Page(chromium, size=(1092, 700))
    page.open(demo_picture.PICTURE.as_uri())
    seen = []
    for at in range(0, 5001, 500):
        page.run(AT % at)
        seen.append(page.run(LINES))
    assert seen[:2] == [1, 1], "the command is typed first"
    assert seen == sorted(seen)
    assert len({*seen}) > 5
    running = "document.getAnimations().length"
    assert page.run(running) == 0, "what moves for over 5 s must have a way to stop it"
    page.prefer(dark=False, motion=False)
    page.open(demo_picture.PICTURE.as_uri())
    assert page.run(running) == 0
    assert page.run(LINES) == seen[-1], "a still picture has all of them"


def test_a_pod_that_is_not_there_names_those_that_are() -> None:
    made = shown("other.yaml")
    assert made.returncode == 1
    assert made.stderr.startswith("other.yaml: no such pod in examples/; there are: two-cont")
