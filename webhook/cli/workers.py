"""Runs the rules on many files, in this process or in several.

Starting another process takes as long as some dozens of files, so there is none at first. This
process works, too: it never waits while a file is left, and if another process dies, its files are
done here. Results come in any order.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.errors import InputError
from webhook.files.results import FileResult, Plan, Status
from webhook.files.search import cores
from webhook.files.source import TEMPLATES
from webhook.files.walk import STDIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future
    from multiprocessing.process import BaseProcess

    from webhook.files.source import Source

# Kinds of files in which every document must be readable.
_MANIFESTS = ("yaml", "json", "kustomize")
_OF_MANIFEST = re.compile(r"(?<!\w)(?:apiVersion|kind)[\"']?\s*:")
_SILENT = "no later run would find the rest in this file, which needs manual changes"
_OUR_MISTAKE = "a bug in this program: nothing was changed in it; please report it"
_ALONE = 80  # files
_GIVEN = 3  # files that another process gets in advance
# Objects between two collections of garbage: a document has hundreds, which refer to each other.
_MANY = 20_000
_SAFE_PATH = "PYTHONSAFEPATH"


class Judged(NamedTuple):
    """The result for a file, and the content of the file, if it was read.

    With a reason, no other file of its chart may rename amounts.
    """

    result: FileResult
    source: Source | None = None
    of_chart: str = ""


def judge(path: str, plan: Plan) -> Judged:
    """Read one file, `-` for stdin, and run the rules."""
    from webhook.files import reading
    from webhook.files.source import STREAM, Source, is_read

    name = STREAM if path == STDIN else path
    try:
        stdin = path == STDIN
        raw = reading.read_all(sys.stdin.buffer) if stdin else reading.read_regular(path)[0]
        source = Source.of(name, raw, lossy=not (stdin or is_read(path)))
    except reading.UnreadableError as error:
        return Judged(FileResult(name, error=str(error)))
    except InputError as error:
        return Judged(FileResult(name, error=str(error).removeprefix(f"{name}: ")))
    try:
        result, of_chart = _kept(source, plan, stdin=stdin)
        return Judged(_whole(result, source), source, of_chart)
    except Exception as error:  # noqa: BLE001  # a failure on one file must not stop the others
        what = f"{type(error).__name__}: {error}"
        result = FileResult(name, source.kind, error=f"{_OUR_MISTAKE} ({what})")
        return Judged(result, of_chart=f"{name} was not checked, and may be about the same pod")


def _kept(source: Source, plan: Plan, *, stdin: bool) -> tuple[FileResult, str]:
    """The result without edits that must not be made; why amounts of its chart must wait then."""
    planned = result = _migrated(source, plan, stdin=stdin)
    if source.is_lossy:
        result = planned.undone("the file is not UTF-8")
    elif planned.new_text is not None and planned.kind in TEMPLATES:
        from webhook.verifying import trial

        result = trial.tried(planned, plan, partial(_migrated, source, stdin=stdin))
    if not stdin and _falls_silent(result, plan):
        result = result.undone(_SILENT)
    if result is planned:
        return result, ""
    from webhook.formats.legacy_pods import left_of

    return result, left_of(planned, result)


def _migrated(source: Source, plan: Plan, *, stdin: bool) -> FileResult:
    """Run the rules on a text that was read; a file may belong to others."""
    from webhook.formats.migrate import migrate_text
    from webhook.projects import kustomizations

    if stdin:
        return migrate_text(source, plan)
    return kustomizations.migrated(source.path, source, plan)


def _falls_silent(result: FileResult, plan: Plan) -> bool:
    """Whether no word in the new text would let a later run open it, although work is left."""
    if result.new_text is None or not any(e.status is Status.MANUAL for e in result.located):
        return False
    from webhook.files import search_words

    text = result.new_text.encode(errors="replace")
    return not any(word in text for word in search_words.words(plan.settings))


def _whole(result: FileResult, source: Source) -> FileResult:
    """An error if one document of a manifest file is not readable.

    The other documents are migrated. Data for other programs are no error: a document that is like
    no manifest, in a file in which nothing is to be changed.
    """
    if not result.skipped or source.kind not in _MANIFESTS:
        return result
    from webhook.yamlpatch import documents

    unread = documents.read(source.text, json=source.kind == "json").unread
    is_for_us = source.kind == "kustomize" or any(
        each.status is not Status.NOTICE for each in result.located
    )
    errors = [e for e in unread if is_for_us or _OF_MANIFEST.search(source.text, e.start, e.end)]
    if not errors:
        return result
    parts = f"{len(unread)} of its documents are" if len(unread) > 1 else "one of its documents is"
    first = next((each for each in result.skipped if each.place is not None), None)
    where = f"line {first.place.line} {first.reason}" if first and first.place else "see below"
    error = f"{parts} not a manifest ({where}): fix it first; nothing was changed there"
    return replace(result, error=error)


def judge_all(paths: Iterable[str], plan: Plan, processes: int | None = None) -> Iterator[Judged]:
    """The result of each file. `processes` may work at once; by default one for each core."""
    most = (cores() if processes is None else processes) - 1
    pool: _Pool | None = None
    usual = gc.get_threshold()
    gc.set_threshold(_MANY)
    try:
        for number, path in enumerate(paths):
            if number == _ALONE and most > 0:
                pool = _started(most, plan)
            if pool is None or path == STDIN or not pool.take(path):
                yield judge(path, plan)
            if pool is not None:
                yield from pool.heard()
        if pool is not None:
            yield from pool.heard(wait=True)
    finally:
        gc.set_threshold(*usual)
        if pool is not None:
            pool.end()


def _started(most: int, plan: Plan) -> _Pool | None:
    try:
        return _Pool(most, plan)
    except (ImportError, NotImplementedError, OSError):  # the machine has no resources for it
        return None


class _Pool:
    """Other processes, and the files that they have."""

    def __init__(self, most: int, plan: Plan) -> None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        self._plan = plan
        self._room = most * _GIVEN
        self._given: deque[tuple[str, Future[Judged]]] = deque()
        # Otherwise the folder in which the command runs would be searched for modules of this
        # program.
        os.environ[_SAFE_PATH] = "1"
        self._executor = ProcessPoolExecutor(most, get_context("spawn"), _begin, (plan,))

    def take(self, path: str) -> bool:
        """Give a file to another process; False if these are busy, or cannot be started."""
        if len(self._given) >= self._room:
            return False
        # Inherited by the new process: an interrupt is for the parent.
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
        """The results so far; with `wait`, all results."""
        while self._given and (wait or self._given[0][1].done()):
            path, future = self._given.popleft()
            yield judge(path, self._plan) if future.exception() else future.result()

    def end(self) -> None:
        if self._given:  # after an interrupt nothing waits for the rest
            from multiprocessing import active_children

            for each in active_children():
                each.terminate()
        self._executor.shutdown(cancel_futures=True)
        os.environ.pop(_SAFE_PATH, None)


_plans: list[Plan] = []  # the plan of this other process


def _begin(plan: Plan) -> None:
    """The first call in another process."""
    from multiprocessing import parent_process
    from threading import Thread

    gc.set_threshold(_MANY)
    _plans.append(plan)
    parent = parent_process()
    assert parent is not None  # noqa: S101
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _judge_there(path: str) -> Judged:
    judged = judge(path, _plans[0])
    return judged if judged.result.new_text is not None else judged._replace(source=None)
