"""Programs that are measured: started on a core of their own, ended for sure, their CPU counted."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_STOP = 10.0


@contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """Start processes on one core of the machine (None: on any)."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})  # a child inherits it
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def two_cores() -> tuple[int, int] | tuple[None, None]:
    """Give a core for the server and another for the load, if the machine has them."""
    if not hasattr(os, "sched_getaffinity"):  # only Linux can
        return None, None
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[-1]) if len(cores) > 1 else (None, None)


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in the background; it is gone after the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def cpu_seconds(pid: int) -> float | None:
    """Give the processor time of a process and its children so far (None without /proc)."""
    stats = map(_stat, Path("/proc").glob("[0-9]*/stat"))
    ticks = [used for own, parent, used in stats if pid in (own, parent)]
    return sum(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None


def milliseconds_each(before: float | None, after: float | None, calls: int) -> float | None:
    """Give the processor time of one call, of what was counted before and after so many."""
    return None if before is None or after is None else (after - before) * 1000 / calls


def _stat(path: Path) -> tuple[int, int, int]:
    """Give the id, the parent and the clock ticks (see proc_pid_stat(5)) of a process."""
    # The second field is a name in brackets, with anything in it.
    try:
        fields = path.read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0, 0, 0
    parent, user, system = fields[1], fields[11], fields[12]
    return int(path.parent.name), int(parent), int(user) + int(system)
