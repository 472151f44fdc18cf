from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, LEGACY, LIMITS, REQUESTS, SPEC, container, found, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.rules import request_without_limit as rule

SLICE = "nvidia.com/mig-1g.5gb"

repaired = partial(Finding, rule.CODE)


def limited(request: Any, name: str = GPU) -> Finding:
    message = (
        f"container cuda requests {request} {name} without a limit, so old kubelets gave it no "
        f"device: write limits: {name}: {request}"
    )
    return repaired(REQUESTS / name, message, (Set(LIMITS / name, request),))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        pytest.param({GPU: "1"}, None, [], id="limit only: untouched"),
        pytest.param({GPU: "1"}, {GPU: "1"}, [], id="both: untouched"),
        pytest.param({GPU: "2"}, {GPU: "1"}, [], id="both that differ: GPU104's"),
        pytest.param(
            {GPU: "1"}, {GPU: "1", "cpu": "1"}, [], id="other resources need no limit: untouched"
        ),
        pytest.param(
            None, {LEGACY: "1"}, [], id="the legacy name: it is renamed first, by another rule"
        ),
        pytest.param(None, {GPU: "one"}, [], id="no quantity: the API server says so"),
        pytest.param(None, {GPU: "-1"}, [], id="negative: the API server says so"),
        pytest.param(
            None,
            {GPU: 1, "cpu": "100m"},
            [limited(1)],
            id="request only, without any limits (pattern 2): the limit is set",
        ),
        pytest.param({"cpu": "1"}, {GPU: "2"}, [limited("2")], id="limits of other resources"),
        pytest.param(
            None,
            {GPU: "0"},
            [limited("0")],
            id="zero too: the API server wants the limit all the same",
        ),
        pytest.param(None, {SLICE: "1"}, [limited("1", SLICE)], id="slices too"),
    ],
)
def test_request_without_limit(limits: Any, requests: Any, expected: list[Finding]) -> None:
    # The second container keeps the pod in scope where the first asks for nothing.
    assert found(rule, pod(container(limits, requests), container({GPU: "1"}))) == expected


def test_init_containers_too() -> None:
    init = SPEC / "initContainers" / 0 / "resources"
    obj = pod(container({GPU: "1"}), initContainers=[container(None, {GPU: "1"})])
    expected = repaired(
        init / "requests" / GPU, limited("1").message, (Set(init / "limits" / GPU, "1"),)
    )
    assert found(rule, obj) == [expected]
