"""The heap of a process with threads, as the C library reports it."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

THREADS = """
import ctypes, threading
from webhook.serving.heap import HEAP
{first}
libc = ctypes.CDLL(None)
met = threading.Barrier(4)
def work():
    libc.malloc(1000)
    met.wait()
threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
libc.malloc_stats()
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_stats"), reason="needs glibc")
@pytest.mark.parametrize(
    ("first", "least"),
    [
        pytest.param("", 2, id="threads have heaps of their own"),
        pytest.param("HEAP.share()", 1, id="shared: all threads use one"),
    ],
)
def test_heaps_of_threads(first: str, least: int) -> None:
    command = [sys.executable, "-c", THREADS.format(first=first)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heaps = done.stderr.count("Arena ")
    assert min(heaps, 2) == least
