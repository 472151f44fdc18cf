from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.objects import ROAD_2, UNSAFE, found, said
from tests.rules.pods import GPU, LEGACY
from webhook.core.edits import Rename
from webhook.core.findings import Finding, Safety
from webhook.core.settings import Settings
from webhook.kube.pointer import Path
from webhook.rules import quota_names as rule

HARD = Path(("spec", "hard"))
REQUESTS, LIMITS = f"requests.{LEGACY}", f"limits.{LEGACY}"
COUNTED = f"requests.{GPU}"


def quota(**hard: Any) -> Any:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard}}


def limit_range(**sections: Any) -> Any:
    limits = [{"type": "Container", **sections}]
    return {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": limits}}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(quota(**{COUNTED: 4, "pods": 10}), id="today's name: untouched"),
        pytest.param(limit_range(max={GPU: 4}), id="a range of today's: untouched"),
        pytest.param({"kind": "ConfigMap", "spec": {"hard": {LEGACY: 1}}}, id="no quota"),
        pytest.param({"kind": "ResourceQuota", "spec": None}, id="an empty quota"),
        pytest.param({"kind": "LimitRange", "spec": {"limits": [7]}}, id="a broken range"),
    ],
)
def test_what_is_left_alone(obj: Any) -> None:
    assert found(rule, obj, UNSAFE) == []


@pytest.mark.parametrize(
    ("hard", "expected"),
    [
        pytest.param({LEGACY: 4}, {COUNTED: 4}, id="the bare name"),
        pytest.param({REQUESTS: 4}, {COUNTED: 4}, id="with requests"),
        pytest.param({LIMITS: 4}, {COUNTED: 4}, id="with limits alone"),
        pytest.param(
            {LIMITS: 8, REQUESTS: 4}, {COUNTED: 4}, id="the request counts, not the limit"
        ),
        pytest.param({REQUESTS: 4, COUNTED: 2}, {COUNTED: 2}, id="today's name wins"),
        pytest.param({f"limits.{GPU}": 4}, {COUNTED: 4}, id="limits of today's name"),
        pytest.param(
            {f"limits.{GPU}": 4, COUNTED: 2, "pods": 1},
            {COUNTED: 2, "pods": 1},
            id="limits of today's name beside requests",
        ),
    ],
)
def test_quotas_on_request(hard: Any, expected: Any) -> None:
    obj = quota(**hard)
    assert {action for _, action in said(rule, obj, UNSAFE)} == {"repaired"}
    assert obj["spec"]["hard"] == expected


def test_the_whole_finding_which_changes_nothing_unasked() -> None:
    at = HARD / REQUESTS
    message = f"no quota counts {REQUESTS}: write {COUNTED}, which then counts"
    obj = quota(**{REQUESTS: 4})
    assert found(rule, obj) == [
        Finding(rule.CODE, at, message, (Rename(at, COUNTED),), safety=Safety.UNSAFE)
    ]
    assert obj == quota(**{REQUESTS: 4})


def test_a_quota_of_openshift_is_one_step_deeper() -> None:
    obj = {"kind": "ClusterResourceQuota", "spec": {"quota": {"hard": {REQUESTS: 4}}}}
    assert said(rule, obj, UNSAFE) == [(f"spec.quota.hard[{REQUESTS}]", "repaired")]
    assert obj["spec"] == {"quota": {"hard": {COUNTED: 4}}}


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        pytest.param({"max": {LEGACY: 4}}, {"max": {GPU: 4}}, id="a maximum"),
        pytest.param(
            {"default": {LEGACY: 1, "cpu": 1}}, {"default": {GPU: 1, "cpu": 1}}, id="a default"
        ),
        pytest.param(
            {"defaultRequest": {LEGACY: 1}},
            {"defaultRequest": {GPU: 1}, "default": {GPU: 1}},
            id="a request without a limit would be refused",
        ),
        pytest.param(
            {"default": {LEGACY: 2}, "defaultRequest": {LEGACY: 1}},
            {"default": {GPU: 2}, "defaultRequest": {GPU: 2}},
            id="the request must be the limit",
        ),
        pytest.param(
            {"default": {LEGACY: 1}, "defaultRequest": {LEGACY: 1}},
            {"default": {GPU: 1}, "defaultRequest": {GPU: 1}},
            id="both are the same already",
        ),
        pytest.param(
            {"default": {GPU: 3}, "defaultRequest": {LEGACY: 1}},
            {"default": {GPU: 3}, "defaultRequest": {GPU: 3}},
            id="the limit has today's name already",
        ),
        pytest.param(
            {"max": {LEGACY: 4, GPU: 2}}, {"max": {GPU: 2}}, id="both names: today's wins"
        ),
    ],
)
def test_ranges_on_request(sections: Any, expected: Any) -> None:
    obj = limit_range(**sections)
    assert {action for _, action in said(rule, obj, UNSAFE)} == {"repaired"}
    assert obj == limit_range(**expected)


def test_who_gets_a_default_is_said() -> None:
    [finding] = found(rule, limit_range(default={LEGACY: 1}))
    assert finding.message == (
        f"the default of {LEGACY} is not one of GPUs: write {GPU}; "
        "each container of the namespace gets it"
    )


def test_names_of_the_settings() -> None:
    settings = Settings(legacy_resources=("old/gpu",), gpu_resource="new/gpu")
    cx = replace(ROAD_2, settings=settings, unsafe=True)
    obj = quota(**{"requests.old/gpu": 1, REQUESTS: 1})
    found(rule, obj, cx)
    assert obj == quota(**{"requests.new/gpu": 1, REQUESTS: 1})
