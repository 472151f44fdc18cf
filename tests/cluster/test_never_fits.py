"""GPU301 against the real scheduler: no pod that it can place is ever called impossible.

"Places" is once what passes has passed: devices and nodes are back, labels have come, taints are
gone. 2,000 random pods with nodes of their own, always the same ones. `make nightly` sets
NEVER_FITS_PODS to 10,000, and NEVER_FITS_SEED to draw others. Whatever the two judges do not agree
on is printed with the reasons of both.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.cluster import build
from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.drawn_clusters import GPU, NOW, OVERHEAD, draw
from tests.cluster.nodes import gpu_node
from tests.cluster.pods import container, named, pod
from tests.cluster.scheduling import node_of, refusal
from webhook.core.findings import Severity
from webhook.core.rule import Context
from webhook.core.settings import Capacity, Settings
from webhook.inventory import object_facts
from webhook.inventory.cluster_autoscaler import Group
from webhook.inventory.publish import Publisher, Snapshot, declared
from webhook.inventory.store import Store
from webhook.kube.pod import Pod
from webhook.rules import never_fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Client, Json
    from tests.cluster.drawn_clusters import Drawn
    from webhook.capacity.nodes import Inventory
    from webhook.core.findings import Finding

pytestmark = pytest.mark.slow

PODS = int(os.environ.get("NEVER_FITS_PODS") or 2000)
SEED = int(os.environ.get("NEVER_FITS_SEED") or 1)
_BATCH = 250
_THREADS = 8
_CAUGHT = 0.99
_DEFAULTS = Settings()


@dataclass(frozen=True)
class Judged:
    """One pod, and what each of the two judges said: None is yes, anything else the reason.

    `node` is where the scheduler placed it, `shown` are the nodes that GPU301 knew.
    """

    drawn: Drawn
    ours: Finding | None
    scheduler: str | None
    node: str
    shown: frozenset[str]

    @property
    def denied(self) -> bool:
        return self.ours is not None and self.ours.severity is Severity.DENY

    @property
    def is_false(self) -> bool:
        """Whether it was called impossible, and is placed on a node that was known.

        An amount that overflows no longer binds a pod to its own nodes, so the scheduler may place
        it on one of another pod that was not shown.
        """
        return self.denied and self.node in self.shown

    def __str__(self) -> str:
        ours = self.ours.message if self.ours else "it may run"
        nodes = [{k: n[k] for k in ("metadata", "spec", "status")} for n in self.drawn.nodes]
        return (
            f"{self.drawn.kind}: {self.drawn.seen[-1]}{self.drawn.pools}\n"
            f"we:        {ours}\nscheduler: {self.scheduler or f'placed it on {self.node}'}\n"
            f"  {self.drawn.pod['spec']}\n  on {nodes}"
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane of its own: thousands of nodes come and go."""
    if not build.is_built():
        pytest.fail("the control plane is not built: run `make cluster` first", pytrace=False)
    with ControlPlane() as running:
        yield running


@pytest.mark.usefixtures("runtime_class")
@pytest.mark.timeout(600 + PODS // 5)
def test_no_pod_that_the_scheduler_places_is_called_impossible(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    start, random, judged = time.monotonic(), Random(SEED), list[Judged]()  # noqa: S311
    for first in range(0, PODS, _BATCH):
        drawn = [
            draw(random, number, f"{SEED}-{first}")
            for number in range(first, min(first + _BATCH, PODS))
        ]
        judged += _judge(cluster.client, namespace, drawn, f"{SEED}-{first}")
    false = [each for each in judged if each.is_false]
    elsewhere = sum(each.denied and not each.scheduler for each in judged) - len(false)
    refused = [each for each in judged if each.scheduler and not each.drawn.passing]
    sure = [each for each in refused if not each.drawn.unsure]
    missed = [each for each in sure if not each.denied]
    unsure = [each for each in refused if each.drawn.unsure]
    with capsys.disabled():
        print(  # noqa: T201  # the figures, also of a run that is fine
            f"\nGPU301 and kube-scheduler on {len(judged)} pods (seed {SEED}): {len(refused)} "
            f"unschedulable; of {len(sure)} that could be known {len(missed)} missed, of "
            f"{len(unsure)} others {sum(not each.denied for each in unsure)}; {len(false)} false "
            f"denials, {elsewhere} placed on nodes that were not shown, "
            f"{time.monotonic() - start:.0f} s; {Counter(e.drawn.kind for e in judged)}"
        )
    assert not false, "called impossible, but placed:\n" + "\n".join(map(str, false[:5]))
    assert len(missed) <= (1 - _CAUGHT) * len(sure), "\n".join(map(str, missed[:5]))
    # A draw of which nearly all pods, or nearly none, can run would show nothing.
    assert 0.3 < len(refused) / len(judged) < 0.7
    assert sum(each.denied for each in unsure) > len(unsure) / 10


@pytest.fixture
def runtime_class(cluster: ControlPlane) -> Iterator[None]:
    """A runtime class that makes its pods larger, and chooses and tolerates nodes for them."""
    cluster.client.create(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": OVERHEAD},
            "handler": "nvidia",
            "overhead": {"podFixed": {GPU: "1"}},
            "scheduling": {
                "nodeSelector": {"sandbox": "yes"},
                "tolerations": [{"key": "sku", "operator": "Exists"}],
            },
        }
    )
    yield
    cluster.client.delete("RuntimeClass", OVERHEAD)


def _judge(client: Client, namespace: str, drawn: list[Drawn], batch: str) -> list[Judged]:
    nodes = [node for each in drawn for node in each.nodes]
    try:
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(client.create, nodes))
            _wait_for_the_scheduler_to_know(client, namespace, batch)
            made = list(threads.map(lambda each: client.create(each.pod, namespace).body, drawn))
        # As an admission webhook sees it: with defaults, and what the runtime class added.
        ours = [
            next(never_fits.check(Pod(obj), cx), None)
            for obj, cx in zip(made, _contexts(drawn), strict=True)
        ]
        theirs = _verdicts(client, namespace, len(made))
        return [
            Judged(each, our, *theirs[each.pod["metadata"]["name"]], _names(_shown(each, drawn)))
            for each, our in zip(drawn, ours, strict=True)
        ]
    finally:
        client.delete_all("Pod", namespace)
        query = {"labelSelector": f"batch={batch}"}
        client.demand("DELETE", "api/v1/nodes", query=query)


def _shown(asked: Drawn, drawn: list[Drawn]) -> list[Drawn]:
    """Those whose nodes are known when this pod comes: all that are sure, or its own and a few.

    A node that joins may be what any pod requests, so those of one pod are not shown to another.
    """
    sure = [each for each in drawn if not each.unsure]
    return [asked, *sure[:4]] if asked.unsure else sure


def _names(drawn: list[Drawn]) -> frozenset[str]:
    return frozenset(node["metadata"]["name"] for each in drawn for node in each.nodes)


def _contexts(drawn: list[Drawn]) -> Iterator[Context]:
    """What is known when each pod comes."""
    known = Context(inventory=_inventory([each for each in drawn if not each.unsure]))
    for each in drawn:
        if each.unsure:
            settings = Settings(capacity=Capacity(pools=each.pools))
            inventory = _inventory(_shown(each, drawn), settings)
            yield Context(inventory=inventory, settings=settings)
        else:
            yield known


def _inventory(drawn: list[Drawn], settings: Settings = _DEFAULTS) -> Inventory:
    """What a watcher knows that was told all moments, and was started again before the last."""
    store = Store(settings.capacity)
    last = max((len(each.seen) for each in drawn), default=1)
    for moment in range(last):
        if moment == last - 1:
            with TemporaryDirectory() as folder:
                Publisher(Path(folder), settings).publish(store, NOW)
                store = Store(settings.capacity)
                Snapshot(folder).recall(store)
        store.nodes.begin()
        for each in drawn:
            for raw in each.seen[min(moment, len(each.seen) - 1)]:
                store.nodes.put(raw["metadata"]["name"], object_facts.node(raw, settings), NOW)
        store.nodes.end(NOW)
        for each in drawn:
            if each.grows:
                store.node_groups.put(each.grows, (Group(each.grows, grows=True),), NOW)
    known = store.inventory(NOW)
    return replace(known, classes=(*known.classes, *declared(settings)))


def _wait_for_the_scheduler_to_know(client: Client, namespace: str, batch: str) -> None:
    """Nodes reach it in order: when it places a pod on one made last, it knows all before that."""
    resource = "example.com/last"
    client.create(gpu_node(f"last-{batch}", 1, labels={"batch": batch}, resource=resource))
    last = named(pod(container(limits={resource: 1})), f"last-{batch}")
    client.create(last, namespace)
    node_of(client, namespace, f"last-{batch}", 60)
    client.delete("Pod", f"last-{batch}", namespace)


def _verdicts(client: Client, namespace: str, count: int) -> dict[str, tuple[str | None, str]]:
    """By the pod's name: why the scheduler found no node for it, or None; and the node."""

    def all_judged() -> list[Json] | None:
        pods = client.list("Pod", namespace)
        done = [each for each in pods if each["spec"].get("nodeName") or refusal(each)]
        return pods if len(done) == count else None

    pods = until(all_judged, "the scheduler's verdicts", 120)
    return {
        each["metadata"]["name"]: (None, node) if node else (refusal(each), "")
        for each in pods
        for node in [each["spec"].get("nodeName", "")]
    }
