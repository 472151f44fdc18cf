"""Searches many files for a few words in their bytes, to find those that may have findings.

Most files of a tree contain none of the words. Their cost is opening, reading and closing, so this
does little more: three system calls for each file, no object except its text, and one search for
each word over many joined texts. A regular expression of all words takes twice the time.

`search.py` also runs this file as a separate program, on other cores: standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    # Folders as prefixes, with the names in them.
    Batch = Sequence[tuple[str, Sequence[str]]]

# A text that several words share, and few files have: it is searched first, instead of these.
_SHARED = (b"alpha", b"beta", b"vidia", b"google", b"ccelerators")
LIMIT = 64 << 20  # bytes; no manifest is longer
CHUNK = 64 << 10  # most files are read at once
_LARGE_CHUNK = 256 << 10  # this fits into the cache of a core
_JOINED = 512 << 10
# A pipe that took the place of a file must not block.
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

# Results for a file besides errno numbers.
HIT, BINARY, TOO_LARGE, NO_FILE = 0, -1, -2, -3


def examine(batch: Batch, words: Sequence[bytes]) -> tuple[list[tuple[int, int]], int]:
    """Returns (position in the batch, result) for files with a result, and the bytes read."""
    said: list[tuple[int, int]] = []
    parts = _parts(words)
    texts: list[bytes] = []
    waiting = total = first = position = 0  # `texts` are those of `first` and the files after it
    for folder, names in batch:
        for name in names:
            text = b""
            try:
                descriptor = os.open(folder + name, FLAGS)
                try:
                    text = os.read(descriptor, CHUNK)
                    if len(text) == CHUNK:
                        verdict, read = _long(descriptor, text, words)
                        if verdict is not None:
                            said.append((position, verdict))
                        total += read
                        text = b""
                finally:
                    os.close(descriptor)
            except OSError as error:
                said.append((position, error.errno or errno.EIO))
            texts.append(text)
            waiting += len(text)
            position += 1
            if waiting > _JOINED:
                said += _hits(texts, first, words, parts)
                total, waiting, first = total + waiting, 0, position
                texts.clear()
    said += _hits(texts, first, words, parts)
    return sorted(said), total + waiting


def _parts(words: Sequence[bytes]) -> list[bytes]:
    """Fewer words: a text without any of these has none of the others."""
    return list(dict.fromkeys([next(filter(word.__contains__, _SHARED), word) for word in words]))


def _hits(
    texts: Sequence[bytes], first: int, words: Sequence[bytes], parts: Sequence[bytes]
) -> list[tuple[int, int]]:
    joined = b"\n".join(texts)
    ends = list(accumulate(len(text) + 1 for text in texts))
    found: dict[int, int] = {}
    for part in (b"\0", *parts):
        at = joined.find(part)
        while at >= 0:
            number = bisect_right(ends, at)
            if part == b"\0":
                found[number] = BINARY
            elif number not in found and any(map(texts[number].__contains__, words)):
                found[number] = HIT
            at = joined.find(part, ends[number])
    return [(first + number, verdict) for number, verdict in found.items()]


def _long(descriptor: int, text: bytes, words: Sequence[bytes]) -> tuple[int | None, int]:
    """The same for one file that is too long to be read at once, with its beginning."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return NO_FILE, len(text)
    if status.st_size > LIMIT:
        return TOO_LARGE, len(text)
    kept = max(map(len, words), default=1) - 1  # a word may cross the border of two chunks
    read, found = len(text), None
    while text:
        if b"\0" in text:
            return BINARY, read
        if found is None and any(map(text.__contains__, words)):
            found = HIT
        chunk = os.read(descriptor, _LARGE_CHUNK)
        read += len(chunk)
        if read > LIMIT:  # it grows
            return TOO_LARGE, read
        text = (text[-kept:] if kept else b"") + chunk if chunk else b""
    return found, read


def answer(requests: BinaryIO, answers: BinaryIO) -> None:
    """Examine files for another process: lines of JSON, first the words, then batches."""
    words = [bytes(word) for word in json.loads(requests.readline())]
    for line in requests:
        answers.write(json.dumps(examine(json.loads(line), words)).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    try:
        answer(sys.stdin.buffer, sys.stdout.buffer)
    except (KeyboardInterrupt, BrokenPipeError):  # the parent has ended
        os._exit(0)
