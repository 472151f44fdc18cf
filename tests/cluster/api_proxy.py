"""A proxy before the API server that answers as a bad day would: late, wrongly, half or not at all.

TLS ends here, so it can look at requests and break answers; what it passes on, it passes on as an
administrator. `freeze()` keeps all connections open and moves no byte any more: no FIN, no RST.
"""

from __future__ import annotations

import http.client
import http.server
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cluster.certificates import KeyPair
    from tests.cluster.controlplane import ControlPlane

_TIMEOUT = 90.0
_GONE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}'
)


@dataclass(frozen=True, slots=True)
class Request:
    """What the client asked."""

    path: str
    query: dict[str, str]
    when: float = field(default_factory=time.monotonic)

    @property
    def plural(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"


Rule = "Callable[[Request], str]"


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # five connections at once overflow the usual queue of five


class ApiProxy:
    """Listens on loopback; `rule` says for each request what becomes of it ('' passes it on).

    `429`, `503`, `500`: that status, with Retry-After: 1. `html`: a login page. `truncated`: half
    of a JSON text. `drip`: one byte a second. `gone`: 410. `gone-event`: a watch that says 410.
    """

    def __init__(self, cluster: ControlPlane) -> None:
        self._upstream = cluster.port
        self._client_tls = ssl.create_default_context(cafile=str(cluster.authority.bundle))
        admin = cluster.authority.client("admin", "system:masters")
        self._client_tls.load_cert_chain(admin.certificate, admin.key)
        self.rule: Callable[[Request], str] = lambda _: ""
        self.requests: list[Request] = []
        self._thawed = threading.Event()
        self._thawed.set()
        self._open: set[ssl.SSLSocket] = set()
        self._server = self._listen(_server_tls(cluster.authority.server("api-proxy")))
        self.port: int = self._server.server_address[1]

    def _listen(self, tls: ssl.SSLContext) -> http.server.ThreadingHTTPServer:
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                proxy._thawed.wait()
                self.request = tls.wrap_socket(self.request, server_side=True)
                proxy._open.add(self.request)
                super().setup()

            def finish(self) -> None:
                with suppress(OSError):
                    super().finish()
                proxy._open.discard(self.request)
                self.request.close()

            def do_GET(self) -> None:
                with suppress(OSError, http.client.HTTPException):
                    proxy._answer(self)
                    return
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        server = _Server(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        return server

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thawed.set()
        self._server.shutdown()
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._server.server_close()

    def freeze(self) -> None:
        """From now on no byte moves, on connections old and new."""
        self._thawed.clear()

    def thaw(self) -> None:
        """Let new connections through; those that were frozen stay dead, as after a blackhole."""
        for each in list(self._open):
            self._open.discard(each)
            each.detach()  # not closed: nothing is sent to the client
        self._thawed.set()

    def cut(self) -> None:
        """End all connections, as an API server that is restarted does."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def lists(self, plural: str) -> list[float]:
        """When each list (not each page) of this kind began."""
        return [
            each.when
            for each in self.requests
            if each.plural == plural and not each.is_watch and "continue" not in each.query
        ]

    def _answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        request = Request(parts.path, query)
        self.requests.append(request)
        match self.rule(request):
            case "":
                self._pass_on(handler)
            case "html":
                _send(handler, 200, b"<html><body>Please log in</body></html>", "text/html")
            case "truncated":
                _send(handler, 200, b'{"kind":"List","items":[{"metadata":{"name":"ha')
            case "drip":
                self._drip(handler)
            case "gone":
                _send(handler, 410, _GONE)
            case "gone-event":
                _send(handler, 200, b'{"type":"ERROR","object":' + _GONE + b"}\n")
            case status:
                _send(handler, int(status), b"not now", "text/plain", {"Retry-After": "1"})

    def _drip(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        for _ in range(600):
            handler.wfile.write(b" ")
            time.sleep(0.2)

    def _pass_on(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        upstream = http.client.HTTPSConnection(
            "127.0.0.1", self._upstream, context=self._client_tls, timeout=_TIMEOUT
        )
        try:
            upstream.request("GET", handler.path, headers={"Accept": "application/json"})
            answer = upstream.getresponse()
        except OSError:
            handler.close_connection = True
            upstream.close()
            return
        handler.send_response(answer.status)
        handler.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            while data := answer.read1(1 << 16):
                if not self._thawed.is_set():  # frozen: whatever comes now is lost
                    self._thawed.wait()
                    handler.close_connection = True
                    return
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            handler.close_connection = True  # the API server died: the client sees it end too
        finally:
            upstream.close()


def _send(
    handler: http.server.BaseHTTPRequestHandler,
    status: int,
    body: bytes,
    media_type: str = "application/json",
    headers: dict[str, str] | None = None,
) -> None:
    handler.send_response(status)
    for name, value in {"Content-Type": media_type, **(headers or {})}.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _server_tls(pair: KeyPair) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate: Path = pair.certificate
    tls.load_cert_chain(certificate, pair.key)
    return tls
