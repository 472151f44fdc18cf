"""The webhook as users run it, a recorder in front of it, and the shipped configuration."""

from __future__ import annotations

import base64
import copy
import http.client
import http.server
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import orjson
import yaml

from tests.cluster.client import until
from tests.cluster.controlplane import ProgramDied, free_ports
from tests.log_lines import whole_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tests.cluster.certificates import Authority, KeyPair
    from tests.cluster.client import Client, Json
    from tests.cluster.controlplane import ControlPlane

ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"
REPAIR = "MutatingWebhookConfiguration"
KINDS = (REPAIR, "ValidatingWebhookConfiguration")
_START = 30.0


class WebhookServer:
    """`gpu-webhook serve` on a free loopback port; starts with the `with` block, ends with it."""

    def __init__(self, folder: Path, authority: Authority, arguments: Sequence[str] = ()) -> None:
        self.port = free_ports(1)[0]
        self.authority = authority
        self.log_file = folder / "gpu-webhook.log"
        pair = authority.server("gpu-webhook.gpu-webhook.svc")
        self._command = [
            str(Path(sys.executable).parent / "gpu-webhook"),
            "serve",
            f"--bind=127.0.0.1:{self.port}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            *arguments,
        ]
        self._tls = ssl.create_default_context(cafile=str(authority.bundle))

    def __enter__(self) -> Self:
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
            )
        try:
            until(self._is_ready, "gpu-webhook serve to be ready", _START)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGQUIT)  # at once: SIGTERM waits for idle connections
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def lines(self, namespace: str) -> list[Json]:
        """Give the decisions on objects of a namespace."""
        lines = [
            orjson.loads(line)
            for line in whole_lines(self.log_file).splitlines()
            if line.startswith(b"{")
        ]
        return [line for line in lines if line.get("namespace") == namespace]

    def ask(self, path: str) -> tuple[int, str]:
        """GET a path; give the status and the text."""
        connection = self.connect()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self._tls, timeout=30)

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise ProgramDied(f"{self._command} ended; its last words:\n{self.log()[-4000:]}")
        connection = self.connect()
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the API server, and what it was answered."""

    target: str  # path and query
    review: Json
    answer: Json
    seconds: float  # that ours took

    @property
    def request(self) -> Json:
        return cast("Json", self.review["request"])

    @property
    def response(self) -> Json:
        return cast("Json", self.answer["response"])

    @property
    def pod(self) -> Json:
        return cast("Json", self.request["object"])

    @property
    def warnings(self) -> list[str]:
        return cast("list[str]", self.response.get("warnings", []))

    @property
    def is_about(self) -> tuple[str, str]:
        """The namespace, and the name or what it will begin with."""
        metadata = self.pod["metadata"]
        name = metadata.get("name") or metadata.get("generateName", "")
        return self.request["namespace"], name


class Endpoint:
    """A TLS server on loopback that answers each AdmissionReview with what a function says."""

    def __init__(
        self, authority: Authority, respond: Callable[[str, bytes], tuple[int, bytes]], name: str
    ) -> None:
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = respond(self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def setup(self) -> None:
                # Here and not in accept(), which would let one slow handshake stop all others.
                self.request = endpoint.tls.wrap_socket(self.request, server_side=True)
                endpoint.open.add(self.request)
                super().setup()

            def finish(self) -> None:
                super().finish()
                endpoint.open.discard(self.request)
                self.request.close()

            def log_message(self, *_: object) -> None:
                pass

        pair = authority.server(name)
        self.tls = _server_context(pair)
        self.bundle = authority.bundle
        self.open: set[ssl.SSLSocket] = set()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False  # server_close() waits for them
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        for each in list(self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # an idle connection of the API server
        self._server.server_close()


class Recorder:
    """Stands between the API server and ours; passes each call on unchanged and remembers it."""

    def __init__(self, server: WebhookServer) -> None:
        self._server = server
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[http.client.HTTPSConnection] = []
        self._calls: list[Call] = []
        self.endpoint = Endpoint(server.authority, self._pass_on, "recorder")

    def __enter__(self) -> Self:
        self.endpoint.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.endpoint.__exit__()
        for connection in self._connections:
            connection.close()

    def calls(self, namespace: str = "", name: str = "", path: str = "") -> list[Call]:
        """Give the calls about objects of a namespace, or only those whose name begins so.

        Without a path, those that may change an object.
        """
        return [
            call
            for call in self.all_calls(namespace)
            if call.is_about[1].startswith(name) and _is_on(call, path)
        ]

    def all_calls(self, namespace: str = "") -> list[Call]:
        """Give the calls on any path."""
        with self._lock:
            calls = list(self._calls)
        return [call for call in calls if namespace in ("", call.is_about[0])]

    @contextmanager
    def passing_to(self, server: WebhookServer) -> Iterator[None]:
        """Another server answers inside the block."""
        before, self._server = self._server, server
        self._local = threading.local()  # each thread opens a connection to it
        try:
            yield
        finally:
            self._server = before
            self._local = threading.local()

    def slowest(self) -> float:
        return max((call.seconds for call in self.all_calls()), default=0.0)

    def _pass_on(self, target: str, body: bytes) -> tuple[int, bytes]:
        started = time.monotonic()
        try:
            status, answer = self._ask(target, body)
        except (OSError, http.client.HTTPException):
            # A connection that the server had closed; Go's client sees that before it uses one.
            self._local.connection = None
            status, answer = self._ask(target, body)
        seconds = time.monotonic() - started
        with self._lock:
            self._calls.append(Call(target, orjson.loads(body), _parsed(answer), seconds))
        return status, answer

    def _ask(self, target: str, body: bytes) -> tuple[int, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._server.connect()
            self._connections.append(connection)
        headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
        connection.request("POST", target, body, headers)
        response = connection.getresponse()
        return response.status, response.read()


def _is_on(call: Call, path: str) -> bool:
    target = call.target.partition("?")[0]
    return target == path if path else target not in {"/validate", "/guard/refuse"}


def _parsed(answer: bytes) -> Any:
    try:
        return orjson.loads(answer)
    except orjson.JSONDecodeError:
        return {"response": {}, "text": answer.decode(errors="replace")}


def _server_context(pair: KeyPair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@cache
def kustomized(cluster: ControlPlane, folder: Path) -> tuple[Json, ...]:
    """Give the objects that `kubectl apply -k` would send, for any number of tests."""
    return tuple(yaml.safe_load_all(cluster.kubectl("kustomize", str(folder))))


def shipped(cluster: ControlPlane, kinds: Collection[str] = KINDS) -> list[Json]:
    """Give the webhook configurations that users install."""
    return [copy.deepcopy(each) for each in kustomized(cluster, BASE) if each["kind"] in kinds]


def pointed_at(configuration: Json, port: int, bundle: Path) -> Json:
    """Give the configuration with a URL for the Service, and nothing else changed.

    There is no kube-proxy here that would make a Service reachable.
    """
    pointed: Json = copy.deepcopy(configuration)
    authority = base64.b64encode(bundle.read_bytes()).decode()
    for webhook in pointed["webhooks"]:
        service = webhook["clientConfig"]["service"]
        url = f"https://127.0.0.1:{port}{service['path']}"
        webhook["clientConfig"] = {"url": url, "caBundle": authority}
    return pointed


_PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "probe",
                "resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": "1"}},
            }
        ]
    },
}


@contextmanager
def registered(
    cluster: ControlPlane, port: int, bundle: Path, kinds: Collection[str] = KINDS
) -> Iterator[None]:
    """Register the shipped configuration; it is in force inside the block and gone after it."""
    with configured(cluster, port, bundle, shipped(cluster, kinds)):
        until(lambda: _repairs(cluster.client), "the webhook to be called")
        yield
    until(lambda: not _repairs(cluster.client), "the webhook to be forgotten")


@contextmanager
def registered_but_down(cluster: ControlPlane, port: int, bundle: Path) -> Iterator[None]:
    """Register the shipped configuration for a port that does not answer."""
    before = failed_open(cluster)

    def is_tried() -> bool:
        _repairs(cluster.client)
        return failed_open(cluster) > before

    with configured(cluster, port, bundle, shipped(cluster, KINDS)):
        until(is_tried, "the API server to call in vain", 30)
        yield


def failed_open(cluster: ControlPlane) -> int:
    """Give how often the API server let a request pass because a webhook did not answer.

    Its log says so at once, and is read in no time: the metrics are 4 MB of text.
    """
    return len(cluster.failed_calls())


def failed_conditions(client: Client) -> int:
    """Give how often the API server could not work out a matchCondition."""
    name = "apiserver_admission_match_condition_evaluation_errors_total"
    metrics: str = client.demand("GET", "/metrics").body
    lines = [line for line in metrics.splitlines() if line.startswith(f"{name}{{")]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines)


@contextmanager
def configured(
    cluster: ControlPlane, port: int, bundle: Path, shapes: Iterable[dict[str, Any]]
) -> Iterator[None]:
    """Have these configurations for this port inside the block, in force or not yet."""
    configurations = [pointed_at(each, port, bundle) for each in shapes]
    for configuration in configurations:
        cluster.client.create(configuration)
    try:
        yield
    finally:
        for configuration in configurations:
            cluster.client.delete(configuration["kind"], configuration["metadata"]["name"])


@contextmanager
def guarded(
    cluster: ControlPlane, folder: Path, settings: str, *arguments: str
) -> Iterator[WebhookServer]:
    """A server of its own with all shipped entries, those of both halves of the guard too."""
    (folder / "settings.yaml").write_text(settings)
    files = [ROOT / "manifests" / each / "webhook.yaml" for each in ("guard", "guard-refuse")]
    guards = [each for file in files for each in yaml.safe_load_all(file.read_text())]
    config, bundle = f"--config={folder / 'settings.yaml'}", cluster.authority.bundle
    with (
        WebhookServer(folder, cluster.authority, [config, *arguments]) as server,
        registered(cluster, server.port, bundle),
        configured(cluster, server.port, bundle, guards),
    ):
        yield server


def _repairs(client: Client) -> bool:
    """Ask the API server, which reads its configurations with some delay."""
    pod = client.create(_PROBE, "default", dry_run=True).body
    return "nvidia.com/gpu" in pod["spec"]["containers"][0]["resources"]["limits"]
