"""Each check: what is in the cluster, and the lines that come of it, as text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from tests.doctor.cases import TABLE
from tests.doctor.installation import HEALTHY, REPAIR, shipped, uninstalled
from webhook import __version__
from webhook.doctor import checks
from webhook.doctor.lines import STATES

if TYPE_CHECKING:
    from webhook.doctor.facts import Facts

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("lines.txt")


def said(facts: Facts, what: str) -> str:
    """The lines of one check, as text."""
    return "\n".join(
        f"{STATES[line.state]}: {line.text}"
        + (f", valid until {line.until}" if line.until else "")
        + (f"\n -> {line.fix}" if line.fix else "")
        for line in checks.lines(facts)
        if line.what == what
    )


def said_in_all() -> set[str]:
    """What to do, for each case of the table."""
    return {line.fix for facts, _ in TABLE.values() for line in checks.lines(facts)}


def test_the_parts_of_pages_that_a_line_names_are_there() -> None:
    pages = [re.findall(r"(docs/\S+\.md)?#([a-z-]+)", fix) for fix in said_in_all()]
    named = [(pages[0][0] or part[0], part[1]) for pages in pages for part in pages]
    assert ("docs/install.md", "change-the-certificates") in named
    for page, part in named:
        titles = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert part in {title.lower().replace(" ", "-") for title in titles}


def test_the_lines_of_each_check(request: pytest.FixtureRequest) -> None:
    found = "".join(f"{name}\n{indent(said(*row), '  ')}\n" for name, row in TABLE.items())
    found = found.replace(__version__, "VERSION")
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(found)
    assert found.splitlines() == GOLDEN.read_text().splitlines()


def test_nothing_is_found_in_a_healthy_installation() -> None:
    assert {line.state for line in checks.lines(HEALTHY)} == {0}


def test_each_check_is_in_the_table_with_a_fault() -> None:
    """Those of certificates are named after what they look at."""
    names = {check.name for check in checks.CHECKS} - {"certificates"} | {
        "server",
        "Secret",
        REPAIR,
    }
    assert names == {what for facts, what in TABLE.values() if "\n -> " in f"\n{said(facts, what)}"}


def test_without_an_installation_only_what_is_left_is_looked_at() -> None:
    facts = replace(uninstalled(), configurations={}, bindings=())
    names = [line.what for line in checks.lines(facts) if line.state]
    assert names == ["registered", "registered"]


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: str(check.name))
def test_what_cannot_be_read_is_no_fault_of_the_installation(check: checks.Check) -> None:
    for name in check.needs:
        facts = replace(HEALTHY, unread={name: "403: no"})
        text = (
            "warning: cannot be checked: the API server answered 403: no\n"
            " -> ask for the right to read it"
        )
        assert said(facts, check.name) == text


def test_the_service_is_that_of_the_manifests() -> None:
    """Else the table would check a cluster that does not exist."""
    assert shipped("base/service.yaml")[0]["metadata"]["name"] == "gpu-webhook"


def test_no_line_names_a_command_that_undoes_a_kustomization_of_the_user() -> None:
    """An overlay of the base has settings, modes and certificates that doctor does not know."""
    fixes = said_in_all()
    assert not {fix for fix in fixes if "apply -k" in fix or "apply -f" in fix}
    assert any("the kustomization that you installed from" in fix for fix in fixes)
