"""Which namespaces a part of the settings is for: name patterns, labels, and a share of all."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.core.namespace_selection import EVERYWHERE, Selection, matches, share


def selection(
    *namespaces: str, labels: tuple[tuple[str, str], ...] = (), percent: int = 100
) -> Selection:
    return Selection(namespaces, labels, percent)


TEAM = (("team", "a"),)
BOTH = (*TEAM, ("stage", "live"))
SELECTIONS = [
    pytest.param(EVERYWHERE, "any", {}, True, id="nothing given: every namespace"),
    pytest.param(selection("ml"), "ml", {}, True, id="its name"),
    pytest.param(selection("ml"), "ml-train", {}, False, id="a name that only begins alike"),
    pytest.param(selection("ml"), "my-ml", {}, False, id="a name that only ends alike"),
    pytest.param(selection("ml-*"), "ml-train", {}, True, id="a pattern"),
    pytest.param(selection("ml-*"), "ml-", {}, True, id="a star may stand for nothing"),
    pytest.param(selection("ml-*"), "ml", {}, False, id="but what is before it must be there"),
    pytest.param(selection("*"), "", {}, True, id="a star alone: also no name"),
    pytest.param(selection("a", "b-*"), "b-c", {}, True, id="one of several patterns is enough"),
    pytest.param(selection("a.c"), "abc", {}, False, id="a dot is a dot"),
    pytest.param(selection("team-?"), "team-a", {}, False, id="a question mark is no pattern"),
    pytest.param(selection(labels=TEAM), "x", {"team": "a"}, True, id="its label"),
    pytest.param(selection(labels=TEAM), "x", {"team": "b"}, False, id="another value"),
    pytest.param(selection(labels=TEAM), "x", {}, False, id="an unknown namespace has no labels"),
    pytest.param(selection(labels=BOTH), "x", dict(TEAM), False, id="one of two labels"),
    pytest.param(selection(labels=BOTH), "x", dict(BOTH), True, id="both labels"),
    pytest.param(selection("x", labels=TEAM), "x", dict(TEAM), True, id="name and label"),
    pytest.param(selection("y", labels=TEAM), "x", dict(TEAM), False, id="the label, not the name"),
    pytest.param(selection("x", labels=TEAM), "x", {}, False, id="the name, not the label"),
    # crc32("123456789") is the check value of that sum: 0xCBF43926, which ends in 62 as a number.
    pytest.param(selection(percent=63), "123456789", {}, True, id="within the percentage"),
    pytest.param(selection(percent=62), "123456789", {}, False, id="just beyond the percentage"),
    pytest.param(selection(percent=0), "any", {}, False, id="0 percent: none"),
    pytest.param(selection("x*", percent=100), "xy", {}, True, id="100 percent: all that fit"),
    pytest.param(selection("x*", percent=0), "xy", {}, False, id="a fitting name, not its turn"),
]


@pytest.mark.parametrize(("where", "namespace", "labels", "selected"), SELECTIONS)
def test_all_that_is_given_must_hold(
    where: Selection, namespace: str, labels: dict[str, str], *, selected: bool
) -> None:
    assert where.selects(namespace, labels) is selected


def fits(pattern: str, name: str) -> bool:
    """What a pattern means, tried letter by letter."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return fits(pattern[1:], name) or (bool(name) and fits(pattern, name[1:]))
    return name[:1] == pattern[0] and fits(pattern[1:], name[1:])


@given(
    st.lists(st.text("ab.*\n", max_size=6), min_size=1, max_size=3), st.text("ab.\n", max_size=7)
)
@example(["*a*b"], "aabab")
@example(["a*a"], "a")
def test_a_name_matches_if_one_pattern_fits_it_letter_by_letter(
    patterns: list[str], name: str
) -> None:
    assert matches(tuple(patterns), name) is any(fits(pattern, name) for pattern in patterns)


@pytest.mark.timeout(10)
def test_a_pattern_of_many_stars_does_not_try_every_way_to_share_a_name_out() -> None:
    stars = "*a" * 30
    assert not matches((stars + "b",), "a" * 253)
    assert matches((stars,), "a" * 253)


@given(st.text() | st.from_regex("[a-z0-9-]{1,63}"), st.integers(0, 100), st.integers(0, 100))
@example("\ud800", 1, 99)
def test_a_higher_percentage_only_adds_namespaces(name: str, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert 0 <= share(name) < 100
    assert Selection(percent=high).selects(name, {}) or not Selection(percent=low).selects(name, {})


@pytest.mark.large
@pytest.mark.parametrize("percent", [1, 5, 10, 25, 50, 75, 99])
def test_a_percentage_of_many_namespaces_is_that_share_of_them(percent: int) -> None:
    draw = random.Random(percent)  # noqa: S311  # no secret
    letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
    names = {"".join(draw.choices(letters, k=draw.randint(3, 20))) for _ in range(10_000)}
    numbered = {f"team-{number}" for number in range(10_000)}
    for many in (names, numbered):
        chosen = sum(Selection(percent=percent).selects(name, {}) for name in many)
        assert abs(100 * chosen / len(many) - percent) < 2


def test_the_share_of_a_namespace_is_the_same_in_every_process_and_every_release() -> None:
    shares = {"default": 39, "kube-system": 65, "ml-train": 48, "123456789": 62}
    assert {name: share(name) for name in shares} == shares
    read = "from webhook.core.namespace_selection import share"
    program = f"{read}; print([share(n) for n in {[*shares]!r}])"
    for seed in ("0", "4711"):
        made = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert made.stdout.strip() == str([*shares.values()])
