"""The second queue: who goes into it, whose turn it is, and who makes room."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.hostile.wire import gpu_pod, review
from webhook.admission.endpoint import Answer
from webhook.admission.review import dump, is_heavy
from webhook.serving import backlog
from webhook.serving.backlog import Backlog, namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

TEN = [
    {
        "name": f"c{number}",
        "image": "example.com/image:1",
        "env": [{"name": f"VARIABLE_{each}", "value": "x"} for each in range(20)],
        "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": f"v{each}", "mountPath": f"/v{each}"} for each in range(5)],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    for number in range(10)
]
A, B, C = b"a", b"b", b"c"
LONG = 30.0


class Bench:
    """A backlog whose thread is held until `go` is set; `order` is what it did."""

    def __init__(self) -> None:
        self.backlog = Backlog()
        self.order: list[str] = []
        self.go = threading.Event()

    def send(
        self, lane: bytes, name: str, *, size: int = 1, seconds: float = LONG, urgent: bool = False
    ) -> asyncio.Task[Answer | None]:
        def work() -> Answer:
            self.go.wait(LONG)
            self.order.append(name)
            return Answer(200, name.encode())

        return asyncio.create_task(
            self.backlog.run(lane, size, work, seconds, urgent=urgent), name=name
        )

    async def begin(self) -> None:
        """Occupy the thread, so that all that follows waits."""
        self.send(b"first", "first")
        await asyncio.sleep(0)

    async def finish(self, *tasks: asyncio.Task[Answer | None]) -> list[Answer | None]:
        await asyncio.sleep(0)  # let all of them queue up
        self.go.set()
        return await asyncio.gather(*tasks)


def await_end(is_so: Callable[[], bool], seconds: float = 5.0) -> None:
    """Block this thread until then."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.001)


def run(scenario: Coroutine[None, None, None]) -> None:
    asyncio.run(scenario)


def test_namespaces_have_their_turns() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.begin()
        many = [bench.send(A, f"a{n}") for n in range(4)]
        await bench.finish(*many, bench.send(B, "b0"), bench.send(B, "b1"), bench.send(C, "c0"))
        assert bench.order == ["first", "a0", "b0", "c0", "a1", "b1", "a2", "a3"]

    run(scenario())


def test_of_one_namespace_limits_are_judged_before_repairs() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.begin()
        tasks = [bench.send(A, "repair"), bench.send(A, "limit", urgent=True), bench.send(B, "b")]
        await bench.finish(*tasks)
        assert bench.order == ["first", "limit", "b", "repair"]

    run(scenario())


def test_of_one_namespace_the_shortest_is_judged_first() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.begin()
        sizes = {"large": 900, "small": 10, "middle": 50}
        tasks = [bench.send(A, name, size=size, urgent=True) for name, size in sizes.items()]
        await bench.finish(*tasks, bench.send(B, "b"), bench.send(A, "tiny repair", size=1))
        assert bench.order == ["first", "small", "b", "middle", "large", "tiny repair"]

    run(scenario())


def test_what_nobody_waits_for_is_not_worked_on() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.begin()
        late = bench.send(A, "late", seconds=0.01)
        left, stays = bench.send(A, "left"), bench.send(A, "stays")
        assert await late is None
        left.cancel()
        assert await bench.finish(stays) == [Answer(200, b"stays")]
        assert bench.order == ["first", "stays"]

    run(scenario())


def test_who_waits_for_the_thread_itself_is_answered_in_time() -> None:
    async def scenario() -> None:
        bench = Bench()
        running = bench.send(A, "running", seconds=0.01)
        assert await running is None
        assert await bench.finish(bench.send(A, "next")) == [Answer(200, b"next")]

    run(scenario())


def test_the_thread_does_not_wait_for_the_event_loop() -> None:
    """With hundreds of connections a round of the loop takes half a second."""

    async def scenario() -> None:
        bench = Bench()
        await bench.begin()
        tasks = [bench.send(A, f"a{n}") for n in range(4)]
        await asyncio.sleep(0)
        bench.go.set()
        await_end(lambda: len(bench.order) == 5)  # the loop is blocked
        await bench.finish(*tasks)

    run(scenario())


def test_what_was_done_in_time_is_sent_although_the_event_loop_learns_of_it_later() -> None:
    async def scenario() -> None:
        bench = Bench()
        tasks = [bench.send(A, name, seconds=1.0) for name in ("running", "next")]
        await asyncio.sleep(0)
        bench.go.set()
        end = time.monotonic() + 1.1
        await_end(lambda: time.monotonic() > end)  # the loop is blocked
        assert await asyncio.gather(*tasks) == [Answer(200, b"running"), Answer(200, b"next")]

    run(scenario())


def test_what_is_late_is_not_worked_on_although_the_event_loop_does_not_know() -> None:
    async def scenario() -> None:
        bench = Bench()
        await bench.begin()
        late = bench.send(A, "late", seconds=0.1)
        await asyncio.sleep(0)
        end = time.monotonic() + 0.2
        await_end(lambda: time.monotonic() > end)  # the loop is blocked
        bench.go.set()
        assert await late is None
        assert await bench.finish(bench.send(A, "next")) == [Answer(200, b"next")]
        assert bench.order == ["first", "next"]

    run(scenario())


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        pytest.param("MOST_WAITING", 4, id="too many wait"),
        pytest.param("MOST_BYTES", 40, id="too many bytes wait"),
    ],
)
def test_the_fullest_namespace_makes_room(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, limit, value)

    async def scenario() -> None:
        bench = Bench()
        await bench.begin()
        many = [bench.send(A, f"a{n}", size=10) for n in range(4)]
        others = [bench.send(B, "b0", size=10), bench.send(C, "c0", size=10)]
        answers = await bench.finish(*many, *others)
        assert [answer is None for answer in answers] == [True, True, False, False, False, False]
        assert bench.order == ["first", "a2", "b0", "c0", "a3"]

    run(scenario())


def test_an_error_is_its_senders() -> None:
    async def scenario() -> None:
        def work() -> Answer:
            raise ValueError("as it was")

        queue = Backlog()
        with pytest.raises(ValueError, match="as it was"):
            await queue.run(A, 1, work, LONG, urgent=False)
        done = await queue.run(A, 1, lambda: Answer(200, b"on"), LONG, urgent=False)
        assert done == Answer(200, b"on")

    run(scenario())


@pytest.mark.parametrize(
    ("body", "heavy"),
    [
        pytest.param(b"x" * 65536, False, id="long, with nothing to look at"),
        pytest.param(b"x" * 65537, True, id="too long"),
        pytest.param(b"," * 1200, False, id="1200 commas"),
        pytest.param(b"," * 1201, True, id="1201 commas"),
        pytest.param(dump(review(gpu_pod())), False, id="a pod"),
        pytest.param(dump(review(gpu_pod(containers=TEN))), False, id="ten ordinary containers"),
    ],
)
def test_what_is_heavy(body: bytes, heavy: bool) -> None:  # noqa: FBT001
    assert is_heavy(body) is heavy


@pytest.mark.parametrize(
    ("body", "namespace"),
    [
        pytest.param(dump(review(gpu_pod(), namespace="team-a")), b"team-a", id="of a review"),
        pytest.param(
            json.dumps(
                {"name": '","namespace":"victim","', "namespace": "mine"}, separators=(",", ":")
            ).encode(),
            b"mine",
            id="a name that plays one",
        ),
        pytest.param(b"{}", b"", id="none"),
        pytest.param(b" " * 5000 + b'"namespace":"x"', b"", id="not before the object"),
    ],
)
def test_whose_review_it_is(body: bytes, namespace: bytes) -> None:
    assert namespace_of(body) == namespace
