"""Writes JSON lines to standard output. It never blocks: a full pipe cannot stop the server.

Lines go into a bounded queue that a daemon thread empties. Lines that do not fit are dropped and
counted, and the count is written when there is room again.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import deque
from typing import Any

import orjson

from webhook.kube.times import stamp

LONGEST_LINE = 1024
SHORT = 24  # characters that any field may have, however many are long
MESSAGE = 200  # and the characters that the message keeps
MOST_ITEMS = 8  # of a list or a map
# In a line that would be too long, long fields are cut to the first of these that is enough.
_CUTS = (600, 300, 150, 75, SHORT)
GATHER_SECONDS = 0.02  # lines within this time are written at once: one wake-up, one system call

# Control characters, and characters that would break or reorder a line.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+")
_PLAIN = {str, int, float, bool, type(None)}


def printable(text: str) -> str:
    """The text as one line that is safe to show."""
    return text if text.isprintable() else _UNPRINTABLE.sub(" ", text)


class Log:
    """Takes lines as fields; `close()` writes the remaining ones, within its time."""

    def __init__(self, fd: int = 1, room: int = 4096) -> None:
        self._fd = fd
        self._room = room
        self._lines: deque[tuple[float, dict[str, Any]]] = deque()
        self._dropped = 0
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        os.register_at_fork(after_in_child=self._start_again)

    def _start_again(self) -> None:
        """Drop the parent's lines and thread: the parent writes them itself."""
        self._lines.clear()
        self._dropped = 0
        self._thread = None
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._idle = threading.Event()

    def write(self, level: str, message: str, **fields: object) -> None:
        """Queue one line, or count it as dropped if the reader of the output is too slow."""
        if len(self._lines) >= self._room:
            self._dropped += 1
            return
        self._lines.append((time.time(), {"level": level, "message": message, **fields}))
        if not self._wake.is_set():
            self._wake.set()
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        """Start the thread, once, from any thread."""
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._empty, name="log", daemon=True)
                # No more threads allowed: the line waits, but not the caller.
                with contextlib.suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def close(self, seconds: float = 1.0) -> None:
        """Wait until all lines are written, but not longer than this."""
        end = time.monotonic() + seconds
        while self._thread is not None and time.monotonic() < end:
            self._idle.clear()
            self._wake.set()
            if self._idle.wait(end - time.monotonic()) and not self._lines:
                return

    def _empty(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while self._lines:
                batch = [self._lines.popleft() for _ in range(min(len(self._lines), 256))]
                self._write(b"".join(line(when, fields) for when, fields in batch))
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                text = "log lines were dropped: the reader of this output is too slow"
                fields = {"level": "warning", "message": text, "dropped": dropped}
                self._write(line(time.time(), fields))
            self._idle.set()
            time.sleep(GATHER_SECONDS)

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # another process made the pipe non-blocking
                time.sleep(GATHER_SECONDS)
            except OSError:
                return  # the reader is closed; serving continues


def line(when: float, fields: dict[str, Any]) -> bytes:
    """One line of at most LONGEST_LINE bytes; JSON escapes keep it one line whatever it quotes."""
    record = {"time": stamp(when, "milliseconds")}
    if all(map(_is_plain, fields.values())):
        with contextlib.suppress(TypeError):  # half of a surrogate pair
            text = orjson.dumps(record | fields)
            if len(text) < LONGEST_LINE and not _is_odd(text):  # the usual case
                return text + b"\n"
    text = orjson.dumps(record | {key: _safe(value) for key, value in fields.items()})
    for most in _CUTS:
        if len(text) < LONGEST_LINE:
            break
        short = {key: _safe(value, most) for key, value in fields.items()}
        text = orjson.dumps(record | short | {"message": _safe(fields.get("message", ""), MESSAGE)})
    return text + b"\n"


def _is_odd(text: bytes) -> bool:
    """Whether this JSON may hold something unprintable. In ASCII all but DEL is escaped."""
    return not text.isascii() or b"\\" in text or b"\x7f" in text


def _is_plain(value: object) -> bool:
    """Whether `_safe` would return an equal value, if its line is short and has nothing odd."""
    if type(value) is list:
        return len(value) <= MOST_ITEMS and {*map(type, value)} <= {str}
    if type(value) is dict:
        return _is_plain([*value.values()]) and all(len(str(key)) <= SHORT for key in value)
    return type(value) in _PLAIN


def _safe(value: object, longest: int = LONGEST_LINE) -> object:
    """The value without harmful characters; lists and maps are cut."""
    if isinstance(value, str):
        return printable(value)[:longest]
    if isinstance(value, list):
        return [_safe(item, longest) for item in value[:MOST_ITEMS]]
    if isinstance(value, dict):
        first = list(value.items())[:MOST_ITEMS]
        return {printable(str(key))[:SHORT]: _safe(item, longest) for key, item in first}
    return value if isinstance(value, int | float) or value is None else _safe(str(value), longest)
