"""Reviews that cannot be read: each is answered as a review.

An API server takes anything else for a failed call, and lets the object in where failurePolicy is
Ignore.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.wire import CLOSED, gpu_pod, post, review, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.hostile.wire import Reply, Server

pytestmark = pytest.mark.programs

MIB = 1024 * 1024
SETTINGS = """
policy:
  rules: {GPU303: enforce, GPU304: enforce}
capacity:
  limits:
  - gpus: {nvidia.com/gpu: 1}
"""
REFUSING = {"/validate": "GPU304", "/guard": "GPU303", "/guard/refuse": "GPU303"}
LARGE = "it takes more than 10 MiB as JSON; make it smaller"
MANY = "it has too many fields and list items to be read, or is nested too deeply; make it smaller"
SLOW = "it did not come in time; send it again"
LATE = "too many large objects came at the same time; send it again"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a limit and the guard in force."""
    folder = tmp_path_factory.mktemp("strict")
    (folder / "settings.yaml").write_text(SETTINGS)
    with serving(folder, "--dev", "--workers=1", "--config=settings.yaml") as server:
        yield server
        assert [status for status in server.seen if status >= 500] == []


def compact(pod: Any = None, **request: Any) -> bytes:
    """The review of a pod of 2 GPUs, written as Go does."""
    return json.dumps(review(pod or gpu_pod(), **request), separators=(",", ":")).encode()


def holding(value: bytes, where: str = "object") -> bytes:
    """A review with this JSON in its object, or beside it."""
    mark = b'"spec":{' if where == "object" else b'"%b":' % where.encode()
    new = mark + b'"x":%b,' % value if where == "object" else mark + value + b',"x":'
    return compact().replace(mark, new, 1)


def escaped(size: int) -> bytes:
    return holding(b'"%b"' % (b"\\u003c" * (size // 6)))


UNREADABLE: dict[str, tuple[Callable[[], bytes], str]] = {
    "11 MiB of escapes": (lambda: escaped(11 * MIB), LARGE),
    "both objects at their largest": (lambda: escaped(40 * MIB), LARGE),
    "millions of empty objects": (lambda: holding(b"[%b{}]" % (b"{}," * 2_000_000)), MANY),
    "the same in the old object": (
        lambda: holding(b"[%b{}]" % (b"{}," * 2_000_000), "oldObject"),
        MANY,
    ),
    "millions of numbers, and a long one": (
        lambda: holding(b"[%b1234567890123456789012]" % (b"1," * 3_000_000)),
        MANY,
    ),
    "nested 1,100 deep": (lambda: holding(b'{"a":' * 1100 + b"1" + b"}" * 1100), MANY),
    "many groups, then 11 MiB": (
        lambda: compact(userInfo={"groups": ["g"] * 20_000}) + b" " * 11 * MIB,
        LARGE,
    ),
}


def chunked(body: bytes, path: str) -> bytes:
    pieces = (body[at : at + 65536] for at in range(0, len(body), 65536))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    head = post(b"", path, Content_Length="", Transfer_Encoding="chunked")
    return head + chunks + b"0\r\n\r\n"


def assert_refused(reply: Reply, path: str, why: str) -> None:
    code = REFUSING[path]
    text = f"gpu-webhook: {code} is in force here and could not check this pod: {why}"
    assert reply.response["allowed"] is False
    assert reply.response["status"]["message"] == text


@pytest.mark.pairs
@pytest.mark.parametrize("way", ["in one piece", "in chunks"])
@pytest.mark.parametrize("case", UNREADABLE)
@pytest.mark.parametrize("path", REFUSING)
def test_a_pod_is_refused(strict: Server, path: str, case: str, way: str) -> None:
    make, why = UNREADABLE[case]
    url = f"{path}?timeout=10s"
    data = (post if way == "in one piece" else chunked)(make(), url)
    assert_refused(strict.exchange(data)[0], path, why)


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_repair_never_refuses(strict: Server, case: str) -> None:
    make, why = UNREADABLE[case]
    response = strict.post(make(), "/mutate?timeout=10s").response
    assert response["allowed"] is True
    assert response["warnings"] == [f"gpu-webhook: this object was admitted without repair: {why}"]


def test_a_workload_is_let_in_with_a_warning(strict: Server) -> None:
    kinds = {
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
    }
    body = compact(**kinds) + b" " * 11 * MIB
    response = strict.post(body, "/validate?timeout=10s").response
    assert response["allowed"] is True
    assert response["warnings"] == [
        f"gpu-webhook: this object was admitted without checks: {LARGE}"
    ]


def test_one_that_can_be_read_is_judged(strict: Server) -> None:
    """1.3 MB of `<` in args: 7.8 MiB of JSON."""
    pod = gpu_pod()
    limits = {"nvidia.com/gpu": 2}
    pod["spec"]["containers"][0] |= {"args": ["<" * 1_300_000], "resources": {"limits": limits}}
    body = compact(pod).replace(b"<", b"\\u003c")
    assert len(body) > 7 * MIB
    text = strict.post(body, "/validate?timeout=10s").response["status"]["message"]
    assert "requests 2 nvidia.com/gpu" in text
    body = body.replace(b'"nvidia.com/gpu":2', b'"nvidia.com/gpu":1')
    assert strict.post(body, "/validate?timeout=10s").response["allowed"] is True


@pytest.mark.parametrize("path", REFUSING)
def test_one_that_stalls_is_refused(strict: Server, path: str) -> None:
    body = compact()[:-20]
    (reply,) = strict.exchange(post(body, f"{path}?timeout=1s", Content_Length=str(len(body) + 9)))
    assert_refused(reply, path, SLOW)


def test_what_has_to_make_room_is_refused(strict: Server) -> None:
    """Of 12 stalled bodies of 6 MB a worker holds 4: who began first is answered."""
    body = holding(b'"%b' % (b"x" * 6_000_000))
    stalled = post(body, "/validate?timeout=10s", Content_Length=str(len(body) + 9))
    with ExitStack() as held:
        connections = [held.enter_context(strict.connect()) for _ in range(12)]
        for connection in connections:
            connection.sendall(stalled)
        replies = [strict.read(connection)[0] for connection in connections]
    whys = [reply.response["status"]["message"].partition("pod: ")[2] for reply in replies]
    assert set(whys) == {LATE, SLOW}


def test_what_follows_is_not_taken_for_a_request(strict: Server) -> None:
    """The rest of the body is thrown away, and the connection closed."""
    data = post(escaped(11 * MIB), "/validate?timeout=10s") + post(compact(), "/validate")
    replies = strict.exchange(data, answers=2)
    assert [reply.status for reply in replies] == [200, CLOSED]
    assert replies[0].headers["connection"] == "close"


@pytest.mark.parametrize(
    ("unit", "number", "status"),
    [
        pytest.param(b'"%b",' % (b" " * MIB), 11, 413, id="no review, and large"),
        pytest.param(b"{},", 2_000_000, 400, id="dense"),
    ],
)
def test_what_is_no_review_is_told_so(
    strict: Server, unit: bytes, number: int, status: int
) -> None:
    body = b'{"kind":"Pod","x":[%b1]}' % (unit * number)
    assert strict.post(body, "/validate?timeout=10s").status == status
