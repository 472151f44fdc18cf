"""`make demo-cluster` ends with the guides' legacy pods on a real node."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.node.build import ROOT


def shown(*before: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-m", "examples.demo_cluster"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.mark.usefixtures("_possible")
def test_the_legacy_pods_run_and_print_their_gpus() -> None:
    made = shown()
    assert made.returncode == 0, made.stderr
    assert "6 of 6 pods scheduled with the webhook." in made.stdout
    assert "4 of 4 legacy pods run on a real node." in made.stdout
    lines = [line.split() for line in made.stdout.splitlines() if "Running" in line]
    seen = [[word for word in line if word.startswith("GPU-")] for line in lines]
    assert [len(each) for each in seen] == [2, 3, 2, 1, 2]
    assert len(set().union(*seen)) == 10, "no GPU is given twice"
