"""Every change of a migrated manifest is found: each value, each member and each item in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import cases
from tests.verifying.proofs import compared, is_done, migrated, plan_of
from webhook.core.draft import copied
from webhook.kube.pointer import value_at
from webhook.kube.walk import walk
from webhook.verifying.comparison import Result
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases import Case
    from webhook.files.results import Plan

    Raw = dict[str, Any]

pytestmark = pytest.mark.programs

# The API server writes what is missing there: a request from its limit, the volume of a pod that
# has no source, the number of replicas, Equal; and 0 GPUs are none, under any name.
_REQUESTS = "without spec.containers[{}].resources.requests"
_NVIDIA, _LEGACY = "[nvidia.com/gpu]", "[alpha.kubernetes.io/nvidia-gpu]"
_IN_TEMPLATE = "without spec.template.spec.containers[0].resources"
SAME: dict[str, set[str]] = {
    "changed-default/example": {"without spec.replicas"},
    "daemonset-template/example": {_REQUESTS.format(0), _REQUESTS.format(0) + _NVIDIA},
    "driver-paths/zero-gpus": {
        f"{_IN_TEMPLATE}.limits{_LEGACY}",
        f"{_IN_TEMPLATE}.requests",
        f"{_IN_TEMPLATE}.requests{_LEGACY}",
        f"{_IN_TEMPLATE}.requests.cpu",
    },
    "fractional-amount/example": {_REQUESTS.format(0), _REQUESTS.format(0) + _NVIDIA},
    "init-containers-annotation/example": {"without spec.template.spec.volumes[0].emptyDir"},
    "legacy-resource/example": {
        _REQUESTS.format(1),
        _REQUESTS.format(1) + _NVIDIA,
        "without spec.containers[2].resources",
        "without spec.containers[2].resources.limits",
        f"without spec.containers[2].resources.limits{_LEGACY}",
    },
    "request-without-limit/example": {_REQUESTS.format(0) + _NVIDIA},
    "tolerations-annotation/example": {"without spec.tolerations[1].operator"},
    "unequal-amounts/example": {_REQUESTS.format(0), _REQUESTS.format(0) + _NVIDIA},
}


def mutants(obj: Raw) -> Iterator[tuple[str, Raw]]:
    """The object with one place changed or removed, and what was done."""
    for at, value in walk(obj):
        if not at:
            continue
        removed = copied(obj)
        del value_at(removed, at.parent)[at[-1]]
        yield f"without {at.dotted}", removed
        if not isinstance(value, dict | list):
            changed = copied(obj)
            other = not value if isinstance(value, bool) else f"{value}1"
            value_at(changed, at.parent)[at[-1]] = other
            yield f"{at.dotted}: {other}", changed


def objects_of(raw: bytes) -> list[Raw]:
    return [each.data for each in documents.read(raw.decode()).documents if each.data]


def survivors(case: Case, plan: Plan, new: Raw) -> set[str]:
    """The mutants of what a case became that are taken for equal."""
    old = objects_of(case.file.read_bytes())
    assert [each.result for each in compared(old, [new], plan)] == [Result.EQUAL]
    made = dict(mutants(new))
    survived = {
        what
        for what, mutant in made.items()
        if Result.DIFFERENT not in {each.result for each in compared(old, [mutant], plan)}
    }
    assert len(made) - len(survived) >= FEWEST, case
    return survived


FEWEST = 15  # mutants that are found in each case


def test_each_mutant_of_a_migrated_case_differs() -> None:
    survived = {}
    for case in cases():
        plan = plan_of(case)
        result, text = migrated(case.file, plan)
        if is_done(result) and result.new_text is not None:
            (new,) = objects_of(text)
            survived[str(case)] = survivors(case, plan, new)
    assert {case: each for case, each in survived.items() if each} == SAME
    assert len(survived) >= 35
