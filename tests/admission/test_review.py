"""Parsing reviews: fast where it can be, exact where it must be (hostile: tests/hostile)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.wire import gpu_pod, review
from webhook.admission.review import dump, load, parse

numbers = st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(), max_size=5)  # lone surrogates too
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@given(documents)
def test_what_json_writes_is_read_as_json_reads_it(document: Any) -> None:
    text = json.dumps(document)
    value = load(text.encode())
    assert value == json.loads(text)
    assert repr(value) == repr(json.loads(text))  # 1 is not 1.0 and not True


@given(documents)
def test_what_is_dumped_is_loaded_again(document: Any) -> None:
    assert load(dump(document)) == document


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("18446744073709551615", id="2^64 - 1"),
        pytest.param("18446744073709551616", id="2^64"),
        pytest.param("-9223372036854775809", id="-2^63 - 1"),
        pytest.param("1000000000000000000000000000001", id="10^30 + 1"),
    ],
)
def test_whole_numbers_are_exact(text: str) -> None:
    assert load(text.encode()) == int(text)


def test_the_object_can_be_had_as_it_came() -> None:
    found = parse(dump(review(gpu_pod())))
    found.request["object"]["spec"]["containers"].clear()
    assert found.fresh_object() == gpu_pod()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_not_said(value: float) -> None:
    assert dump(value) == b"null"  # as orjson does
    with pytest.raises(ValueError, match="JSON compliant"):
        dump([value, "\ud800"])
