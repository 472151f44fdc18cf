"""What the log says of a server in trouble."""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.hostile.wire import gpu_pod, serving, with_patience

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs


def until(question: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
def test_a_worker_that_hangs_is_not_said_to_be_out_of_memory(tmp_path: Path) -> None:
    with serving(tmp_path, "--dev", "--workers=2", program=with_patience(8)) as server:
        until(lambda: server.is_complete(2), 20)
        hung = server.workers()[0]
        os.kill(hung, signal.SIGSTOP)
        until(lambda: hung not in server.workers() and server.is_complete(2), 90)
        said = server.stderr.read_text()
        assert f"worker {hung} has hung for 8 s and is ended; another takes its place" in said
        assert "out of memory" not in said
        assert server.mutate(gpu_pod()).patch()


@pytest.mark.slow
def test_a_server_without_file_descriptors_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, "--dev", "--workers=1") as server:
        (worker,) = server.workers()
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (64, 64))
        with ExitStack() as held:
            for _ in range(100):
                held.enter_context(server.connect_plainly())
            until(lambda: "out of file descriptors: all 64 are in use" in _said(server.stderr), 20)
        until(lambda: _answers(server), 20)
        assert _said(server.stderr).count("out of file descriptors") == 1


def _answers(server: Server) -> bool:
    try:
        return bool(server.mutate(gpu_pod()).patch())
    except OSError:  # the last of the others are still being closed
        return False


def _said(file: Path) -> str:
    return file.read_text()
