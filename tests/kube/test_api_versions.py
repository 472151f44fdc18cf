"""The table of dead API versions: what it says of itself, and what is found in it."""

from __future__ import annotations

import re

import pytest

from webhook.evaluation.workloads import TEMPLATES
from webhook.kube.api_versions import (
    OTHERS,
    WORKLOADS,
    is_served,
    other_successor,
    workload_successor,
)

TODAY = (1, 36)


def test_every_dead_workload_has_a_version_of_today() -> None:
    assert {each.api_version for each in WORKLOADS.values()} == {"apps/v1", "batch/v1"}
    assert {each.kind for each in WORKLOADS.values()} <= TEMPLATES.keys()
    assert not any(each.how for each in WORKLOADS.values())


def test_nobody_is_sent_from_one_dead_version_to_another() -> None:
    for table in (WORKLOADS, OTHERS):
        for each in table.values():
            assert (each.api_version, each.kind) not in {**WORKLOADS, **OTHERS}


def test_what_has_no_heir_says_what_to_do_instead() -> None:
    for each in OTHERS.values():
        assert each.api_version or each.how


@pytest.mark.parametrize("key", [*WORKLOADS, *OTHERS], ids=" ".join)
def test_a_row_is_well_formed(key: tuple[str, str]) -> None:
    version, kind = key
    assert re.fullmatch(r"(?:[a-z0-9.]+/)?v\d+(?:(?:alpha|beta)\d+)?", version)
    assert re.fullmatch(r"[A-Z][A-Za-z]+", kind)
    row = {**WORKLOADS, **OTHERS}[key]
    assert (1, 5) <= row.removed <= TODAY


@pytest.mark.parametrize(
    ("target", "there"),
    [
        pytest.param((1, 15), False, id="the target still serves it"),
        pytest.param((1, 16), True, id="the first release without it"),
        pytest.param(TODAY, True, id="today"),
    ],
)
def test_the_target_decides(target: tuple[int, int], *, there: bool) -> None:
    obj = {"apiVersion": "extensions/v1beta1", "kind": "Deployment"}
    found = workload_successor(obj, target)
    assert (found is not None) is there
    assert other_successor(obj, target) is None


def test_objects_without_a_kind_are_nobody_s() -> None:
    assert workload_successor({}, TODAY) is None
    assert other_successor({"apiVersion": 1, "kind": []}, TODAY) is None


@pytest.mark.parametrize(
    ("version", "target", "served"),
    [
        pytest.param("apps/v1beta2", TODAY, False, id="removed"),
        pytest.param("apps/v1beta2", (1, 15), None, id="removed later"),
        pytest.param("apps/v1beta2/Deployment", TODAY, False, id="a removed kind"),
        pytest.param("apps/v1", TODAY, True, id="what replaced a removed one"),
        pytest.param("batch/v1/CronJob", TODAY, True, id="a kind that replaced one"),
        pytest.param("apps/v1", (1, 5), None, id="not yet the only one"),
        pytest.param("example.com/v1", TODAY, None, id="of no table"),
        pytest.param("example.com/v1/Thing", TODAY, None, id="a kind of no table"),
        pytest.param("v1", TODAY, None, id="the core"),
    ],
)
def test_a_version_is_served_as_far_as_the_tables_know(
    version: str, target: tuple[int, int], served: object
) -> None:
    assert is_served(version, target) is served
