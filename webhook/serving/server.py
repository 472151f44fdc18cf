"""gunicorn, as this endpoint needs it: the `asgi` worker, with the time limits that it lacks.

gunicorn 27.0.1 bounds neither the TLS handshake, nor the first request of a connection, nor a
request head that drips in; and at its end it waits for idle connections until its patience is
over. None of that stops other clients, but each such socket is a file descriptor that is gone.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import uvloop
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.asgi.parser import UnsupportedTransferCoding
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.glogging import Logger
from gunicorn.workers.gasgi import ASGIWorker

from webhook.admission.review import NEVER_LIGHT
from webhook.serving.asgi import BEGAN, DIRECT, REQUEST, STRANGER
from webhook.serving.heap import HEAP
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from webhook.serving.asgi import AdmissionApp

KEEP_ALIVE_SECONDS = (
    100  # the API server's client drops idle connections after 90 s, so it is first
)
FIRST_SECONDS = 10  # from the handshake to the first byte of the first request
HANDSHAKE_SECONDS = 10  # the API server's own limit
HEAD_SECONDS = 10  # from the first byte of a request to the end of its headers
WRITE_SECONDS = 10  # for a client to read on, once its answers have filled the buffers
CLOSE_SECONDS = 2  # for the other side's goodbye
DRAIN_SECONDS = 15  # for requests that are under way when the server is told to stop
HUNG_SECONDS = 30  # without a sign from a worker's event loop
IDLE_SECONDS = 1.0  # so long a connection is unused before it is closed while draining
LISTEN_ON_SECONDS = 1.0  # after the signal: the cluster learns of it a little later
AT_ONCE = NEVER_LIGHT  # bytes of a body; larger ones take their turn
MOST_CONNECTIONS = 1000  # in each worker, of 40 to 200 KiB; an API server keeps 25 that are idle
MANY_CONNECTIONS = 100  # from here on a worker is crowded
TRIM_SECONDS = 10  # after connections were closed; at once if they were many
SWITCH_SECONDS = 0.0005  # so long the event loop waits for the thread of the heavy reviews
NOT_IMPLEMENTED = 501
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Protocol(ASGIProtocol):  # type: ignore[misc]
    """One connection."""

    transport: Any  # the base class has no types
    _task: Any
    _callback_parser: Any
    _request_ready: Any
    _current_request: Any
    _body_receiver: Any

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count the time until the first request as idle time too, and give it less of it."""
        self.idle_since = time.monotonic()
        self._head_began = 0.0  # when the head of the last request began to come in
        self._began = 0.0  # when it was read
        self._is_held_back = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        certificate = transport.get_extra_info("peercert")  # nothing, or one that was verified
        self._why_not = self.worker.app.server.why_not(certificate)  # it may ask
        self.is_proven = bool(certificate) and not self._why_not
        self._keepalive_handle = self.worker.loop.call_later(FIRST_SECONDS, self._keepalive_timeout)
        self.worker.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.worker.forget(self)
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)
        self._task.add_done_callback(self._let_go)

    def _let_go(self, _: object) -> None:
        """Leave no cycle behind: parser, receiver and flow control all point back here."""
        self._task = self._callback_parser = self._current_request = self._body_receiver = None
        self.transport = self.writer = self._flow_control = None

    def data_received(self, data: bytes) -> None:
        """Parse, and answer if that was a whole review; an unfinished head is on its time now."""
        super().data_received(data)
        if self._is_held_back:
            self._is_held_back = False
            if not self._closed and self._answer_at_once():
                return
            self._request_ready.set()
        self._time_the_head()

    def _time_the_head(self) -> None:
        """Start the time of a head that has begun to come in."""
        if self._current_request is None and self._head_timer is None and not self._closed:
            self._head_began = time.monotonic()
            self._head_timer = self.worker.loop.call_later(HEAD_SECONDS, self._keepalive_timeout)

    def pause_writing(self) -> None:
        """Give the client some time to read, then no more."""
        super().pause_writing()
        self._write_timer = self.worker.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        self._stop_write_timer()
        super().resume_writing()

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request that has not begun."""
        return bool(self._awaiting_request) and self._head_timer is None

    @property
    def waits_for_client(self) -> bool:
        """Whether it has nothing to do: no request has begun, or the rest of one is missing."""
        if self.transport.is_closing():
            return False
        return self._current_request is None or self._is_half_a_request

    @property
    def _is_half_a_request(self) -> bool:
        if self._current_request is None:
            return self._head_timer is not None
        body = self._body_receiver
        return body is not None and not body._complete  # noqa: SLF001

    @property
    def worth(self) -> tuple[bool, bool, float]:
        """The least goes first.

        An API server sends whole requests at once, and keeps its connections for the next. So half
        a request and a connection without one so far go before what is idle; of each the oldest;
        and whoever has shown a certificate that may ask goes last.
        """
        if self._is_half_a_request:
            began = self._head_began if self._head_timer is not None else self._began
            return self.is_proven, False, began
        return self.is_proven, self._began > 0, self.idle_since

    def close_if_idle(self) -> None:
        """Close the connection unless it is, or was a moment ago, at work."""
        if self.is_idle and time.monotonic() - self.idle_since >= IDLE_SECONDS:
            self.close()

    def close(self) -> None:
        """Close it now."""
        self._keepalive_timeout()

    def _on_headers_complete(self) -> bool:
        self._stop_head_timer()
        self._began = time.monotonic()
        if not self._awaiting_request or self._request_ready.is_set():
            done = bool(super()._on_headers_complete())
        else:
            ready, self._request_ready = self._request_ready, None
            try:  # without waking the connection's task, which may not be needed
                done = bool(super()._on_headers_complete())
            finally:
                self._request_ready = ready
                self._is_held_back = True
        if self._current_request.chunked:
            self._refuse_codings()
        return done

    def _refuse_codings(self) -> None:
        """Refuse what is coded and then sent in chunks: gunicorn would pass it on as it is."""
        for name, value in self._current_request.headers_bytes:
            if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                raise UnsupportedTransferCoding(value.decode("latin-1")[:60])

    def _answer_at_once(self) -> bool:
        """Answer a review that came in one piece; False if the connection's task must do it.

        That is what an API server's calls look like. Two tasks and a dozen closures a request are
        half of what gunicorn costs, and here nothing would ever wait.
        """
        request, receiver = self._current_request, self._body_receiver
        if (
            not receiver._complete  # noqa: SLF001
            or receiver.buffered > AT_ONCE
            or request.should_close()
            or self.worker.leaving
            or self._why_not
            or self._write_timer is not None
        ):
            return False
        body = b"".join(receiver._chunks)  # noqa: SLF001
        reply = self.worker.asgi.answer_at_once(request, body, self._began)
        if reply is None:
            return False
        self._send_response_start(reply.status, reply.headers, request)
        self._send_body(reply.body)
        self._next_request()
        return True

    def _next_request(self) -> None:
        """Make room for the next request; if it is there already, it is the task's."""
        waiting = self._callback_parser.remaining()
        self._callback_parser.reset()
        self._current_request = self._body_receiver = None
        self._arm_keepalive_timer()
        if waiting:
            self._feed_callback_parser(waiting)
            if self._is_held_back:
                self._is_held_back = False
                self._request_ready.set()
            self._time_the_head()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _arm_keepalive_timer(self) -> None:
        self.idle_since = time.monotonic()
        super()._arm_keepalive_timer()

    def _build_http_scope(self, request: Any, sockname: Any, peername: Any) -> dict[str, Any]:
        scope: dict[str, Any] = super()._build_http_scope(request, sockname, peername)
        scope[REQUEST] = request
        scope[BEGAN] = self._began
        if self._why_not and scope["path"] in DIRECT:
            scope[STRANGER] = True
            self.worker.app.server.refused(self._why_not)
        return scope

    def _will_close(self, request: Any, response_requires_close: bool) -> bool:  # noqa: FBT001
        # Announced from the signal on, and only what was announced is closed: a client that was
        # told otherwise has perhaps sent its next call already.
        return self.worker.leaving or bool(super()._will_close(request, response_requires_close))

    def _send_error_response(self, status: int, message: str, extra_headers: Any = ()) -> None:
        # An unknown Transfer-Encoding is the client's fault. 5xx stays for what is ours, so that
        # an alarm on 5xx cannot be set off from outside.
        status = 400 if status == NOT_IMPLEMENTED else status
        super()._send_error_response(status, message, extra_headers)


class Loop(uvloop.Loop):
    """Makes servers with our protocol and our TLS time limits."""

    worker: Worker

    async def create_server(  # type: ignore[override]  # called by gunicorn only
        self, _: object, *args: Any, **options: Any
    ) -> asyncio.AbstractServer:
        """As the base class, but for the protocol and the limits."""
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = HANDSHAKE_SECONDS
            options["ssl_shutdown_timeout"] = CLOSE_SECONDS
        return await super().create_server(lambda: Protocol(self.worker), *args, **options)


class Worker(ASGIWorker):  # type: ignore[misc]
    """One process: keeps its connections in view, and the certificate fresh."""

    arbiter: Any  # the parent's object, as it was when this process was forked off

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connections: set[Protocol] = set()
        self.leaving = False
        self._is_short = False  # of file descriptors
        self._trimmed = 0.0  # when the heap was
        self._closed = 0  # connections, since the heap was trimmed

    def init_process(self) -> None:
        """Leave what is loaded by now out of garbage collection; requests leave no cycles."""
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()
        gc.freeze()
        super().init_process()

    def notify(self) -> None:
        """Once a second, from the worker's main loop."""
        super().notify()
        self.app.server.refresh()
        if len(self.connections) <= MANY_CONNECTIONS and self.asgi.bodies.are_few:
            HEAP.keep_large_blocks_apart(apart=False)
        now = time.monotonic()
        wait = TRIM_SECONDS if self._closed < MANY_CONNECTIONS else 0.0
        if self._closed and now - self._trimmed >= wait:
            self._closed, self._trimmed = 0, now
            HEAP.trim()
        self._watch_files()

    def _watch_files(self) -> None:
        """Say once that no connection can be taken any more: libuv closes such ones silently."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
            is_short = False
        except OSError:
            is_short = True
        if is_short and not self._is_short:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            self.log.warning(
                "out of file descriptors: all %s are in use, so new connections are closed; "
                "raise the limit (ulimit -n)",
                limit,
            )
        self._is_short = is_short

    def admit(self, connection: Protocol) -> None:
        """Take one connection more; beyond the cap one that waits goes, or else this one."""
        self.connections.add(connection)
        if len(self.connections) > MANY_CONNECTIONS:
            HEAP.keep_large_blocks_apart(apart=True)
        if len(self.connections) > MOST_CONNECTIONS:
            others = self.connections - {connection}  # it has had no time to send anything
            waiting = (each for each in others if each.waits_for_client)
            least = min(waiting, key=lambda each: each.worth, default=connection)
            (connection if least.is_proven > connection.is_proven else least).close()

    def forget(self, connection: Protocol) -> None:
        """Count a connection that was closed."""
        self.connections.discard(connection)
        self._closed += 1

    def _setup_event_loop(self) -> None:
        self.loop = Loop()
        self.loop.worker = self
        self.loop.set_exception_handler(self._report)
        asyncio.set_event_loop(self.loop)

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Failed handshakes and the like come from outside: a line at most, and no traceback."""
        error = context.get("exception")
        level = logging.DEBUG if isinstance(error, OSError | None) else logging.ERROR
        self.log.log(level, "%s: %s", context.get("message"), type(error).__name__)

    def init_signals(self) -> None:
        """As the base class; then obey what came before, while the parent's handlers were ours.

        What comes from here on waits until the loop runs: uvloop would lose it before that.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        super().init_signals()
        self.loop.call_soon(signal.pthread_sigmask, signal.SIG_UNBLOCK, _STOPS)
        while not self.arbiter.SIG_QUEUE.empty():
            match self.arbiter.SIG_QUEUE.get_nowait():
                case signal.SIGTERM:
                    self.handle_exit_signal()
                case signal.SIGINT | signal.SIGQUIT:
                    self.handle_quit_signal()

    def handle_exit_signal(self) -> None:
        """Say it to /readyz and to all clients at once, and go a little later."""
        self.leaving = self.app.server.draining = True
        self.loop.call_later(LISTEN_ON_SECONDS, super().handle_exit_signal)

    async def _shutdown(self) -> None:
        """Listen no more, answer what is under way, and close what is idle."""
        if not self._quick_shutdown:
            closing = self.loop.create_task(self._close_idle())
            for server in self.servers:
                server.close()
            await asyncio.sleep(IDLE_SECONDS / 2)  # handshakes under way become connections
            await super()._shutdown()
            closing.cancel()
        self.app.server.refresh()  # what was counted since the last second is handed over

    async def _close_idle(self) -> None:
        while True:
            for connection in tuple(self.connections):
                connection.close_if_idle()
            await asyncio.sleep(IDLE_SECONDS / 10)


class Parent(Arbiter):  # type: ignore[misc]
    """Forks the workers off, and looks after what else runs beside them."""

    def manage_workers(self) -> None:
        """As the base class: once a second."""
        self.app.keep()
        super().manage_workers()

    def reap_workers(self) -> None:
        """As the base class, which waits for any child; so those that are not its own go first."""
        self.app.keep()
        super().reap_workers()


def _introduce(arbiter: Any, worker: Worker) -> None:
    worker.arbiter = arbiter


def keep_signals_over_fork() -> None:
    """Hold a stop back while a process is forked off, until the new one can hear it.

    CPython's PyOS_AfterFork_Child forgets what came before it. A worker that is told to stop as
    soon as it is forked off, as on a busy machine, would work on until it is killed.
    """
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, _STOPS),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _STOPS),
        after_in_child=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _STOPS),
    )


class Lines(logging.Handler):
    """gunicorn's own messages as JSON lines; a reader that stops to read stops no process."""

    def __init__(self) -> None:
        super().__init__()
        self._log = Log(sys.stderr.fileno())
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        """One line, whatever the message holds."""
        more: dict[str, object] = {"process": record.process}
        if record.exc_info and record.exc_info[1] is not None and self.formatter is not None:
            more["error"] = self.formatter.formatException(record.exc_info)[-400:]
        self._log.write(record.levelname.lower(), record.getMessage()[:500], **more)

    def flush(self) -> None:
        """Write what is left, when the process ends."""
        self._log.close()


class ServerLog(Logger):  # type: ignore[misc]
    """gunicorn's log, on standard error."""

    def setup(self, cfg: Any) -> None:
        """As the base class, then our format."""
        super().setup(cfg)
        self.error_log.handlers = [Lines()]
        self._timed_out: set[object] = set()  # the process numbers of workers

    def critical(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Say in whole words that a worker hangs."""
        if msg.startswith("WORKER TIMEOUT"):
            self._timed_out.update(args)
            msg = f"worker %s has hung for {HUNG_SECONDS} s and is ended; another takes its place"
        super().critical(msg, *args, **kwargs)

    def error(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Leave out gunicorn's guess that memory ran out, where it ended the worker itself."""
        if args and args[0] in self._timed_out:
            self._timed_out.discard(args[0])
            msg = msg.removesuffix(" Perhaps out of memory?")
        super().error(msg, *args, **kwargs)


class Server(BaseApplication):  # type: ignore[misc]
    """The endpoint on one listening socket, in so many processes."""

    def __init__(  # noqa: PLR0913  # what the process is given, each by name
        self,
        make_app: Callable[[Server], AdmissionApp],
        *,
        listener: int,
        workers: int,
        context: ssl.SSLContext,
        ended: Callable[[int], None] = lambda _: None,
        why_not: Callable[[Mapping[str, Any] | None], str] = lambda _: "",
        refused: Callable[[str], None] = lambda _: None,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        """`ended` is told the process number of each worker that ends.

        `why_not` says why a client with this certificate, or none, may not ask; nothing if it may.
        `refused` is told that for each call that was refused.

        `keep` is called in the parent, once a second and whenever a child has ended.

        `make_app` is called in each worker; it sets `refresh`, which is called there once a second.
        """
        self.make_app = make_app
        self.refresh: Callable[[], None] = lambda: None
        self._ended = ended
        self.why_not = why_not
        self.refused = refused
        self.keep = keep
        self.draining = False
        self._context = context
        self._listener = listener
        self._workers = workers
        super().__init__()

    @property
    def server(self) -> Server:
        return self

    def load_config(self) -> None:
        """Say every setting that matters, so that no file or variable of gunicorn's does."""
        scratch = "/dev/shm"  # noqa: S108  # the heartbeat file; a disk may be slow or read-only
        settings = {
            "bind": f"fd://{self._listener}",
            "workers": self._workers,
            "worker_class": Worker,
            "asgi_lifespan": "off",
            "asgi_disconnect_grace_period": 0,  # nothing is to be tidied up for a client that left
            "keepalive": KEEP_ALIVE_SECONDS,
            "graceful_timeout": DRAIN_SECONDS,
            "max_requests": 0,
            "timeout": HUNG_SECONDS,
            "post_fork": _introduce,
            "child_exit": lambda _, worker: self._ended(worker.pid),
            "ssl_context": lambda _config, _default: self._context,
            "certfile": os.devnull,  # "TLS is on"; the context has the real one
            "logger_class": ServerLog,
            "loglevel": "warning",
            "accesslog": None,
            "forwarded_allow_ips": "",  # no proxy stands between the API server and us
            "control_socket_disable": True,
            "worker_tmp_dir": scratch if os.access(scratch, os.W_OK) else None,
            "proc_name": "gpu-webhook",
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def run(self) -> None:
        """Serve until a signal says to stop."""
        keep_signals_over_fork()
        Parent(self).run()

    def load(self) -> AdmissionApp:
        """Called in each worker."""
        return self.make_app(self)
