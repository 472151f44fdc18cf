"""gunicorn, as this endpoint needs it: its settings, its parent process and its log.

The `asgi` worker is completed in worker.py and connection.py.
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

KEEP_ALIVE_SECONDS = 100  # API servers drop idle connections after 90 s, so they are first
DRAIN_SECONDS = 15  # for requests that are under way when the server is told to stop
HUNG_SECONDS = 30  # without a sign from a worker's event loop


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
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, STOPS),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, STOPS),
        after_in_child=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, STOPS),
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
