from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, LIMITS, REQUESTS, SPEC, container, found, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.rules import fractional_amount as rule

SLICE = "nvidia.com/mig-1g.5gb"

repaired = partial(Finding, rule.CODE)


def rounded(raw: Any, whole: str, *places: Any, name: str = GPU, who: str = "cuda") -> Finding:
    message = (
        f"container {who} asks for {raw} {name}: GPUs are whole, so it gets {whole}; "
        f"write {name}: {whole}"
    )
    return repaired(places[0], message, tuple(Set(place, whole) for place in places))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        pytest.param(
            {"cpu": "500m", GPU: "1"}, {"cpu": "0.1"}, [], id="only GPUs are whole: untouched"
        ),
        pytest.param({GPU: "2"}, {GPU: "2"}, [], id="whole: untouched"),
        pytest.param({GPU: "1000m"}, None, [], id="whole in milli: as written"),
        pytest.param({GPU: "1k"}, None, [], id="whole with a suffix: as written"),
        pytest.param({GPU: "1.0"}, None, [], id="whole with a point: as written"),
        pytest.param({GPU: "1e0"}, None, [], id="whole with an exponent: as written"),
        pytest.param({GPU: "0", SLICE: "0m"}, None, [], id="none at all: untouched"),
        pytest.param({GPU: "-500m"}, None, [], id="negative: the API server says so"),
        pytest.param({GPU: "half"}, None, [], id="no quantity: the API server says so"),
        pytest.param(
            {GPU: "500m"},
            None,
            [rounded("500m", "1", LIMITS / GPU)],
            id="half a GPU was one device",
        ),
        pytest.param(
            {GPU: "500m"},
            {GPU: "500m"},
            [rounded("500m", "1", LIMITS / GPU, REQUESTS / GPU)],
            id="limit and request: one finding, both rounded",
        ),
        pytest.param(
            {GPU: "1"},
            {GPU: "500m"},
            [rounded("500m", "1", REQUESTS / GPU)],
            id="only the request is a fraction",
        ),
        pytest.param(
            {GPU: "1.5"}, None, [rounded("1.5", "2", LIMITS / GPU)], id="rounded up, never down"
        ),
        pytest.param({GPU: 1.5}, None, [rounded(1.5, "2", LIMITS / GPU)], id="a float, as in YAML"),
        pytest.param({GPU: ".5"}, None, [rounded(".5", "1", LIMITS / GPU)], id="a point in front"),
        pytest.param({GPU: "1n"}, None, [rounded("1n", "1", LIMITS / GPU)], id="a nano of a GPU"),
        pytest.param(
            {GPU: "2001m"}, None, [rounded("2001m", "3", LIMITS / GPU)], id="a little over two"
        ),
        pytest.param({GPU: "15e-1"}, None, [rounded("15e-1", "2", LIMITS / GPU)], id="an exponent"),
        pytest.param(
            {GPU: "0.001Ki"}, None, [rounded("0.001Ki", "2", LIMITS / GPU)], id="a binary suffix"
        ),
        pytest.param(
            {SLICE: "0.5"},
            None,
            [rounded("0.5", "1", LIMITS / SLICE, name=SLICE)],
            id="slices are whole too",
        ),
    ],
)
def test_fractional_amount(limits: Any, requests: Any, expected: list[Finding]) -> None:
    # The second container keeps the pod in scope where the first asks for nothing.
    assert found(rule, pod(container(limits, requests), container({GPU: "1"}))) == expected


def test_init_containers_too() -> None:
    obj = pod(container({GPU: "1"}), initContainers=[container({GPU: "500m"}, name="warm-up")])
    at = SPEC / "initContainers" / 0 / "resources" / "limits" / GPU
    assert found(rule, obj) == [rounded("500m", "1", at, who="warm-up")]
