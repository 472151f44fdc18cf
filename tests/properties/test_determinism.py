"""P8: the same pod gives the same bytes, in this process, in another, and for any hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine import run
from tests.properties.clusters import Cluster, clusters
from tests.properties.pods import pods
from webhook.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.programs

PODS = 150
ROOT = Path(__file__).parents[2]


def answers(lines: Iterable[str]) -> list[str]:
    """All that a repair says and does, a line a pod; a line is a pod, settings and inventory."""
    answered = []
    for line in lines:
        pod, settings_name, inventory = json.loads(line)
        verdict = run(RULES, pod, Cluster(settings_name, inventory).context)
        said = [(each.code, str(each.at), each.message, each.severity) for each in verdict.findings]
        answered.append(json.dumps([said, verdict.patch, pod]))
    return answered


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Pods for the processes to answer, the same in every run."""
    drawn: dict[str, None] = {}

    @settings(max_examples=PODS, derandomize=True, database=None)
    @given(st.tuples(pods(), clusters()))
    def draw(case: tuple[Any, Cluster]) -> None:
        drawn[json.dumps([case[0], *astuple(case[1])])] = None

    draw()
    return list(drawn)


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_p8_other_processes_give_the_same_bytes(lines: list[str], seed: str) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tests.properties.test_determinism"],
        input="\n".join(lines),
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert made.stdout.splitlines() == answers(lines)


def test_the_pods_are_not_all_passed_over(lines: list[str]) -> None:
    patched = sum(bool(json.loads(answer)[1]) for answer in answers(lines))
    assert patched > len(lines) / 3


@given(pods(), clusters())
def test_p8_the_same_process_gives_the_same_bytes_again(pod: Any, cluster: Cluster) -> None:
    line = json.dumps([pod, *astuple(cluster)])
    assert answers([line]) == answers([line])


if __name__ == "__main__":
    for each in answers(sys.stdin.read().splitlines()):
        print(each)  # noqa: T201  # the parent reads it
