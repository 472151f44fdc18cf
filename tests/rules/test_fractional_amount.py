from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, LEGACY, LIMITS, REQUESTS, SPEC, container, found, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.rules import fractional_amount as rule

SLICE = "nvidia.com/mig-1g.5gb"

repaired = partial(Finding, rule.CODE)


def rounded(raw: Any, whole: str | int, *places: Any, who: str = "cuda") -> Finding:
    message = (
        f"container {who} requests {raw} {LEGACY}: GPUs are whole, so it means {whole}; "
        f"write {GPU}: {whole}"
    )
    return repaired(places[0], message, tuple(Set(place, whole) for place in places))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        pytest.param(
            {"cpu": "500m", LEGACY: "1"}, {"cpu": "0.1"}, [], id="only GPUs are whole: untouched"
        ),
        pytest.param({LEGACY: "2"}, {LEGACY: "2"}, [], id="whole: untouched"),
        pytest.param({LEGACY: "1000m"}, None, [], id="whole in milli: as written"),
        pytest.param({LEGACY: "1k"}, None, [], id="whole with a suffix: as written"),
        pytest.param({LEGACY: "1.0"}, None, [], id="whole with a point: as written"),
        pytest.param({LEGACY: "1e0"}, None, [], id="whole with an exponent: as written"),
        pytest.param({LEGACY: "0"}, None, [], id="none at all: untouched"),
        pytest.param({GPU: "500m"}, None, [], id="a name of today: the API server says so"),
        pytest.param({SLICE: "0.5"}, None, [], id="slices too"),
        pytest.param(
            {LEGACY: "500m", GPU: "1"}, None, [], id="another name counts: GPU101 drops it"
        ),
        pytest.param({LEGACY: "-500m"}, None, [], id="negative: the API server says so"),
        pytest.param({LEGACY: "half"}, None, [], id="no quantity: the API server says so"),
        pytest.param(
            {LEGACY: "500m"},
            None,
            [rounded("500m", "1", LIMITS / LEGACY)],
            id="half a GPU was one device",
        ),
        pytest.param(
            {LEGACY: "500m"},
            {LEGACY: "500m"},
            [rounded("500m", "1", LIMITS / LEGACY, REQUESTS / LEGACY)],
            id="limit and request: one finding, both rounded",
        ),
        pytest.param(
            {LEGACY: "1"},
            {LEGACY: "500m"},
            [rounded("500m", "1", REQUESTS / LEGACY)],
            id="only the request is a fraction",
        ),
        pytest.param(
            {LEGACY: "1.5"},
            None,
            [rounded("1.5", "2", LIMITS / LEGACY)],
            id="rounded up, never down",
        ),
        pytest.param(
            {LEGACY: 1.5}, None, [rounded(1.5, 2, LIMITS / LEGACY)], id="a float, as in YAML"
        ),
        pytest.param(
            {LEGACY: ".5"}, None, [rounded(".5", "1", LIMITS / LEGACY)], id="a point in front"
        ),
        pytest.param(
            {LEGACY: "1n"}, None, [rounded("1n", "1", LIMITS / LEGACY)], id="a nano of a GPU"
        ),
        pytest.param(
            {LEGACY: "2001m"},
            None,
            [rounded("2001m", "3", LIMITS / LEGACY)],
            id="a little over two",
        ),
        pytest.param(
            {LEGACY: "15e-1"}, None, [rounded("15e-1", "2", LIMITS / LEGACY)], id="an exponent"
        ),
        pytest.param(
            {LEGACY: "0.001Ki"},
            None,
            [rounded("0.001Ki", "2", LIMITS / LEGACY)],
            id="a binary suffix",
        ),
    ],
)
def test_fractional_amount(limits: Any, requests: Any, expected: list[Finding]) -> None:
    # The second container keeps the pod in scope where the first requests nothing.
    assert found(rule, pod(container(limits, requests), container({GPU: "1"}))) == expected


def test_init_containers_too() -> None:
    obj = pod(container({GPU: "1"}), initContainers=[container({LEGACY: "500m"}, name="warm-up")])
    at = SPEC / "initContainers" / 0 / "resources" / "limits" / LEGACY
    assert found(rule, obj) == [rounded("500m", "1", at, who="warm-up")]
