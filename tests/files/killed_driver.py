"""Runs `gpu-webhook migrate --write` over and over, each time in a process that may be killed.

Told a folder on stdin, a line each; answers with the id of a process that has begun, when it writes
its first file, and once more when it has ended. What costs a second is done once: that process is a
fork of this one.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

from webhook.cli.main import main
from webhook.files import replacing

if TYPE_CHECKING:
    from collections.abc import Callable


def migrate(folder: str) -> int:
    """Do what the command does, quietly."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nothing,  # noqa: PTH123
        redirect_stdout(nothing),
        redirect_stderr(nothing),
    ):
        return main(["migrate", "--write", "--recursive", "--filename", folder])


def write_in_place(path: str, new_text: object) -> str:
    """Do what a careless program does, to see that the test would notice."""
    with open(path, "r+b") as file:  # noqa: PTH123
        new = new_text(file.read())  # type: ignore[operator]
        file.seek(0)
        file.truncate()
        for at in range(0, len(new), 512):
            file.write(new[at : at + 512])
            file.flush()
    return ""


def and_say_so(replace: Callable[..., str]) -> Callable[..., str]:
    """The same, but the first call in a process is told on stdout: it reads all files before."""
    told: set[int] = set()

    def replace_and_say_so(path: str, new_text: object) -> str:
        if os.getpid() not in told:
            told.add(os.getpid())
            os.write(1, b"writing\n")
        return replace(path, new_text)

    return replace_and_say_so


if __name__ == "__main__":
    careless = sys.argv[1:] == ["--in-place"]
    migrate(sys.stdin.readline().strip())
    replacing.replace = and_say_so(write_in_place if careless else replacing.replace)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    pid = 0
    for line in sys.stdin:
        if pid:
            os.waitpid(pid, 0)
        pid = os.fork()
        if pid == 0:
            os._exit(migrate(line.strip()))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        # It stays until the next line, so that nobody else gets its id while it may be killed.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        sys.stdout.write("ended\n")
        sys.stdout.flush()
