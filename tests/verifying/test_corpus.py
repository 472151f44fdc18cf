"""What `migrate` calls done is proven: the old file through the webhook is the new one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.cases import cases
from tests.shared_folder import files
from tests.verifying.proofs import is_done, migrated, of_files, plan_of
from webhook.files.results import Plan
from webhook.files.source import Source
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    from tests.cases import Case

CASES = cases()
# Done, but not proven by the file alone; by the file, with the reason.
OWN_NOT_PROVABLE: dict[str, str] = {}
SHARED_NOT_PROVABLE = dict.fromkeys(
    (
        *("kubeflow-labs-3-gpus-readme.md", "kubeflow-labs-4-gpus-readme.md"),
        *("kubeflow-labs-6-tfjob-readme.md", "kubernetes-gpu-guide-readme.md"),
    ),
    "it has a code block that is no whole object",
) | {
    "kubeflow-labs-8-jupyter-readme.md": (
        "spec.template.spec.containers[0].args occurs twice, and readers differ in which one "
        "counts: delete one"
    )
}
# What is only rendered or run: verify says so of the whole file.
NO_MANIFEST = {
    "helm": "it is a template outside of a chart: render it, and compare the results",
    "jinja": "it is a template: render it, and compare the results",
    "other": "it is no manifest: its contents are not compared",
}


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_case_that_is_done_is_equal(case: Case) -> None:
    plan = plan_of(case)
    result, new = migrated(case.file, plan)
    found = of_files(case.file.name, case.file.read_bytes(), new, plan)
    if is_done(result):
        rest = {each.why for each in found if each.result is not Result.EQUAL}
        reason = OWN_NOT_PROVABLE.get(str(case))
        assert rest == ({reason} if reason else set())
    assert found


def test_most_cases_are_done() -> None:
    assert sum(is_done(migrated(case.file, plan_of(case))[0]) for case in CASES) >= 35


def test_every_shared_file_that_is_done_is_equal(capsys: pytest.CaptureFixture[str]) -> None:
    """Templates, documents and programs apart: of these verify says why it cannot prove them."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    left = {}
    for file in files("corpus/files/*", "corpus/guides/*.yaml"):
        raw, plan = file.read_bytes(), Plan()
        result, new = migrated(file, plan)
        found = of_files(file.name, raw, new, plan)
        why = {each.why for each in found if each.result is not Result.EQUAL}
        kind = Source.of(file.name, raw).kind
        if kind in NO_MANIFEST:
            assert why <= {NO_MANIFEST[kind]}, file.name
            reasons.update(why or ["nothing of it is legacy"])
        elif is_done(result):
            counts["not equal" if why else "equal"] += 1
            counts["edited and equal"] += not why and result.new_text is not None
            left.update(dict.fromkeys([file.name] if why else [], next(iter(why), "")))
    with capsys.disabled():
        print(f"\n../shared/corpus: {dict(counts)}; {dict(reasons)}")  # noqa: T201
    assert left == SHARED_NOT_PROVABLE
    assert counts["edited and equal"] >= 50
