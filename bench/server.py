"""The webhook by itself: ours against one made with controller-runtime, one core each, in turn."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench import kinds
from bench.generator import REVIEWS, Target, WrongAnswers, call, program
from bench.processes import cpu_seconds, milliseconds_each, on_core, running, two_cores
from bench.windows import Window
from tests.cluster.certificates import Authority
from tests.cluster.client import until
from tests.cluster.controlplane import ProgramDied, free_ports

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.cluster.certificates import KeyPair

CONNECTIONS = (1, 8)
OURS, PEER = "gpu-webhook", "controller-runtime"
_START = 20.0
_SHORT = 1.0  # seconds of a window of one kind: there are many


@dataclass(frozen=True, slots=True)
class _Server:
    target: Target
    pid: int


def measure(rounds: int, seconds: float, tell: Callable[[str], None]) -> list[Window]:
    """Measure the servers in turn: A B A B, for each number of connections."""
    windows = []
    with _both(tell) as servers:
        for connections in CONNECTIONS:
            for turn in range(rounds):
                tell(f"server: {connections} connection(s), round {turn + 1} of {rounds}")
                windows += [_window(servers, name, connections, turn, seconds) for name in servers]
    return windows


def measure_kinds(rounds: int, seconds: float, tell: Callable[[str], None]) -> list[Window]:
    """Measure them with the pods of one kind after another, in shorter windows."""
    seconds = min(seconds, _SHORT)
    windows = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, _both(tell) as servers:
        for kind, body in kinds.files(Path(folder)).items():
            tell(f"server: {kind}, {rounds} rounds")
            for turn in range(rounds):
                windows += [
                    _window(servers, name, max(CONNECTIONS), turn, seconds, kind, body)
                    for name in servers
                ]
    return windows


def _window(  # noqa: PLR0913, PLR0917  # the contender, and what it gets
    servers: dict[str, _Server],
    name: str,
    connections: int,
    turn: int,
    seconds: float,
    kind: str = "",
    body: Path = REVIEWS,
) -> Window:
    server = servers[name]
    before = cpu_seconds(server.pid)
    sample = call(replace(server.target, body=body), connections, seconds, two_cores()[1])
    spent = milliseconds_each(before, cpu_seconds(server.pid), sample.calls)
    return Window(name, connections, turn, sample, spent, kind)


@contextmanager
def _both(tell: Callable[[str], None]) -> Iterator[dict[str, _Server]]:
    tell("server: the Go programs (built once)")
    program("load")
    program(PEER)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        authority = Authority(folder)
        pair = authority.server("webhook.bench.svc")
        (folder / "tls.crt").symlink_to(pair.certificate)
        (folder / "tls.key").symlink_to(pair.key)
        ours, peer = free_ports(2)
        commands = {
            OURS: gpu_webhook_command(ours, pair),
            PEER: peer_command(peer, folder),
        }
        servers = {}
        for name, port in ((OURS, ours), (PEER, peer)):
            log = folder / f"{name}.log"
            with on_core(two_cores()[0]):
                process = stack.enter_context(running(commands[name], log, {"GOMAXPROCS": "1"}))
            # The path and query are those that the shipped configuration makes.
            url = f"https://127.0.0.1:{port}/mutate?timeout=3s"
            target = Target(url, authority.bundle, REVIEWS, "patch")
            wait_until_it_answers(process, target, log)
            servers[name] = _Server(target, process.pid)
        yield servers


def peer_command(port: int, folder: Path) -> list[str]:
    """Give the command line of the peer; the folder has its tls.crt and tls.key."""
    return [str(program(PEER)), f"--port={port}", f"--cert-dir={folder}"]


def gpu_webhook_command(port: int, pair: KeyPair) -> list[str]:
    """Give the command line of ours: one worker, everything else as it comes."""
    return [
        *(str(Path(sys.executable).parent / "gpu-webhook"), "serve"),
        *(f"--bind=127.0.0.1:{port}", "--workers=1"),
        *(f"--tls-cert-file={pair.certificate}", f"--tls-private-key-file={pair.key}"),
    ]


def wait_until_it_answers(process: subprocess.Popen[bytes], target: Target, log: Path) -> None:
    """Return after the first right answers; raise if they do not come."""

    def answers() -> bool:
        try:
            call(target, connections=1, seconds=0.1)
        except WrongAnswers as wrong:
            if process.poll() is None:
                failures.append(str(wrong))
                return False
            raise ProgramDied(f"{process.args!r} ended: {log.read_text()[-2000:]}") from None
        return True

    failures: list[str] = []
    try:
        until(answers, target.url, _START)
    except TimeoutError as late:
        raise WrongAnswers(f"{late}: {failures[-1]}; {log.read_text()[-2000:]}") from None
