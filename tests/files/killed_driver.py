"""Runs `gpu-webhook migrate --write` over and over, each time in a process that kills itself.

Each line of stdin has a folder and a number: of the system calls from the first file on that it
writes, the process ends by SIGKILL before that one. The answer is "killed", or "ended" where all
was written before. What costs a second is done once: that process is a fork of this one.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from typing import TYPE_CHECKING, Any

from webhook.cli.main import main
from webhook.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PIECE = 4096  # bytes that the system takes at once, as it may
_LOOKING = {"fspath", "lstat", "_path_normpath"}
_write = os.write


def migrate(folder: str, *flags: str) -> int:
    """Do what the command does, quietly."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nothing,  # noqa: PTH123
        redirect_stdout(nothing),
        redirect_stderr(nothing),
    ):
        return main(["migrate", "--write", "--recursive", *flags, "--filename", folder])


def write_in_place(path: str, new_text: object) -> str:
    """Do what a careless program does, to see that the test would notice."""
    descriptor = os.open(path, os.O_RDWR)
    new = new_text(os.read(descriptor, 1 << 20))  # type: ignore[operator]
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.ftruncate(descriptor, 0)
    while new:
        new = new[os.write(descriptor, new) :]
    os.close(descriptor)
    return ""


def killed(left: Iterator[int], write: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but it counts down from its first file on; all files were read before."""

    def kill(frame: object, event: str, function: Any) -> None:
        del frame
        if event == "c_call" and _is_of_the_system(function) and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write_or_die(path: str, text: object) -> Any:
        sys.setprofile(kill)
        return write(path, text)

    return write_or_die


def _is_of_the_system(function: Any) -> bool:
    """Those that only look at the path change nothing, and their number depends on its length."""
    return function.__module__ in {"posix", "fcntl"} and function.__name__ not in _LOOKING


if __name__ == "__main__":
    migrate(sys.stdin.readline().strip())
    os.write = lambda descriptor, data: _write(descriptor, memoryview(data)[:_PIECE])
    flags = sys.argv[1:]
    keep, replace = atomic_write.keep, atomic_write.replace
    if "--in-place" in flags:
        flags, replace = [], write_in_place
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        folder, calls = line.rsplit(maxsplit=1)
        if (pid := os.fork()) == 0:
            left = count(int(calls), -1)
            atomic_write.keep, atomic_write.replace = killed(left, keep), killed(left, replace)
            os._exit(migrate(folder, *flags))
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        sys.stdout.write({-signal.SIGKILL: "killed\n", 0: "ended\n"}.get(code, f"{code}\n"))
        sys.stdout.flush()
