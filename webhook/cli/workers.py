"""Judges files: each by itself, and where there are many, in other processes as well.

Another process takes as long to start as some dozens of files, so there is none for the first. This
process judges, too: it never waits while there is a file that nobody has, and if another process
dies, its files are judged here. Results come in any order.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.errors import InputError
from webhook.files.results import FileResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO

    from webhook.files.results import Plan
    from webhook.files.source import Source

STDIN = "-"
_MANIFESTS = ("yaml", "json", "kustomize")  # kinds of files that are to be read in all parts
_OUR_MISTAKE = "the program failed on it and changed nothing: please report it"
_ALONE = 40  # files
_GIVEN = 3  # files that another process is given ahead
_MOST = 4  # processes
_HEAD = struct.Struct("<Q")  # bytes that follow
_END_SECONDS = 2.0


class Judged(NamedTuple):
    """What there is to say of a file, and the file as it was read, if it was."""

    result: FileResult
    source: Source | None = None

    @property
    def says_something(self) -> bool:
        """Whether anybody need hear of the file."""
        changed = self.result.new_text is not None
        return changed or bool(self.result.located or self.result.skipped or self.result.error)


def judge(path: str, asked: Plan) -> Judged:
    """Read one file, `-` for stdin, and ask the rules."""
    from webhook.files import reading
    from webhook.files.source import Source
    from webhook.formats.migrate import migrate_text
    from webhook.projects import overlays

    name = "stdin" if path == STDIN else path
    try:
        stdin = path == STDIN
        raw = reading.read_all(sys.stdin.buffer) if stdin else reading.read_regular(path)[0]
        source = Source.of(name, raw)
    except reading.UnreadableError as error:
        return Judged(FileResult(name, error=str(error)))
    except InputError as error:
        return Judged(FileResult(name, error=str(error).removeprefix(f"{name}: ")))
    try:
        result = migrate_text(source, asked) if stdin else overlays.migrated(path, source, asked)
        return Judged(_whole(result, source), source)
    except Exception as error:  # noqa: BLE001  # one file that we fail on must not stop the others
        what = f"{type(error).__name__}: {error}"
        return Judged(FileResult(name, source.kind, error=f"{_OUR_MISTAKE} ({what})"))


def _whole(result: FileResult, source: Source) -> FileResult:
    """An error, too, if a part of what claims to be a manifest is none; the rest is as good."""
    if not result.skipped or source.kind not in _MANIFESTS:
        return result
    from webhook.yamlpatch import documents

    unread = documents.read(source.text, json=source.kind == "json").unread
    if not unread:
        return result
    parts = f"{len(unread)} of its documents are" if len(unread) > 1 else "a document of it is"
    first = next((each for each in result.skipped if each.place is not None), None)
    where = f"line {first.place.line} {first.reason}" if first and first.place else "see below"
    error = f"{parts} no manifest ({where}): mend that first, nothing was changed there"
    return replace(result, error=error)


def judge_all(paths: Iterable[str], asked: Plan, processes: int | None = None) -> Iterator[Judged]:
    """What there is to say of each file. `processes` may be at work; by default one a core."""
    others: list[_Other] = []
    most = (_cores() if processes is None else processes) - 1
    number = 0
    try:
        for number, path in enumerate(paths):
            if number == _ALONE:
                others += _start(most, asked)
            idle = min(others, key=lambda each: len(each.paths), default=None)
            if path == STDIN or idle is None or not idle.take(path):
                yield judge(path, asked)
            for other in others:
                yield from other.heard(asked)
        for other in others:
            while other.paths:
                yield from other.heard(asked, wait=True)
    finally:
        for other in others:
            other.end()


def _cores() -> int:
    if sys.platform == "win32":  # a pipe cannot be asked whether there is something in it
        return 1
    return min(len(os.sched_getaffinity(0)) if sys.platform == "linux" else 2, _MOST)


def _start(most: int, asked: Plan) -> Iterator[_Other]:
    if getattr(sys, "frozen", False) or not sys.executable:  # a program in one piece
        return
    for _ in range(most):
        try:
            yield _Other(asked)
        except OSError:  # no memory, no more processes: it goes without
            return


_PROGRAM = "from webhook.cli.workers import answer; answer()"


class _Other:
    """Another process, and the files that it has, in the order in which it will answer."""

    def __init__(self, asked: Plan) -> None:
        # -P, or the folder in which the command runs would be searched for modules of ours.
        self._popen = subprocess.Popen(  # noqa: S603  # this interpreter
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            bufsize=0,
            process_group=0,  # an interrupt is ours to notice: it ends when its input does
        )
        self.paths: deque[str] = deque()
        self._alive = self._say(asked)

    def take(self, path: str) -> bool:
        """Send a file; False if it has enough to do, or has died."""
        if not self._alive or len(self.paths) >= _GIVEN or not self._say(path):
            return False
        self.paths.append(path)
        return True

    def heard(self, asked: Plan, *, wait: bool = False) -> Iterator[Judged]:
        """Give what is there, with `wait` at least one."""
        output = self._popen.stdout
        assert output is not None  # noqa: S101
        while self.paths and (wait or select.select([output], [], [], 0)[0]):
            wait = False
            answer: Judged | None = _read(output) if self._alive else None
            path = self.paths.popleft()
            if answer is None:
                self._alive = False
            yield answer if answer is not None else judge(path, asked)

    def _say(self, what: object) -> bool:
        assert self._popen.stdin is not None  # noqa: S101
        try:
            _write(self._popen.stdin, what)
        except OSError:
            return False
        return True

    def end(self) -> None:
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                stream.close()
        try:
            self._popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def answer() -> None:
    """Judge what is asked for until nothing is any more: first the plan, then paths."""
    given = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what is printed by mistake must not stand among the answers
    try:
        asked = _read(given)
        while (path := _read(given)) is not None:
            judged = judge(path, asked)
            has_work = judged.result.new_text is not None
            _write(answers, judged if has_work else judged._replace(source=None))
    except (BrokenPipeError, KeyboardInterrupt):  # whoever asked has gone
        os._exit(0)


def _write(stream: IO[bytes], what: object) -> None:
    content = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    view = memoryview(_HEAD.pack(len(content)) + content)
    while view:
        view = view[stream.write(view) :]


def _read(stream: IO[bytes]) -> Any:
    """The next thing; None at the end, also if that comes too early."""
    head = _read_exactly(stream, _HEAD.size)
    content = _read_exactly(stream, _HEAD.unpack(head)[0]) if head else b""
    return pickle.loads(content) if content else None  # noqa: S301  # of our own process


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    pieces = []
    while size:
        piece = stream.read(size)
        if not piece:
            return b""
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
