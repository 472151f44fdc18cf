"""Groups h01-h20: what is wrong in the HTTP or below it, sent to the real server as bytes."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.hostile.wire import CLOSED, UID, get, gpu_pod, post, review
from webhook.serving.connection import GATHER_SECONDS

if TYPE_CHECKING:
    from tests.hostile.wire import Server

pytestmark = pytest.mark.programs

MIB = 1024 * 1024
GOOD = json.dumps(review(gpu_pod())).encode()
NOISE = random.Random(3).randbytes  # noqa: S311  # the same bytes in each run
BAD_REQUEST = {400}
REFUSED = {CLOSED, *range(400, 500)}  # closed, or any 4xx


def head(*lines: str, path: str = "/mutate?timeout=1s") -> bytes:
    fields = ["Host: localhost", "Content-Type: application/json", *lines]
    return "\r\n".join([f"POST {path} HTTP/1.1", *fields, "", ""]).encode("latin-1")


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        pytest.param(get("/mutate"), {405}, id="h01 GET on an admission path"),
        pytest.param(get("/validate"), {405}, id="h01 GET on the other admission path"),
        pytest.param(post(GOOD, "/nothing"), {404}, id="h02 unknown path"),
        pytest.param(get("/"), {404}, id="h02 the root"),
        pytest.param(get("/mutate/x"), {404}, id="h02 below an admission path"),
        pytest.param(head(), BAD_REQUEST, id="h03 no Content-Length and no chunks"),
        pytest.param(
            head(f"Content-Length: {len(GOOD)}", "Transfer-Encoding: chunked") + GOOD,
            REFUSED,
            id="h06 Content-Length and Transfer-Encoding",
        ),
        pytest.param(
            head("Content-Length: 5", f"Content-Length: {len(GOOD)}") + GOOD,
            REFUSED,
            id="h07 two Content-Lengths that differ",
        ),
        pytest.param(
            head(*[f"Content-Length: {len(GOOD)}"] * 2) + GOOD,
            REFUSED,
            id="h07 two Content-Lengths that agree",
        ),
        pytest.param(head("Content-Length: +5") + GOOD, REFUSED, id="h07 a signed length"),
        pytest.param(head("Content-Length: -5") + GOOD, REFUSED, id="h07 a negative length"),
        pytest.param(
            head("Transfer-Encoding: chunked, identity") + b"0\r\n\r\n",
            REFUSED,
            id="h08 a coding behind chunked",
        ),
        pytest.param(
            head("Transfer-Encoding: magic") + b"0\r\n\r\n", REFUSED, id="h08 an unknown coding"
        ),
        pytest.param(
            head("Transfer-Encoding: magic, chunked") + b"0\r\n\r\n",
            REFUSED,
            id="h08 an unknown coding before chunked",
        ),
        pytest.param(
            head("Transfer-Encoding: gzip, chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD),
            BAD_REQUEST,
            id="h08 a known coding before chunked",
        ),
        pytest.param(
            head("Transfer-Encoding: deflate", "Transfer-Encoding: chunked")
            + b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD),
            BAD_REQUEST,
            id="h08 a known coding in a header of its own",
        ),
        pytest.param(
            head("Transfer-Encoding: chunked") + b"1" + b"0" * 16 + b"\r\nx",
            REFUSED,
            id="h09 a chunk of 2^64 bytes",
        ),
        pytest.param(
            head("Transfer-Encoding: chunked") + b"-1\r\nx", REFUSED, id="h09 a negative chunk"
        ),
        pytest.param(
            head("Transfer-Encoding: chunked") + b"1\r\n{\r\n" * 20_000,
            REFUSED,
            id="h10 chunks of one byte without end",
        ),
        pytest.param(head("Content-Length: 10000000000"), {413}, id="h11 a length of 10 GB"),
        pytest.param(
            head(f"Content-Length: {'9' * 400}"), REFUSED, id="h11 a length of 400 digits"
        ),
        pytest.param(
            post(gzip.compress(b"[" + b"{}," * 2_000_000), Content_Encoding="gzip"),
            {415},
            id="h13 a gzip bomb that says so",
        ),
        pytest.param(
            post(gzip.compress(GOOD)), BAD_REQUEST, id="h13 a gzip body that does not say so"
        ),
        pytest.param(post(GOOD, Content_Type="text/plain"), {415}, id="h14 text/plain"),
        pytest.param(post(GOOD, Content_Type=""), {415}, id="h14 no Content-Type"),
        pytest.param(
            post(GOOD, Content_Type="multipart/form-data; boundary=x"), {415}, id="h14 multipart"
        ),
        pytest.param(
            post(GOOD, Content_Type="application/x-www-form-urlencoded"), {415}, id="h14 a form"
        ),
        pytest.param(
            post(GOOD, Content_Type="application/json; charset=utf-16"),
            BAD_REQUEST,
            id="h15 another charset",
        ),
        pytest.param(
            post(GOOD, Content_Type="application/json; Charset=UTF-8"), {200}, id="h15 the charset"
        ),
        pytest.param(head("X: " + "a" * 65536), REFUSED, id="h16 a header of 64 KB"),
        pytest.param(head(*(f"X-{n}: a" for n in range(10_000))), REFUSED, id="h16 10,000 headers"),
        pytest.param(head("X: a\0b"), REFUSED, id="h16 NUL in a header"),
        pytest.param(head("X: a\rb"), REFUSED, id="h16 CR in a header"),
        pytest.param(head("X: a\nY: b"), REFUSED, id="h16 LF alone in a header"),
        pytest.param(head("X Y: a"), REFUSED, id="h16 a space in a header's name"),
        pytest.param(get("/" + "a" * 65536), REFUSED, id="h16 a path of 64 KB"),
        pytest.param(
            post(GOOD, "https://localhost/mutate"), {404}, id="h19 the path as a whole URL"
        ),
        pytest.param(post(GOOD, "//mutate"), {404}, id="h19 two slashes"),
        pytest.param(post(GOOD, "/./mutate"), {404}, id="h19 a dot in the path"),
        pytest.param(post(GOOD, "/mutate/"), {404}, id="h19 a slash behind the path"),
        pytest.param(post(GOOD, "/MUTATE"), {404}, id="h19 capitals in the path"),
        pytest.param(post(GOOD, "/mutate%00"), {404}, id="h19 NUL behind the path"),
        pytest.param(post(GOOD, "/mutate%ff"), {404}, id="h19 a path that is no UTF-8"),
        pytest.param(post(GOOD, "mutate"), REFUSED, id="h19 a path without a slash"),
        pytest.param(
            post(GOOD, Host="a b:c/../\x80"), {200}, id="h19 nonsense in Host, which nobody reads"
        ),
        pytest.param(b"BREW /mutate HTTP/1.1\r\nHost: x\r\n\r\n", {405}, id="an unknown method"),
        pytest.param(b"GET /mutate HTTP/9.9\r\n\r\n", REFUSED, id="an unknown version"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REFUSED, id="HTTP/2 unasked"),
        pytest.param(
            b"GET /mutate HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            REFUSED,
            id="a websocket",
        ),
        pytest.param(NOISE(4096), REFUSED, id="random bytes inside TLS"),
    ],
)
def test_request(server: Server, data: bytes, statuses: set[int]) -> None:
    assert server.exchange(data)[0].status in statuses


def test_h01_says_which_methods_may_be_used(server: Server) -> None:
    assert "POST" in server.exchange(get("/mutate"))[0].headers["allow"]


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(GOOD[-20:], id="h04 the rest of the body"),
        pytest.param(get("/healthz"), id="h04 a request of its own"),
    ],
)
def test_h04_what_follows_a_short_body_is_not_answered(server: Server, hidden: bytes) -> None:
    data = post(GOOD[:-20], Content_Length=str(len(GOOD) - 20)) + hidden
    assert [reply.status for reply in server.exchange(data, answers=2)] == [400, CLOSED]


LONGER = [f"Content-Length: {len(GOOD) + 20}"]
EXPECTING = ["Content-Length: 5000", "Expect: 100-continue"]
CHUNKED = ["Transfer-Encoding: chunked"]
STALLED = {
    "h05 a body shorter than its length, on a deadline": (LONGER, GOOD, "/mutate?timeout=1s"),
    "h05 the same, in milliseconds": (LONGER, GOOD, "/mutate?timeout=500ms"),
    "h05 the same, with all the time in the world": (LONGER, GOOD, "/mutate?timeout=30s"),
    "h05 the same, where nobody wants it": (LONGER, GOOD, "/nothing"),
    "h17 Expect: 100-continue, then silence": (EXPECTING, b"", "/mutate?timeout=1s"),
    "h17 the same, with all the time in the world": (EXPECTING, b"", "/mutate"),
    "chunks that never begin": (CHUNKED, b"", "/mutate?timeout=1s"),
    "chunks that stop": (CHUNKED, b"5\r\n{   \n\r\n", "/mutate"),
}


@pytest.fixture(scope="module")
def stalled(running: Server) -> dict[str, tuple[float, list[int]]]:
    """How long each of them was held, and what it was told; all at the same time."""

    def hold(case: tuple[list[str], bytes, str]) -> tuple[float, list[int]]:
        headers, body, path = case
        began = time.monotonic()
        replies = running.exchange(head(*headers, path=path) + body, answers=2)
        return time.monotonic() - began, [reply.status for reply in replies]

    with ThreadPoolExecutor(len(STALLED)) as threads:
        return dict(zip(STALLED, threads.map(hold, STALLED.values()), strict=True))


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("case", STALLED)
def test_a_body_that_stalls_is_given_up(
    stalled: dict[str, tuple[float, list[int]]], case: str
) -> None:
    _, statuses = stalled[case]
    assert statuses == [408, CLOSED]


@pytest.mark.usefixtures("server")
def test_a_deadline_ends_a_body_that_stalls_before_the_time_for_all_bodies(
    stalled: dict[str, tuple[float, list[int]]],
) -> None:
    waited = [stalled[case][0] for case in STALLED if "h05" in case]
    assert max(waited[:2]) < min(waited[2:])


def test_a_body_that_drips_is_given_up(server: Server) -> None:
    """Each byte comes soon enough for the rest of a call, but the call is never complete."""
    data = post(GOOD)
    body = len(data) - len(GOOD)
    with server.connect() as connection:
        connection.sendall(data[:body])
        connection.settimeout(GATHER_SECONDS / 2)
        for byte in data[body:]:
            connection.send(bytes([byte]))
            with suppress(TimeoutError):
                assert connection.recv(12) == b"HTTP/1.1 408"
                return
    pytest.fail("the server waited until the body was complete")


def test_h10_a_body_in_a_few_chunks_is_taken(server: Server) -> None:
    pieces = (GOOD[at : at + 500] for at in range(0, len(GOOD), 500))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    data = head("Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n"
    assert server.exchange(data)[0].response["allowed"] is True


def test_h11_an_impossible_length_is_refused_unread(server: Server) -> None:
    assert server.exchange(head("Content-Length: 10000000000"))[0].status == 413


@pytest.mark.parametrize(
    ("size", "status"),
    [
        pytest.param(10 * MIB, 200, id="h12 10 MiB: taken"),
        pytest.param(10 * MIB + 1, 413, id="h12 one byte more: too large"),
        pytest.param(30 * MIB, 413, id="h12 30 MiB: told so, not cut off"),
    ],
)
def test_h12_the_size_of_a_body(server: Server, size: int, status: int) -> None:
    """A review that begins as an API server's is answered as one: test_unread.py."""
    body = GOOD + b" " * (size - len(GOOD))
    assert server.exchange(post(body, "/mutate?timeout=10s"))[0].status == status


def test_h12_the_size_of_a_body_in_chunks(server: Server) -> None:
    chunk = b"10000\r\n%b\r\n" % (b" " * 65536)
    data = head("Transfer-Encoding: chunked", path="/mutate?timeout=10s") + chunk * 161
    assert server.exchange(data)[0].status == 413


def test_h18_two_requests_at_once_get_their_own_answers(server: Server) -> None:
    data = post(review(gpu_pod(), uid="first")) + post(review(gpu_pod(), uid="second"))
    assert [reply.response["uid"] for reply in server.exchange(data, answers=2)] == [
        "first",
        "second",
    ]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(post(GOOD), id="h20 HTTP without TLS"),
        pytest.param(NOISE(600), id="h20 random bytes"),
        pytest.param(b"\x16\x03\x01\x02\x00" + NOISE(512), id="h20 a broken hello"),
        pytest.param(b"\x16\x03\x01\xff\xff" + b"a" * 70_000, id="h20 a hello that is too long"),
        pytest.param(b"\x80\x2e\x01\x00\x02" + b"\0" * 60_000, id="h20 SSL 2"),
        pytest.param(b"SSH-2.0-OpenSSH_9.0\r\n", id="h20 another protocol"),
    ],
)
def test_h20_what_is_no_tls_is_hung_up_on(server: Server, data: bytes) -> None:
    with server.connect_plainly(seconds=5.0) as connection:
        connection.sendall(data)
        while True:
            try:
                answer = connection.recv(4096)
            except ConnectionResetError:
                break
            if not answer:
                break
            assert answer[:1] == b"\x15"  # a TLS alert at most


def test_a_deadline_that_passed_before_the_work_began(server: Server) -> None:
    replies = server.exchange(post(GOOD, "/mutate?timeout=1ns"))
    assert replies[0].status in {408, CLOSED}


@pytest.mark.parametrize("timeout", ["10s", "1m0s", "0s", "", "abc", "-5s", "99999999999h", "1.5s"])
def test_any_other_deadline_is_met(server: Server, timeout: str) -> None:
    assert server.exchange(post(GOOD, f"/mutate?timeout={timeout}"))[0].response["uid"] == UID


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param(GOOD, "/mutate", id="a repair"),
        pytest.param(GOOD, "/validate", id="a validation"),
        pytest.param(b"{}", "/mutate", id="no review"),
        pytest.param(GOOD, "/nothing", id="no path of ours"),
    ],
)
def test_the_pieces_that_a_request_comes_in_do_not_matter(
    server: Server, body: bytes, path: str
) -> None:
    """In pieces that come soon it may be answered at once, else it takes its turn."""
    data = post(body, path)
    answers = set()
    cuts = (10, len(data) - len(body), len(data) - len(body) // 2, len(data) - 1)
    for cut, seconds in [(0, 0.0), *itertools.product(cuts, (0.01, 2 * GATHER_SECONDS))]:
        with server.connect() as connection:
            connection.sendall(get("/healthz"))  # so the connection is known to be at rest
            assert server.read(connection)[0].body == b"ok"
            if cut:
                connection.sendall(data[:cut])
                time.sleep(seconds)
            connection.sendall(data[cut:])
            (reply,) = server.read(connection)
            reply.headers.pop("date")
            answers.add((reply.status, tuple(reply.headers.items()), reply.body))
    assert len(answers) == 1


def test_many_requests_on_one_connection_in_odd_pieces(server: Server) -> None:
    """Whatever the pieces, each request gets its own answer, in order."""
    uids = [f"call-{number}" for number in range(60)]
    data = b"".join(post(review(gpu_pod(), uid=uid)) for uid in uids)
    sizes = random.Random(7)  # noqa: S311  # the same pieces in each run
    with server.connect() as connection:
        while data:
            size = sizes.choice([1, 100, 1000, 1073, 5000])
            connection.sendall(data[:size])
            data = data[size:]
            time.sleep(0.001)
        replies = server.read(connection, len(uids))
    assert [reply.response["uid"] for reply in replies] == uids
