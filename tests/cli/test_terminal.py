"""What a person at a terminal sees: colours, unless NO_COLOR, and a bar on long work."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_scan import LEGACY, put

if TYPE_CHECKING:
    from typing import IO

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
_ESCAPE = "\x1b["
_COLOUR = f"{_ESCAPE}3"
_HIDDEN_CURSOR = "\x1b[?25l"


def seen(folder: Path, *words: str, both: bool = True, **environment: str) -> tuple[str, str]:
    """Run it with a terminal on stderr, and on stdout too unless that is a pipe."""
    master, terminal = pty.openpty()
    pieces: list[bytes] = []

    def listen() -> None:
        try:
            while piece := os.read(master, 4096):
                pieces.append(piece)
        except OSError:  # the other end is closed
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    out: int | IO[bytes] = terminal if both else subprocess.PIPE
    clean = {key: text for key, text in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    done = subprocess.run(
        [sys.executable, "-m", "webhook", *words],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environment},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=terminal,
        timeout=120,
        check=False,
    )
    os.close(terminal)
    listener.join()
    os.close(master)
    return b"".join(pieces).decode(), (done.stdout or b"").decode()


@pytest.mark.parametrize("command", ["scan", "migrate"])
def test_there_are_colours_unless_told_otherwise(command: str, tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY)
    assert _COLOUR in seen(tmp_path, command, "a.yaml")[0]
    plain, _ = seen(tmp_path, command, "a.yaml", NO_COLOR="1")
    assert _COLOUR not in plain
    assert "nvidia.com/gpu: 1 # one is enough" in plain


@pytest.mark.parametrize("words", [["--help"], ["config", "show", "-h"], ["--verison"]])
def test_help_and_usage_have_colours_unless_told_otherwise(
    words: list[str], tmp_path: Path
) -> None:
    assert _ESCAPE in seen(tmp_path, *words)[0]
    assert _ESCAPE not in seen(tmp_path, *words, NO_COLOR="1")[0]
    assert _ESCAPE not in seen(tmp_path, *words, TERM="dumb")[0]
    assert _ESCAPE not in seen(tmp_path, *words, both=False)[1]


def test_a_diff_in_a_pipe_is_plain(tmp_path: Path) -> None:
    put(tmp_path, a=LEGACY)
    _, out = seen(tmp_path, "migrate", "a.yaml", both=False)
    assert out.startswith("--- a/a.yaml\n+++ b/a.yaml\n@@")
    assert "\x1b" not in out


def test_long_work_shows_a_bar_and_takes_it_away(tmp_path: Path) -> None:
    put(tmp_path, **{f"{number:04}": "a: b\n" for number in range(1_500)})
    terminal, out = seen(tmp_path, "scan", ".", both=False)
    assert "files" in terminal
    assert _HIDDEN_CURSOR in terminal
    assert terminal.rstrip().endswith(("\x1b[2K", "\x1b[?25h")), "the line is clean again"
    assert out.startswith("no findings")


def test_short_work_shows_none(tmp_path: Path) -> None:
    put(tmp_path, a="a: b\n")
    terminal, _ = seen(tmp_path, "scan", ".", both=False)
    assert "files" not in terminal


def test_without_a_terminal_there_is_no_bar(tmp_path: Path) -> None:
    put(tmp_path, **{f"{number:04}": "a: b\n" for number in range(1_500)})
    done = subprocess.run(
        [sys.executable, "-m", "webhook", "scan", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
