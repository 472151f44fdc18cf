"""Times: texts of the API server in, seconds out, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.kube.times import date, seconds_of, stamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1970-01-02T00:00:00Z", 86_400.0, id="a day"),
        pytest.param("1970-01-01T00:00:01.500000Z", 1.5, id="with a fraction, as a MicroTime has"),
        pytest.param("1970-01-01T01:00:00+01:00", 0.0, id="of another zone"),
        pytest.param("soon", 0.0, id="no time"),
        pytest.param(None, 0.0, id="nothing"),
    ],
)
def test_a_text_is_read(text: object, seconds: float) -> None:
    assert seconds_of(text) == seconds


@given(st.integers(1, 4_000_000_000))
def test_what_is_written_is_read_again(seconds: int) -> None:
    assert seconds_of(stamp(seconds)) == seconds
    assert stamp(seconds).endswith("Z")


def test_a_stamp_has_the_wanted_precision() -> None:
    assert stamp(0.25) == "1970-01-01T00:00:00Z"
    assert stamp(0.25, "milliseconds") == "1970-01-01T00:00:00.250Z"
    assert stamp(0.25, "microseconds") == "1970-01-01T00:00:00.250000Z"


def test_a_date_is_for_users() -> None:
    assert date(0.0) == "1970-01-01 00:00 UTC"
