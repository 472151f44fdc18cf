"""The ASGI application: reads a body within its limits, and answers.

Reviews are answered here, before Flask's router; other requests go through Flask, whose WSGI call
runs inline: it only computes, without I/O, so a thread would only cost time.
"""

from __future__ import annotations

import asyncio
import re
import sys
from functools import lru_cache, partial
from io import BytesIO
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission.decide import MUTATE, PATHS, Early
from webhook.admission.endpoint import JSON, LARGEST_BODY, Answer, Endpoint, refusal
from webhook.admission.review import HEAD_BYTES, NEVER_LIGHT, is_heavy
from webhook.serving.backlog import Backlog, namespace_of
from webhook.serving.bodies import Bodies, Crowded
from webhook.serving.waiting import Waiting, latest, moment_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from wsgiref.types import WSGIApplication

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    Headers = list[tuple[bytes, bytes]]

BODY_SECONDS = 4.5  # reading a slow body ends within 5 s
# The share of the caller's timeout that a heavy review may take; then it is answered without rules.
IN_TIME = 0.8
LARGEST_LENGTH = 1024 * 1024 * 1024  # no review is so large; an API server's largest is some 40 MiB
LINGER_SECONDS = 1.0  # a client that is still sending should get the answer instead of a reset;
LINGER_BYTES = 2 * LARGEST_BODY  # so many bytes are discarded, then the client must wait
MOST_PIECES = 8192  # one-byte chunks take longer than any normal body
DIRECT = frozenset(PATHS)
FORBIDDEN, TIMEOUT, TOO_LARGE, TOO_MANY = 403, 408, 413, 429
# Why a review was not evaluated.
LATE = "too many large objects came at the same time; send it again"
SLOW = "it did not come in time; send it again"
LARGE = f"it takes more than {LARGEST_BODY // 2**20} MiB as JSON; make it smaller"
_BAD = 400  # from here on the framing of the client is not trusted: the connection is closed

# Put into the scope by the server of this package (connection.py); other ASGI servers do not set
# them.
REQUEST = "gpu-webhook.request"  # the server's request; `must_close` ends the connection
STRANGER = "gpu-webhook.stranger"  # True: the client has no certificate although one is required
BEGAN = "gpu-webhook.began"  # time.monotonic() when the head of the request was read


_NO_STRANGERS = (
    "client certificate: none that may ask here. Give the API server one: docs/access.md"
)


class Head(NamedTuple):
    """The headers that are used."""

    length: int | None
    content_type: str
    content_encoding: str


_OF_JSON = Head(None, JSON, "")


class Reply(NamedTuple):
    """The response."""

    status: int
    headers: Headers
    body: bytes
    lingers: bool = False  # the client may still be sending


class _Refused(Exception):  # noqa: N818  # an answer, not an error
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.reply = _reply(refusal(status, message), lingers=status != TIMEOUT)
        if status == TOO_MANY:
            self.reply.headers.append((b"retry-after", b"1"))


class _Unread(_Refused):
    """A body that is not read to its end. If it begins as a review, it is answered as one."""

    def __init__(self, status: int, message: str, why: str) -> None:
        super().__init__(status, message)
        self.why = why


class _Disconnected(Exception):  # noqa: N818
    """The client has disconnected."""


class AdmissionApp:
    """The application that the server calls for each request."""

    def __init__(
        self,
        endpoint: Endpoint,
        wsgi: WSGIApplication,
        direct: frozenset[str] = DIRECT,
        waiting: Waiting | None = None,
    ) -> None:
        """`direct` are the paths that Flask's router does not see."""
        self._endpoint = endpoint
        self._wsgi = wsgi
        self._waiting = waiting or Waiting()
        self._direct = direct
        self.bodies = Bodies()
        self._backlog = Backlog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close"})
            return
        try:
            reply = await self._reply(scope, receive)
        except _Refused as refused:
            reply = refused.reply
        except _Disconnected:
            return
        if reply.status >= _BAD or reply.lingers:
            _end(scope)
        await send(
            {"type": "http.response.start", "status": reply.status, "headers": reply.headers}
        )
        await send({"type": "http.response.body", "body": reply.body})
        if reply.lingers:
            await _linger(receive)

    def answer_at_once(self, path: str, query: bytes, body: bytes, began: float) -> Reply | None:
        """The answer to a review that the server has read completely; None for a normal call."""
        if path not in self._direct or is_heavy(body):
            return None
        if monotonic() > began + seconds_of(query):
            return None
        try:
            answer = self._post(path, _OF_JSON, body, moment_of(began))(may_wait=True)
        except Early:
            return None
        return _reply(answer) if answer.status < _BAD else None

    def _post(self, path: str, head: Head, body: bytes, moment: float) -> Callable[..., Answer]:
        of_body = head.content_type, head.content_encoding, body
        return partial(self._endpoint.post, path, *of_body, moment)

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        if scope.get(STRANGER) and scope["path"] in DIRECT:
            raise _Refused(FORBIDDEN, _NO_STRANGERS)
        began = scope.get(BEGAN) or monotonic()
        patience = seconds_of(scope["query_string"])
        head = _head(scope["headers"])
        path = scope["path"]
        is_review = path in self._direct and scope["method"] == "POST"
        pieces: list[bytes] = []
        try:
            body = await self._read(receive, head, min(IN_TIME * patience, BODY_SECONDS), pieces)
        except _Unread as unread:
            beginning = b"".join(pieces)[:HEAD_BYTES] if is_review else b""
            if (answer := self._endpoint.late(path, beginning, unread.why)) is None:
                raise
            return _reply(answer, lingers=True)
        left = began + patience - monotonic()
        if left < 0:
            text = "timeout: the deadline of ?timeout= passed before the work began"
            raise _Refused(TIMEOUT, text)
        if not is_review:
            return _call_wsgi(self._wsgi, scope, head, body)
        if len(body) > NEVER_LIGHT:
            _end(scope)  # otherwise its buffers, as large as the body, stay until the next request
        end, moment = began + IN_TIME * patience, moment_of(began)
        post, last = self._post(path, head, body, moment), latest(end)
        for _ in ("its namespace", "the nodes"):
            try:
                return await self._judged(path, body, partial(post, may_wait=True), end)
            except Early as early:
                is_there = partial(self._endpoint.knows, early.namespace)
                missing = is_there if early.namespace else None
                await self._waiting.until(moment, len(body), last, missing)
        return await self._judged(path, body, post, end)

    async def _judged(
        self, path: str, body: bytes, post: Callable[[], Answer], end: float
    ) -> Reply:
        if not is_heavy(body):
            return _reply(post())
        lane, urgent = namespace_of(body), path != MUTATE
        answer = await self._backlog.run(lane, len(body), post, end - monotonic(), urgent=urgent)
        if answer is None and (answer := self._endpoint.late(path, body, LATE)) is None:
            raise _Refused(TOO_MANY, "too many large reviews came at once. Send it again")
        return _reply(answer)

    async def _read(
        self, receive: Receive, head: Head, seconds: float, pieces: list[bytes]
    ) -> bytes:
        """The body; also the pieces of it, which are available if the rest never arrives."""
        length = head.length or 0
        if length > LARGEST_LENGTH:
            raise _too_large()
        most = LARGEST_BODY if length <= LARGEST_BODY else HEAD_BYTES
        try:
            async with asyncio.timeout(seconds) as limit:
                body, more = await _piece(receive)
                if not more:
                    return body
                with self.bodies.reading(limit) as reader:
                    return await _rest(receive, body, reader.take, pieces, most)
        except TimeoutError:
            text = f"body: not here after {seconds:g} s. Send it at once"
            raise _Unread(TIMEOUT, text, SLOW) from None
        except Crowded:
            text = "body: too many bytes are being read at once. Send it again"
            raise _Unread(TOO_MANY, text, LATE) from None


def _end(scope: Scope) -> None:
    """Close the connection with the answer."""
    if (request := scope.get(REQUEST)) is not None:
        request.must_close = True


def _too_large() -> _Unread:
    text = f"body: larger than {LARGEST_BODY} bytes. Send a smaller object"
    return _Unread(TOO_LARGE, text, LARGE)


async def _piece(receive: Receive) -> tuple[bytes, bool]:
    """The next piece of the body, and whether there is more."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _Disconnected
    return message.get("body", b""), message.get("more_body", False)


async def _rest(
    receive: Receive, piece: bytes, take: Callable[[int], None], pieces: list[bytes], most: int
) -> bytes:
    size, more = 0, True
    while True:
        pieces.append(piece)
        size += len(piece)
        take(len(piece))
        if size > most:
            raise _too_large()
        if len(pieces) > MOST_PIECES:
            text = f"body: in more than {MOST_PIECES} pieces. Send larger ones"
            raise _Unread(TOO_LARGE, text, LARGE)
        if not more:
            return b"".join(pieces)
        piece, more = await _piece(receive)


async def _linger(receive: Receive) -> None:
    """Let a client that is still sending get the answer instead of a reset."""
    size, more = 0, True
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while more and size < LINGER_BYTES:
                piece, more = await _piece(receive)
                size += len(piece)
            if more:  # it has not read the answer yet
                await asyncio.sleep(LINGER_SECONDS)
    except (TimeoutError, _Disconnected):
        pass


def _head(headers: Headers) -> Head:
    length, content_type, content_encoding = None, "", ""
    for name, value in headers:
        if name == b"content-length":
            length = int(value)
        elif name == b"content-type":
            content_type = value.decode("latin-1")
        elif name == b"content-encoding":
            content_encoding += value.decode("latin-1")
    return Head(length, content_type, content_encoding)


def _reply(answer: Answer, *, lingers: bool = False) -> Reply:
    headers = [
        (b"content-type", answer.content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(answer.body)),
    ]
    return Reply(answer.status, headers, answer.body, lingers)


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART = re.compile(r"(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_TIMEOUT = re.compile(r"(?:^|&)timeout=([^&]*)")
_LONGEST = 30.0  # seconds; the API server's own limit for timeoutSeconds


@lru_cache(maxsize=64)
def seconds_of(query: bytes) -> float:
    """The caller's timeout: `?timeout=`, a Go duration such as `10s` or `1m0.5s`.

    A missing or malformed one, and zero (no limit in Kubernetes), count as the longest.
    """
    found = _TIMEOUT.search(query.decode("latin-1"))
    if found is None or not _DURATION.fullmatch(found[1]):
        return _LONGEST
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(found[1]))
    return min(seconds, _LONGEST) or _LONGEST


def _call_wsgi(wsgi: WSGIApplication, scope: Scope, head: Head, body: bytes) -> Reply:
    """Run a WSGI application for this request, synchronously.

    It gets only the headers of the client that it needs. No Host: no answer has links, so no client
    can choose one.
    """
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], _: object = None) -> Any:
        started.append((status, headers))

    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "replace").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": head.content_type,
        "HTTP_CONTENT_ENCODING": head.content_encoding,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https",
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    result = wsgi(environ, start_response)
    try:
        content = b"".join(result)
    finally:
        if hasattr(result, "close"):
            result.close()
    status, headers = started[-1]
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return Reply(int(status[:3]), raw, content)
