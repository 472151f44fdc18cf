"""The ASGI application: reads a body within its limits, and answers.

Reviews are answered here, before Flask's router; anything else goes through Flask, whose WSGI call
is run inline: it is plain computing, without I/O, so a thread would only cost.
"""

from __future__ import annotations

import asyncio
import re
import sys
from functools import lru_cache, partial
from io import BytesIO
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission.backlog import Backlog, namespace_of
from webhook.admission.bodies import Bodies, Crowded
from webhook.admission.decide import MUTATE
from webhook.admission.endpoint import LARGEST_BODY, refusal
from webhook.admission.review import NEVER_LIGHT, is_heavy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from wsgiref.types import WSGIApplication

    from webhook.admission.endpoint import Answer, Endpoint

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    Headers = list[tuple[bytes, bytes]]

BODY_SECONDS = 4.5  # a body that stalls is given up within 5 s
IN_TIME = 0.8  # of what the caller waits, a heavy review may take; then it is answered unjudged
LINGER_SECONDS = 1.0  # what a refused client may still send before the connection closes:
LINGER_BYTES = 2 * LARGEST_BODY  # else it meets a reset and never reads why
MOST_PIECES = 8192  # one-byte chunks cost more to take apart than any honest body does
DIRECT = frozenset({"/mutate", "/validate", "/guard", "/guard/refuse"})
FORBIDDEN, TOO_LARGE, TOO_MANY = 403, 413, 429
_BAD = 400  # from here on, what the client frames is not trusted: the connection ends

# Put into the scope by our own server (admission/server.py); another ASGI server leaves them out.
REQUEST = "gpu-webhook.request"  # the server's request; `must_close` ends the connection
STRANGER = "gpu-webhook.stranger"  # True: the client shows no certificate that is asked for
BEGAN = "gpu-webhook.began"  # time.monotonic() when the head of the request was read


_NO_STRANGERS = (
    "client certificate: none that may ask here. Give the API server one: docs/access.md"
)


class Head(NamedTuple):
    """The headers that matter here."""

    length: int | None
    content_type: str
    content_encoding: str


class Reply(NamedTuple):
    """What goes onto the wire."""

    status: int
    headers: Headers
    body: bytes


class _Refused(Exception):  # noqa: N818  # an answer, not an error
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.reply = _reply(refusal(status, message))
        if status == TOO_MANY:
            self.reply.headers.append((b"retry-after", b"1"))


class _Disconnected(Exception):  # noqa: N818
    """Nobody waits for an answer."""


class AdmissionApp:
    """The callable that the server runs for each request."""

    def __init__(
        self, endpoint: Endpoint, wsgi: WSGIApplication, direct: frozenset[str] = DIRECT
    ) -> None:
        """`direct` are the paths that Flask's router does not see."""
        self._endpoint = endpoint
        self._wsgi = wsgi
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
        if reply.status >= _BAD:
            _end(scope)
        await send(
            {"type": "http.response.start", "status": reply.status, "headers": reply.headers}
        )
        await send({"type": "http.response.body", "body": reply.body})
        if reply.status in {FORBIDDEN, TOO_LARGE}:
            await _linger(receive)

    def answer_at_once(self, request: Any, body: bytes, began: float) -> Reply | None:
        """The answer to a review that our own server has read; None: it must call as usual."""
        if request.method != "POST" or request.path not in self._direct or is_heavy(body):
            return None
        if monotonic() > began + seconds_of(request.query.encode("latin-1")):
            return None
        head = _head(request.headers_bytes)
        answer = self._endpoint.post(request.path, head.content_type, head.content_encoding, body)
        return _reply(answer) if answer.status < _BAD else None

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        if scope.get(STRANGER) and scope["path"] in DIRECT:
            raise _Refused(FORBIDDEN, _NO_STRANGERS)
        began = scope.get(BEGAN) or monotonic()
        patience = seconds_of(scope["query_string"])
        head = _head(scope["headers"])
        body = await self._read(receive, head, min(patience, BODY_SECONDS))
        left = began + patience - monotonic()
        if left < 0:
            raise _Refused(408, "timeout: the deadline of ?timeout= passed before the work began")
        path = scope["path"]
        if path not in self._direct or scope["method"] != "POST":
            return _call_wsgi(self._wsgi, scope, body)
        post = partial(self._endpoint.post, path, head.content_type, head.content_encoding, body)
        if not is_heavy(body):
            return _reply(post())
        if len(body) > NEVER_LIGHT:
            _end(scope)  # else its buffers, as large as the body, would stay for the next request
        seconds = left - (1 - IN_TIME) * patience
        lane, urgent = namespace_of(body), path != MUTATE
        answer = await self._backlog.run(lane, len(body), post, seconds, urgent=urgent)
        if answer is None and (answer := self._endpoint.late(path, body)) is None:
            raise _Refused(TOO_MANY, "too many large reviews came at once. Send it again")
        return _reply(answer)

    async def _read(self, receive: Receive, head: Head, seconds: float) -> bytes:
        if head.length is not None and head.length > LARGEST_BODY:
            raise _too_large()
        try:
            async with asyncio.timeout(seconds) as limit:
                body, more = await _piece(receive)
                if not more:
                    return body
                with self.bodies.reading(limit) as reader:
                    return await _rest(receive, body, reader.take)
        except TimeoutError:
            raise _Refused(408, f"body: not here after {seconds:g} s. Send it at once") from None
        except Crowded:
            text = "body: too many bytes are being read at once. Send it again"
            raise _Refused(TOO_MANY, text) from None


def _end(scope: Scope) -> None:
    """Have the connection closed with the answer."""
    if (request := scope.get(REQUEST)) is not None:
        request.must_close = True


def _too_large() -> _Refused:
    return _Refused(413, f"body: larger than {LARGEST_BODY} bytes. Send a smaller object")


async def _piece(receive: Receive) -> tuple[bytes, bool]:
    """The next piece of the body, and whether there is more."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _Disconnected
    return message.get("body", b""), message.get("more_body", False)


async def _rest(receive: Receive, first: bytes, take: Callable[[int], None]) -> bytes:
    pieces, size, more = [first], len(first), True
    take(size)
    while more:
        piece, more = await _piece(receive)
        pieces.append(piece)
        size += len(piece)
        take(len(piece))
        if size > LARGEST_BODY:
            raise _too_large()
        if len(pieces) > MOST_PIECES:
            raise _Refused(413, f"body: in more than {MOST_PIECES} pieces. Send larger ones")
    return b"".join(pieces)


async def _linger(receive: Receive) -> None:
    """Let a client that is still sending find the answer instead of a reset."""
    size, more = 0, True
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while more and size < LINGER_BYTES:
                piece, more = await _piece(receive)
                size += len(piece)
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


def _reply(answer: Answer) -> Reply:
    headers = [
        (b"content-type", answer.content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(answer.body)),
    ]
    return Reply(answer.status, headers, answer.body)


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART = re.compile(r"(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_TIMEOUT = re.compile(r"(?:^|&)timeout=([^&]*)")
_LONGEST = 30.0  # seconds; the API server's own limit for timeoutSeconds


@lru_cache(maxsize=64)
def seconds_of(query: bytes) -> float:
    """How long the caller waits: `?timeout=`, a Go duration as `10s` or `1m0.5s`.

    What is missing, no duration, or zero (no limit, to Kubernetes) counts as the longest.
    """
    found = _TIMEOUT.search(query.decode("latin-1"))
    if found is None or not _DURATION.fullmatch(found[1]):
        return _LONGEST
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(found[1]))
    return min(seconds, _LONGEST) or _LONGEST


def _call_wsgi(wsgi: WSGIApplication, scope: Scope, body: bytes) -> Reply:
    """Run a WSGI application for this request, here and now."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], _: object = None) -> Any:
        started.append((status, headers))

    result = wsgi(_environ(scope, body), start_response)
    try:
        content = b"".join(result)
    finally:
        if hasattr(result, "close"):
            result.close()
    status, headers = started[-1]
    return Reply(
        int(status[:3]),
        [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        content,
    )


def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
    """The WSGI environment. No Host: nothing here makes links, so nobody gets to choose one."""
    host, port = scope.get("server") or ("localhost", 0)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "replace").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "https"),
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        if name == b"content-type":
            environ["CONTENT_TYPE"] = value.decode("latin-1")
        elif name not in {b"content-length", b"host", b"transfer-encoding"}:
            key = "HTTP_" + name.decode("latin-1").upper().replace("-", "_")
            environ[key] = environ.get(key, "") + value.decode("latin-1")
    return environ
