"""When the webhook may be removed, and the page that reports it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.reports.usage_samples import EMPTY, LEFT, NOW, OWNERS, SAFE, ago
from webhook import __version__
from webhook.reports.usage import PRINTED

if TYPE_CHECKING:
    from webhook.reports.usage import Usage

GOLDEN = Path(__file__).with_name("reports")

ANSWERS: dict[str, tuple[Usage, str, str]] = {
    "nothing came for longer than was asked": (
        SAFE,
        "safe",
        "Nothing legacy for 45 days: safe to remove",
    ),
    "exactly as long as was asked": (
        replace(SAFE, since=ago(30)),
        "safe",
        "Nothing legacy for 30 days: safe to remove",
    ),
    "an hour less": (
        replace(SAFE, since=ago(30 - 1 / 24)),
        "unknown",
        (
            "Not known yet: nothing legacy for 29 days, nothing is known before; ask after "
            "2026-06-30 13:00 UTC"
        ),
    ),
    "the counters began three days ago": (
        EMPTY,
        "unknown",
        (
            "Not known yet: nothing legacy for 3 days, nothing is known before; ask after "
            "2026-07-27 00:00 UTC"
        ),
    ),
    "three days are enough where every job runs daily": (
        replace(EMPTY, days=2),
        "safe",
        "Nothing legacy for 3 days: safe to remove",
    ),
    "the last one came before the time that counts": (
        replace(SAFE, last={"ml": ago(31)}),
        "safe",
        "Nothing legacy for 31 days: safe to remove",
    ),
    "one came within the time that counts": (
        replace(SAFE, last={"ml": ago(29.9), "old": ago(44)}),
        "left",
        "Not yet: legacy objects from 1 namespace in the last 30 days",
    ),
    "one is left in the cluster that never came": (
        replace(SAFE, owners=OWNERS[:1]),
        "left",
        "Not yet: 1 owner with legacy objects left",
    ),
    "something could not be read": (
        replace(SAFE, gaps=("x",)),
        "unknown",
        "Not known: nothing legacy was found, but not everything could be checked",
    ),
    "what is left counts more than what could not be read": (
        replace(SAFE, gaps=("x",), owners=OWNERS),
        "left",
        "Not yet: 3 owners with legacy objects left",
    ),
    "a modern pod was repaired within the time that counts": (
        replace(SAFE, repairs={"GPU201": ago(29.9), "GPU202": ago(31)}),
        "left",
        "Not yet: repairs by GPU201 in the last 30 days",
    ),
    "one was repaired before that": (
        replace(SAFE, repairs={"GPU201": ago(31)}),
        "safe",
        "Nothing legacy for 31 days: safe to remove",
    ),
    "a policy is in force": (
        replace(SAFE, policies={"GPU303": "guards team-a"}),
        "left",
        "Not yet: only the webhook enforces GPU303",
    ),
    "it is not known since when": (
        replace(SAFE, since=math.inf, gaps=("x",)),
        "unknown",
        "Not known: nothing legacy was found, but not everything could be checked",
    ),
    "a clock that is ahead": (
        replace(SAFE, since=NOW + 60),
        "unknown",
        (
            "Not known yet: nothing legacy for 0 days, nothing is known before; ask after "
            "2026-07-30 12:00 UTC"
        ),
    ),
}


@pytest.mark.parametrize(("usage", "verdict", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_the_answer(usage: Usage, verdict: str, answer: str) -> None:
    assert (usage.verdict, usage.answer) == (verdict, answer)
    assert ("safe to remove" in PRINTED["text"](usage)) == (verdict == "safe")


PAGES = {"left": LEFT, "unknown": EMPTY, "safe": SAFE}


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_a_page_for_each_verdict(form: str, request: pytest.FixtureRequest) -> None:
    file = GOLDEN / f"usage.{form.replace('text', 'txt')}"
    found = "\n".join(PRINTED[form](usage) for usage in PAGES.values())
    found = found.replace(__version__, "VERSION")
    if request.config.getoption("--update-golden"):
        file.write_text(found)
    assert found == file.read_text()


def test_without_counts_no_time_is_invented() -> None:
    usage = replace(SAFE, since=math.inf, gaps=("x",))
    assert "It is not known what came to the webhook.\n" in PRINTED["text"](usage)
    assert json.loads(PRINTED["json"](usage))["known"]["since"] is None
    assert "It is not known what came to the webhook." in PRINTED["html"](usage)


class Words(HTMLParser):
    """The texts of a page that a browser shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.partition("<body>")[2])

    def handle_data(self, data: str) -> None:
        self.found += [data.strip()] if data.strip() else []


@pytest.mark.parametrize("usage", PAGES.values(), ids=PAGES)
def test_html_shows_what_the_text_shows(usage: Usage) -> None:
    shown = " ".join(" ".join(Words(PRINTED["html"](usage)).found).split()).lower()
    lines = PRINTED["text"](usage).splitlines()
    words = [word for line in lines for word in line.lower().strip("- :").split()]
    assert [word for word in words if word.rstrip(":") not in shown] == []
