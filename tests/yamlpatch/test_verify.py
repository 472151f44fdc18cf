"""A new text is held against what it must say."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.yamlpatch import documents, verify


@pytest.mark.parametrize(
    ("text", "wanted", "unread", "why"),
    [
        pytest.param("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], 0, "", id="as it should"),
        pytest.param("a: [\n", [{"a": 1}], 0, "the new text would not parse: is not", id="broken"),
        pytest.param(
            "a: '1'\n",
            [{"a": 1}],
            0,
            "document 1 of the new text would not",
            id="a text, no number",
        ),
        pytest.param(
            "a: 1\n", [{"a": 1}, {"b": 1}], 0, "the new text would have 1 documents", id="too few"
        ),
        pytest.param("a: 1\n---\nb: [\n", [{"a": 1}], 1, "", id="what was broken before"),
        pytest.param("a: 1\n", [{"a": 1}], 1, "its parts would differ", id="a part that is gone"),
    ],
)
def test_a_text_says_what_it_should(text: str, wanted: list[Any], unread: int, why: str) -> None:
    said = verify.why_not(documents.read(text), wanted, unread)
    assert said.startswith(why)
    assert bool(said) is bool(why)


def test_json_must_stay_json() -> None:
    bad, good = (documents.read(text, json=True) for text in ('{"a": 1,}', '{"a": 1}'))
    assert "name in quotes is missing" in verify.why_not(bad, [{"a": 1}])
    assert verify.why_not(good, [{"a": 1}]) == ""
