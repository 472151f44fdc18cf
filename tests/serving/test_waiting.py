"""Reviews that wait for a newer inventory: for how long, how many, and who is not held up."""

from __future__ import annotations

import asyncio
import json
import os
import time
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile.wire import gpu_pod, review
from webhook.admission.app import create_app
from webhook.admission.decide import STALLED_SECONDS, Decider
from webhook.admission.endpoint import Endpoint
from webhook.admission.review import dump, is_heavy
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.rules import POLICY, RULES
from webhook.serving import waiting
from webhook.serving.asgi import AdmissionApp
from webhook.serving.waiting import MOST_ARRIVING, MOST_BYTES, MOST_WAITING, Waiting, latest
from webhook.settings import file as settings_file
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

GPU = "nvidia.com/gpu"
ENFORCED = "policy: {rules: {GPU301: enforce}}\n"


def nodes(gpus: int, namespaces: Sequence[str] = ()) -> Inventory:
    whitelists = dict.fromkeys(namespaces, "")
    classes = (NodeClass({}, gpus={GPU: gpus}, nodes=("a",)),)
    return Inventory(classes, whitelists=whitelists, watched=bool(namespaces))


class Bench:
    """A worker whose watcher has more GPUs when it has looked so often, or never.

    It has the namespace of the pod from the start, or when it has looked so often.
    """

    def __init__(
        self, confirmed_after: float, gpus: int = 8, more: int = 8, *, received_after: float = 0
    ) -> None:
        log = Log(os.open(os.devnull, os.O_WRONLY))
        settings = settings_file.parse(ENFORCED)
        self._after, self.looks = confirmed_after, 0

        def decider(gpus: int) -> Decider:
            namespaces = ["default", *(["ada"] if self.looks >= received_after else [])]
            there, known = nodes(gpus, namespaces), self._known_until
            return Decider(RULES, settings, there, log, policy=POLICY, known_until=known)

        def catch_up() -> float:
            self.looks += 1
            endpoint.use(decider(more if self._known_until() == inf else gpus))
            return self._known_until()

        endpoint = Endpoint(decider(gpus), str)
        self.app = AdmissionApp(endpoint, create_app(endpoint), waiting=Waiting(catch_up))

    def _known_until(self) -> float:
        return inf if self.looks >= self._after else 0.0

    async def ask(self, gpus: int, patience: str = "5s", *, size: int = 0) -> Any:
        """The response for a pod with so many GPUs."""
        pod = gpu_pod()
        pod["spec"]["containers"][0]["resources"] = {"limits": {GPU: str(gpus)}}
        pod["metadata"]["annotations"] = {"large": "x" * size}
        body = dump(review(pod, namespace="ada"))
        assert is_heavy(body) is bool(size)
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/validate",
            "query_string": f"timeout={patience}".encode(),
            "headers": [(b"content-type", b"application/json")],
        }
        await self.app(scope, receive, send)
        return json.loads(sent[1]["body"])["response"]


def run(made: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(made)


UNSURE = "[not denied: the nodes may have changed just now]"


@pytest.mark.parametrize(
    ("after", "more", "gpus", "patience", "allowed", "waits"),
    [
        pytest.param(0, 8, 9, "5s", False, False, id="confirmed: denied at once"),
        pytest.param(5, 16, 9, "5s", True, True, id="new nodes are confirmed: admitted"),
        pytest.param(5, 8, 9, "5s", False, True, id="the old nodes are confirmed: denied"),
        pytest.param(inf, 8, 9, "5s", True, True, id="never confirmed: a warning after 2 s"),
        pytest.param(inf, 8, 9, "1s", True, True, id="before the timeout of the caller"),
        pytest.param(inf, 8, 8, "5s", True, False, id="a pod that fits waits for nothing"),
    ],
)
@pytest.mark.parametrize("size", [0, 100_000], ids=["light", "heavy"])
def test_a_denial_waits_for_a_newer_inventory(
    *,
    after: float,
    more: int,
    gpus: int,
    patience: str,
    allowed: bool,
    waits: bool,
    size: int,
) -> None:
    bench = Bench(after, more=more)
    answer = run(bench.ask(gpus, patience, size=size))
    assert answer["allowed"] is allowed, answer
    assert (bench.looks > 1) is waits
    says = any(UNSURE in each for each in answer.get("warnings", ()))
    assert says is (after == inf and gpus > 8)


@pytest.mark.parametrize(
    ("received", "confirmed", "gpus", "allowed", "looks"),
    [
        pytest.param(3, inf, 8, True, 3, id="received: answered at once"),
        pytest.param(inf, 4, 8, True, 4, id="not received, and confirmed: there is none"),
        pytest.param(3, 6, 9, False, 6, id="a denial for capacity waits for the nodes, too"),
        pytest.param(3, inf, 9, True, 20, id="and is a warning at the end of the same time"),
        pytest.param(inf, inf, 8, True, 20, id="never received: answered at the end of the time"),
    ],
)
def test_a_review_of_a_new_namespace_waits_until_the_watcher_has_it(
    *, received: float, confirmed: float, gpus: int, allowed: bool, looks: int
) -> None:
    bench = Bench(confirmed, received_after=received)
    began = time.monotonic()
    answer = run(bench.ask(gpus, "3s"))
    took = time.monotonic() - began
    assert answer["allowed"] is allowed
    if looks < 20:
        assert bench.looks == looks
    else:
        assert took > 1, "half of the time that it has"


def test_other_reviews_are_answered_while_some_wait() -> None:
    async def both() -> bool:
        bench = Bench(inf)
        waits = asyncio.create_task(bench.ask(9))
        await asyncio.sleep(0.1)
        await bench.ask(1)
        still_waits = not waits.done()
        await waits
        return still_waits

    assert run(both())


def held(waiting: Waiting, size: int, count: int, end: float) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(waiting.until(1.0, size, latest(end))) for _ in range(count)]


@pytest.mark.parametrize(
    ("size", "count"),
    [
        pytest.param(1, MOST_WAITING, id="so many reviews"),
        pytest.param(MOST_BYTES // 2, 2, id="so many bytes"),
    ],
)
def test_beyond_the_limits_none_waits_and_later_ones_do_again(size: int, count: int) -> None:
    async def go() -> list[bool]:
        line = Waiting(lambda: 0.0)
        first = held(line, size, count, time.monotonic() + 0.8)
        await asyncio.sleep(0.05)
        one_more = held(line, size, 1, time.monotonic() + 0.8)
        await asyncio.sleep(0.05)
        done = [one_more[0].done(), any(each.done() for each in first)]
        await asyncio.gather(*first)
        later = held(line, size, 1, time.monotonic() + 0.8)
        await asyncio.sleep(0.05)
        done.append(later[0].done())
        await asyncio.gather(*later)
        return done

    assert run(go()) == [True, False, False]


def test_denials_that_wait_take_no_place_from_reviews_of_new_namespaces() -> None:
    async def go() -> bool:
        line, end = Waiting(lambda: 0.0), time.monotonic() + 0.8
        denials = held(line, 1, MOST_WAITING, end)
        arrival = asyncio.create_task(line.until(1.0, 1, latest(end), lambda: False))
        await asyncio.sleep(0.05)
        waits = not arrival.done()
        await asyncio.gather(arrival, *denials)
        return waits

    assert run(go())


def test_a_large_review_leaves_its_place_to_small_ones() -> None:
    async def go() -> list[bool]:
        line, last = Waiting(lambda: 0.0), latest(time.monotonic() + 0.8)

        def arrival(size: int) -> asyncio.Task[None]:
            return asyncio.create_task(line.until(1.0, size, last, lambda: False))

        large = [arrival(MOST_BYTES // 2) for _ in range(2)]
        await asyncio.sleep(0.05)
        small = [arrival(9_000) for _ in range(50)]
        await asyncio.sleep(0.05)
        done = [any(each.done() for each in small), *(each.done() for each in large)]
        await asyncio.gather(*large, *small)
        return done

    waits, *left = run(go())
    assert not waits
    assert sorted(left) == [False, True], "one of them, not both"


def test_a_thousand_reviews_of_namespaces_that_do_not_exist_leave_places() -> None:
    async def go() -> bool:
        line, end = Waiting(lambda: 0.0), time.monotonic() + 0.8
        flood = [
            asyncio.create_task(line.until(1.0, 5_000, latest(end), lambda: False))
            for _ in range(MOST_ARRIVING - 1)
        ]
        await asyncio.sleep(0.05)
        one = asyncio.create_task(line.until(1.0, 5_000, latest(end), lambda: False))
        await asyncio.sleep(0.05)
        waits = not one.done()
        await asyncio.gather(one, *flood)
        return waits

    assert run(go())


@pytest.mark.parametrize(
    ("known", "waits"),
    [
        pytest.param(1000.0 - STALLED_SECONDS - 1, False, id="it stands still: nobody waits"),
        pytest.param(1000.0 - STALLED_SECONDS + 1, True, id="it is late"),
        pytest.param(0.0, True, id="it lists again"),
    ],
)
def test_a_watcher_that_stands_still_is_not_waited_for(known: float, *, waits: bool) -> None:
    async def go() -> bool:
        end = time.monotonic() + 0.8
        task = asyncio.create_task(Waiting(lambda: known).until(1000.0, 1, latest(end)))
        await asyncio.sleep(0.05)
        still = not task.done()
        await task
        return still

    assert run(go()) is waits


def test_many_that_wait_look_at_the_files_as_rarely_as_one() -> None:
    looks = 0

    def catch_up() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    async def go() -> None:
        line = Waiting(catch_up)
        await asyncio.gather(*held(line, 1, MOST_WAITING, time.monotonic() + 1.0))

    run(go())
    assert 2 <= looks <= 0.5 / waiting.LOOK_SECONDS + 2


def test_the_inventory_must_be_newer_than_the_request_and_what_is_under_way() -> None:
    moment: Callable[[float], float] = waiting.moment_of
    now = time.time()
    assert moment(time.monotonic()) == pytest.approx(now + waiting.MARGIN_SECONDS, abs=0.1)
    assert moment(time.monotonic() - 3) == pytest.approx(now - 3 + waiting.MARGIN_SECONDS, abs=0.1)
