"""`gpu-webhook serve` as a process: what it refuses to start with, how it starts and stops."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from tests.hostile.wire import CLOSED, Server, get, gpu_pod, post, review, serving
from tests.log_lines import entries
from webhook.certs import development
from webhook.cli.serve import Address, listen, read_address
from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command

pytestmark = pytest.mark.programs

PROGRAM = Path(sys.executable).with_name("gpu-webhook")
REQUEST = post(review(gpu_pod()))
TAKEN = "taken"


def start_in_vain(gpu_webhook: Command, *flags: str) -> str:
    """Start, and return the one line that says why it did not."""
    return only_line(*gpu_webhook("serve", *flags))


def only_line(code: int, out: str, err: str) -> str:
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    return line


def holds(line: str, where: str, advice: str) -> bool:
    return line.startswith("gpu-webhook: ") and where in line and advice in line


@pytest.mark.parametrize(
    ("flags", "where", "advice"),
    [
        pytest.param(
            ["--dev", f"--bind=127.0.0.1:{TAKEN}"], "--bind 127.0.0.1:", "another", id="port in use"
        ),
        pytest.param(
            ["--dev", "--bind=203.0.113.1:0"],
            "--bind 203.0.113.1:0",
            "choose",
            id="not our address",
        ),
        pytest.param(
            ["--dev", "--bind=no.such.host.invalid:1"],
            "no.such.host.invalid",
            "choose",
            id="no host",
        ),
        pytest.param(["--dev", "--bind=8443"], "--bind 8443", "Write", id="no colon"),
        pytest.param(["--dev", "--bind=::1:8443"], "--bind ::1:8443", "[::1]", id="no brackets"),
        pytest.param(["--dev", "--bind=:99999"], "--bind :99999", "Write", id="no such port"),
        pytest.param(["--dev", "--workers=0"], "--workers 0", "1 or more", id="no workers"),
        pytest.param(["--dev", "--inventory=no.yaml"], "no.yaml", "", id="no inventory"),
        pytest.param(["--dev", "--inventory=x.crt"], "x.crt", "", id="an inventory of nonsense"),
        pytest.param(["--dev", "--config=no.yaml"], "no.yaml", "", id="no settings"),
        pytest.param(["--dev", "--config=x.crt"], "x.crt", "", id="settings of nonsense"),
        pytest.param(
            ["--dev", "--config=/dev/zero"], "no regular file", "name a file", id="endless settings"
        ),
        pytest.param(
            ["--dev", "--client-name=a"], "--client-name", "--client-ca", id="a name without a CA"
        ),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    tmp_path: Path, gpu_webhook: Command, flags: list[str], where: str, advice: str
) -> None:
    (tmp_path / "x.crt").write_text("nonsense: [")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = start_in_vain(gpu_webhook, *(flag.replace(TAKEN, port) for flag in flags))
    assert holds(line, where, advice), line


@pytest.mark.parametrize(
    ("flags", "where", "advice"),
    [
        pytest.param(
            ["--bind=127.0.0.1:0"], "/etc/gpu-webhook/tls/tls.crt", "--dev", id="no certificate"
        ),
        pytest.param(
            ["--tls-cert-file=none.crt", "--tls-private-key-file=none.key", "--bind=127.0.0.1:0"],
            "none.crt: no such file",
            "--tls-cert-file",
            id="files that are not there",
        ),
        pytest.param(
            ["--tls-cert-file=x.crt", "--tls-private-key-file=x.crt", "--bind=127.0.0.1:0"],
            "x.crt: is ",
            "PEM",
            id="files that are no certificate",
        ),
        pytest.param(
            ["--dev", "--bind=127.0.0.1:0", "--client-ca=no.crt"],
            "--client-ca no.crt: no such file",
            "PEM",
            id="no client CA",
        ),
        pytest.param(
            ["--dev", "--bind=127.0.0.1:0", "--client-ca=x.crt"],
            "--client-ca x.crt: is no PEM",
            "PEM",
            id="a client CA of nonsense",
        ),
    ],
)
def test_so_it_is_for_a_process_that_has_its_address_already(
    tmp_path: Path, flags: list[str], where: str, advice: str
) -> None:
    (tmp_path / "x.crt").write_text("nonsense: [")
    done = subprocess.run(
        [PROGRAM, "serve", *flags],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    line = only_line(done.returncode, done.stdout, done.stderr)
    assert holds(line, where, advice), line


def test_nodes_come_from_one_place(gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_INVENTORY", "nodes.yaml")
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_SNAPSHOT", "here")
    assert "GPU_WEBHOOK_SERVE_SNAPSHOT): nodes come from" in start_in_vain(gpu_webhook, "--dev")
    both = ("--inventory=nodes.yaml", "--snapshot=here")
    assert "--inventory and --snapshot" in start_in_vain(gpu_webhook, "--dev", *both)


@pytest.mark.parametrize(
    ("text", "dev", "address"),
    [
        pytest.param(None, False, Address("", 8443), id="nothing: all addresses"),
        pytest.param(None, True, Address("127.0.0.1", 8443), id="nothing, --dev: loopback"),
        pytest.param(":9443", True, Address("", 9443), id="a port: all addresses"),
        pytest.param("0.0.0.0:1", False, Address("0.0.0.0", 1), id="all of IPv4"),
        pytest.param("[::1]:1", False, Address("::1", 1), id="IPv6"),
        pytest.param("[::]:1", False, Address("::", 1), id="all of IPv6"),
        pytest.param("localhost:1", False, Address("localhost", 1), id="a name"),
    ],
)
def test_addresses(text: str | None, dev: bool, address: Address) -> None:  # noqa: FBT001
    assert read_address(text, dev=dev) == address


@pytest.mark.parametrize("text", ["", "x", "1", "::1", "[::1]", "a:b", "a:-1", "[::1]:", "a:"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(InputError, match="--bind"):
        read_address(text, dev=False)


def test_all_addresses_are_those_of_ipv6_too() -> None:
    with listen(Address("", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        if socket.has_dualstack_ipv6():
            socket.create_connection(("::1", port)).close()


def test_loopback_of_ipv6_alone(tmp_path: Path) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    files = development.ensure(tmp_path)
    assert files.ca.exists()
    with listen(Address("::1", 0)) as listener:
        socket.create_connection(("::1", listener.getsockname()[1])).close()


def test_it_starts_and_says_how_to_call_it(tmp_path: Path) -> None:
    began = time.monotonic()
    with serving(tmp_path, "--dev", "--workers=1") as server:
        seconds = time.monotonic() - began
        said = server.stderr.read_text()
    print(f"\nready after {seconds:.2f} s, certificates made")  # noqa: T201
    assert f"curl --cacert {tmp_path}/certs/ca.crt https://127.0.0.1:{server.port}/healthz" in said


def test_development_listens_on_loopback_alone(tmp_path: Path) -> None:
    with serving(tmp_path, "--dev", "--workers=1") as server:
        lines = entries(server.stdout)
    assert lines[0]["address"] == f"127.0.0.1:{server.port}"


def test_a_configured_name_that_the_shipped_conditions_miss_is_logged(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("resources: {legacy: [example.com/old-gpu]}\n")
    with serving(tmp_path, "--dev", "--config=settings.yaml") as server:
        text = server.stdout.read_text()
    assert "example.com/old-gpu" in text
    assert "matchConditions" in text


def test_it_waits_for_the_first_pair_of_a_watcher(tmp_path: Path) -> None:
    files = development.ensure(tmp_path / "made")
    shutil.copy(files.ca, tmp_path / "ca.crt")
    pair = ("--tls-cert-file=live/tls.crt", "--tls-private-key-file=live/tls.key")

    def give() -> None:
        log = tmp_path / "stdout"
        until(lambda: log.exists() and b"waiting" in log.read_bytes(), "it to wait")
        (tmp_path / "made").rename(tmp_path / "live")

    threading.Thread(target=give, daemon=True).start()
    with serving(tmp_path, *pair, "--tls-wait", "--workers=1", trust=tmp_path / "ca.crt") as server:
        messages = [line["message"] for line in entries(server.stdout)]
    assert messages[:2] == ["waiting for the certificate: see the log of `watch`", "listening"]


STOPS = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT]


def ignoring() -> None:
    """As the first process of a container, or a job that a shell has put into the background."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def ignoring_serve(folder: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start it where its parent ignores the signals; whatever is left of it is ended."""
    with subprocess.Popen(
        [PROGRAM, "serve", "--bind=127.0.0.1:0", *flags],
        cwd=folder,
        stdout=subprocess.PIPE,
        preexec_fn=ignoring,  # noqa: PLW1509  # this process has no other threads
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("end", STOPS)
def test_a_signal_ends_it_while_it_waits(tmp_path: Path, end: signal.Signals) -> None:
    with ignoring_serve(tmp_path, "--tls-wait", "--tls-cert-file=none") as process:
        assert process.stdout is not None
        assert b"waiting" in process.stdout.readline()
        process.send_signal(end)
        assert process.wait(60) == 0


@pytest.mark.parametrize("end", STOPS)
@pytest.mark.parametrize("after", [0, 0.1, 0.4], ids="{} s after it listens".format)
def test_a_signal_ends_all_its_processes_whenever_it_comes(
    tmp_path: Path, after: float, end: signal.Signals
) -> None:
    flags = ["--dev", "--workers=2", "--metrics-bind=127.0.0.1:0"]
    with ignoring_serve(tmp_path, *flags) as process:
        assert process.stdout is not None
        assert b"listening" in process.stdout.readline()
        time.sleep(after)
        process.send_signal(end)
        assert process.wait(60) == 0
        until(lambda: not lives(process.pid), "the other processes to end", 30)


def lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_and_without_a_word(tmp_path: Path, end: signal.Signals) -> None:
    with serving(tmp_path, "--dev", "--workers=2") as server:
        before = server.stderr.read_text()
        server.process.send_signal(end)
        assert server.process.wait(60) == 0
    assert "Traceback" not in server.stderr.read_text()[len(before) :]


def test_a_worker_hears_a_signal_that_comes_while_it_starts() -> None:
    program = (
        "import os, signal, socket, ssl, time\n"
        "from webhook.serving.bodies import Bodies\n"
        "from webhook.serving import server\n"
        "server.DRAIN_SECONDS = 600  # then a worker that hears nothing is killed\n"
        "def make_app(_):\n"
        "    os.kill(os.getppid(), signal.SIGTERM)\n"
        "    time.sleep(2)\n"
        "    app = lambda *_: None\n"
        "    app.bodies = Bodies()\n"
        "    return app\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
        "fd = listener.detach()\n"
        "server.Server(make_app, listener=fd, workers=1, context=context).run()\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_worker_hears_a_signal_that_comes_as_it_is_forked_off() -> None:
    program = (
        "import os, signal, time\n"
        "from webhook.serving.server import keep_signals_over_fork\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(7))\n"
        "keep_signals_over_fork()\n"
        "for _ in range(50):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        time.sleep(1)\n"
        "        os._exit(0)\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=90
    )
    assert done.stdout.split() == ["7"] * 50
    assert done.returncode == 7, "nor does the parent stay deaf"


def test_what_is_under_way_is_answered_before_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, "--dev", "--workers=1") as server, server.connect() as busy:
        busy.sendall(REQUEST[:-10])
        with server.connect() as idle:
            idle.sendall(get("/healthz"))
            assert server.read(idle)[0].status == 200
            time.sleep(1.1)
            server.process.terminate()
            time.sleep(1.5)
            busy.sendall(REQUEST[-10:])
            (reply,) = server.read(busy)
            assert reply.response["allowed"] is True
            assert reply.headers["connection"] == "close"
            assert server.read(idle)[0].status == CLOSED
        assert server.process.wait(60) == 0


def test_readiness_ends_with_the_signal(tmp_path: Path) -> None:
    with serving(tmp_path, "--dev", "--workers=1") as server, server.connect() as connection:
        connection.sendall(get("/readyz"))
        assert server.read(connection)[0].status == 200
        server.process.terminate()
        time.sleep(0.3)
        connection.sendall(get("/readyz"))
        (reply,) = server.read(connection)
        assert (reply.status, reply.body) == (503, b"not ready: draining")


# CPython forgets a socket that was reset before it could be wrapped (ssl.SSLSocket._create).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_under_load_loses_no_call(tmp_path: Path) -> None:
    """A call is answered in full, or its connection was refused before it was sent."""
    lost: list[str] = []
    answered: list[int] = []
    stopped = threading.Event()
    ended = [0.0]

    def call(server: Server) -> None:
        while not stopped.is_set():
            try:
                connection = server.connect()
            except OSError:
                return  # it no longer listens
            with connection:
                for number in range(20):
                    try:
                        connection.sendall(REQUEST)
                        (reply,) = server.read(connection)
                    except OSError as error:
                        lost.append(repr(error))
                        return
                    if reply.status == CLOSED:
                        after = time.monotonic() - ended[0]
                        lost.append(f"closed at call {number}, {after:.2f} s after the signal")
                        return
                    answered.append(reply.status)
                    if reply.headers.get("connection") == "close":
                        break

    with serving(tmp_path, "--dev", "--workers=2") as server:
        callers = [threading.Thread(target=call, args=(server,)) for _ in range(8)]
        for caller in callers:
            caller.start()
        time.sleep(1.5)
        ended[0] = time.monotonic()
        server.process.terminate()
        server.process.wait(60)
        stopped.set()
        for caller in callers:
            caller.join()
    print(f"\nstopped under load: {len(answered)} calls answered, {len(lost)} lost")  # noqa: T201
    assert lost == []
    assert set(answered) == {200}


def full_pipe() -> tuple[int, int]:
    """A pipe that nobody reads, and that holds no byte more."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 512)
    os.set_blocking(writer, True)
    return reader, writer


def test_logs_that_nobody_reads_stop_nobody(tmp_path: Path) -> None:
    """As when a container runtime hangs: neither pods, nor workers, nor the end wait for it."""
    files, (port,) = development.ensure(tmp_path / "certs"), free_ports(1)
    pipes = [full_pipe(), full_pipe()]
    flags = [
        f"--bind=127.0.0.1:{port}",
        f"--tls-cert-file={files.cert}",
        f"--tls-private-key-file={files.key}",
        "--workers=1",
    ]
    command = [str(Path(sys.executable).parent / "gpu-webhook"), "serve", *flags]
    process = subprocess.Popen(command, stdout=pipes[0][1], stderr=pipes[1][1])
    server = Server(process, tmp_path, port)
    try:
        for _ in range(3):
            until(lambda: _answers(server), "an answer", 20)
            (worker,) = server.workers()
            os.kill(worker, signal.SIGKILL)
            _replaced(server, worker)
        until(lambda: _answers(server), "an answer", 20)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        for worker in server.workers() if process.poll() is None else []:
            os.kill(worker, signal.SIGKILL)
        process.kill()
        process.wait()
        for pipe in pipes:
            for end in pipe:
                os.close(end)


def _answers(server: Server) -> bool:
    try:
        (reply,) = server.exchange(post(review(gpu_pod())))
    except OSError:
        return False
    return reply.status == 200


def _replaced(server: Server, worker: int) -> None:
    until(lambda: server.workers() not in ([worker], []), "another worker", 20)
