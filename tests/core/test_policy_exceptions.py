"""Exceptions: a reason is needed, a day is counted to its end, and the settings must allow it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.core.policy_exceptions import ALLOW, NONE, Claim, claim

CODE = "GPU301"
TODAY = date(2027, 3, 31)
NO_REASON = "needs a reason as its value"
NO_DAY = "must end as in (until 2027-03-31)"


def claimed(text: object, *, allowed: bool = True, today: date | None = TODAY) -> Claim:
    return claim(CODE, {ALLOW + CODE: text}, allowed=allowed, today=today)


COUNTS = [
    pytest.param("migrating", id="a reason"),
    pytest.param("migrating (until 2027-03-31)", id="to the end of its day"),
    pytest.param("migrating (until 2027-04-01)", id="a day to come"),
    pytest.param("migrating (until 9999-12-31)", id="the last day there is"),
    pytest.param("migrating until 2027-03-31", id="without brackets"),
    pytest.param("migrating, until 2027-03-31", id="after a comma"),
    pytest.param("migrating ( Until  2027-03-31 )", id="with blanks and a capital"),
    pytest.param("migrating(until 2027-03-31)", id="without a blank"),
    pytest.param("not until we know (until 2027-03-31)", id="the last `until` counts"),
    pytest.param("until then until 2027-03-31", id="a reason that begins with until"),
    pytest.param("an untilled field", id="a word that only begins like until"),
    pytest.param("ticket 2020-01-01", id="a day that nothing says to be the end"),
    pytest.param("zügig migrieren", id="letters beyond ASCII"),
]


@pytest.mark.parametrize("text", COUNTS)
def test_an_exception_that_counts_gives_its_whole_text_as_the_reason(text: str) -> None:
    assert claimed(text) == Claim(text)
    assert claimed(f" {text}\n") == Claim(text)


COUNTS_NOT = [
    pytest.param("", NO_REASON, id="nothing"),
    pytest.param(" \t\n", NO_REASON, id="blanks"),
    pytest.param("(until 2027-03-31)", NO_REASON, id="a day alone"),
    pytest.param("until 2027-03-31", NO_REASON, id="a day alone, without brackets"),
    pytest.param("until", NO_DAY, id="the word alone"),
    pytest.param("x (until 2027-03-30)", "its exception ended on 2027-03-30", id="yesterday"),
    pytest.param("x (until 0001-01-01)", "its exception ended on 0001-01-01", id="long ago"),
    pytest.param("x (until 2027-02-29)", NO_DAY, id="a day that no calendar has"),
    pytest.param("x (until 2028-13-01)", NO_DAY, id="a month that no calendar has"),
    pytest.param("x (until 0000-01-01)", NO_DAY, id="a year that no calendar has"),
    pytest.param("x (until tomorrow)", NO_DAY, id="tomorrow"),
    pytest.param("x (until 31.3.2028)", NO_DAY, id="a day as Europe writes it"),
    pytest.param("x (until 03/31/2028)", NO_DAY, id="a day as America writes it"),
    pytest.param("x (until 20280331)", NO_DAY, id="a day without dashes"),
    pytest.param("x (until 2028-W13-5)", NO_DAY, id="a day by its week"),
    pytest.param("x (until 2028-3-1)", NO_DAY, id="a day without its zeros"),
    pytest.param("x (until 2028-03-31T12:00:00Z)", NO_DAY, id="a time"),
    pytest.param("x (until ٢٠٢٨-٠٣-٣١)", NO_DAY, id="digits of another script"),
    pytest.param("x (until: 2028-03-31)", NO_DAY, id="a colon"),
    pytest.param("x (until)", NO_DAY, id="no day"),
    pytest.param("(until 2028-03-31) x", NO_DAY, id="the reason last: it would hold for ever"),
    pytest.param("x (until 2028-03-31), y", NO_DAY, id="the day in the middle: the same"),
    pytest.param("x until the vendor answers", NO_DAY, id="an end that is no day"),
]


@pytest.mark.parametrize(("text", "why"), COUNTS_NOT)
def test_an_exception_that_does_not_count_says_why(text: str, why: str) -> None:
    found = claimed(text)
    assert found.reason == ""
    assert found.why_not in (why, f"{ALLOW}{CODE} {why}")


def test_what_the_settings_do_not_allow_is_not_even_read() -> None:
    for text in ("migrating", "", "x (until 2020-01-01)"):
        assert claimed(text, allowed=False) == Claim(
            why_not=f"the settings allow no {ALLOW}{CODE} here"
        )


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="none"),
        pytest.param({ALLOW + "GPU302": "migrating"}, id="another rule's"),
        pytest.param({ALLOW + "gpu301": "migrating"}, id="in small letters"),
        pytest.param({ALLOW: "migrating"}, id="of no rule"),
        pytest.param({ALLOW + CODE: None}, id="null"),
        pytest.param({ALLOW + CODE: True}, id="a boolean"),
        pytest.param({ALLOW + CODE: 1}, id="a number"),
        pytest.param({ALLOW + CODE: ["migrating"]}, id="a list"),
        pytest.param({ALLOW + CODE: {"reason": "migrating"}}, id="a map"),
    ],
)
def test_without_an_annotation_of_this_rule_nothing_is_claimed(
    annotations: dict[str, Any], *, allowed: bool
) -> None:
    assert claim(CODE, annotations, allowed=allowed, today=TODAY) is NONE


def test_without_a_clock_a_reason_counts_and_a_day_does_not() -> None:
    assert claimed("migrating", today=None) == Claim("migrating")
    assert claimed("migrating (until 2999-01-01)", today=None).reason == ""


@given(st.dates(), st.integers(-400, 400))
@example(date(2028, 2, 29), 0)
def test_a_day_counts_to_its_end_and_no_longer(end: date, days: int) -> None:
    try:
        today = end + timedelta(days)
    except OverflowError:
        today = end
    found = claimed(f"migrating (until {end.isoformat()})", today=today)
    assert bool(found.reason) is (today <= end)
    assert bool(found.why_not) is (today > end)


@given(st.text(st.sampled_from("until ()2027-03\n x"), max_size=30) | st.text())
def test_any_text_either_counts_or_says_why_not(text: str) -> None:
    found = claimed(text)
    assert bool(found.reason) is not bool(found.why_not)
    assert found.reason in ("", text.strip())


@pytest.mark.large
@pytest.mark.timeout(20)  # a reading that goes back for each letter would take hours
@pytest.mark.parametrize(
    "unit",
    [
        pytest.param(" ", id="blanks"),
        pytest.param("(", id="brackets"),
        pytest.param(" ( ", id="brackets and blanks"),
        pytest.param("until ", id="the word"),
        pytest.param("until 2027-03-31 ", id="days"),
        pytest.param("(until 2027-03-31) ", id="days in brackets"),
        pytest.param("until(", id="the word and brackets"),
        pytest.param("\u2003\n", id="blanks of other scripts"),
    ],
)
def test_a_megabyte_is_read_at_once(unit: str) -> None:
    text = unit * (2**20 // len(unit))
    for hostile in (text, f"x{text}", f"{text}x", f"x (until {text}", f"until{text}x"):
        found = claimed(hostile)
        assert bool(found.reason) is not bool(found.why_not)
