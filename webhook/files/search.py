"""Runs the prefilter on many files, in this process or, for large trees, in several.

Another process takes 30 ms to start, so there is none for the first files. This process searches as
well: it never waits while a batch is left, and if another process dies, its batches are searched
here. The results are in the order of the files.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from webhook.files import prefilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.files.prefilter import Batch
    from webhook.files.results import FileResult

_ALONE = 2_000  # files that are searched before another process is started
_GIVEN = 4  # batches that another process gets in advance
_AHEAD = 64  # batches that may be done before their turn
_MOST = 4  # processes: more would wait for the listing of files


@dataclass(slots=True, eq=False)
class SearchBatch:
    """A batch of files; then the results: (position, result)."""

    batch: Batch
    results: Sequence[tuple[int, int]] | None = None  # None: not yet searched
    size: int = 0  # bytes that were read

    @property
    def files(self) -> int:
        return sum(len(names) for _, names in self.batch)

    def search(self, words: Sequence[bytes]) -> None:
        """Search in this process."""
        self.results, self.size = prefilter.examine(self.batch, words)

    def paths(self) -> Iterator[tuple[str, int]]:
        """The files with a result, and the result."""
        if not self.results:
            return
        said = dict(self.results)
        position = 0
        for folder, names in self.batch:
            for name in names:
                if position in said:
                    yield folder + name, said[position]
                position += 1


if TYPE_CHECKING:
    Turn = SearchBatch | str | FileResult


def search(
    lots: Iterable[Turn], words: Sequence[bytes], processes: int | None = None
) -> Iterator[Turn]:
    """Search every batch; other items are passed on in their order.

    `processes`: how many may work, including this one; by default one for each core.
    """
    others = _Others(words, (cores() if processes is None else processes) - 1)
    turns: deque[Turn] = deque()
    files = 0
    try:
        for lot in lots:
            turns.append(lot)
            if isinstance(lot, SearchBatch):
                if files < _ALONE or not others.take(lot):
                    lot.search(words)
                files += lot.files
            while turns and (_is_done(turns[0]) or len(turns) > _AHEAD):
                yield _finished(turns.popleft(), others, words)
        while turns:
            yield _finished(turns.popleft(), others, words)
    finally:
        others.end()


def _is_done(turn: Turn) -> bool:
    return not isinstance(turn, SearchBatch) or turn.results is not None


def _finished(turn: Turn, others: _Others, words: Sequence[bytes]) -> Turn:
    if isinstance(turn, SearchBatch):
        others.wait_for(turn)
        if turn.results is None:  # its process has died
            turn.search(words)
    return turn


def cores() -> int:
    """How many processes may work at once, including this one."""
    if getattr(sys, "frozen", False) or not sys.executable:  # a frozen program has no interpreter
        return 1
    if sys.platform == "linux":
        return min(len(os.sched_getaffinity(0)), _MOST)
    # On Windows a pipe cannot be polled.
    return 1 if sys.platform == "win32" else min(os.cpu_count() or 1, _MOST)


class _Others:
    """The other processes. They are started when there is a batch for them."""

    def __init__(self, words: Sequence[bytes], most: int) -> None:
        self._words = words
        self._most = most
        self._processes: list[_Process] | None = None

    def take(self, lot: SearchBatch) -> bool:
        """Give the batch to the process with the fewest batches, unless all have enough."""
        if self._processes is None:
            self._processes = list(_started(self._words, self._most))
        for process in self._processes:
            process.listen()
        idle = [each for each in self._processes if each.is_alive and len(each.lots) < _GIVEN]
        return bool(idle) and min(idle, key=lambda each: len(each.lots)).take(lot)

    def wait_for(self, lot: SearchBatch) -> None:
        """Wait for the process with this batch until it answers or dies."""
        for process in self._processes or ():
            while lot in process.lots:
                process.listen(wait=True)

    def end(self) -> None:
        for process in self._processes or ():
            process.end()


def _started(words: Sequence[bytes], most: int) -> Iterator[_Process]:
    program = prefilter.__file__
    if not Path(program).is_file():  # the package is inside an archive
        return
    mode = ("-X", "utf8") if sys.flags.utf8_mode else ()  # the same encoding of file names as here
    for _ in range(most):
        try:
            yield _Process((sys.executable, "-I", "-S", *mode, program), words)
        except OSError:  # no memory or no more processes: continue without it
            return


class _Process:
    """One process, and its batches, in the order of their answers."""

    def __init__(self, command: Sequence[str], words: Sequence[bytes]) -> None:
        self._popen = subprocess.Popen(  # noqa: S603  # this interpreter, a file of this package
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._requests = cast("IO[bytes]", self._popen.stdin)
        self._answers = cast("IO[bytes]", self._popen.stdout).fileno()
        self._heard = b""
        self.lots: deque[SearchBatch] = deque()
        self.is_alive = True
        self._send([list(word) for word in words])

    def take(self, lot: SearchBatch) -> bool:
        """Send it this batch; False if it is dead."""
        self._send(lot.batch)
        if self.is_alive:
            self.lots.append(lot)
        return self.is_alive

    def listen(self, *, wait: bool = False) -> None:
        """Read the available answers; with `wait`, wait for more of them."""
        while self.lots and (wait or select.select([self._answers], [], [], 0)[0]):
            wait = False
            heard = os.read(self._answers, prefilter.CHUNK)
            if not heard:
                self._died()
                return
            *answers, self._heard = (self._heard + heard).split(b"\n")
            for answer in answers:
                lot = self.lots.popleft()
                lot.results, lot.size = json.loads(answer)

    def end(self) -> None:
        """End it. It only reads, so it needs no cleanup."""
        self._popen.kill()
        with self._popen:  # closes the pipes and waits
            pass

    def _send(self, data: object) -> None:
        try:
            self._requests.write(json.dumps(data).encode() + b"\n")
            self._requests.flush()
        except OSError:
            self._died()

    def _died(self) -> None:
        self.is_alive = False
        self.lots.clear()
