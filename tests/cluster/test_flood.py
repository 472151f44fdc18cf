"""One tenant with large pods, 50 a second: the neighbours do not notice, limits and guard hold."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.pods import NVIDIA, alpha, container, modern, named, pod
from tests.cluster.webhook import failed_open, guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Answer, Client, Json
    from tests.cluster.controlplane import ControlPlane

SETTINGS = """
policy:
  rules: {GPU303: enforce, GPU304: enforce}
capacity:
  limits:
  - gpus: {nvidia.com/gpu: 2}
"""
SECONDS = 12.0
BOMBS_A_SECOND = 50
SENDERS = 24
NEIGHBOURS = 4
VARIABLE = "NVIDIA_VISIBLE_DEVICES"
SEEING = {"name": VARIABLE, "value": "all"}


@pytest.fixture(scope="module")
def flooded(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server of its own, with the guard and its refusing half."""
    folder = tmp_path_factory.mktemp("flood")
    with guarded(cluster, folder, SETTINGS, f"--inventory={INVENTORY}"):
        yield


def many_tolerations() -> Json:
    there = [{"key": f"k{n}", "operator": "Exists"} for n in range(2500)]
    said = json.dumps([{"key": f"j{n}"} for n in range(2500)])
    annotations = {"scheduler.alpha.kubernetes.io/tolerations": said}
    return pod(modern(8), annotations=annotations, tolerations=there)


def long_search_path() -> Json:
    path = ":".join(f"/usr/lib/nvidia-375/{n}" for n in range(8000))
    stale = {"name": "v", "hostPath": {"path": "/usr/lib/nvidia-375"}}
    mount = {"name": "v", "mountPath": "/usr/lib/nvidia-375"}
    env = [{"name": "LD_LIBRARY_PATH", "value": path}]
    return pod(modern(8, env=env, volumeMounts=[mount]), volumes=[stale])


def many_containers() -> Json:
    return pod(*[container(f"c{n}", {NVIDIA: 8}, env=[SEEING]) for n in range(300)])


def over_the_budget() -> Json:
    return pod(modern(8), annotations={"large": "x" * 260_000, "more": "x" * 10_000})


BOMBS = (many_tolerations, long_search_path, many_containers, over_the_budget)


class Flood:
    """Sends bombs at a rate, in turn of their kinds, and counts what got through."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._bombs = [named(each(), f"bomb-{at}") for at, each in enumerate(BOMBS)]
        self._lock = threading.Lock()
        self._number = 0
        self._end = time.monotonic() + SECONDS
        self.answers: list[Answer] = []

    def send(self) -> None:
        while time.monotonic() < self._end:
            with self._lock:
                number, self._number = self._number, self._number + 1
            due = self._end - SECONDS + number / BOMBS_A_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            bomb = self._bombs[number % len(self._bombs)]
            answer = self._client.try_create(bomb, self._namespace, dry_run=True)
            with self._lock:
                self.answers.append(answer)


class Visits:
    """One pod after the other, while the flood lasts: how long each took, and what came of it."""

    def __init__(self, visit: Callable[[], bool]) -> None:
        self._visit = visit
        self.seconds: list[float] = []
        self.bad = 0

    def go(self, stop: threading.Event) -> None:
        while not stop.wait(0.1):
            self.go_on(1)

    def go_on(self, times: int) -> None:
        for _ in range(times):
            began = time.monotonic()
            good = self._visit()
            self.seconds.append(time.monotonic() - began)
            self.bad += not good

    def share(self, part: float) -> float:
        return sorted(self.seconds)[int(part * (len(self.seconds) - 1))]


@pytest.mark.slow
@pytest.mark.usefixtures("flooded")
def test_one_tenants_large_pods(cluster: ControlPlane, namespace: str) -> None:
    client = cluster.client
    client.patch(
        "Namespace", namespace, {"metadata": {"labels": {"gpu-webhook.dev/guard": "enabled"}}}
    )
    neighbours = [f"{namespace[:50]}-n{n}" for n in range(NEIGHBOURS)]
    for each in neighbours:
        cluster.make_namespace(each)

    def repaired(where: str) -> bool:
        answer = client.try_create(named(pod(alpha(1)), "good"), where, dry_run=True)
        limits = answer.body["spec"]["containers"][0]["resources"]["limits"] if answer.ok else {}
        return NVIDIA in limits

    def limited() -> bool:
        answer = client.try_create(named(pod(modern(8)), "greedy"), namespace, dry_run=True)
        return not answer.ok

    def guarded() -> bool:
        seeing = named(pod(container(env=[SEEING])), "seeing")
        answer = client.try_create(seeing, namespace, dry_run=True)
        env = answer.body["spec"]["containers"][0]["env"] if answer.ok else []
        return SEEING not in env

    until(guarded, "the guard to be called")
    assert limited()
    assert all(map(repaired, neighbours))
    before = failed_open(cluster)
    alone = Visits(lambda: repaired(neighbours[0]))
    alone.go_on(20)
    good = [Visits(lambda where=each: repaired(where)) for each in neighbours]  # type: ignore[misc]
    tries = [Visits(limited), Visits(guarded)]
    flood, stop = Flood(client, namespace), threading.Event()
    senders = [threading.Thread(target=flood.send) for _ in range(SENDERS)]
    visitors = [threading.Thread(target=each.go, args=(stop,)) for each in (*good, *tries)]
    for thread in (*senders, *visitors):
        thread.start()
    for thread in senders:
        thread.join()
    stop.set()
    for thread in visitors:
        thread.join()

    all_good = Visits(lambda: True)
    all_good.seconds = [second for each in good for second in each.seconds]
    escaped = [answer for answer in flood.answers if answer.ok]
    print(  # noqa: T201  # the figures that the project reports
        f"\n{len(flood.answers)} bombs in {SECONDS:.0f} s, {len(escaped)} let in; "
        f"{len(all_good.seconds)} pods of neighbours: p50 {all_good.share(0.5):.3f} s, "
        f"p99 {all_good.share(0.99):.3f} s "
        f"(alone {alone.share(0.5):.3f} and {alone.share(0.99):.3f} s), "
        f"{sum(each.bad for each in good)} not repaired; "
        f"the tenant's own: {len(tries[0].seconds)} over the limit, {tries[0].bad} let in, "
        f"{len(tries[1].seconds)} that would see GPUs, {tries[1].bad} let in; "
        f"the API server gave up on {failed_open(cluster) - before} calls"
    )
    assert sum(each.bad for each in good) == 0
    assert tries[0].bad == 0
    assert tries[1].bad == 0
    assert escaped == []
