"""Runs `gpu-webhook migrate --write` over and over, each time in a process that may be killed.

Told a folder on stdin, a line each; answers with the id of a process that has begun, and once more
when it has ended. What costs a second is done once: that process is a fork of this one.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr, redirect_stdout

from webhook.cli.main import main


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


if __name__ == "__main__":
    if sys.argv[1:] == ["--in-place"]:
        from webhook.files import replacing

        replacing.replace = write_in_place
    migrate(sys.stdin.readline().strip())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(migrate(line.strip()))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        os.waitpid(pid, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()
