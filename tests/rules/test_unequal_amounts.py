from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, REQUESTS, SPEC, container, found, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.rules import unequal_amounts as rule

SLICE = "nvidia.com/mig-1g.5gb"

repaired = partial(Finding, rule.CODE)


def levelled(request: Any, limit: Any, name: str = GPU) -> Finding:
    message = (
        f"container cuda requests {request} {name} but has a limit of {limit}: the limit counts; "
        f"write {limit} in both"
    )
    return repaired(REQUESTS / name, message, (Set(REQUESTS / name, limit),))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        pytest.param({GPU: "2"}, {GPU: "2"}, [], id="equal: untouched"),
        pytest.param(
            {"cpu": "2", GPU: "1"},
            {"cpu": "1", GPU: "1"},
            [],
            id="other resources may differ: untouched",
        ),
        pytest.param({GPU: "2"}, {GPU: "2000m"}, [], id="equal in another form: untouched"),
        pytest.param({GPU: "2"}, None, [], id="limit only: the API server copies it"),
        pytest.param(None, {GPU: "2"}, [], id="request only: GPU103's"),
        pytest.param({GPU: "two"}, {GPU: "2"}, [], id="a limit that is no quantity: left"),
        pytest.param({GPU: "2"}, {GPU: "two"}, [], id="a request that is no quantity: left"),
        pytest.param(
            {GPU: "2"}, {GPU: "1"}, [levelled("1", "2")], id="request below: the limit wins"
        ),
        pytest.param(
            {GPU: "1"}, {GPU: "2"}, [levelled("2", "1")], id="request above: the limit wins"
        ),
        pytest.param(
            {GPU: 2}, {GPU: "1"}, [levelled("1", 2)], id="the limit is copied as it is written"
        ),
        pytest.param(
            {GPU: "1"},
            {GPU: "500m"},
            [levelled("500m", "1")],
            id="a fraction below the limit: equal before anything is rounded",
        ),
        pytest.param(
            {GPU: "0"}, {GPU: "1"}, [levelled("1", "0")], id="no GPU by limit is no GPU at all"
        ),
        pytest.param({SLICE: "3"}, {SLICE: "1"}, [levelled("1", "3", SLICE)], id="slices too"),
    ],
)
def test_unequal_amounts(limits: Any, requests: Any, expected: list[Finding]) -> None:
    assert found(rule, pod(container(limits, requests))) == expected


def test_init_containers_too() -> None:
    init = container({GPU: "2"}, {GPU: "1"})
    at = SPEC / "initContainers" / 0 / "resources" / "requests" / GPU
    expected = repaired(at, levelled("1", "2").message, (Set(at, "2"),))
    assert found(rule, pod(container({GPU: "1"}), initContainers=[init])) == [expected]
