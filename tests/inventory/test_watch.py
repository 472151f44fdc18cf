"""The watcher's loops, over HTTP with a small API server; a real one is met in tests/cluster."""

from __future__ import annotations

import gc
import os
import re
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from queue import Queue
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.cluster.client import until
from tests.inventory.api_server import DEVICE_CLASSES, ApiServer
from tests.log_lines import entries
from webhook.cluster.client import Client, Fault, Refused, configuration
from webhook.core.errors import InputError
from webhook.core.settings import Settings
from webhook.inventory import list_and_watch as loops
from webhook.inventory import log_limits, watch
from webhook.inventory.events import Events
from webhook.inventory.log_limits import LINE_SECONDS, LimitedLog
from webhook.inventory.publish import Snapshot, basis
from webhook.inventory.watch import Watcher
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webhook.inventory.object_facts import Audit
    from webhook.kube.pod import Pod

GPU = "nvidia.com/gpu"
SETTINGS = Settings()


class Running:
    """A watcher in a thread, its snapshot, and its log."""

    def __init__(self, watcher: Watcher, folder: Path, log_file: Path) -> None:
        self.watcher = watcher
        self._new_settings: Queue[Settings] = Queue()
        self.reader = Snapshot(folder)
        self._log_file = log_file

    def use(self, settings: Settings) -> None:
        """Give the watcher other settings in its own thread, as its command does."""
        self._new_settings.put(settings)
        until(lambda: not self._new_settings.unfinished_tasks, "the watcher uses them")

    def every_second(self) -> None:
        while not self._new_settings.empty():
            self.watcher.use(self._new_settings.get())
            self._new_settings.task_done()

    def nodes(self) -> set[str]:
        return set(self.watcher.store.nodes.facts)

    def state(self, name: str) -> loops.State:
        return self.watcher.states[name]

    def lines(self) -> list[dict[str, Any]]:
        return entries(self._log_file)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@contextmanager
def watching(api: ApiServer, folder: Path, audit: Audit | None = None) -> Iterator[Running]:
    file = api.kubeconfig(folder, token="secret")  # noqa: S106 - of a test
    client = Client(lambda: configuration(str(file)))
    log_file = folder / "log"
    log = Log(os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    (folder / "snapshot").mkdir(exist_ok=True)
    watcher = Watcher(client, SETTINGS, folder / "snapshot", log, lambda _: audit)
    running = Running(watcher, folder / "snapshot", log_file)
    thread = threading.Thread(target=watcher.run, args=(running.every_second,))
    thread.start()
    try:
        yield running
    finally:
        watcher.stopped.set()
        thread.join(5)
        log.close()
    assert not thread.is_alive()


def node(gpus: int = 8) -> dict[str, Any]:
    return {"status": {"allocatable": {GPU: str(gpus)}}}


def pod(namespace: str, gpus: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {GPU: str(gpus)}}}
    return {
        "metadata": {"namespace": namespace},
        "spec": {"nodeName": "n", "containers": [container]},
    }


def test_lists_by_pages_and_follows_what_happens(api: ApiServer, tmp_path: Path) -> None:
    for number in range(1200):
        api.put("nodes", f"n{number}", node())
    with watching(api, tmp_path) as running:
        until(running.reader.refresh, "a snapshot")
        assert len(running.nodes()) == 1200
        pages = [query for _, path, query in api.asked if path == "/api/v1/nodes" and query]
        assert [each.get("continue") for each in pages if "watch" not in each][:3] == [
            None,
            "200",
            "400",
        ]
        until(lambda: running.state("nodes").state == "watching", "a watch")
        api.delete("nodes", "n7")
        api.put("nodes", "new", node())
        until(lambda: running.nodes() >= {"new"}, "the event")
        assert "n7" not in running.nodes()
        until(lambda: running.reader.status().as_of > 0, "a claim")
        assert len(api.lists("nodes")) == 1
    assert api.headers[0]["authorization"] == "Bearer secret"


def test_a_watcher_that_ended_leaves_the_garbage_collection_on(
    api: ApiServer, tmp_path: Path
) -> None:
    """It is off while a watcher runs; what runs later in the process would never release cycles."""
    with watching(api, tmp_path):
        until(lambda: not gc.isenabled(), "a watcher that runs")
    assert gc.isenabled()


def test_large_pods_are_listed_by_smaller_pages(api: ApiServer, tmp_path: Path) -> None:
    for number in range(12):
        large = pod("team", 1)
        large["metadata"]["annotations"] = {"a": "x" * 1_000_000}
        api.put("pods", f"p{number}", large)
    with watching(api, tmp_path) as running:
        until(lambda: running.state("pods").listed, "a list")
        assert running.watcher.store.pods.held == {"n": {GPU: 12}}
        assert (running.state("pods").lists, running.state("pods").faults) == (1, 0)
    asked = [each for _, path, each in api.asked if path == "/api/v1/pods" and "limit" in each]
    assert int(asked[-1]["limit"]) <= 8, "twelve such pods are more than a page may have"


def test_only_new_pods_are_looked_at_for_repairs(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(Events, "look", lambda _, obj, __: seen.append(obj["metadata"]["name"]))
    api.put("pods", "a", pod("team", 1))
    with watching(api, tmp_path) as running:
        until(lambda: running.state("pods").state == "watching", "a watch")
        api.put("pods", "b", pod("team", 1))
        api.put("pods", "a", pod("team", 2))
        api.put("pods", "b", pod("team", 2))
        until(lambda: running.state("pods").events == 3, "the events")
    assert seen == ["a", "b"]


def test_a_kind_that_is_not_served_is_none_and_an_older_version_will_do(
    api: ApiServer, tmp_path: Path
) -> None:
    for path in map(DEVICE_CLASSES.format, ("v1", "v1beta2")):
        api.say(path, 404)
    api.say("/apis/node.k8s.io/v1/runtimeclasses", 404)
    api.put("deviceclasses", "gpu", {"spec": {"extendedResourceName": GPU}})
    with watching(api, tmp_path) as running:
        inventory = until(running.reader.refresh, "a snapshot")
        assert GPU in inventory.served_by_dra
        until(lambda: running.state("runtimeclasses").state == "absent", "it is not served")
        until(lambda: running.reader.status().as_of > 0, "the rest is enough")
        assert running.state("runtimeclasses").fault == ""


def test_what_may_not_be_read_is_unknown_and_said_once(api: ApiServer, tmp_path: Path) -> None:
    api.say("/api/v1/pods", 403, b'{"message": "pods is forbidden"}')
    with watching(api, tmp_path) as running:
        until(lambda: running.state("pods").state == "refused", "the refusal")
        until(lambda: running.reader.status().as_of > 0, "the rest is enough")
        assert running.state("pods").fault == "403: pods is forbidden"
        assert running.state("pods").as_data()["refused"]
        until(lambda: len(running.lines()) == 1, "a line")
        assert running.lines()[0]["message"] == "pods are unknown: RBAC forbids listing them"


def test_a_right_that_is_missing_is_said_once_and_so_is_that_it_was_given(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "REFUSED_SECONDS", 0.2)
    monkeypatch.setattr(loops, "LIST_SECONDS", 0.2)
    api.say("/api/v1/pods", 403, b'{"message": "pods is forbidden"}')
    with watching(api, tmp_path) as running:
        until(lambda: running.state("pods").lists >= 4, "some more tries")
        del api.answers["/api/v1/pods"]
        until(lambda: running.state("pods").state == "watching", "a watch")
        until(lambda: len(running.lines()) >= 2, "the lines")
        assert [each["message"] for each in running.lines()] == [
            "pods are unknown: RBAC forbids listing them",
            "pods are known now: RBAC allows listing them",
        ]


def test_an_outage_is_a_line_and_so_is_its_end(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "LIST_SECONDS", 0.2)
    monkeypatch.setattr(loops, "WATCH_SECONDS", (1, 1))
    monkeypatch.setattr(log_limits, "STEADY_SECONDS", 1.0)
    paths = ["/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces"]
    names = [path.rpartition("/")[2] for path in paths]
    with watching(api, tmp_path) as running:
        until(lambda: all(running.state(name).listed for name in names), "all to be known")
        for path in paths:
            api.say(path, 503, b"away")
            api.say_to_watches(path, b'{"type":"ERROR","object":{"code":503,"message":"away"}}\n')
        until(lambda: all(running.state(name).faults >= 2 for name in names), "an outage")
        until(lambda: len(running.lines()) >= 1, "a line")
        for path in paths:
            del api.answers[path], api.watched[path]
        until(lambda: not any(running.state(name).fault for name in names), "its end", 40)
        until(lambda: running.lines()[-1]["level"] == "info", "the line", 30)
        lines = running.lines()
    *failed, works = lines
    assert {each["message"].partition(":")[0] for each in failed} == {
        "the API server does not answer correctly"
    }
    assert len(failed) <= 2, "all that fails together is one line"
    assert works["message"].startswith("the API server answers again: ")
    assert all(name in works["message"] for name in names)


def test_hints_of_autoscalers_are_read_and_a_right_that_is_taken_away_stops_nothing(
    api: ApiServer, tmp_path: Path
) -> None:
    status = "nodeGroups:\n- name: more\n  maxSize: 2\n"
    config_map = {"metadata": {"namespace": "kube-system"}, "data": {"status": status}}
    api.put("nodes", "n", node())
    api.put("nodepools", "spot", {"spec": {"limits": {"nvidia.com/gpu": "8"}}})
    api.put("configmaps", "cluster-autoscaler-status", config_map)
    with watching(api, tmp_path) as running:
        inventory = until(running.reader.refresh, "a snapshot")
        assert [words for words, _ in inventory.index.hinted] == [
            "NodePool spot (Karpenter)",
            "node group more (cluster-autoscaler)",
        ]
        asked = [query for _, path, query in api.asked if path.endswith("/configmaps")]
        assert {each["fieldSelector"] for each in asked} == {
            "metadata.name=cluster-autoscaler-status"
        }
        until(lambda: running.state("nodepools").state == "watching", "a watch")
        path = "/apis/karpenter.sh/v1/nodepools"
        api.say(path, 403)
        api.say_to_watches(path, b'{"type":"ERROR","object":{"code":403}}\n')
        api.tell("nodepools", "ERROR", {"code": 403})
        until(lambda: running.state("nodepools").state == "refused", "the refusal")
        assert not running.state("nodepools").listed, "its age holds nothing up"
        lines = [each["message"] for each in running.lines()]
        assert lines == ["nodepools are unknown: RBAC forbids listing them"]


def test_node_pools_of_a_version_that_is_newer_than_the_watcher_are_found(
    api: ApiServer, tmp_path: Path
) -> None:
    for version in ("v1", "v1beta1", "v3"):
        api.say(f"/apis/karpenter.sh/{version}/nodepools", 404)
    served = [{"groupVersion": f"karpenter.sh/{each}", "version": each} for each in ("v3", "v2")]
    group = {"preferredVersion": served[0], "versions": [*served, {"version": 5}, "odd"]}
    api.say("/apis/karpenter.sh", 200, orjson.dumps(group))
    api.put("nodes", "n", node())
    api.put("nodepools", "spot", {"spec": {"shape": "of another time"}})
    with watching(api, tmp_path) as running:
        inventory = until(running.reader.refresh, "a snapshot")
        assert [words for words, _ in inventory.index.hinted] == ["NodePool spot (Karpenter)"]
        until(lambda: running.state("nodepools").state == "watching", "a watch")
    assert any(path == "/apis/karpenter.sh/v2/nodepools" for _, path, _ in api.asked)


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_without_karpenter_has_no_node_pools(
    api: ApiServer, tmp_path: Path, status: int
) -> None:
    for version in ("v1", "v1beta1"):
        api.say(f"/apis/karpenter.sh/{version}/nodepools", 404)
    api.say("/apis/karpenter.sh", status)
    with watching(api, tmp_path) as running:
        until(lambda: running.state("nodepools").state == "absent", "none to be served")


def test_without_nodes_nothing_is_published(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "WAIT_FOR_NODES", 0.2)
    api.say("/api/v1/nodes", 403)
    with watching(api, tmp_path) as running:
        until(lambda: running.state("pods").state == "watching", "the others")
        time.sleep(1.5)
        assert running.reader.refresh() is None
        assert running.reader.status().as_of == 0


def test_one_odd_object_does_not_hide_the_others(api: ApiServer, tmp_path: Path) -> None:
    def audit(found: Pod) -> tuple[str, ...]:
        if found.metadata["name"] == "odd":
            raise ValueError("what is this?")
        return ()

    for name in ("a", "odd", "z"):
        api.put("pods", name, pod("team", 1))
    with watching(api, tmp_path, audit) as running:
        until(lambda: len(running.watcher.store.pods.facts) == 2, "two pods")
        assert running.state("pods").skipped == 1
        until(lambda: running.state("pods").state == "watching", "a watch")
        api.put("pods", "odd", pod("team", 2))
        api.put("pods", "later", pod("team", 3))
        until(lambda: len(running.watcher.store.pods.facts) == 3, "the pod after it")
        assert running.state("pods").skipped == 2
        assert running.state("pods").lists == 1
        assert "what is this?" in running.lines()[0]["reason"]


@pytest.mark.parametrize(
    "obj",
    [1, None, [], "text", {}, {"metadata": 1}, {"metadata": {"name": 7}}],
    ids=str,
)
def test_an_item_that_is_no_object_is_passed_over(obj: Any, api: ApiServer, tmp_path: Path) -> None:
    body = orjson.dumps(
        {"metadata": {"resourceVersion": "9"}, "items": [obj, {"metadata": {"name": "n"}}]}
    )
    api.say("/api/v1/nodes", 200, body)
    with watching(api, tmp_path) as running:
        until(lambda: running.nodes() == {"n"}, "the other item")


def test_exposed_pods_are_told(api: ApiServer, tmp_path: Path) -> None:
    api.put("pods", "a", pod("team", 1))
    with watching(api, tmp_path, lambda _: ("host-path",)) as running:
        until(lambda: running.reader.status().content.get("exposed") or None, "the status")
        status = running.reader.status().content
        assert status["exposed"] == {"host-path": 1}
        assert status["exposed_in"] == {"team": 1}
        found = until(lambda: [e for e in running.lines() if "pods" in e] or None, "a line")
        assert found[0]["pods"] == ["team/a: host-path"]
        assert found[0]["message"].startswith("GPU303 audit")


BAD_LISTS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "no JSON": (200, b"<html>", {}),
    "a login page": (200, b"<html>", {"Content_Type": "text/html"}),
    "a list without a version": (200, b'{"items": []}', {}),
    "items that are none": (200, b'{"metadata": {"resourceVersion": "1"}, "items": 1}', {}),
    "JSON that is no object": (200, b"[]", {}),
    "a redirect": (302, b"", {"Location": "/"}),
    "too many requests": (429, b"", {"Retry_After": "2"}),
    "an error that is no status": (500, b"\xff\xfe", {}),
}


@pytest.mark.parametrize(("status", "body", "headers"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_a_bad_answer_to_a_list_is_tried_again(
    status: int,
    body: bytes,
    headers: dict[str, str],
    api: ApiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "LIST_SECONDS", 0.4)
    api.put("nodes", "n", node())
    api.say("/api/v1/nodes", status, body, **headers)
    with watching(api, tmp_path) as running:
        until(lambda: running.state("nodes").faults >= 1, "a fault")
        assert running.state("nodes").fault
        assert running.reader.refresh() is None
        del api.answers["/api/v1/nodes"]
        until(lambda: running.nodes() == {"n"}, "the nodes")
        gaps = [b - a for a, b in pairwise(api.lists("nodes"))]
        assert min(gaps) >= (2.0 if status == 429 else 0.3), "lists are apart, Retry-After counts"


BAD_EVENTS: dict[str, tuple[bytes, bool]] = {
    "half an event": (b'{"type":"ADDED","object":{"meta', False),
    "an event without a version": (b'{"type":"ADDED","object":{}}\n', False),
    "no object at all": (b"7\n", False),
    "a watch that ends at once": (b"", False),
    "an error that says 410": (b'{"type":"ERROR","object":{"code":410}}\n', True),
    "an error that says 500": (b'{"type":"ERROR","object":{"code":500}}\n', False),
    "an error without a code": (b'{"type":"ERROR","object":{}}\n', False),
}


@pytest.mark.parametrize(("events", "lists_again"), BAD_EVENTS.values(), ids=BAD_EVENTS)
def test_a_bad_watch_goes_on_where_it_was_unless_that_is_gone(
    events: bytes,
    lists_again: bool,  # noqa: FBT001 - of a table
    api: ApiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "LIST_SECONDS", 0.2)
    monkeypatch.setattr(loops, "WATCH_SECONDS", (1, 1))
    api.say_to_watches("/api/v1/nodes", events)
    with watching(api, tmp_path) as running:
        until(lambda: running.state("nodes").faults >= 1, "a fault")
        del api.watched["/api/v1/nodes"]
        api.put("nodes", "n", node())
        until(lambda: running.nodes() == {"n"}, "the node")
        assert (len(api.lists("nodes")) > 1) is lists_again


def test_a_watch_of_what_is_no_longer_served_is_a_list_of_none(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade takes an API version away."""
    monkeypatch.setattr(loops, "LIST_SECONDS", 0.2)
    monkeypatch.setattr(loops, "WATCH_SECONDS", (1, 1))
    path = DEVICE_CLASSES.format("v1")
    api.put("deviceclasses", "gpu", {"spec": {"extendedResourceName": GPU}})
    with watching(api, tmp_path) as running:
        until(lambda: running.watcher.store.served_by_dra, "the class")
        for version in ("v1", "v1beta2", "v1beta1"):
            api.say(DEVICE_CLASSES.format(version), 404)
        api.watched[path] = api.answers[path]
        until(lambda: running.state("deviceclasses").state == "absent", "none to be served")
        assert not running.watcher.store.device_classes.facts
        assert GPU in running.watcher.store.served_by_dra, "it may come back"
        until(lambda: running.reader.status().as_of > 0, "a claim")


def test_other_settings_list_everything_anew_and_keep_what_is_published_till_then(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "LIST_SECONDS", 0.2)
    api.put("nodes", "n", {"status": {"allocatable": {GPU: "8", "example.com/gpu": "4"}}})
    with watching(api, tmp_path) as running:
        first = until(running.reader.refresh, "a snapshot")
        assert set(first.index.totals) == {GPU}
        until(lambda: running.reader.status().as_of, "a status that knows how old it is")
        api.say("/api/v1/nodes", 503)
        settings = replace(SETTINGS, gpu_resources=("example.com/*",))
        running.use(settings)
        until(lambda: running.state("nodes").faults >= 1, "a fault")
        as_of = running.reader.status().as_of
        time.sleep(1.5)
        assert running.reader.refresh() is None
        assert running.reader.status().as_of == as_of > 0
        del api.answers["/api/v1/nodes"]
        second = until(running.reader.refresh, "another snapshot")
        assert set(second.index.totals) == {GPU, "example.com/gpu"}


def test_another_life_claims_what_the_last_one_knew_until_it_knows_itself(
    api: ApiServer, tmp_path: Path
) -> None:
    api.put("nodes", "n", node())
    with watching(api, tmp_path) as running:
        until(lambda: running.reader.status().as_of > 0, "a claim")
        as_of = running.reader.status().as_of
    api.say("/api/v1/nodes", 503)
    with watching(api, tmp_path) as running:
        until(lambda: running.state("nodes").faults >= 1, "a fault")
        beat = running.reader.status().beat
        until(lambda: running.reader.status().beat > beat, "two beats")
        assert as_of <= running.reader.status().as_of <= as_of + 2


def received(running: Running) -> float:
    return running.reader.status(time.time()).received


def test_it_says_until_when_all_events_are_in_the_snapshot(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "WATCH_SECONDS", (1, 1))
    api.put("nodes", "n", node())
    with watching(api, tmp_path) as running:
        assert running.reader.status().settings == basis(SETTINGS) or not received(running)
        until(lambda: received(running) > 0, "a claim")
        for _ in range(10):  # also if nothing happens, and from one watch to the next
            asked = time.time()
            until(lambda asked=asked: received(running) >= asked, "what came by then is in it", 1.5)  # type: ignore[misc]
        assert running.reader.status().settings == basis(SETTINGS)
        path = "/api/v1/nodes"
        api.say(path, 503)
        api.watched[path] = api.answers[path]
        until(lambda: running.state("nodes").faults >= 1, "a fault")
        time.sleep(0.6)
        stopped = received(running)
        time.sleep(0.6)
        assert received(running) == stopped, "nothing is claimed while no watch is open"
        del api.answers[path], api.watched[path]
        until(lambda: received(running) > time.time() - 1, "it claims again")
        other = replace(SETTINGS, gpu_resources=("example.com/*",))
        api.say(path, 503)
        running.use(other)
        until(lambda: running.reader.status().settings == basis(other), "the new settings")
        assert received(running) == 0, "nothing is listed with them"


def test_a_snapshot_that_took_long_is_claimed_until_a_node_changes(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """15,000 nodes take a second, and the next snapshot waits for five."""
    api.put("nodes", "n", node())
    with watching(api, tmp_path) as running:
        until(lambda: received(running) > 0, "a claim")
        monkeypatch.setattr(running.watcher, "_next_publish", time.monotonic() + 60)
        asked = time.time()
        until(lambda: received(running) >= asked, "nothing has happened since", 1.5)
        api.put("nodes", "n", node(9))
        until(lambda: not running.watcher._publisher.has_shape(running.watcher.store), "the event")
        time.sleep(0.3)  # the status that is just being written
        stopped = received(running)
        time.sleep(0.6)
        assert received(running) == stopped, "the snapshot lacks the new GPUs"


def test_an_event_of_a_node_is_published_soon_and_many_only_so_often(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PUBLISH_SECONDS", 0.5)
    api.put("nodes", "n", node())
    with watching(api, tmp_path) as running:
        until(lambda: received(running) > 0, "a claim")
        until(lambda: running.state("nodes").state == "watching", "a watch")
        file, took = tmp_path / "snapshot" / "inventory", []
        for gpus in range(5):
            time.sleep(0.65)
            before, started = file.stat().st_mtime_ns, time.monotonic()
            api.put("nodes", "n", node(20 + gpus))
            until(lambda before=before: file.stat().st_mtime_ns != before, "the event")  # type: ignore[misc]
            took.append(time.monotonic() - started)
        assert min(took) < watch.PUBLISH_SECONDS / 2, took  # one of five, on a busy machine too
        published, end, gpus = running.reader.status().content["published"], time.time() + 1.5, 30
        while time.time() < end:
            api.put("nodes", "n", node(gpus := gpus + 1))
            time.sleep(0.02)
        assert running.reader.status().content["published"] - published <= 4


def test_a_loop_that_hangs_is_replaced(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in DNS, or in a plugin for credentials: no time limit of ours holds there."""
    hangs, wait = threading.Event(), threading.Event()
    get = Client.get

    def hanging(self: Client, path: str, query: dict[str, str], most: int) -> bytes:
        if path == "/api/v1/nodes" and not hangs.is_set():
            hangs.set()
            wait.wait(30)
        return get(self, path, query, most)

    monkeypatch.setattr(Client, "get", hanging)
    monkeypatch.setattr(loops, "STUCK_SECONDS", 1.0)
    monkeypatch.setattr(loops, "LIST_SECONDS", 0.2)
    api.put("nodes", "n", node())
    with watching(api, tmp_path) as running:
        until(lambda: running.nodes() == {"n"}, "the nodes")
        assert any("hung" in each["message"] for each in running.lines())
        api.delete("nodes", "n")
        until(lambda: running.nodes() == set(), "no node")
        api.put("nodes", "m", node())
        wait.set()  # the old loop wakes, and may say nothing any more
        until(lambda: running.nodes() == {"m"}, "the new node")


def test_a_folder_that_cannot_be_written_to_is_said_and_nothing_is_claimed(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_limits, "STEADY_SECONDS", 1.0)
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / ".inventory.new").mkdir()  # holds for root too, unlike mode bits
    api.put("nodes", "n", node())
    with watching(api, tmp_path) as running:
        found = until(lambda: running.lines() or None, "a line")
        assert found[0]["message"].startswith("the snapshot cannot be written: inventory; ")
        time.sleep(2.5)
        assert running.reader.status().as_of == 0
        assert len(running.lines()) == 1, "it is said once, though the status can be written"
        (tmp_path / "snapshot" / ".inventory.new").rmdir()
        until(running.reader.refresh, "a snapshot")
        until(lambda: running.reader.status().as_of > 0, "a claim")
        works = until(lambda: running.lines()[1:] or None, "the line that it is well")
        assert [each["message"] for each in works] == ["the snapshot is written again: inventory"]


def test_a_clock_that_was_set_back_makes_no_claim_of_the_future(
    api: ApiServer, tmp_path: Path
) -> None:
    """As the last life, or a moment ago, left it."""
    api.put("nodes", "n", node())
    (tmp_path / "snapshot").mkdir()
    ahead = time.time() + 3600
    told = {"beat": ahead, "as_of": ahead}
    (tmp_path / "snapshot" / "status.json").write_bytes(orjson.dumps(told))
    with watching(api, tmp_path) as running:
        until(running.reader.refresh, "a snapshot")
        until(lambda: running.reader.status(time.time()).as_of > 0, "a claim")
        for state in running.watcher.states.values():
            state.alive = ahead
        running.watcher._as_of = ahead
        beat = running.reader.status().beat
        until(lambda: running.reader.status().beat > beat + 1, "two beats")
        assert running.reader.status().as_of <= time.time()


def test_401_makes_it_read_who_we_are_again(api: ApiServer, tmp_path: Path) -> None:
    tokens = iter(["old", "new"])

    def configure() -> Any:
        return configuration(str(api.kubeconfig(tmp_path, token=next(tokens))))

    client = Client(configure)
    api.say("/api/v1/nodes", 401)
    with pytest.raises(Refused, match="401"):
        client.get("/api/v1/nodes", {"limit": "1"})
    del api.answers["/api/v1/nodes"]
    client.get("/api/v1/nodes", {"limit": "1"})
    assert [each["authorization"] for each in api.headers] == ["Bearer old", "Bearer new"]


def test_nobody_there_is_told_apart(tmp_path: Path) -> None:
    with socket.socket() as taken:  # nobody listens, and no other test can take the port
        taken.bind(("127.0.0.1", 0))
        with ApiServer() as server:
            file = server.kubeconfig(tmp_path)
        port = taken.getsockname()[1]
        file.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", file.read_text()))
        client = Client(lambda: configuration(str(file)))
        with pytest.raises(Fault) as found:
            client.get("/api/v1/nodes", {"limit": "1"})
    assert found.value.away


CONFIGURATIONS = {"no file": None, "no YAML": "a: [", "no kubeconfig": "a: 1", "empty": ""}


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_a_bad_kubeconfig_is_an_input_error(text: str | None, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match="--kubeconfig"):
        configuration(str(file))


def test_lines_are_few_and_the_last_one_is_told(tmp_path: Path) -> None:
    file, now = tmp_path / "log", [100.0]
    log = Log(os.open(file, os.O_WRONLY | os.O_CREAT))
    lines = LimitedLog(log, lambda: now[0])
    for number in range(5):
        lines.write("warning", "fault", number=number)
    lines.tick()
    now[0] += LINE_SECONDS
    lines.tick()
    lines.tick()
    log.close()
    told = [orjson.loads(each) for each in file.read_bytes().splitlines()]
    assert [(each["number"], each.get("suppressed")) for each in told] == [(0, None), (4, 3)]
