"""What people really published, by the classes of ../shared: C is migrated by lines, D is told."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.shared_folder import files, migrated
from tests.verifying.proofs import is_done, of_files
from webhook.files.results import Status
from webhook.files.source import Source
from webhook.formats import kustomize
from webhook.verifying.comparison import Result
from webhook.yamlpatch import style

if TYPE_CHECKING:
    from webhook.files.results import FileResult

OLD = "alpha.kubernetes.io/nvidia-gpu"
# As a key with an amount, on a line that is no comment: what a line can carry.
_CARRIED = re.compile(
    rf"^(?!\s*(?:#|\{{\{{/\*)).*(?<![\w.-]){re.escape(OLD)}[\"']?:[ \t]*\S", re.MULTILINE
)
_TEXTS = ("helm", "jinja", "markdown")
# The charts that branch on the old and the new name themselves.
_BRANCHING = re.compile(r"^arena-")
# Inline code in three backticks stopped it; CommonMark is certain about that (findings, M9).
_NOW_MIGRATED = "kubernetes-gpu-guide-readme.md"
_NOT_PROVABLE = dict.fromkeys(
    (
        *("kubeflow-labs-3-gpus-readme.md", "kubeflow-labs-4-gpus-readme.md"),
        "kubeflow-labs-6-tfjob-readme.md",
    ),
    "it has legacy text outside of code blocks that are whole objects",
) | {
    "kubeflow-labs-8-jupyter-readme.md": (
        "spec.template.spec.containers[0].args occurs twice, and readers differ in which one "
        "counts: delete one"
    )
}
# What is only rendered or run: verify says so of the whole file.
_NO_MANIFEST = {
    "helm": "it is a template outside of a chart: render it, and compare the results",
    "jinja": "it is a template: render it, and compare the results",
    "other": "it is no manifest: its contents are not compared",
}


def classes() -> dict[str, tuple[str, str]]:
    """Class and kind by the name of the file."""
    (index,) = files("corpus/index.tsv")
    rows = [line.split("\t") for line in index.read_text().splitlines()[1:]]
    return {name: (notes[0], kind) for name, kind, _, notes, _ in rows}


@pytest.fixture(scope="module")
def results() -> dict[str, FileResult]:
    known = classes()
    found = files("corpus/files/*")
    return {
        file.name: migrated(file)
        for file in found
        if known[file.name][0] in "CD" and known[file.name][1] in _TEXTS
    }


def of_class(results: dict[str, FileResult], letter: str) -> dict[str, FileResult]:
    known = classes()
    return {name: each for name, each in results.items() if known[name][0] == letter}


def test_class_d_is_unchanged_and_told_with_line_and_cure(results: dict[str, FileResult]) -> None:
    for name, result in of_class(results, "D").items():
        assert (result.new_text is not None) is (name == _NOW_MIGRATED), name
        assert result.located, name
        lines = result.text.splitlines()
        assert all(1 <= each.place.line <= len(lines) for each in result.located), name
        advice = re.compile(r"write|delete|leave|select|install")
        assert any(advice.search(each.message) for each in result.located), name


def test_class_c_is_edited_or_a_person_is_told(results: dict[str, FileResult]) -> None:
    for name, result in of_class(results, "C").items():
        assert result.new_text is not None or result.located, name


def test_no_amount_that_a_line_can_carry_is_left_in_class_c(
    results: dict[str, FileResult],
) -> None:
    for name, result in of_class(results, "C").items():
        told = {
            line
            for each in result.located
            for line in range(each.place.line, each.place.end_line + 1)
            if not each.fix
        }
        text = result.new_text or result.text
        left = [text.count("\n", 0, found.start()) + 1 for found in _CARRIED.finditer(text)]
        if result.new_text is None:
            assert set(left) <= told, name
        else:  # lines may have moved: what is left is no more than what was told
            assert len(left) <= len(told), name


def test_nothing_changes_outside_of_what_the_findings_say(results: dict[str, FileResult]) -> None:
    for name, result in results.items():
        if result.new_text is None:
            continue
        old, new = result.text.splitlines(), result.new_text.splitlines()
        kept = Counter(new) - Counter(old)
        gone = Counter(old) - Counter(new)
        edited = sum((kept + gone).values())
        assert edited <= sum(1 + fix.text.count("\n") * 2 for each in result.located
                             for fix in each.fix) + sum(gone.values()), name  # fmt: skip
        assert ("\r\n" in result.text) is ("\r\n" in result.new_text), name


def test_charts_with_both_names_get_no_name_twice(results: dict[str, FileResult]) -> None:
    branching = {name: each for name, each in results.items() if _BRANCHING.match(name)}
    assert branching
    for name, result in branching.items():
        new = result.new_text or result.text
        # Every line that was edited is the old name, renamed in its place.
        for was, now in zip(result.text.splitlines(), new.splitlines(), strict=False):
            if was != now and OLD in was:
                assert now == was.replace(OLD, "nvidia.com/gpu"), name
                break


def test_no_published_manifest_is_taken_for_a_patch() -> None:
    for file in files("corpus/files/*.yaml", "corpus/guides/*.yaml"):
        assert not kustomize.is_patch(Source.of(file.name, file.read_bytes())), file.name


def test_in_the_shared_corpus_only_lines_of_findings_change() -> None:
    for file in files("corpus/files/*", "corpus/guides/*"):
        source, result = Source.of(file.name, file.read_bytes()), migrated(file)
        if source.kind not in {"yaml", "json"} or result.new_text is None:
            continue
        old, new = source.text.split("\n"), result.new_text.split("\n")
        touched = {
            line
            for located in result.located
            for fix in located.fix
            for line in _lines(source.text, fix.start, fix.end)
        }
        stays = [line for number, line in enumerate(old) if number not in touched]
        there = iter(new)
        assert all(line in there for line in stays), file.name
        assert source.text.count("\r\n") == 0 or "\n" not in result.new_text.replace("\r\n", "")


def _lines(text: str, start: int, end: int) -> range:
    first = text.count("\n", 0, start)
    if start == end:  # between two lines, or within one
        return range(first, first if style.line_start(text, start) == start else first + 1)
    return range(first, text.count("\n", 0, max(end - 1, start)) + 1)


def test_every_shared_file_that_is_done_is_equal(capsys: pytest.CaptureFixture[str]) -> None:
    """Templates, documents and programs apart: of these verify says why it cannot prove them."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    left = {}
    for file in files("corpus/files/*", "corpus/guides/*.yaml"):
        source, result = Source.of(file.name, file.read_bytes()), migrated(file)
        text = source.text if result.new_text is None else result.new_text
        found = of_files(file.name, source.raw, source.bytes_of(text))
        why = {each.why for each in found if each.result is not Result.EQUAL}
        if source.kind in _NO_MANIFEST:
            assert why <= {_NO_MANIFEST[source.kind]}, file.name
            reasons.update(why or ["nothing of it is legacy"])
        elif is_done(result):
            counts["not equal" if why else "equal"] += 1
            counts["edited and equal"] += not why and result.new_text is not None
            left.update(dict.fromkeys([file.name] if why else [], next(iter(why), "")))
    with capsys.disabled():
        print(f"\n../shared/corpus: {dict(counts)}; {dict(reasons)}")  # noqa: T201
    assert left == _NOT_PROVABLE
    assert counts["edited and equal"] >= 50


def test_the_statistics(results: dict[str, FileResult], capsys: pytest.CaptureFixture[str]) -> None:
    known = classes()
    table: dict[tuple[str, str], Counter[str]] = {}
    for name, result in results.items():
        count = table.setdefault(known[name], Counter())
        has_person = any(each.status is Status.MANUAL for each in result.located)
        edited = result.new_text is not None
        count["files"] += 1
        count["edited, all of it" if edited and not has_person else "edited in part"] += edited
        count["manual"] += not edited and has_person
        count["notice"] += not edited and not has_person
        count["parts skipped"] += len(result.skipped)
    with capsys.disabled():
        print()  # noqa: T201
        for key in sorted(table):
            print(*key, dict(table[key]))  # noqa: T201  # so that CI shows that they were there
    assert sum(count["files"] for count in table.values()) == len(results)
