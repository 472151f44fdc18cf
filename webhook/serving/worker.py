"""One process of the server: tracks its connections and follows the certificate files."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
import time
from typing import Any

from gunicorn.workers.gasgi import ASGIWorker

from webhook.serving.connection import Loop, Protocol
from webhook.serving.heap import HEAP

LISTEN_ON_SECONDS = 1.0  # after the signal: the cluster notices it a little later
_HANDSHAKES_SECONDS = 0.5  # those in progress become connections
_LOOK_SECONDS = 0.1  # between two looks for idle connections
MOST_CONNECTIONS = 1000  # in each worker, of 40 to 200 KiB; an API server keeps 25 that are idle
MANY_CONNECTIONS = 100  # from here on a worker is crowded
TRIM_SECONDS = 10  # after connections were closed; at once if they were many
SWITCH_SECONDS = 0.0005  # how long the event loop waits for the thread of heavy reviews
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Worker(ASGIWorker):  # type: ignore[misc]
    """One process: tracks its connections and follows the certificate files."""

    arbiter: Any  # the parent's object, as it was at the fork

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connections: set[Protocol] = set()
        self.leaving = False
        self._is_short = False  # of file descriptors
        self._trimmed = 0.0  # when the heap was
        self._closed = 0  # connections, since the heap was trimmed

    def init_process(self) -> None:
        """Exclude loaded objects from garbage collection; requests leave no cycles."""
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
        """Report once that no connection can be accepted: libuv closes them silently."""
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
        """Add one connection; above the limit a waiting one is closed, or else this one."""
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
        """Failed handshakes and similar errors of clients: at most one line, no traceback."""
        error = context.get("exception")
        level = logging.DEBUG if isinstance(error, OSError | None) else logging.ERROR
        self.log.log(level, "%s: %s", context.get("message"), type(error).__name__)

    def init_signals(self) -> None:
        """As in the base class; then handle signals that arrived with the parent's handlers.

        Later signals wait until the loop runs: uvloop would drop them before that.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        super().init_signals()
        self.loop.call_soon(signal.pthread_sigmask, signal.SIG_UNBLOCK, STOPS)
        while not self.arbiter.SIG_QUEUE.empty():
            match self.arbiter.SIG_QUEUE.get_nowait():
                case signal.SIGTERM:
                    self.handle_exit_signal()
                case signal.SIGINT | signal.SIGQUIT:
                    self.handle_quit_signal()

    def handle_exit_signal(self) -> None:
        """Announce it on /readyz and to all clients at once, and stop a little later."""
        self.leaving = self.app.server.draining = True
        self.loop.call_later(LISTEN_ON_SECONDS, super().handle_exit_signal)

    async def _shutdown(self) -> None:
        """Stop listening, answer requests in progress, and close idle connections."""
        if not self._quick_shutdown:
            closing = self.loop.create_task(self._close_idle())
            for server in self.servers:
                server.close()
            await asyncio.sleep(_HANDSHAKES_SECONDS)
            await super()._shutdown()
            closing.cancel()
        self.app.server.refresh()  # hand over the counts since the last second

    async def _close_idle(self) -> None:
        while True:
            for connection in tuple(self.connections):
                connection.close_if_idle()
            await asyncio.sleep(_LOOK_SECONDS)
