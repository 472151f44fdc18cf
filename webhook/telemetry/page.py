"""The metrics page, in its own process, so that a scrape never delays a worker.

The server's parent starts it, starts it again after it has died, and ends it. If the parent dies,
the page ends by itself as soon as no worker is left.
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
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from webhook import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import Metric

    from webhook.telemetry.logs import Log
    from webhook.telemetry.shared_folder import SharedFolder

CONNECTION_SECONDS = 10.0  # for a whole scrape
MOST_CONNECTIONS = 8
AGAIN_SECONDS = 1  # until another process is started after one died; twice as long each time
LONGEST_AGAIN_SECONDS = 60  # a process that lived so long resets the wait
_LOOK_SECONDS = 0.5
_MEANT_FOR_THE_SERVER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Page:
    """Answers `GET /metrics` and `GET /healthz` on a listening socket."""

    def __init__(
        self, listener: socket.socket, scratch: SharedFolder, log: Log, *more: Collector
    ) -> None:
        """`more` collectors are called, in the page's process, at each scrape."""
        self._listener = listener
        self._scratch = scratch
        self._log = log
        self._more = more
        # Nothing is written into it: the page reads its end when the parent and all workers have
        # ended.
        self._alive, self._end = os.pipe()
        self._parent = os.getpid()
        self._process = 0  # 0: no process
        self._began = 0.0
        self._next = 0.0  # when another process may be started
        self._again = AGAIN_SECONDS

    def keep(self) -> None:
        """Start the page if it does not run. Called in the parent, as for `keep` of Server."""
        if self._process:
            self._look()
        if not self._process and time.monotonic() >= self._next:
            self._start()

    def stop(self) -> None:
        """End the page and remove its files. The workers must have ended.

        Workers that end normally call this, too: then nothing is done.
        """
        if os.getpid() != self._parent:
            return
        if self._process:
            self._look()
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        self._scratch.remove()

    def _look(self) -> None:
        """Note that the process has ended, if it has."""
        try:
            ended, status = os.waitpid(self._process, os.WNOHANG)
        except ChildProcessError:  # gunicorn, which waits for any child, was first
            ended, status = self._process, None
        if ended:
            self._process = 0
            self._rest("unknown" if status is None else _how(status))

    def _rest(self, reason: str) -> None:
        now = time.monotonic()
        if now - self._began >= LONGEST_AGAIN_SECONDS:
            self._again = AGAIN_SECONDS
        text = "the metrics page ended; it is started again, and no count is lost"
        self._log.write("error", text, ended_by=reason, again_in=self._again)
        self._next = now + self._again
        self._again = min(2 * self._again, LONGEST_AGAIN_SECONDS)

    def _start(self) -> None:
        self._began = time.monotonic()
        try:
            self._process = os.fork()
        except OSError as error:  # the container allows no more processes
            self._rest(str(error))
            return
        if self._process == 0:
            try:
                self._serve()
            except BaseException as error:  # noqa: BLE001  # the parent starts another one
                self._log.write("error", "the metrics page failed", error=repr(error))
                self._log.close()
            finally:
                os._exit(1)

    def _serve(self) -> None:
        """The main function of the page's process."""
        for each in _MEANT_FOR_THE_SERVER:
            signal.signal(each, signal.SIG_IGN)
        self._close_the_rest()
        registry = CollectorRegistry()
        _Counts(registry, str(self._scratch.path))  # type: ignore[no-untyped-call]
        for collector in (Build(), *self._more):
            registry.register(collector)
        _Server(self._listener, registry, self._end_if_alone, self._log).serve_forever(
            _LOOK_SECONDS
        )

    def _close_the_rest(self) -> None:
        """Close inherited files, so that the port of the server is free when the server ends."""
        needed = {0, 1, 2, self._listener.fileno(), self._scratch.lock, self._alive}
        for descriptor in {int(each.name) for each in Path("/dev/fd").iterdir()} - needed:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself
                os.close(descriptor)

    def _end_if_alone(self) -> None:
        """End the page when no process counts any more: the server has ended."""
        over, _, _ = select.select([self._alive], [], [], 0)
        if over:
            self._scratch.remove()
            os._exit(0)


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class Build(Collector):
    """The version of this program. A server whose page answers has it, so it counts replicas."""

    def collect(self) -> Iterable[Metric]:
        """One metric, always 1."""
        text = "The version of this server; always 1."
        family = GaugeMetricFamily("gpu_webhook_build_info", text, labels=["version"])
        family.add_metric([__version__], 1.0)
        yield family


class _Counts(MultiProcessCollector):
    """The counts of all workers, but for one that has only just made its file."""

    def collect(self) -> Iterable[Metric]:
        files = [str(each) for each in Path(self._path).glob("*.db") if _is_written(each)]
        counts: Iterable[Metric] = self.merge(files, accumulate=True)  # type: ignore[no-untyped-call]
        return counts


def _is_written(file: Path) -> bool:
    """Whether it has a size, which the library expects; it may also have been removed meanwhile."""
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False


class _Server(ThreadingHTTPServer):
    """Serves a few connections at a time, each with a time limit."""

    daemon_threads = True

    def __init__(
        self,
        listener: socket.socket,
        registry: CollectorRegistry,
        end_if_alone: Callable[[], None],
        log: Log,
    ) -> None:
        handler = type("_Handler", (_Handler,), {"registry": registry})
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._end_if_alone = end_if_alone
        self._log = log
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
        """Called twice a second."""
        self._end_if_alone()
        late = time.monotonic() - CONNECTION_SECONDS
        for request, began in list(self._began.items()):
            if began < late:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log that a scrape failed, unless the client has disconnected."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self._log.write("error", "a scrape failed", error=repr(error))


class _Handler(MetricsHandler):
    """One request."""

    timeout = CONNECTION_SECONDS
    server_version, sys_version = "gpu-webhook", ""

    def do_GET(self) -> None:  # noqa: N802  # the base class's name
        """Answer with the metrics, or with the health of the page."""
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
