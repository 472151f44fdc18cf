"""Every place in an object."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kube.pointer import ROOT, Path
from webhook.kube.walk import walk


def test_every_place_in_order_the_holder_first() -> None:
    value = {"a": [1, {"b": 2}], "c": 3}
    assert [(at.dotted, here) for at, here in walk(value)] == [
        ("", value),
        ("a", [1, {"b": 2}]),
        ("a[0]", 1),
        ("a[1]", {"b": 2}),
        ("a[1].b", 2),
        ("c", 3),
    ]


def test_below_a_place_that_is_left_out_nothing_is_said() -> None:
    places = [at.dotted for at, _ in walk({"a": {"b": 1}, "c": 2}, without=(ROOT / "a",))]
    assert places == ["", "a", "c"]


def test_places_may_begin_anywhere() -> None:
    assert list(walk("x", Path(("a", 0)))) == [(Path(("a", 0)), "x")]


@pytest.mark.large
def test_depth_costs_no_recursion() -> None:
    deep: Any = 0
    for _ in range(10_000):
        deep = [deep]
    assert sum(1 for _ in walk(deep)) == 10_001
