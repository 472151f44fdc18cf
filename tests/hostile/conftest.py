"""One real server for all hostile tests; whatever is sent to it, it must be well afterwards."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.hostile.wire import LEGACY, MODERN, gpu_pod, limits, repaired, serving
from tests.log_lines import whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.wire import Server

LONGEST_LOG_LINE = 1024
WORKERS = 2


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start the server once."""
    with serving(tmp_path_factory.mktemp("serve"), "--dev", f"--workers={WORKERS}") as server:
        for _ in range(200):
            if server.is_complete(WORKERS):
                break
            time.sleep(0.05)
        yield server


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    """The server, and after the test the proof that it took no harm."""
    workers = running.workers()
    assert len(workers) == WORKERS
    running.seen.clear()
    out, err = (len(whole_lines(each)) for each in (running.stdout, running.stderr))
    yield running
    assert running.workers() == workers, whole_lines(running.stderr)[err:]
    assert [status for status in running.seen if status >= 500] == []
    pod = gpu_pod()
    good = repaired(pod, running.mutate(pod))
    assert limits(good) == {MODERN: "2"}
    assert LEGACY not in json.dumps(good)
    for text in (whole_lines(running.stdout)[out:], whole_lines(running.stderr)[err:]):
        for line in text.splitlines(keepends=True):
            assert len(line) <= LONGEST_LOG_LINE
            assert json.loads(line)["level"] != "error", line
