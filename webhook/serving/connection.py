"""One connection: gunicorn's protocol, with the time limits that it lacks.

gunicorn 27.0.1 limits neither the TLS handshake, nor the wait for the first request, nor a request
head that arrives slowly; and at its end it waits for idle connections until its timeout. None of
that blocks other clients, but each such socket uses a file descriptor.
"""

from __future__ import annotations

import re
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import uvloop
from gunicorn.asgi.parser import UnsupportedTransferCoding
from gunicorn.asgi.protocol import ASGIProtocol

from webhook.admission.review import NEVER_LIGHT
from webhook.serving import BACKLOG
from webhook.serving.asgi import BEGAN, DIRECT, REQUEST, STRANGER

if TYPE_CHECKING:
    import asyncio

    from webhook.serving.worker import Worker

FIRST_SECONDS = 10  # from the handshake to the first byte of the first request
HANDSHAKE_SECONDS = 10  # the API server's own limit
HEAD_SECONDS = 10  # from the first byte of a request to the end of its headers
# For the rest of a call, which Go writes 4 KiB after the head; then it counts as a slow one.
GATHER_SECONDS = 0.1
WRITE_SECONDS = 10  # for a client to continue reading, after its answers have filled the buffers
CLOSE_SECONDS = 2  # for the TLS close of the other side
# An unused connection is closed after it while draining. A call that is sent at the same moment
# fails; a connection that is used more often learns of the end from the answer to a call.
IDLE_SECONDS = 4.0
NOT_IMPLEMENTED = 501
# The head of a call as Go's net/http writes it for an API server. With these fields alone it says
# nothing else about connection and body, and gunicorn's parser, a loop over all bytes, would read
# the same. gunicorn limits lines, too.
HEAD = re.compile(
    rb"POST (/[a-z/]{1,40})(?:\?([!-~]{0,4000}))? HTTP/1\.1\r\nHost: [!-~]{1,4000}\r\n"
    rb"User-Agent: [ -~]{1,4000}\r\nContent-Length: ([0-9]{1,6})\r\nAccept: [ -~]{1,4000}\r\n"
    rb"(?:Authorization: [ -~]{1,4000}\r\n)?Content-Type: application/json\r\n"
    rb"(?:Traceparent: [ -~]{1,4000}\r\n)?Accept-Encoding: gzip\r\n\r\n"
)
_CALL = SimpleNamespace(version=(1, 1))  # of the request, all that gunicorn's answer depends on


class Protocol(ASGIProtocol):  # type: ignore[misc]
    """One connection."""

    transport: Any  # the base class has no types
    _task: Any
    _callback_parser: Any
    _current_request: Any
    _body_receiver: Any

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count the time until the first request as idle time too, with a shorter limit."""
        self.idle_since = time.monotonic()
        self._head_began = 0.0  # when the head of the last request began
        self._began = 0.0  # when it was complete
        self._part = b""  # of a call whose rest is on its way
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        certificate = transport.get_extra_info("peercert")  # None, or a verified certificate
        self._why_not = self.worker.app.server.why_not(certificate)  # empty: it may send reviews
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
        """Leave no reference cycle: parser, receiver and flow control all point back here."""
        self._task = self._callback_parser = self._current_request = self._body_receiver = None
        self.transport = self.writer = self._flow_control = None

    def data_received(self, data: bytes) -> None:
        """Answer a whole call at once, or parse; an unfinished head has a time limit."""
        if self._current_request is None and (self._part or self.is_idle):
            data = self._part + data
            if self._take(data):
                return
            self._part = b""
            self._stop_head_timer()
        super().data_received(data)
        self._time_the_head()

    def _parse_part(self) -> None:
        """The rest of a call did not come soon."""
        data, self._part, self._head_timer = self._part, b"", None
        super().data_received(data)
        self._time_the_head()

    def _time_the_head(self) -> None:
        """Start the time limit of a head that has begun."""
        if self._current_request is None and self._head_timer is None and not self._closed:
            self._head_began = time.monotonic()
            self._head_timer = self.worker.loop.call_later(HEAD_SECONDS, self._keepalive_timeout)

    def pause_writing(self) -> None:
        """Limit the time for the client to read."""
        super().pause_writing()
        self._write_timer = self.worker.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
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
        """The connection with the lowest value is closed first.

        An API server sends whole requests at once, and keeps its connections for the next. So half
        a request, and a connection without one so far, have a lower value than an idle one; among
        equals the oldest; and a client with an accepted certificate is closed last.
        """
        if self._is_half_a_request:
            began = self._head_began if self._head_timer is not None else self._began
            return self.is_proven, False, began
        return self.is_proven, self._began > 0, self.idle_since

    def close_if_idle(self) -> None:
        """Close the connection unless it is working, or was a moment ago."""
        if self.is_idle and time.monotonic() - self.idle_since >= IDLE_SECONDS:
            self.close()

    def close(self) -> None:
        """Close it now."""
        self._keepalive_timeout()

    def _on_headers_complete(self) -> bool:
        self._stop_head_timer()
        self._began = time.monotonic()
        done = bool(super()._on_headers_complete())
        if self._current_request.chunked:
            self._refuse_codings()
        return done

    def _refuse_codings(self) -> None:
        """Reject an encoded body that is sent in chunks: gunicorn would pass it on undecoded."""
        for name, value in self._current_request.headers_bytes:
            if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                raise UnsupportedTransferCoding(value.decode("latin-1")[:60])

    def _take(self, data: bytes) -> bool:
        """Answer a call, or wait for its rest; False if the connection's task must do it.

        The task waits for a body as long as it takes. But calls of an API server arrive in one
        piece or two, and then parser, two tasks and a dozen closures for each request, which take
        as long as half of a decision, are not needed.
        """
        head = HEAD.match(data)
        if (
            head is None
            or self._closed
            or self.worker.leaving
            or self._why_not
            or self._write_timer is not None
        ):
            return False
        missing = head.end() + int(head[3]) - len(data)
        if missing > 0 and int(head[3]) <= NEVER_LIGHT:
            self._part = data
            if self._head_timer is None:
                self._head_began = time.monotonic()
                self._head_timer = self.worker.loop.call_later(GATHER_SECONDS, self._parse_part)
            return True
        return not missing and self._answer_at_once(head, data[head.end() :])

    def _answer_at_once(self, head: re.Match[bytes], body: bytes) -> bool:
        self._began = time.monotonic()
        path, query = head[1].decode(), head[2] or b""
        reply = self.worker.asgi.answer_at_once(path, query, body, self._began)
        if reply is None:
            return False
        self._part = b""
        self._stop_head_timer()
        self._send_response_start(reply.status, reply.headers, _CALL)
        self._send_body(reply.body)
        self._arm_keepalive_timer()
        return True

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
        # Announced from the signal on, and only announced connections are closed: without the
        # announcement a client may have sent its next call already.
        return self.worker.leaving or bool(super()._will_close(request, response_requires_close))

    def _send_error_response(self, status: int, message: str, extra_headers: Any = ()) -> None:
        # An unknown Transfer-Encoding is the client's fault. 5xx is only for faults of the server,
        # so that clients cannot trigger an alarm on 5xx.
        status = 400 if status == NOT_IMPLEMENTED else status
        super()._send_error_response(status, message, extra_headers)


class Loop(uvloop.Loop):
    """Makes servers with this protocol and its TLS time limits."""

    worker: Worker

    async def create_server(  # type: ignore[override]  # called by gunicorn only
        self, _: object, *args: Any, **options: Any
    ) -> asyncio.AbstractServer:
        """As in the base class, except for the protocol and the limits.

        libuv 1.52 accepts one connection in each round of the loop. That protects those who are
        served from a flood of handshakes; the others wait in the backlog, 100 in the base class.
        """
        options["backlog"] = BACKLOG
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = HANDSHAKE_SECONDS
            options["ssl_shutdown_timeout"] = CLOSE_SECONDS
        return await super().create_server(lambda: Protocol(self.worker), *args, **options)
