"""docs/reports.md is true: its sessions go as printed, its tables name all there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.reports import report_samples
from webhook import __version__
from webhook.cli.flags import FORMATS
from webhook.reports.data import VERSION, data
from webhook.reports.formats import REPORTS
from webhook.reports.text import WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.programs

PAGE = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
SESSIONS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)


def _table(heading: str) -> dict[str, str]:
    """The first column's words with their rows."""
    table = PAGE[PAGE.index(f"| {heading} |") :].partition("\n\n")[0]
    return {
        word: row
        for row in table.split("\n")[2:]
        for word in re.findall(r"`(\w+)`", row.split("|")[1])
    }


def test_sessions_go_as_they_are_printed(tmp_path: Path) -> None:
    """Each `$` line is run; `cat` shows the file that the others read."""
    assert len(SESSIONS) == 2
    for session in SESSIONS:
        assert _said(session, tmp_path) == session.replace(
            "version: '0.1.0'", f"version: '{__version__}'"
        )


def _said(session: str, folder: Path) -> str:
    said = ""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for words, out in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        if words.startswith("cat "):
            (folder / words.removeprefix("cat ")).write_text(out)
        said += f"$ {words}\n"
        said += subprocess.run(
            ["sh", "-c", words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=os.environ | {"PATH": path, "LC_ALL": "C.UTF-8"},
            check=False,
        ).stdout
    return said


def test_every_format_is_in_the_table() -> None:
    assert set(_table("format")) == set(REPORTS) == set(FORMATS)


@pytest.mark.parametrize("status", WORDS)
def test_every_status_is_in_the_table(status: str) -> None:
    rows = _table("status")
    assert WORDS[status] in rows[status]  # type: ignore[index]
    assert set(rows) == set(WORDS)


def test_every_member_is_in_the_table() -> None:
    told = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("| member |") :].partition("\n\n")[0]))
    assert set(_members(data(report_samples.everything()))) - told == {
        "name",  # of the tool, as is its version
        "fixed",
        "fixable",
        "manual",
        "notice",
    }
    assert f"\nversion: {VERSION}\n" in PAGE


def _members(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from part
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _members(each)
