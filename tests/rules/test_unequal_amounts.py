from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, LEGACY, LIMITS, REQUESTS, SPEC, container, found, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.limit_ranger import ANNOTATION
from webhook.rules import unequal_amounts as rule

repaired = partial(Finding, rule.CODE)


def levelled(request: Any, limit: Any, counts: Any) -> Finding:
    message = (
        f"container cuda requests {request} {LEGACY} but has a limit of {limit}: {counts} counts; "
        f"write {counts} in both"
    )
    section = REQUESTS if counts == limit else LIMITS
    return repaired(REQUESTS / LEGACY, message, (Set(section / LEGACY, counts),))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        pytest.param({LEGACY: "2"}, {LEGACY: "2"}, [], id="equal: untouched"),
        pytest.param(
            {"cpu": "2", LEGACY: "1"},
            {"cpu": "1", LEGACY: "1"},
            [],
            id="other resources may differ: untouched",
        ),
        pytest.param({LEGACY: "2"}, {LEGACY: "2000m"}, [], id="equal in another form: untouched"),
        pytest.param({LEGACY: "2"}, None, [], id="limit only: the API server copies it"),
        pytest.param(None, {LEGACY: "2"}, [], id="request only: GPU103's"),
        pytest.param({LEGACY: "two"}, {LEGACY: "2"}, [], id="a limit that is no quantity: left"),
        pytest.param({LEGACY: "2"}, {LEGACY: "two"}, [], id="a request that is no quantity: left"),
        pytest.param({LEGACY: "0"}, {LEGACY: "0.0"}, [], id="no GPU at all: GPU101's"),
        pytest.param({GPU: "2"}, {GPU: "1"}, [], id="a name of today: the API server says so"),
        pytest.param(
            {LEGACY: "1", GPU: "3"}, {LEGACY: "2"}, [], id="another name counts: GPU101 drops it"
        ),
        pytest.param(
            {LEGACY: "2"}, {LEGACY: "1"}, [levelled("1", "2", "2")], id="request below the limit"
        ),
        pytest.param(
            {LEGACY: "1"},
            {LEGACY: "2"},
            [levelled("2", "1", "2")],
            id="request above the limit: never less than was asked for",
        ),
        pytest.param(
            {LEGACY: 2}, {LEGACY: "1"}, [levelled("1", 2, 2)], id="copied as it is written"
        ),
        pytest.param(
            {LEGACY: "1"},
            {LEGACY: "500m"},
            [levelled("500m", "1", "1")],
            id="a fraction below the limit: equal before anything is rounded",
        ),
        pytest.param(
            {LEGACY: "0"}, {LEGACY: "1"}, [levelled("1", "0", "1")], id="zero never counts"
        ),
    ],
)
def test_unequal_amounts(limits: Any, requests: Any, expected: list[Finding]) -> None:
    assert found(rule, pod(container(limits, requests))) == expected


@pytest.mark.parametrize("added", ["1", "8"])
def test_a_limit_that_a_limit_range_added_gives_way_to_the_request(added: str) -> None:
    text = f"LimitRanger plugin set: {LEGACY} limit for container cuda"
    obj = pod(container({LEGACY: added}, {LEGACY: "2"}), annotations={ANNOTATION: text})
    assert found(rule, obj) == [levelled("2", added, "2")]


def test_init_containers_too() -> None:
    init = container({LEGACY: "2"}, {LEGACY: "1"})
    at = SPEC / "initContainers" / 0 / "resources" / "requests" / LEGACY
    expected = repaired(at, levelled("1", "2", "2").message, (Set(at, "2"),))
    assert found(rule, pod(container({GPU: "1"}), initContainers=[init])) == [expected]
