"""An API server that fits a test: it lists by pages, watches, and says what it is told to say."""

from __future__ import annotations

import http.server
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

import orjson

if TYPE_CHECKING:
    from pathlib import Path

    Raw = dict[str, Any]

EMPTY = (
    "nodes",
    "pods",
    "namespaces",
    "runtimeclasses",
    "deviceclasses",
    "nodepools",
    "configmaps",
)
DEVICE_CLASSES = "/apis/resource.k8s.io/{}/deviceclasses"


class ApiServer:
    """Plain HTTP on loopback. `answers` by path replaces what it would say: status and body."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Raw]] = {plural: {} for plural in EMPTY}
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.watched: dict[str, tuple[int, bytes, dict[str, str]]] = {}  # the same for watches
        self.asked: list[tuple[float, str, dict[str, str]]] = []  # when, path, query
        self.posted: list[tuple[str, Raw]] = []  # path and body of what was to be made
        self.made: set[tuple[str, str]] = set()  # path and name of what was
        self.refusals: dict[str, tuple[int, bytes, dict[str, str]]] = {}  # of POSTs, by path
        self.headers: list[dict[str, str]] = []
        self._log: list[tuple[int, str, bytes]] = []  # version, plural, event
        self._version = 1
        self._changed = threading.Condition()
        self._closed = False
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        # It looks that often whether it is to end.
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, folder: Path, **user: str) -> Path:
        path = folder / "kubeconfig"
        path.write_bytes(
            orjson.dumps(
                {
                    "clusters": [
                        {"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
                    ],
                    "users": [{"name": "me", "user": user}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me"}}],
                    "current-context": "test",
                }
            )
        )
        return path

    def put(self, plural: str, name: str, raw: Raw) -> None:
        """Make an object, or change it."""
        what = "MODIFIED" if name in self.objects[plural] else "ADDED"
        metadata = {"name": name, **raw.get("metadata", {})}
        self.objects[plural][name] = {**raw, "metadata": metadata}
        self.tell(plural, what, self.objects[plural][name])

    def delete(self, plural: str, name: str) -> None:
        self.tell(plural, "DELETED", self.objects[plural].pop(name))

    def tell(self, plural: str, what: str, obj: Raw) -> None:
        """Send an event to whoever watches."""
        with self._changed:
            self._version += 1
            metadata = {**obj.get("metadata", {}), "resourceVersion": str(self._version)}
            event = orjson.dumps({"type": what, "object": {**obj, "metadata": metadata}}) + b"\n"
            self._log.append((self._version, plural, event))
            self._changed.notify_all()

    def say(self, path: str, status: int, body: bytes = b"{}", **headers: str) -> None:
        """Answer lists of this path so."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = (status, body, {"Content-Type": "application/json", **named})

    def say_to_watches(self, path: str, body: bytes) -> None:
        """Answer watches of this path so."""
        self.watched[path] = (200, body, {"Content-Type": "application/json"})

    def lists(self, plural: str) -> list[float]:
        """When lists of this kind were asked for."""
        return [
            when
            for when, path, query in self.asked
            if path.endswith(f"/{plural}") and "watch" not in query and "continue" not in query
        ]

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else the body waits 40 ms for the client's ACK

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                api.asked.append((time.monotonic(), parts.path, query))
                api.headers.append({key.lower(): text for key, text in self.headers.items()})
                with suppress(OSError):
                    api._answer(self, parts.path, query)

            def do_POST(self) -> None:
                body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                parts = urlsplit(self.path)
                path, is_dry = parts.path, "dryRun" in parts.query
                metadata = body["metadata"]
                made = (path, metadata.get("name") or f"{metadata['generateName']}x7k2p")
                answer = api.refusals.get(path)
                if answer is None and made in api.made:
                    answer = (409, b'{"message": "already exists"}', {})
                api.posted.append((path, body))
                if answer is None:
                    api.made |= {made} if not is_dry else set()
                    answer = (201, orjson.dumps(body), {})
                status, text, headers = answer
                with suppress(OSError):
                    _send(self, status, text, {"Content-Type": "application/json", **headers})

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _answer(
        self, handler: http.server.BaseHTTPRequestHandler, path: str, query: dict[str, str]
    ) -> None:
        plural = path.rpartition("/")[2]
        answers = self.watched if "watch" in query else self.answers
        if path in answers:
            _send(handler, *answers[path])
        elif "watch" in query:
            self._watch(handler, plural, query)
        else:
            items = [
                {**each, "metadata": {**each["metadata"], "resourceVersion": "1"}}
                for each in self.objects[plural].values()
            ]
            start, limit = int(query.get("continue", "0")), int(query["limit"])
            metadata = {"resourceVersion": str(self._version)}
            if start + limit < len(items):
                metadata["continue"] = str(start + limit)
            body = orjson.dumps({"metadata": metadata, "items": items[start : start + limit]})
            _send(handler, 200, body, {"Content-Type": "application/json"})

    def _watch(
        self, handler: http.server.BaseHTTPRequestHandler, plural: str, query: dict[str, str]
    ) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        seen, end = int(query["resourceVersion"]), time.monotonic() + float(query["timeoutSeconds"])
        while (left := end - time.monotonic()) > 0 and not self._closed:
            with self._changed:
                new = [each for each in self._log if each[0] > seen]
                if not new:
                    self._changed.wait(left)
                    continue
            seen = new[-1][0]
            for _, kind, event in new:
                if kind == plural:
                    handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        handler.wfile.write(b"0\r\n\r\n")


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # five connections at once overflow the usual queue of five

    def handle_error(self, *_: object) -> None:
        """A client that drops an answer is no fault of ours."""


def _send(
    handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
