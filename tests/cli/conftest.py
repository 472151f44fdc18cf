"""The command as users run it, in a folder of its own; in this process, since that is quick."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pytest

from webhook.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Command(Protocol):
    def __call__(self, *words: str, stdin: str = "") -> Ran: ...


@pytest.fixture(autouse=True)
def _no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-xdist sets COLUMNS: a pipe has no width."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def gpu_webhook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run `gpu-webhook` with these words in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        try:
            code = main(words)
        except SystemExit as done:
            code = int(done.code or 0)
        return Ran(code, *capsys.readouterr())

    return run
