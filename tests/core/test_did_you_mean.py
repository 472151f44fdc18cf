"""What a mistyped word was meant to be."""

from __future__ import annotations

import pytest

from webhook.core.did_you_mean import did_you_mean


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("modles", "; did you mean models?", id="two letters changed places"),
        pytest.param("MODELS", "; did you mean models?", id="capitals do not count"),
        pytest.param("hostpath", "; did you mean hostPath?", id="the known word is given as it is"),
        pytest.param("anything else", "", id="no known word is like it"),
    ],
)
def test_the_nearest_known_word_ends_the_message(word: str, expected: str) -> None:
    assert did_you_mean(word, ["models", "hostPath"]) == expected
