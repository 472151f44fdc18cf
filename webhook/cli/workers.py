"""Runs the rules on many files, in this process or in several.

Another process takes as long to start as some dozens of files, so there is none for the first. This
process judges, too: it never waits while there is a file that nobody has, and if another process
dies, its files are judged here. Results come in any order.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.errors import InputError
from webhook.files.results import FileResult
from webhook.files.search import cores
from webhook.files.walk import STDIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future
    from multiprocessing.process import BaseProcess

    from webhook.files.results import Plan
    from webhook.files.source import Source

_MANIFESTS = ("yaml", "json", "kustomize")  # kinds of files that are to be read in all parts
_OUR_MISTAKE = "the program failed on it and changed nothing: please report it"
_ALONE = 80  # files
_GIVEN = 3  # files that another process is given ahead
_SAFE_PATH = "PYTHONSAFEPATH"


class Judged(NamedTuple):
    """What there is to say of a file, and the file as it was read, if it was."""

    result: FileResult
    source: Source | None = None


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
    most = (cores() if processes is None else processes) - 1
    pool: _Pool | None = None
    try:
        for number, path in enumerate(paths):
            if number == _ALONE and most > 0:
                pool = _started(most, asked)
            if pool is None or path == STDIN or not pool.take(path):
                yield judge(path, asked)
            if pool is not None:
                yield from pool.heard()
        if pool is not None:
            yield from pool.heard(wait=True)
    finally:
        if pool is not None:
            pool.end()


def _started(most: int, asked: Plan) -> _Pool | None:
    try:
        return _Pool(most, asked)
    except (ImportError, NotImplementedError, OSError):  # the machine has no room for it
        return None


class _Pool:
    """Other processes, and the files that they have."""

    def __init__(self, most: int, asked: Plan) -> None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        self._asked = asked
        self._room = most * _GIVEN
        self._given: deque[tuple[str, Future[Judged]]] = deque()
        # Or the folder in which the command runs would be searched for modules of ours.
        os.environ[_SAFE_PATH] = "1"
        self._executor = ProcessPoolExecutor(most, get_context("spawn"), _begin, (asked,))

    def take(self, path: str) -> bool:
        """Give a file to the others; False if they have enough to do, or cannot be had."""
        if len(self._given) >= self._room:
            return False
        # A process that this starts inherits it: an interrupt is for the one that started it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._given.append((path, self._executor.submit(_judge_there, path)))
        except (OSError, RuntimeError):  # no memory, no more processes, or one of them has died
            self._room = 0
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return True

    def heard(self, *, wait: bool = False) -> Iterator[Judged]:
        """What they have said, with `wait` all that they have to say."""
        while self._given and (wait or self._given[0][1].done()):
            path, future = self._given.popleft()
            yield judge(path, self._asked) if future.exception() else future.result()

    def end(self) -> None:
        if self._given:  # an interrupt: nobody waits for the rest
            from multiprocessing import active_children

            for each in active_children():
                each.terminate()
        self._executor.shutdown(cancel_futures=True)
        os.environ.pop(_SAFE_PATH, None)


_plans: list[Plan] = []  # that of another process


def _begin(asked: Plan) -> None:
    """What another process does first."""
    from multiprocessing import parent_process
    from threading import Thread

    _plans.append(asked)
    parent = parent_process()
    assert parent is not None  # noqa: S101
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _judge_there(path: str) -> Judged:
    judged = judge(path, _plans[0])
    return judged if judged.result.new_text is not None else judged._replace(source=None)
