"""gunicorn, configured for this endpoint: its settings, its parent process and its log.

worker.py and connection.py complete its `asgi` worker.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger

from webhook.serving.worker import STOPS, Worker
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from webhook.serving.asgi import AdmissionApp

KEEP_ALIVE_SECONDS = 100  # API servers drop idle connections after 90 s, so they close them first
DRAIN_SECONDS = 15  # for requests in progress when the server stops
HUNG_SECONDS = 30  # without a heartbeat of a worker's event loop


class Parent(Arbiter):  # type: ignore[misc]
    """Starts the workers, and calls `keep` for the other processes."""

    def manage_workers(self) -> None:
        """As in the base class: once a second."""
        self.app.keep()
        super().manage_workers()

    def reap_workers(self) -> None:
        """The base class waits for any child, so other children are reaped first."""
        self.app.keep()
        super().reap_workers()


def _introduce(arbiter: Any, worker: Worker) -> None:
    worker.arbiter = arbiter


def keep_signals_over_fork() -> None:
    """Block stop signals while a process is forked, until the new process can handle them.

    CPython's PyOS_AfterFork_Child drops earlier signals. On a busy machine a worker that gets a
    stop signal directly after the fork would otherwise work on until it is killed.
    """
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, STOPS),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, STOPS),
        after_in_child=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, STOPS),
    )


class Lines(logging.Handler):
    """gunicorn's own messages as JSON lines; a reader that stops reading blocks no process."""

    def __init__(self) -> None:
        super().__init__()
        self._log = Log(sys.stderr.fileno())
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        """One line, whatever the message contains."""
        more: dict[str, object] = {"process": record.process}
        if record.exc_info and record.exc_info[1] is not None and self.formatter is not None:
            more["error"] = self.formatter.formatException(record.exc_info)[-400:]
        self._log.write(record.levelname.lower(), record.getMessage()[:500], **more)

    def flush(self) -> None:
        """Write the remaining lines at the end of the process."""
        self._log.close()


class ServerLog(Logger):  # type: ignore[misc]
    """gunicorn's log, on standard error."""

    def setup(self, cfg: Any) -> None:
        """As in the base class, then with the format of this package."""
        super().setup(cfg)
        self.error_log.handlers = [Lines()]
        self._timed_out: set[object] = set()  # the process numbers of workers

    def critical(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Report in a whole sentence that a worker hangs."""
        if msg.startswith("WORKER TIMEOUT"):
            self._timed_out.update(args)
            msg = f"worker %s has hung for {HUNG_SECONDS} s and is ended; another takes its place"
        super().critical(msg, *args, **kwargs)

    def error(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Drop gunicorn's guess that memory ran out, if gunicorn itself ended the worker."""
        if args and args[0] in self._timed_out:
            self._timed_out.discard(args[0])
            msg = msg.removesuffix(" Perhaps out of memory?")
        super().error(msg, *args, **kwargs)


class Server(BaseApplication):  # type: ignore[misc]
    """The endpoint on one listening socket, in several processes."""

    def __init__(  # noqa: PLR0913  # all arguments are named
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
        """`ended` is called with the process number of each worker that ends.

        `why_not` returns why a client with this certificate, or none, may not send reviews; empty
        if it may. `refused` is called with that reason for each rejected call.

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
        """Set every important setting, so that no file or variable of gunicorn does."""
        scratch = "/dev/shm"  # noqa: S108  # for the heartbeat file; a disk may be slow or read-only
        settings = {
            "bind": f"fd://{self._listener}",
            "workers": self._workers,
            "worker_class": Worker,
            "asgi_lifespan": "off",
            "asgi_disconnect_grace_period": 0,  # no cleanup is needed for a client that has left
            "keepalive": KEEP_ALIVE_SECONDS,
            "graceful_timeout": DRAIN_SECONDS,
            "max_requests": 0,
            "timeout": HUNG_SECONDS,
            "post_fork": _introduce,
            "child_exit": lambda _, worker: self._ended(worker.pid),
            "ssl_context": lambda _config, _default: self._context,
            "certfile": os.devnull,  # enables TLS; the context has the real certificate
            "logger_class": ServerLog,
            "loglevel": "warning",
            "accesslog": None,
            "forwarded_allow_ips": "",  # no proxy is between the API server and this server
            "control_socket_disable": True,
            "worker_tmp_dir": scratch if os.access(scratch, os.W_OK) else None,
            "proc_name": "gpu-webhook",
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def run(self) -> None:
        """Serve until a stop signal arrives."""
        keep_signals_over_fork()
        Parent(self).run()

    def load(self) -> AdmissionApp:
        """Called in each worker."""
        return self.make_app(self)
