"""`make demo` fits on one screen and shows what a real server repaired."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from tests.cli import demo_picture
from tests.cluster.webhook import ROOT


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
    ET.fromstring(drawn)  # noqa: S314 (our own)


def test_a_pod_that_is_not_there_names_those_that_are() -> None:
    made = shown("other.yaml")
    assert made.returncode == 1
    assert made.stderr.startswith("other.yaml: no such pod in examples/; there are: two-cont")
