"""Calls that are answered without gunicorn's parser: their heads, and what that parser reads."""

from __future__ import annotations

import pytest
from gunicorn.asgi.parser import PythonProtocol

from tests.hostile.wire import post
from webhook.serving.connection import HEAD

BODY = b'{"kind": "AdmissionReview"}'
CALL = post(BODY, "/mutate?timeout=3s")
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
NASTY = (
    b"",
    b"\0",
    b"\t",
    b"\n",
    b"\r",
    b" ",
    b"%",
    b"/",
    b"0",
    b":",
    b"?",
    b"_",
    b"\x7f",
    b"\xe9",
)


def with_line(line: bytes) -> bytes:
    return CALL.replace(LENGTH, LENGTH + line + b"\r\n")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(CALL, id="an API server's call"),
        pytest.param(post(BODY), id="one without a timeout"),
        pytest.param(post(BODY, "/guard/refuse?timeout=1m0.5s"), id="one to a path in a path"),
        pytest.param(
            CALL.replace(b"Content-Type", b"Authorization: Bearer e.y.J\r\nContent-Type"),
            id="one with a token",
        ),
        pytest.param(
            CALL.replace(b"Accept-Enc", b"Traceparent: 00-0af7-b7ad-01\r\nAccept-Enc"),
            id="one of a trace",
        ),
    ],
)
def test_a_call_of_go_needs_no_parser(call: bytes) -> None:
    assert read_at_once(call) == read_by_gunicorn(call)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(CALL.replace(b"POST", b"GET"), id="another method"),
        pytest.param(CALL.replace(b"HTTP/1.1", b"HTTP/1.0"), id="an older protocol"),
        pytest.param(CALL.replace(b"/mutate", b"/%6dutate"), id="an escaped path"),
        pytest.param(CALL.replace(b"/mutate", b"https://a/mutate"), id="a whole URL"),
        pytest.param(CALL.replace(b"/json\r", b"/json; charset=utf-16\r"), id="another charset"),
        pytest.param(with_line(b"Content-Length: 2"), id="two lengths"),
        pytest.param(CALL.replace(LENGTH, b""), id="no length"),
        pytest.param(CALL.replace(LENGTH, b"Transfer-Encoding: chunked\r\n"), id="chunks"),
        pytest.param(with_line(b"Transfer-Encoding: chunked"), id="a length and chunks"),
        pytest.param(with_line(b"Connection: close"), id="the last call of a connection"),
        pytest.param(with_line(b"Expect: 100-continue"), id="a client that waits for our word"),
        pytest.param(with_line(b"Content-Encoding: gzip"), id="a packed body"),
        pytest.param(with_line(b"Upgrade: websocket"), id="another protocol is wanted"),
        pytest.param(CALL.replace(b": kube", b": " + b"k" * 5000), id="a long line"),
    ],
)
def test_gunicorn_judges_any_other_head(call: bytes) -> None:
    assert read_at_once(call) is None


def test_what_needs_no_parser_is_what_the_parser_reads() -> None:
    """Each byte of the head replaced by a nasty one, and each such byte put before it."""
    end, agreed = CALL.index(BODY), 0
    for at in range(end):
        for byte in NASTY:
            for skipped in (0, 1):
                call = CALL[:at] + byte + CALL[at + skipped :]
                found = read_at_once(call)
                if found is not None:
                    assert found == read_by_gunicorn(call), call
                    agreed += 1
    assert agreed > end


def read_at_once(call: bytes) -> tuple[bytes, int, bytes] | None:
    """Target, length and body; None if the head needs a parser."""
    head = HEAD.match(call)
    if head is None:
        return None
    target = head[1] if head[2] is None else head[1] + b"?" + head[2]
    return target, int(head[3]), call[head.end() :]


def read_by_gunicorn(call: bytes) -> tuple[bytes, int, bytes]:
    """The same, read by the parser of a connection."""
    pieces: list[bytes] = []
    parser = PythonProtocol(on_body=pieces.append)
    parser.feed(call)
    assert parser.method == b"POST"
    assert parser.should_keep_alive
    assert not parser.is_chunked
    assert (b"content-type", b"application/json") in parser.headers
    known = {b"host", b"user-agent", b"content-length", b"accept", b"authorization"}
    known |= {b"content-type", b"traceparent", b"accept-encoding"}
    assert {name for name, _ in parser.headers} <= known
    return parser.path, parser.content_length, b"".join(pieces) + bytes(parser._buffer)
