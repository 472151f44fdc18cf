"""Commands in pages: each block is run by a test, and each flag and target of ours is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from webhook.cli.commands import commands

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("[bm]*/*.md"), *(ROOT / "docs").rglob("*.md"))
}
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_SHELL = {"sh", "console", "bash", "shell"}
# Which test runs the commands of a page. Each names all blocks of the page, so it sees a new one.
RUN = {
    "README.md": "cli/test_readme_page.py",
    "docs/access.md": "cluster/test_install.py",
    "docs/break-glass.md": "cluster/test_install.py",
    "docs/first-day.md": "cluster/test_install.py",
    "docs/gitops.md": "cluster/test_gitops.py",
    "docs/guard.md": "cluster/test_guard.py",
    "docs/install.md": "cluster/test_install.py",
    "docs/inventory.md": "cluster/test_inventory_command.py",
    "docs/metrics.md": "cluster/test_install.py",
    "docs/migrate.md": "cli/test_migrate_page.py",
    "docs/my-pod.md": "cli/test_my_pod_page.py",
    "docs/policy.md": "cluster/test_install.py",
    "docs/reports.md": "reports/test_reports_page.py",
    "docs/settings.md": "cli/test_settings_page.py",
    "docs/troubleshooting.md": "cluster/test_install.py",
    "docs/uninstall.md": "cluster/test_install.py",
    "docs/upgrade.md": "cluster/test_install.py",
    "manifests/README.md": "cluster/test_install.py",
}
NOT_RUN = {
    "CONTRIBUTING.md": "its targets are what runs the tests",
    "SECURITY.md": "it verifies an image that is published; the release workflow is linted",
    "docs/mutation-testing.md": "it takes hours",
}


def of_shell(page: str) -> list[str]:
    return [block for kind, block in _BLOCK.findall(PAGES[page]) if kind in _SHELL]


def test_the_commands_of_each_page_are_run_by_a_test() -> None:
    with_commands = {page for page in PAGES if of_shell(page)}
    assert with_commands == RUN.keys() | NOT_RUN.keys()
    assert not RUN.keys() & NOT_RUN.keys()


@pytest.mark.parametrize(("page", "test"), RUN.items(), ids=RUN)
def test_a_test_that_runs_commands_reads_their_page(page: str, test: str) -> None:
    text = (ROOT / "tests" / test).read_text()
    named = (Path(page).name, f'"{Path(page).stem}"', "settings_table.PAGE")
    assert any(name in text for name in named)


def lines(text: str) -> list[str]:
    """The lines of all blocks, and all spans of code."""
    blocks = [block.replace("\\\n", " ") for _, block in _BLOCK.findall(text)]
    rest = _BLOCK.sub("", text)
    spans = [" ".join(span.split()) for span in _SPAN.findall(rest)]
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()] + spans


def ours(text: str) -> list[list[str]]:
    """The words behind each `gpu-webhook` that begins a command."""
    found = []
    for line in lines(text):
        for part in re.split(r"[|;,]|&&|\$\(|  #", line):
            words = _words(part.replace(".venv/bin/", ""))
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                del words[0]
            if words[1:] and words[0] == "gpu-webhook":
                found.append(words[1:])
    return found


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # a quotation mark of the text
        return part.split()


def faults(words: list[str]) -> list[str]:
    """What the command line has that the program has not."""
    command: click.Command = commands
    while words and isinstance(command, click.Group) and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    flags = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
    flags |= {"-h", "--help"}
    if isinstance(command, click.Group) and not flags & {*words} and command is commands:
        return [f"no command {words[0]}"]
    given = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
    return sorted(given - flags)


def test_pages_name_commands_and_flags_that_there_are() -> None:
    found = {(page, *words): faults([*words]) for page in PAGES for words in ours(PAGES[page])}
    assert len(found) > 100
    assert {line: said for line, said in found.items() if said} == {}


def test_a_flag_that_is_no_more_is_found() -> None:
    text = "`gpu-webhook scan --all FOLDER`, `gpu-webhook tell`, `gpu-webhook scan -R .`"
    assert [faults(words) for words in ours(text)] == [["--all"], ["no command tell"], []]


def test_pages_name_targets_that_the_makefile_has() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        word
        for text in PAGES.values()
        for line in lines(text)
        for found in re.findall(r"(?:^|\s)make((?: [a-z-]+)+)(?=$| +#| [A-Z]+=)", line)
        for word in found.split()
    }
    assert "demo-cluster" in named
    assert named <= targets
