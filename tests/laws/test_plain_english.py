"""Docs, messages, docstrings and comments avoid these words: Kubernetes' docs have plainer ones."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING

import click
import pytest

from tests.laws import rule_pages
from webhook.cli.commands import commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    # With the program's own settings: click keeps the help option that a command makes first, and
    # without them `-h` would be missing for the tests that run later in this process.
    yield command.get_help(click.Context(command, **commands.context_settings))
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from helps(each)


def test_no_help_text_has_one() -> None:
    assert [found for text in helps(commands) for found in strangers(text)] == []


MODULES = sorted((ROOT / "webhook").rglob("*.py"))
ASSETS = sorted(
    file for end in ("html", "css", "js") for file in (ROOT / "webhook").rglob(f"*.{end}")
)


def texts(source: str) -> Iterator[str]:
    """The comments of a module, and its strings: docstrings, messages and parts of f-strings."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_docstring_comment_or_message_of_the_package_has_one(file: Path) -> None:
    assert [each for text in texts(file.read_text()) for each in strangers(text)] == []


@pytest.mark.parametrize("file", ASSETS, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_of_the_html_report_has_one(file: Path) -> None:
    assert strangers(file.read_text()) == []


def test_all_texts_of_a_module_are_searched() -> None:
    source = '"""Whoever."""\nX = f"{1} told"  # gone\ndef f() -> None:\n    """It tells."""\n'
    assert sorted(each for text in texts(source) for each in strangers(text)) == [
        "# gone <- gone",
        "It tells. <- tells",
        "Whoever. <- Whoever",
        "told <- told",
    ]


def test_the_search_finds_such_words() -> None:
    assert strangers("Whoever mends it is told. He said: gone.") == [
        f"Whoever mends it is told. He said: gone. <- {word}"
        for word in ("Whoever", "mends", "told", "He", "gone")
    ]
    assert strangers("The recommended image; untold; far-gone; there; /he/") == []
