"""Workflow commands, read as the runner reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given

from tests.reports import report_samples
from tests.reports.report_strategies import FEW
from tests.reports.report_strategies import REPORTS as DRAWN
from webhook.files.results import FileResult, Located, Report, Status
from webhook.reports.escaping import sentence, visible
from webhook.reports.github import github
from webhook.yamlpatch.places import Place


class Command(NamedTuple):
    """What the runner makes of one line."""

    name: str
    properties: dict[str, str]
    message: str


def _unescaped(value: str, *, in_property: bool) -> str:
    """The runner's own table, its percent sign last."""
    table = {"%0D": "\r", "%0A": "\n"} | ({"%3A": ":", "%2C": ","} if in_property else {})
    for escape, character in table.items():
        value = value.replace(escape, character)
    return value.replace("%25", "%")


def _commands(output: str) -> list[Command]:
    """Both notations that the runner knows: `::name a=b::c` and, anywhere in a line, `##[`."""
    found = []
    for line in re.split(r"\r\n|\r|\n", output):
        assert "##[" not in line or line.startswith("::"), line
        if not line.lstrip().startswith("::"):
            continue
        name, _, rest = line.lstrip()[2:].partition(" ")
        properties, _, message = rest.partition("::")
        pairs = (each.partition("=") for each in properties.split(","))
        found.append(
            Command(
                name,
                {key: _unescaped(value, in_property=True) for key, _, value in pairs},
                _unescaped(message, in_property=False),
            )
        )
    return found


@FEW
@given(DRAWN)
def test_a_text_is_never_a_command(report: Report) -> None:
    commands = _commands(github(report))
    paths = {visible(result.path) for result in report.results}
    messages = {
        sentence(message)
        for result in report.results
        for message in (
            result.error,
            *(each.message for each in result.located),
            *(each.reason for each in result.skipped),
        )
    }
    for command in commands:
        assert command.name in {"error", "warning", "notice"}
        assert command.properties["file"] in paths
        assert command.message in messages
        assert set(command.properties) <= {"file", "line", "endLine", "col", "endColumn", "title"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("100%", "::100%25", id="a percent sign"),
        pytest.param("a\r\nb", "::a b", id="a line end"),
        pytest.param("%0A::error::x", "::%250A::error::x", id="an escape that is not ours"),
        pytest.param("a, b: c", "::a, b: c", id="a comma and a colon are free in a message"),
    ],
)
def test_a_message_is_escaped(message: str, expected: str) -> None:
    assert github(Report((FileResult("f", error=message),))).split("\n")[0].endswith(expected)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("a,b.yaml", "file=a%2Cb.yaml,title", id="a comma"),
        pytest.param("a::b.yaml", "file=a%3A%3Ab.yaml,title", id="colons"),
        pytest.param("a\nb.yaml", "file=a\\nb.yaml,title", id="a line end"),
        pytest.param("50%.yaml", "file=50%25.yaml,title", id="a percent sign"),
    ],
)
def test_a_property_is_escaped(path: str, expected: str) -> None:
    assert expected in github(Report((FileResult(path, error="x"),)))


def test_the_gravest_come_first_and_no_more_than_are_shown() -> None:
    said = github(report_samples.many(200))
    names = [command.name for command in _commands(said)]
    assert names == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    assert "| and 170 more, which GitHub would not show as annotations:\n" in said
    assert said.count("\n| team-") == 170


def test_columns_only_within_one_line() -> None:
    located = tuple(
        Located("GPU101", "m", Status.MANUAL, place)
        for place in (Place(1, 2, 1, 4), Place(1, 2, 3, 1))
    )
    one, other = _commands(github(Report((FileResult("f", located=located),))))
    assert one.properties == {
        "file": "f",
        "line": "1",
        "endLine": "1",
        "col": "2",
        "endColumn": "4",
        "title": "GPU101 legacy-resource",
    }
    assert "col" not in other.properties
