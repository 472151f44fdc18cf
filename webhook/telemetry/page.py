"""The metrics page, in a process of its own: a scrape never holds up a worker.

Two processes are forked off before the workers: one that answers, and its keeper, which starts
another one if it dies and ends it when the server and all its workers are gone, however they went.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.multiprocess import MultiProcessCollector

from webhook.telemetry.logs import line

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from webhook.telemetry.scratch import Scratch

CONNECTION_SECONDS = 10.0  # for a whole scrape
MOST_CONNECTIONS = 8
AGAIN_SECONDS = 1.0  # until another process is started for one that died
END_SECONDS = 3.0  # for both processes, once they are told to end
_LOOK_SECONDS = 0.5


class Page:
    """Answers `GET /metrics` and `GET /healthz` on a listening socket."""

    def __init__(self, listener: socket.socket, scratch: Scratch, *more: Collector) -> None:
        """`more` collectors are asked, in the page's process, at each scrape."""
        self._listener = listener
        self._scratch = scratch
        self._more = more
        self._alive, self._end = os.pipe()  # ends when nobody is left who could write into it
        self._keeper = 0

    def start(self) -> None:
        """Fork the two processes off. No other thread may be at work."""
        self._keeper = os.fork()
        if self._keeper:
            self._listener.close()
            os.close(self._alive)
            return
        try:
            self._keep()
        except BaseException as error:  # noqa: BLE001  # nothing may go on as if it were the server
            _say("error", "the metrics page is not kept up any more", error=repr(error))
        finally:
            os._exit(0)

    def stop(self) -> None:
        """End the page and leave nothing of it. The workers must have ended."""
        os.close(self._end)
        deadline = time.monotonic() + END_SECONDS
        with contextlib.suppress(ChildProcessError):  # gunicorn waits for all children there are
            while os.waitpid(self._keeper, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.01)
        self._scratch.remove()

    def _keep(self) -> None:
        """The keeper's life."""
        for meant_for_the_server in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(meant_for_the_server, signal.SIG_IGN)
        self._close_the_rest()
        while True:
            process = self._start_server()
            status = self._wait(process)
            if status is None:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                self._scratch.remove()
                return
            code = os.waitstatus_to_exitcode(status)
            _say("error", "the metrics page ended; it is started again", status=code)
            time.sleep(AGAIN_SECONDS)

    def _close_the_rest(self) -> None:
        """Files of the server are not ours: its port must be free when it ends."""
        ours = {0, 1, 2, self._listener.fileno(), self._scratch.lock, self._alive}
        for descriptor in {int(each.name) for each in Path("/dev/fd").iterdir()} - ours:
            with contextlib.suppress(OSError):  # the listing's own
                os.close(descriptor)

    def _start_server(self) -> int:
        keeper = os.getpid()
        process = os.fork()
        if process:
            return process
        try:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, str(self._scratch.path))  # type: ignore[no-untyped-call]
            for collector in self._more:
                registry.register(collector)
            _Server(self._listener, registry, keeper).serve_forever(_LOOK_SECONDS)
        except BaseException as error:  # noqa: BLE001  # the keeper starts another one
            _say("error", "the metrics page failed", error=repr(error))
        finally:
            os._exit(1)

    def _wait(self, process: int) -> int | None:
        """The status with which the process ended; None if it is time to go."""
        while True:
            over, _, _ = select.select([self._alive], [], [], _LOOK_SECONDS)
            if over:
                return None
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                return status


class _Server(ThreadingHTTPServer):
    """A few connections at a time, none of them for ever."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, registry: CollectorRegistry, keeper: int) -> None:
        handler = type("_Handler", (_Handler,), {"registry": registry})
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._keeper = keeper
        self._began: dict[Any, float] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take the connection if there is room."""
        self._began[request] = time.monotonic()
        if len(self._began) > MOST_CONNECTIONS:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection."""
        self._began.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Look around, twice a second."""
        if os.getppid() != self._keeper:
            os._exit(1)
        late = time.monotonic() - CONNECTION_SECONDS
        for request, began in list(self._began.items()):
            if began < late:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say in a line that a scrape failed, unless it was the client who left."""
        error = sys.exception()
        if not isinstance(error, OSError):
            _say("error", "a scrape failed", error=repr(error))


class _Handler(MetricsHandler):
    """One request."""

    timeout = CONNECTION_SECONDS
    server_version, sys_version = "gpu-webhook", ""

    def do_GET(self) -> None:  # noqa: N802  # the base class's name
        """Answer with the metrics, or that all is well."""
        match self.path.partition("?")[0]:
            case "/metrics":
                super().do_GET()
            case "/healthz":
                self._answer(200, b"ok\n")
            case _:
                self._answer(404, b"nothing is here: see /metrics\n")

    def _answer(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def _say(level: str, message: str, **fields: object) -> None:
    """Write a log line at once: the writer of the server's log is a thread, and stayed there."""
    with contextlib.suppress(OSError):
        os.write(1, line(time.time(), {"level": level, "message": message, **fields}))
