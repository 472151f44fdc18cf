"""Texts for users avoid the words of this list: the docs of Kubernetes have plainer ones."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import click
import pytest

from tests.laws import rule_pages
from webhook.cli.commands import commands
from webhook.rules import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webhook.core.rule import Named

ROOT = rule_pages.PAGES.parents[1]
FORBIDDEN = {  # each with what to write
    r"mend(s|ed|ing)?": "fix, repair, correct",
    r"tells?": "warns, reports, shows",
    r"told": "warned, reported",
    r"says of|said of": "reports about",
    r"gone": "removed, missing, no longer available",
    r"cures?": "fix, replacement, what to change",
    r"roads?": "way, path",
    r"none of (our|its) business": "unrelated",
    r"of today": "current",
    r"whoever": "users who",
    r"a person|persons?|person's": "a user; manual",
    r"he|him|his": "the user, the author",
    r"the like": "similar ...",
}
WORDS = re.compile(rf"(?<![\w/-])({'|'.join(FORBIDDEN)})(?![\w/-])", re.IGNORECASE)
PAGES = sorted(
    file
    for file in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "manifests").rglob("*.yaml"),
        ROOT / "action.yml",
        ROOT / "Makefile",
    )
    if file.name != "CHANGELOG.md"  # a record of what changed, in the words of its day
    and file.parent.name != "decisions"  # the same
)


def strangers(text: str) -> list[str]:
    """The forbidden words of a text, in their lines."""
    return [
        f"{line.strip()} <- {match[0]}"
        for line in text.splitlines()
        for match in WORDS.finditer(line)
    ]


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_page_avoids_these_words(file: Path) -> None:
    assert strangers(file.read_text()) == []


def helps(command: click.Command) -> Iterator[str]:
    yield command.get_help(click.Context(command))
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from helps(each)


def test_no_help_text_has_one() -> None:
    assert [found for text in helps(commands) for found in strangers(text)] == []


def texts(file: Path) -> Iterator[str]:
    """All texts of a module that users may see: its manual and its messages."""
    tree = ast.parse(file.read_text())
    yield ast.get_docstring(tree) or ""
    inner = {
        id(each.body[0].value)
        for each in ast.walk(tree)
        if isinstance(each, ast.Module | ast.FunctionDef | ast.ClassDef)
        and isinstance(each.body[0], ast.Expr)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inner:
            yield each.value


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.NAME)
def test_no_manual_or_message_of_a_rule_has_one(rule: Named) -> None:
    file = ROOT / "webhook" / "rules" / f"{rule.NAME.replace('-', '_')}.py"
    found = [each for text in texts(file) for each in strangers(text)]
    assert found == []


def test_the_search_finds_such_words() -> None:
    assert strangers("Whoever mends it is told. He said: gone.") == [
        f"Whoever mends it is told. He said: gone. <- {word}"
        for word in ("Whoever", "mends", "told", "He", "gone")
    ]
    assert strangers("The recommended image; untold; gone-image; there; /he/") == []
