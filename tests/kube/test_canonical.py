"""One text for equal values."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kube.canonical import canonical, parsed


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True, id="the order of members"),
        pytest.param([1, 2], [2, 1], False, id="the order of items counts"),
        pytest.param("1", 1, False, id="a text is no number"),
        pytest.param(None, {}, False, id="null is no map"),
        pytest.param("\ud800", "\ud800", True, id="half of a surrogate pair"),
        pytest.param(2**61 - 1, 2 * (2**61 - 1), False, id="numbers that Python hashes alike"),
    ],
)
def test_equal_values_have_one_text(one: Any, other: Any, *, same: bool) -> None:
    assert (canonical(one) == canonical(other)) is same


def test_what_is_nested_too_deeply_equals_itself_alone() -> None:
    def nested() -> Any:
        value: Any = []
        for _ in range(100_000):  # Python 3.13 encodes what is 9,000 deep
            value = [value]
        return value

    one, other = nested(), nested()
    assert canonical(one) == canonical(one)
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "text", [None, {}, "", "{", "x" * 9, "[" * 100_000], ids=lambda t: str(t)[:9]
)
def test_what_is_no_json_has_no_value(text: object) -> None:
    assert parsed(text) is None
    assert parsed('{"a": [1]}') == {"a": [1]}
