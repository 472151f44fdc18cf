"""What road 2 makes of real manifests, judged by the real API server and the real scheduler.

Every file either becomes manifests that are accepted and whose GPU pods are placed, or what is
refused has a finding that says `a person must look` on its lines. The table at the end says how
many. The files of ../shared/corpus are judged where they are; the project's own always are.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cases import GIVEN, OUTPUTS, cases
from tests.cluster import build
from tests.cluster.accepting import Cluster
from tests.cluster.given_values import VALUES
from tests.cluster.judging import File, judged
from tests.cluster.webhook import ROOT
from tests.shared_folder import SHARED
from webhook.cli import settings_file
from webhook.migration.results import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.judging import Judged

CORPUS = SHARED / "corpus"
OWN = Path(__file__).parents[1]

# What the owner of the files of class B has decided; `--unsafe` is part of it.
POLICY = """
scope: all-legacy
drivers:
  profile: toolkit
  remove: [/usr/local/nvidia, "/home/kubernetes/bin/nvidia/*"]
"""
OUTCOMES = ("migrated", "partly", "person", "skipped", "missed")
_DEAD_VERSIONS = {"GPU120", "GPU121", "GPU122", "GPU123"}


def published() -> list[File]:
    """The files of the shared corpus, with the class of its index."""
    if not CORPUS.is_dir():
        return []
    with (CORPUS / "index.tsv").open(encoding="utf-8") as index:
        rows = {row["name"]: row for row in csv.DictReader(index, delimiter="\t", quoting=3)}
    decided = Plan(settings_file.parse(POLICY), unsafe=True)
    found = []
    for file in sorted((CORPUS / "files").iterdir()):
        row = rows[file.name]
        group = row["class and notes"][0]
        found.append(File(file, group, row["kind"], decided if group == "B" else Plan()))
    guides = sorted((CORPUS / "guides").glob("*.yaml"))
    return [*found, *(File(file, "guides", "", Plan()) for file in guides)]


def own() -> list[File]:
    """The files of this project that are manifests as somebody left them."""
    found = []
    for case in cases():
        cx = case.context(case.object())
        settings = replace(cx.settings, scope="all-legacy")
        plan = Plan(settings, cx.inventory, unsafe=case.file.stem.endswith("unsafe"))
        found.append(File(case.file, "own cases", "", plan))
    patterns = [
        file
        for file in sorted((OWN / "migration" / "patterns").rglob("*"))
        if file.is_file()
        and not file.name.endswith((*OUTPUTS, *GIVEN))
        and "fixed" not in file.name
    ]
    examples = sorted((ROOT / "examples").glob("*.yaml"))
    return [
        *found,
        *(File(file, "own patterns", "", Plan()) for file in patterns),
        *(File(file, "own examples", "", Plan()) for file in examples),
    ]


@pytest.fixture(scope="module")
def all_judged(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    build.helm()
    server = Cluster(cluster)
    return [
        judged(file, server, tmp_path_factory.mktemp("chart"), VALUES.get(file.path.name, {}))
        for file in [*published(), *own()]
    ]


def of_group(all_judged: Iterable[Judged], group: str) -> list[Judged]:
    """The files of one class; without the shared corpus the test is skipped, or fails in CI."""
    found = [each for each in all_judged if each.file.group == group]
    if not found and not os.environ.get("CI"):
        pytest.skip(f"../shared/corpus is not here: no file of class {group} was judged")
    assert found, "CI has no ../shared/corpus"
    return found


def table(all_judged: list[Judged]) -> str:
    """How many files of which kind and class came out how."""
    lines = [] if CORPUS.is_dir() else ["../shared/corpus is not here: only own files were judged"]
    by: dict[str, Callable[[Judged], str]] = {
        "kind": lambda each: each.kind,
        "class": lambda each: each.file.group,
    }
    for title, of in by.items():
        counts = Counter((of(each), each.outcome) for each in all_judged)
        hidden = Counter(of(each) for each in all_judged if each.not_rendered)
        heads = "".join(f"{name:>10}" for name in (*OUTCOMES, "files"))
        lines.append(f"{title:<14}{heads}{'not rendered':>14}")
        for name in sorted({of(each) for each in all_judged}):
            numbers = [counts[name, outcome] for outcome in OUTCOMES]
            cells = "".join(f"{number:>10}" for number in (*numbers, sum(numbers)))
            lines.append(f"{name:<14}{cells}{hidden[name]:>14}")
    accepted = sum(each.accepted for each in all_judged)
    placed = sum(each.placed for each in all_judged)
    foreign = sum(each.foreign for each in all_judged)
    lines.append(f"{accepted} objects accepted, {placed} GPU pods placed")
    lines.append(f"{foreign} objects of add-ons that are not here, without pods, were not judged")
    return "\n".join(lines)


def test_every_file_is_accepted_or_says_who_must_look(
    all_judged: list[Judged], capsys: pytest.CaptureFixture[str]
) -> None:
    shortfalls = [
        f"{each.file.group} {each.name}: {words}" for each in all_judged for words in each.missed
    ]
    with capsys.disabled():
        print(f"\n{table(all_judged)}")  # noqa: T201  # what this test is for
        for each in all_judged:
            for words in each.refused:
                print(f"left to a person: {each.name}: {words[:200]}")  # noqa: T201
            for words in each.never_valid:
                print(f"never valid: {each.name}: {words[:300]}")  # noqa: T201
            if each.not_rendered:
                print(f"not rendered: {each.name}: {each.not_rendered}")  # noqa: T201
    assert shortfalls == []


def test_class_a_is_migrated(all_judged: list[Judged]) -> None:
    assert {each.name: each.outcome for each in of_group(all_judged, "A")} == {
        each.name: "migrated" for each in of_group(all_judged, "A")
    }
