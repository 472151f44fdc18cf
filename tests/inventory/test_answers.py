"""What the API server answers is read whoever has nested an object of it deeper than our reader."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cluster import answers
from webhook.cluster.client import Fault


def nested(levels: int, name: str = "f:x") -> str:
    return f'{{"{name}":' * levels + "{}" + "}" * levels


@pytest.mark.parametrize("levels", [10, 400, 1_020, 1_100, 100_000])
def test_a_pod_that_is_nested_deeply_hides_no_other(levels: int) -> None:
    deep = f'{{"metadata":{{"name":"deep","managedFields":[{{"fieldsV1":{nested(levels)}}}]}}}}'
    other = '{"metadata":{"name":"o\\"ther}"},"spec":{"a":[1,{"b":"]"}]}}'
    page = answers.read(f'{{"items":[{deep},{other},{deep}],"metadata":{{}}}}'.encode())
    assert [each["metadata"]["name"] for each in page["items"]] == ["deep", 'o"ther}', "deep"]
    assert page["items"][1] == json.loads(other)
    assert page["metadata"] == {}


@pytest.mark.parametrize(
    "text",
    [
        *("", "<html>", "{", '{"a":"', nested(2_000)[:-1], nested(2_000)[:1_000], "]" * 2_000),
        *(nested(2_000) + "}", nested(2_000, '"'), "[" * 2_000),
    ],
)
def test_what_is_no_json_is_a_fault(text: str) -> None:
    with pytest.raises(Fault, match="the answer is not JSON"):
        answers.read(text.encode())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-100, 100) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(value=VALUES)
def test_what_is_beside_it_is_read_as_it_is(value: object) -> None:
    text = json.dumps(value).encode("utf-8", "surrogatepass")
    page = answers.read(
        b'{"before":%b,"deep":%b,"after":%b}' % (text, nested(1_500).encode(), text)
    )
    assert page["before"] == page["after"] == json.loads(text)
