"""What road 2 makes of real manifests, judged by the real API server and the real scheduler.

Every file either becomes manifests that are accepted and whose GPU pods are placed, or what is
refused has a finding that says `a person must look` on its lines. The table at the end says how
many. The files of ../shared/corpus are judged where they are; the project's own always are.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cases import GIVEN, OUTPUTS, cases
from tests.cluster import build
from tests.cluster.accepting import Cluster
from tests.cluster.given_values import VALUES
from tests.cluster.judging import File, judged
from tests.cluster.never_valid import NEVER_VALID
from tests.cluster.webhook import ROOT
from tests.shared_folder import SHARED
from webhook.files.results import Plan, Status
from webhook.settings import file as settings_file

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
OUTCOMES = ("migrated", "partly", "manual", "skipped", "missed")
_DEAD_VERSIONS = {"GPU120", "GPU121", "GPU122", "GPU123"}

# Files of class D with an object that is in no doubt beside what makes them D.
MORE_IN_D = {
    "fabric8-maven-plugin-expected-kubernetes.yml": "the annotation is a Deployment's after all",
    "fabric8-maven-plugin-expected-kubernetes-2.yml": "the same",
    "kubernetes-gpu-guide-readme.md": "inline code in three backticks stops nothing (CommonMark)",
}
_KEY = re.compile(
    r"^[^#\n]*(?:alpha\.kubernetes\.io/nvidia-gpu|scheduler\.alpha\.kubernetes\.io/(?:affinity"
    r"|tolerations)|pod\.(?:alpha|beta)\.kubernetes\.io/init-containers)[\"']?\s*:",
    re.MULTILINE,
)


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
    with closing(Cluster(cluster)) as server:
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
    with capsys.disabled():
        print(f"\n{table(all_judged)}")  # noqa: T201  # what this test is for
        for each in all_judged:
            for what, said in (
                ("left to a person", each.refused),
                ("refused before, too", each.never_valid),
                ("not rendered", [each.not_rendered] if each.not_rendered else []),
            ):
                for words in said:
                    print(f"{what}: {each.file.group} {each.name}: {words[:240]}")  # noqa: T201
    assert [f"{each.name}: {words}" for each in all_judged for words in each.missed] == []


def test_what_was_never_valid_is_still_refused(all_judged: list[Judged]) -> None:
    files = {each.name for each in all_judged}
    refused = {key for each in all_judged for key in each.excused}
    assert {key for key in NEVER_VALID if key[0] in files} == refused


def test_class_a_is_migrated(all_judged: list[Judged]) -> None:
    assert [each.name for each in of_group(all_judged, "A") if each.outcome != "migrated"] == []


def test_class_b_is_migrated_under_a_policy(all_judged: list[Judged]) -> None:
    files = of_group(all_judged, "B")
    assert [each.name for each in files if each.outcome != "migrated"] == []
    assert all(each.refused == [] for each in files)


def test_class_c_has_every_key_that_a_line_can_carry(all_judged: list[Judged]) -> None:
    """A key that is still there has a finding, on its own lines."""
    for each in of_group(all_judged, "C"):
        said = {
            line
            for found in each.after.located
            for line in range(found.place.line, found.place.end_line + 1)
        }
        left = [each.text.count("\n", 0, found.end()) + 1 for found in _KEY.finditer(each.text)]
        assert [line for line in left if line not in said] == [], each.name


def test_nothing_changes_outside_the_lines_that_are_edited(all_judged: list[Judged]) -> None:
    for each in all_judged:
        old, new = each.result.text.split("\n"), iter(each.text.split("\n"))
        edited = {
            line
            for found in each.result.located
            for fix in found.fix
            for line in lines_of(each.result.text, fix.start, fix.end)
        }
        # What is right only together with other edits has no fix of its own.
        edited |= {
            found.place.line - 1
            for found in each.result.located
            if found.status is Status.FIXABLE and not found.fix
        }
        kept = [line for number, line in enumerate(old) if number not in edited]
        assert all(line in new for line in kept), each.name


def lines_of(text: str, start: int, end: int) -> range:
    """The lines of a replacement, from 0; none if it only puts lines between two others."""
    first = text.count("\n", 0, start)
    if start == end:
        return range(first, first + (start > 0 and text[start - 1] != "\n"))
    return range(first, text.count("\n", 0, max(end - 1, start)) + 1)


def test_class_d_is_reported_and_left_alone(all_judged: list[Judged]) -> None:
    """But for a dead API version, which was not what made it D."""
    for each in of_group(all_judged, "D"):
        assert each.result.located, each.name
        assert all(
            re.search(r"[;:] \w|, write ", found.message) for found in each.result.located
        ), each.name
        edited = {found.code for found in each.result.located if found.fix}
        assert edited <= _DEAD_VERSIONS or each.name in MORE_IN_D, each.name
