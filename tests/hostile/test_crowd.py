"""Many clients at once: bodies share a budget, memory comes back, and namespaces take turns."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.hostile.wire import LEGACY, PROGRAM, get, gpu_pod, post, review, serving, with_room
from webhook.serving.worker import MOST_CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from ssl import SSLSocket

    from tests.hostile.wire import Reply, Server

pytestmark = pytest.mark.programs

MIB = 1024 * 1024
IS_NIGHTLY = settings.get_current_profile_name() == "nightly"
# `make nightly` has three times as many: what each of them left behind shows earlier.
MANY = 3 if IS_NIGHTLY else 1
ROOM = 100  # connections of the server that is narrow
WAIT_SECONDS = 15.0
REQUEST = post(review(gpu_pod()))


def stalled(server: Server, size: int = 950_000) -> SSLSocket:
    connection = server.connect()
    body = b"{" + b" " * size
    connection.sendall(post(body, "/mutate?timeout=10s", Content_Length=str(size + MIB)))
    return connection


@pytest.mark.slow
def test_stalled_bodies_share_a_budget(server: Server) -> None:
    """Two workers hold 32 MiB each; whoever began first is told to come again."""
    with ExitStack() as held:
        sockets = [held.enter_context(stalled(server, 6_000_000)) for _ in range(24)]
        assert server.mutate(gpu_pod()).response["allowed"] is True
        replies = [server.read(each)[0] for each in sockets]
    crowded = [reply for reply in replies if reply.status == 429]
    assert crowded
    assert {reply.status for reply in replies} <= {408, 429}
    assert all(reply.headers["retry-after"] == "1" for reply in crowded)
    assert crowded[0].body.startswith(b"body: ")


@pytest.mark.slow
def test_a_burst_of_connections_waits_in_the_kernel_however_long_the_workers_are_busy(
    server: Server,
) -> None:
    """Beyond the backlog a client only sends again after 1, 2, 4 and 8 seconds."""
    with ExitStack() as held:
        for worker in server.workers():
            held.callback(os.kill, worker, signal.SIGCONT)
            os.kill(worker, signal.SIGSTOP)
        burst = [held.enter_context(server.connect_plainly()) for _ in range(900)]
    assert len(burst) == 900


def _only_shake_hands(server: Server) -> None:
    for _ in range(500 * MANY):
        server.connect().close()


def _call_once(server: Server) -> None:
    for _ in range(300 * MANY):
        with server.connect() as connection:
            connection.sendall(REQUEST)
            assert server.read(connection)[0].status == 200


def _call_all_at_once(server: Server) -> None:
    pod = gpu_pod()
    pod["metadata"]["annotations"] = {"big": "x" * 200_000}
    with ExitStack() as held:
        for _ in range(100 * MANY):
            connection = held.enter_context(server.connect())
            connection.sendall(post(review(pod)))
            assert server.read(connection)[0].status == 200


def _stall(server: Server) -> None:
    with ExitStack() as held:
        for _ in range(50 * MANY):
            held.enter_context(stalled(server))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("crowd", [_only_shake_hands, _call_once, _call_all_at_once, _stall])
def test_memory_comes_back(crowd: Callable[[Server], None], tmp_path: Path) -> None:
    """Within 20 % of its level, some seconds after the last connection was closed."""
    with serving(tmp_path, "--dev", "--workers=2") as server:
        for _ in range(100):
            server.mutate(gpu_pod())
        workers, before = server.workers(), resident(server)
        crowd(server)
        end = time.monotonic() + WAIT_SECONDS
        while (after := resident(server)) > before * 1.2 and time.monotonic() < end:
            time.sleep(0.2)
        assert server.workers() == workers
    print(f"\n{crowd.__name__}: {before // MIB} MiB before, {after // MIB} after")  # noqa: T201
    assert after <= before * 1.2


def resident(server: Server) -> int:
    """Bytes of memory of all workers together."""
    page = os.sysconf("SC_PAGE_SIZE")
    texts = (Path(f"/proc/{pid}/statm").read_text() for pid in server.workers())
    return sum(int(text.split()[1]) for text in texts) * page


@pytest.mark.slow
@pytest.mark.nightly
def test_beyond_the_cap_idle_connections_are_closed(tmp_path: Path) -> None:
    """A new client finds room, since the longest unused goes; `make nightly` has the real cap."""
    room, program = (MOST_CONNECTIONS, PROGRAM) if IS_NIGHTLY else (ROOM, with_room(ROOM))
    most = 2 * room + 50  # a worker has a few sockets of its own
    with (
        serving(tmp_path, "--dev", "--workers=2", program=program) as server,
        ExitStack() as held,
    ):
        for _ in range(room * 5 // 2):
            connection = held.enter_context(server.connect())
            connection.sendall(get("/healthz"))
            assert server.read(connection)[0].status == 200
        end = time.monotonic() + WAIT_SECONDS
        while server.sockets() > most and time.monotonic() < end:
            time.sleep(0.2)  # those that were closed have 2 s to say goodbye
        assert server.sockets() <= most
        assert server.mutate(gpu_pod()).response["allowed"] is True


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of one worker, with room for few: who goes does not depend on how many stay."""
    folder = tmp_path_factory.mktemp("narrow")
    with serving(folder, "--dev", "--workers=1", program=with_room(ROOM)) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize(
    ("calls", "rest"),
    [
        pytest.param(0, b"", id="silence"),
        pytest.param(0, b"POST /guard HTTP/1.1\r\nHost: a\r\n", id="half a head"),
        pytest.param(0, REQUEST[:-100], id="half a body"),
        pytest.param(1, b"POST /guard HTTP/1.1\r\nHost: a\r\n", id="a call, then half a head"),
        pytest.param(1, REQUEST[:-100], id="a call, then half a body"),
    ],
)
def test_beyond_the_cap_who_sends_whole_requests_stays(
    narrow: Server, calls: int, rest: bytes
) -> None:
    """An API server keeps its connections; one that is closed under its call fails open."""
    with ExitStack() as held:
        good = [held.enter_context(narrow.connect()) for _ in range(20)]
        for connection in good:
            connection.sendall(REQUEST)
            assert narrow.read(connection)[0].status == 200
        for _ in range(ROOM * 2):
            crowd = held.enter_context(narrow.connect())
            crowd.sendall(REQUEST * calls)
            narrow.read(crowd, calls)
            crowd.sendall(rest)
        for connection in good:
            connection.sendall(REQUEST)
        replies = [narrow.read(connection)[0].status for connection in good]
    assert replies == [200] * 20


def heavy(namespace: str) -> dict[str, Any]:
    """Heavy by what is in it, and in the budget."""
    containers = [
        {"name": f"c{n}", "resources": {"limits": {LEGACY: 1}, "requests": {LEGACY: 1}}}
        for n in range(900)
    ]
    return review(gpu_pod(containers=containers), namespace=namespace)


@pytest.mark.slow
def test_who_sends_large_pods_waits_behind_his_own(server: Server) -> None:
    bomb = post(json.dumps(heavy("hostile"), separators=(",", ":")).encode(), "/mutate?timeout=2s")
    neighbour = post(
        json.dumps(heavy("other"), separators=(",", ":")).encode(), "/mutate?timeout=20s"
    )
    replies: list[Reply] = []
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            replies.extend(server.exchange(bomb))

    senders = [threading.Thread(target=flood) for _ in range(24)]
    for sender in senders:
        sender.start()
    try:
        for _ in range(2):
            large = server.exchange(neighbour, seconds=20)[0]
            assert "warnings" in large.response
            assert not any(
                "without repair: too many" in each for each in large.response["warnings"]
            )
            for _ in range(5):
                assert server.mutate(gpu_pod()).patch()
    finally:
        stop.set()
        for sender in senders:
            sender.join()
    assert {reply.status for reply in replies} == {200}
    assert all(reply.response["allowed"] for reply in replies)
