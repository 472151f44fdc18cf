"""The other side of the wire: raw sockets, and a server to point them at."""

from __future__ import annotations

import base64
import copy
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonpatch import JsonPatch

from tests.log_lines import entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEGACY, MODERN = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
REPAIRED = "gpu-webhook.dev/repaired"
UID = "8f0b2d54-0000-4000-8000-00000000000a"
START_SECONDS = 20.0
CLOSED = 0  # the status of a connection that was closed without an answer


@dataclass
class Reply:
    """One answer; status CLOSED and nothing else where the server hung up."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def response(self) -> dict[str, Any]:
        """The response of the review."""
        assert self.status == 200, self.body
        response: dict[str, Any] = json.loads(self.body)["response"]
        return response

    def patch(self) -> list[dict[str, Any]]:
        text = self.response.get("patch")
        return json.loads(base64.b64decode(text)) if text else []


@dataclass
class Server:
    """A running `gpu-webhook serve`."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int = 0
    seen: list[int] = field(default_factory=list)  # every status that anybody got
    ca: Path | None = None  # none: that of --dev

    @property
    def stdout(self) -> Path:
        return self.folder / "stdout"

    @property
    def stderr(self) -> Path:
        return self.folder / "stderr"

    def workers(self) -> list[int]:
        """The worker processes, sorted."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return sorted(int(child) for child in children.split())

    def cpu_seconds(self) -> float:
        """Processor time of all workers so far (in steps of 10 ms)."""
        spent = 0
        for worker in self.workers():
            fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
            spent += int(fields[11]) + int(fields[12])
        return spent / 100

    def peak_memory(self) -> list[int]:
        """The most resident bytes that each worker ever had."""
        texts = (Path(f"/proc/{pid}/status").read_text() for pid in self.workers())
        return [int(text.partition("VmHWM:")[2].split()[0]) * 1024 for text in texts]

    def sockets(self) -> int:
        """Sockets that the workers hold, their own few included."""
        return sum(_sockets_of(worker) for worker in self.workers())

    def is_complete(self, workers: int) -> bool:
        """True once so many workers listen (a listener, and the two ends of a wake-up pair)."""
        pids = self.workers()
        return len(pids) == workers and all(_sockets_of(pid) >= 3 for pid in pids)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca or self.folder / "certs" / "ca.crt"))

    @cached_property
    def _trusting(self) -> ssl.SSLContext:
        """To make one takes as long as half a handshake."""
        return self.trust()

    def connect(self, seconds: float = 10.0, room: int = 0) -> ssl.SSLSocket:
        """A TLS connection; `room` bytes for what it receives, if given."""
        plain = self.connect_plainly(seconds, room)
        tls = self._trusting.wrap_socket(
            plain, server_hostname="localhost", do_handshake_on_connect=False
        )
        try:
            tls.do_handshake()
        except OSError:
            tls.close()
            raise
        return tls

    def connect_plainly(self, seconds: float = 10.0, room: int = 0) -> socket.socket:
        """A TCP connection that has not said a word."""
        connection = socket.socket()
        if room:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        connection.settimeout(seconds)
        try:
            connection.connect(("127.0.0.1", self.port))
        except OSError:
            connection.close()
            raise
        return connection

    def exchange(self, data: bytes, answers: int = 1, seconds: float = 10.0) -> list[Reply]:
        """Send these bytes on a new connection and read so many answers."""
        with self.connect(seconds) as connection:
            connection.settimeout(seconds)
            _send(connection, data)
            return self.read(connection, answers)

    def read(self, connection: socket.socket, answers: int = 1) -> list[Reply]:
        """Read answers; the last is CLOSED if the server hangs up before all are there."""
        replies: list[Reply] = []
        rest = b""
        while len(replies) < answers and (not replies or replies[-1].status != CLOSED):
            reply, rest = _read_reply(connection, rest)
            self.seen.append(reply.status)
            replies.append(reply)
        return replies

    def post(self, body: bytes | dict[str, Any], path: str = "/mutate", **headers: str) -> Reply:
        """Send a body the usual way, and read the answer."""
        return self.exchange(post(body, path, **headers))[0]

    def mutate(self, pod: Any, **request: Any) -> Reply:
        """Send a review of this pod."""
        return self.post(review(pod, **request))


def _sockets_of(pid: int) -> int:
    count = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed in the meantime
            count += str(link.readlink()).startswith("socket:")
    return count


PROGRAM = (str(Path(sys.executable).with_name("gpu-webhook")),)
_WITH_LIMIT = """
import sys
from webhook.cli.main import main
from webhook.serving import {module}
{module}.{limit} = {value}
sys.exit(main())
"""


def with_room(connections: int) -> Sequence[str]:
    """The program, with room for so many connections: a thousand handshakes take seconds."""
    return _with_limit("worker", "MOST_CONNECTIONS", connections)


def with_patience(seconds: int) -> Sequence[str]:
    """The program, with so many seconds until a worker hangs: 30 are long for a test."""
    return _with_limit("server", "HUNG_SECONDS", seconds)


def _with_limit(module: str, limit: str, value: int) -> Sequence[str]:
    return sys.executable, "-c", _WITH_LIMIT.format(module=module, limit=limit, value=value)


@contextmanager
def serving(
    folder: Path,
    *flags: str,
    trust: Path | None = None,
    program: Sequence[str] = PROGRAM,
) -> Iterator[Server]:
    """Run `gpu-webhook serve` on a free port of loopback, and end it; `trust` is its CA."""
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            [*program, "serve", "--bind", "127.0.0.1:0", *flags],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    server = Server(process, folder, ca=trust)
    try:
        server.port = _wait_until_ready(server)
        yield server
    finally:
        process.send_signal(signal.SIGINT)  # the quick way; what SIGTERM does has its own tests
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(server: Server) -> int:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert server.process.poll() is None, server.stderr.read_text()
        for said in entries(server.stdout):
            if said["message"] == "listening":
                server.port = int(said["address"].rpartition(":")[2])
        if server.port:
            with server.connect() as connection:
                connection.sendall(get("/readyz"))
                assert server.read(connection)[0].status == 200
            return server.port
        time.sleep(0.02)
    raise AssertionError(f"not ready after {START_SECONDS} s: {server.stderr.read_text()}")


def _send(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
        return  # refused before all was sent; the answer may be there to read


def _read_reply(connection: socket.socket, buffer: bytes) -> tuple[Reply, bytes]:
    while True:
        head, end, rest = buffer.partition(b"\r\n\r\n")
        if end:
            reply = _head(head)
            length = int(reply.headers.get("content-length", "0"))
            if reply.status == 100:
                buffer = rest
                continue
            if len(rest) >= length:
                reply.body = rest[:length]
                return reply, rest[length:]
        try:
            more = connection.recv(65536)
        except (ConnectionResetError, ssl.SSLError):
            more = b""
        if not more:
            return Reply(CLOSED), b""
        buffer += more


def _head(head: bytes) -> Reply:
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Reply(
        int(status.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}
    )


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(body: bytes | dict[str, Any], path: str = "/mutate", **headers: str) -> bytes:
    """The bytes of a POST, as an API server sends it.

    `Content_Type="..."` sets a header, an empty text leaves it out.
    """
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    fields = {
        "Host": "localhost",
        "User-Agent": "kube-apiserver-admission",
        "Content-Length": str(len(content)),
        "Accept": "application/json, */*",
        "Content-Type": "application/json",
        "Accept-Encoding": "gzip",
    }
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"POST {path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items() if v), "", ""]
    return "\r\n".join(lines).encode("latin-1") + content


def gpu_pod(**spec: Any) -> dict[str, Any]:
    """A pod of 2017 that requests two GPUs."""
    resources = {"limits": {LEGACY: "2"}, "requests": {LEGACY: "2"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gpu-pod", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            **spec,
        },
    }


def review(pod: Any, **request: Any) -> dict[str, Any]:
    """A review as kube-apiserver sends it; `request` overrides, None takes a field away."""
    fields: dict[str, Any] = {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": copy.deepcopy(pod),
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    for name, value in request.items():
        fields[name] = value
        if value is None:
            del fields[name]
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": fields}


def repaired(pod: Any, reply: Reply) -> Any:
    """The pod as the API server would make it from this answer."""
    assert reply.response["allowed"] is True
    return JsonPatch(reply.patch()).apply(pod)


def unannotated(pod: Any) -> Any:
    """The pod without the note of what was repaired, and without null or empty maps around it."""
    if isinstance(pod.get("metadata"), list) or isinstance(_notes(pod), list):
        return pod  # no place for a note
    metadata = dict(pod.get("metadata") or {})
    notes = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k != REPAIRED}
    metadata |= {"annotations": notes} if notes else {}
    rest = {key: value for key, value in pod.items() if key != "metadata"}
    return rest | ({"metadata": metadata} if metadata else {})


def _notes(pod: Any) -> Any:
    return (pod.get("metadata") or {}).get("annotations")


def limits(pod: Any, container: int = 0, kind: str = "containers") -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"][kind][container]["resources"]["limits"]
    return found
