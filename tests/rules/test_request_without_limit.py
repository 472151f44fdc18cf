from __future__ import annotations

from typing import Any

import pytest

from tests.engine import run
from tests.rules.pods import GPU, LEGACY, LIMITS, REQUESTS, SPEC, container, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.rules import legacy_resource, unequal_amounts
from webhook.rules import request_without_limit as rule

SLICE = "nvidia.com/mig-1g.5gb"


def found(obj: Any) -> list[Finding]:
    """What the rule says of what the legacy name has become."""
    rules = (unequal_amounts, legacy_resource, rule)
    verdict = run(rules, obj, Context())
    assert run(rules, obj, Context()).patch == []
    return [each for each in verdict.findings if each.code == rule.CODE]


def limited(request: Any, section: Any = REQUESTS, limits: Any = LIMITS) -> Finding:
    message = (
        f"container cuda requests {request} {GPU} without a limit, so old kubelets gave it no "
        f"device: write limits: {GPU}: {request}"
    )
    return Finding(rule.CODE, section / GPU, message, (Set(limits / GPU, request),))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        pytest.param({LEGACY: "1"}, None, [], id="limit only: untouched"),
        pytest.param({LEGACY: "1"}, {LEGACY: "1"}, [], id="both: untouched"),
        pytest.param({LEGACY: "2"}, {LEGACY: "1"}, [], id="both that differ: GPU104's"),
        pytest.param(
            {LEGACY: "1"},
            {LEGACY: "1", "cpu": "1"},
            [],
            id="other resources need no limit: untouched",
        ),
        pytest.param(None, {GPU: "1"}, [], id="a name of today: the API server says so"),
        pytest.param(None, {SLICE: "1"}, [], id="slices too"),
        pytest.param(
            None,
            {GPU: "2", LEGACY: "1"},
            [],
            id="a name of today that counts alone: the API server says so",
        ),
        pytest.param(
            None, {GPU: "2", LEGACY: "0"}, [], id="a name of today beside a legacy zero: the same"
        ),
        pytest.param({GPU: "2"}, {LEGACY: "1"}, [], id="another name counts: GPU101 drops it"),
        pytest.param(None, {LEGACY: "one"}, [], id="no quantity: GPU101 says so"),
        pytest.param(None, {LEGACY: "-1"}, [], id="negative: GPU101 says so"),
        pytest.param(None, {LEGACY: "0"}, [], id="zero: no GPU, GPU101 drops it"),
        pytest.param(
            None,
            {LEGACY: 1, "cpu": "100m"},
            [limited(1)],
            id="request only, without any limits (pattern 2): the limit is set",
        ),
        pytest.param({"cpu": "1"}, {LEGACY: "2"}, [limited("2")], id="limits of other resources"),
        pytest.param(
            None, {LEGACY: "2", GPU: "1"}, [limited("2")], id="it counts beside a name of today"
        ),
        pytest.param({GPU: "0"}, {LEGACY: "2"}, [], id="GPU101 has written over a limit of 0"),
    ],
)
def test_request_without_limit(limits: Any, requests: Any, expected: list[Finding]) -> None:
    # The second container keeps the pod in scope where the first requests nothing.
    assert found(pod(container(limits, requests), container({GPU: "1"}))) == expected


def test_init_containers_too() -> None:
    init = SPEC / "initContainers" / 0 / "resources"
    obj = pod(container({GPU: "1"}), initContainers=[container(None, {LEGACY: "1"})])
    assert found(obj) == [limited("1", init / "requests", init / "limits")]


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.AUDIT])
def test_where_it_does_not_repair_it_says_what_it_would_do_of_the_legacy_name(mode: Mode) -> None:
    obj = pod(container(None, {LEGACY: "1"}), container({LEGACY: "1"}, {LEGACY: "1"}, name="other"))
    verdict = run((legacy_resource, rule), obj, Context(modes=Modes(rules={rule.CODE: mode})))
    first, second = obj["spec"]["containers"]
    assert first["resources"] == {"requests": {LEGACY: "1"}}
    assert second["resources"] == {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    assert [(each.code, each.action) for each in verdict.findings] == [
        (legacy_resource.CODE, "reported"),
        (legacy_resource.CODE, "repaired"),
        (rule.CODE, "would repair"),
    ]
    assert verdict.findings[0].message == (
        f"container cuda requests 1 {LEGACY}, which no node offers, and stays so: {GPU} needs a "
        f"limit, and GPU103 repairs nothing here; write limits: {GPU}: 1"
    )


def test_where_nothing_is_renamed_it_sets_no_limit() -> None:
    obj = pod(container(None, {LEGACY: "1"}))
    assert run((rule,), obj, Context()).findings == ()
