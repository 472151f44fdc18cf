"""P11: after any legal order of events the store says what a fresh list says.

And whatever a node was like in the last hours counts, also after the watcher was started again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from webhook.capacity import fit
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import group
from webhook.core.settings import Capacity, Settings
from webhook.inventory import object_facts
from webhook.inventory.publish import Publisher, Snapshot
from webhook.inventory.store import Store
from webhook.kube.pod import Pod

if TYPE_CHECKING:
    from webhook.capacity.nodes import Node

    Raw = dict[str, Any]

SETTINGS = Settings(capacity=Capacity(remembered_hours=2))
REMEMBERED_SECONDS = 2 * 3600.0
GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
NAMES = ("a", "b", "c")

labels = st.dictionaries(st.sampled_from(["zone", "rack"]), st.sampled_from(NAMES))
taints = st.lists(st.sampled_from([{"key": "k", "effect": "NoSchedule"}, {"key": "gpu"}]))
amounts = st.dictionaries(
    st.sampled_from([GPU, SLICE, "cpu"]), st.sampled_from(["0", "1", "8"]), max_size=3
)


@st.composite
def a_node(draw: st.DrawFn, name: str) -> Raw:
    return {
        "metadata": {"name": name, "labels": draw(labels)},
        "spec": {"taints": draw(taints)},
        "status": {"allocatable": draw(amounts), "phase": draw(st.text(max_size=1))},
    }


@st.composite
def a_pod(draw: st.DrawFn, name: str) -> Raw:
    requests = draw(amounts)
    where = draw(st.sampled_from(["", *NAMES, "unknown"]))
    return {
        "metadata": {"name": name, "namespace": draw(st.sampled_from(["x", "y"]))},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}
        | ({"nodeName": where} if where else {}),
        "status": {"phase": draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]))},
    }


def audit(pod: Pod) -> tuple[str, ...]:
    """Stands for the leak guard: pods named `b` in the namespace `y` see too much."""
    seen = pod.metadata == {"name": "b", "namespace": "y"}
    return ("variable", "host-path") if seen else ()


class Fold(RuleBasedStateMachine):
    """The API server's side is `nodes` and `pods`: what a list would say just now."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(SETTINGS.capacity)
        self.now = 1000.0
        self.nodes: dict[str, Raw] = {}
        self.pods: dict[str, Raw] = {}
        self.told: dict[str, Node] = {}  # what the store was told last
        self.shown: list[tuple[Node, float]] = []  # what nodes were like, and until when it counts
        self.behind: dict[str, bool] = {"nodes": False, "pods": False}

    # --- what happens to the cluster

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def node_is_put(self, data: st.DataObject, name: str) -> None:
        self.nodes[name] = data.draw(a_node(name))
        if not self.behind["nodes"]:
            self.tell_node(self.nodes[name])

    @precondition(lambda self: self.nodes and not self.behind["nodes"])
    @rule(data=st.data())
    def node_loses_its_gpus(self, data: st.DataObject) -> None:
        """A driver upgrade: the node stays, its device plugin is away."""
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.nodes[name] = {**self.nodes[name], "status": {"allocatable": {GPU: "0"}}}
        self.tell_node(self.nodes[name])

    @rule(name=st.sampled_from(NAMES))
    def node_is_deleted(self, name: str) -> None:
        gone = self.nodes.pop(name, None)
        if gone is not None and not self.behind["nodes"]:
            self.tell_node_gone(name)

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def pod_is_put(self, data: st.DataObject, name: str) -> None:
        pod = data.draw(a_pod(name))
        self.pods[object_facts.key_of(pod)] = pod
        if not self.behind["pods"]:
            self.tell_pod(pod)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def pod_is_deleted(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.pods)))
        gone = self.pods.pop(key)
        if not self.behind["pods"]:
            self.store.pods.drop(object_facts.key_of(gone), self.now)

    @rule(seconds=st.sampled_from([1.0, REMEMBERED_SECONDS / 2, REMEMBERED_SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    # --- what happens to the watch

    @rule(kind=st.sampled_from(["nodes", "pods"]))
    def watch_breaks(self, kind: str) -> None:
        """410: events are lost from now on, and only a list tells what is there."""
        self.behind[kind] = True

    @rule(kind=st.sampled_from(["nodes", "pods"]), breaks_after=st.sampled_from([0, 1, 9, 9, 9]))
    def list_again(self, kind: str, breaks_after: int) -> None:
        """A whole list, or one that breaks off in the middle (410 on its continue token)."""
        kept = self.store.nodes if kind == "nodes" else self.store.pods
        objects = list((self.nodes if kind == "nodes" else self.pods).values())
        kept.begin()
        for obj in objects[:breaks_after]:
            self.tell_node(obj) if kind == "nodes" else self.tell_pod(obj)
        if breaks_after < len(objects):
            self.behind[kind] = True
            return
        if kind == "nodes":
            for name in [each for each in self.told if each not in self.nodes]:
                self.note(name, None)
        kept.end(self.now)
        self.behind[kind] = False

    # --- what the store is told, as the loops tell it

    def tell_node(self, raw: Raw) -> None:
        raw = orjson.loads(orjson.dumps(raw))  # it comes as bytes
        node = object_facts.node(raw, SETTINGS)
        self.note(node.name, node)
        self.store.nodes.put(node.name, node, self.now)

    def tell_node_gone(self, name: str) -> None:
        self.note(name, None)
        self.store.nodes.drop(name, self.now)

    def note(self, name: str, node: Node | None) -> None:
        """What the node was like until now is remembered from now on."""
        before = self.told.pop(name, None)
        if node is not None:
            self.told[name] = node
        if before is not None and before != node and any(before.gpus.values()):
            self.shown.append((before, self.now + REMEMBERED_SECONDS))

    def tell_pod(self, raw: Raw) -> None:
        raw = orjson.loads(orjson.dumps(raw))
        self.store.pods.put(
            object_facts.key_of(raw), object_facts.pod(raw, SETTINGS, audit), self.now
        )

    # --- what must hold

    @precondition(lambda self: not any(self.behind.values()))
    @invariant()
    def says_what_a_list_says(self) -> None:
        nodes = {node.name: node for node in map(self.as_it_is, self.nodes.values())}
        counted = self.store.counted(self.now)
        there = [replace(each, most={}, former={}) for each in counted]
        assert group(there) == group([replace(each, held={}) for each in nodes.values()])
        # What is remembered tells nodes apart that a list shows alike, and so numbers them anew.
        expected = group([replace(each, held=nodes[each.name].held) for each in counted])
        again = NodeIndex.of(self.store.holding(self.now))
        free = {name: steps for name, steps in again.free.items() if steps}
        assert free == {name: steps for name, steps in NodeIndex.of(expected).free.items() if steps}
        assert again.totals == self.store.inventory(self.now).index.totals

    @invariant()
    def remembers_what_nodes_were_like(self) -> None:
        index = self.store.inventory(self.now).index
        for node, until in self.shown:
            if until > self.now:
                pod = Pod({"spec": {"nodeSelector": node.labels}})
                assert fit.enough(node.gpus, index) & fit.selected(pod, index)

    @rule()
    def forgets_at_last(self) -> None:
        """What is true now is all that counts when nothing has changed for long enough."""
        self.now += REMEMBERED_SECONDS
        inventory = self.store.inventory(self.now)
        assert inventory.classes == group(
            replace(each, held=self.store.pods.held.get(each.name, {}))
            for each in self.told.values()
        )

    @rule()
    def the_watcher_starts_again(self) -> None:
        """With the snapshot of its last life; a list follows."""
        with TemporaryDirectory() as folder:
            Publisher(Path(folder), SETTINGS).publish(self.store, self.now)
            self.store = Store(SETTINGS.capacity)
            Snapshot(folder).recall(self.store)
        for kind in ("nodes", "pods"):
            self.list_again(kind, 99)

    @precondition(lambda self: not self.behind["pods"])
    @invariant()
    def finds_what_is_exposed(self) -> None:
        seen = [
            pod
            for pod in self.pods.values()
            if audit(Pod(pod)) and pod["status"]["phase"] not in {"Succeeded", "Failed"}
        ]
        assert self.store.pods.exposed_pods == len(seen)
        assert sum(self.store.pods.exposed.values()) == 2 * len(seen)
        assert dict(self.store.pods.exposed_in) == ({"y": len(seen)} if seen else {})

    def as_it_is(self, raw: Raw) -> Node:
        node = object_facts.node(raw, SETTINGS)
        held: dict[str, int] = {}
        for pod in self.pods.values():
            running = pod["status"]["phase"] not in {"Succeeded", "Failed"}
            if running and pod["spec"].get("nodeName") == node.name:
                for resource, text in pod["spec"]["containers"][0]["resources"]["requests"].items():
                    if resource != "cpu" and text != "0":
                        held[resource] = held.get(resource, 0) + int(text)
        return replace(node, held=held)


Fold.TestCase.settings = profile(profile(), stateful_step_count=30)
TestFold = Fold.TestCase
