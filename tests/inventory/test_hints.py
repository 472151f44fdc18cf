"""What else may give capacity may vanish for a moment, or be unreadable: no pod is denied then."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.client import until
from tests.inventory.api_server import ApiServer
from webhook.cluster.client import Client, configuration
from webhook.core.findings import Severity
from webhook.core.rule import Context
from webhook.core.settings import Capacity, Settings
from webhook.inventory.kinds import add, kinds
from webhook.inventory.publish import Publisher, Snapshot
from webhook.inventory.store import Store
from webhook.inventory.watch import Watcher
from webhook.kube.pod import Pod
from webhook.rules import full_now, never_fits, workload_too_large
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webhook.capacity.nodes import Inventory
    from webhook.core.findings import Finding

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
NOW, HOUR = 1000.0, 3600.0
STATUS = "cluster-autoscaler-status"
UNKNOWN = "cluster-autoscaler (its status lists no groups)"

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {GPU: "4"}}}
DEVICES = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
POOL = {"metadata": {"name": "spot"}, "spec": {"limits": {GPU: "64"}}}


def status_of(text: str | None) -> Raw:
    data = {} if text is None else {"data": {"status": text}}
    return {"metadata": {"name": STATUS, "namespace": "kube-system"}, **data}


GROUPS = status_of(
    "autoscalerStatus: Running\nnodeGroups:\n- name: asg-h100\n  health:\n"
    "    cloudProviderTarget: 0\n    maxSize: 4\n"
)
# Each gives what a pod of 16 GPUs can run on, and by its plural.
HINTS: dict[str, tuple[str, Raw]] = {
    "deviceclasses": ("DeviceClass", DEVICES),
    "nodepools": ("NodePool", POOL),
    "configmaps": ("ConfigMap", GROUPS),
}
each_hint = pytest.mark.parametrize("plural", HINTS)


def store_of(*objects: tuple[str, Raw], hours: int = 24) -> Store:
    store = Store(Capacity(remembered_hours=hours))
    for kind, raw in (("Node", NODE), *objects):
        add(kinds(store, Settings()), kind, raw, 0, NOW)
    return store


def pod_of(gpus: int) -> Pod:
    limits = {"limits": {GPU: str(gpus)}}
    return Pod({"spec": {"containers": [{"name": "c", "resources": limits}]}})


def judged(inventory: Inventory, gpus: int = 16) -> list[Finding]:
    return list(never_fits.check(pod_of(gpus), Context(inventory=inventory)))


def denies(store: Store, now: float = NOW) -> bool:
    return any(each.severity is Severity.DENY for each in judged(store.inventory(now)))


def vanish(store: Store, plural: str, now: float) -> None:
    kept = store.hints[plural]
    for key in list(kept.facts):
        kept.drop(key, now)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("time: 2024-05-01\nautoscalerStatus: Initializing\n", id="starting"),
        pytest.param("Cluster-autoscaler status at 2023:\nInitializing", id="starting, old form"),
        pytest.param("autoscalerStatus: Running\n", id="no groups"),
        pytest.param("autoscalerStatus: Running\nnodeGr", id="cut before its groups"),
        pytest.param("nodeGroups:\n- na", id="cut within the first name"),
        pytest.param('{"groups": [{"id": "asg"}]}', id="another form"),
        pytest.param("", id="empty"),
        pytest.param(None, id="no data"),
        pytest.param("- name: x\n" * 2**18, id="too long"),
    ],
)
def test_a_status_without_groups_says_nothing_about_what_may_be_added(text: str | None) -> None:
    (found,) = judged(store_of(("ConfigMap", status_of(text))).inventory(NOW))
    assert found.severity is Severity.MANUAL
    assert UNKNOWN in found.message


def test_only_the_status_that_the_settings_name_is_read() -> None:
    """Not one of this name in any other namespace: whoever writes it would allow every pod."""
    settings = Settings(capacity=Capacity(autoscaler_status=f"scaling/{STATUS}"))
    elsewhere = {"name": STATUS, "namespace": "scaling"}

    def denied(of: Settings, metadata: Raw) -> bool:
        store = Store(of.capacity)
        for kind, raw in (("Node", NODE), ("ConfigMap", {**GROUPS, "metadata": metadata})):
            add(kinds(store, of), kind, raw, 0, NOW)
        return denies(store)

    assert not denied(settings, elsewhere)
    assert denied(settings, GROUPS["metadata"])
    assert denied(Settings(), elsewhere)
    (found,) = [each for each in kinds(Store(), settings) if each.only]
    assert found.paths == ("/api/v1/namespaces/scaling/configmaps",)


def test_without_an_autoscaler_what_fits_nowhere_is_denied() -> None:
    assert denies(store_of())


def test_a_status_that_lists_groups_again_says_which_may_grow() -> None:
    store = store_of(("ConfigMap", status_of("Initializing")))
    assert not denies(store)
    full = "nodeGroups:\n- name: a\n  cloudProviderTarget: 4\n  maxSize: 4\n  ready: 4\n"
    add(kinds(store, Settings()), "ConfigMap", status_of(full), 0, NOW)
    assert denies(store)


@each_hint
def test_what_was_deleted_counts_for_a_day_yet(plural: str) -> None:
    store = store_of(HINTS[plural])
    assert not denies(store)
    vanish(store, plural, NOW)
    vanish(store, plural, NOW + HOUR)
    store.hints[plural].drop("never there", NOW)
    assert not denies(store, NOW + 23 * HOUR)
    assert denies(store, NOW + 24 * HOUR)


@each_hint
def test_what_was_deleted_does_not_count_where_nothing_is_to_be_remembered(plural: str) -> None:
    store = store_of(HINTS[plural], hours=0)
    vanish(store, plural, NOW)
    assert denies(store)


def test_an_autoscaler_without_lists_counts_for_a_day_after_its_last_node(tmp_path: Path) -> None:
    """A pool that it made may scale to zero."""
    labels = {"cloud.google.com/gke-nodepool": "nap-e2-standard-2-1x2y"}
    store = store_of(("Node", {"metadata": {"name": "cpu", "labels": labels}}))
    assert not denies(store)
    store.nodes.drop("cpu", NOW)
    assert not denies(store)
    Publisher(tmp_path, Settings()).publish(store, NOW)
    again = Store()
    Snapshot(tmp_path).recall(again)
    assert not denies(again, NOW + 23 * HOUR)
    assert denies(again, NOW + 24 * HOUR)
    assert Publisher(tmp_path, Settings()).publish(again, NOW + 25 * HOUR)


def test_a_node_pool_that_is_made_again_without_gpus_counts_as_it_is() -> None:
    store = store_of(HINTS["nodepools"])
    vanish(store, "nodepools", NOW)
    add(kinds(store, Settings()), "NodePool", {**POOL, "spec": {"limits": {GPU: 0}}}, 0, NOW + 1)
    assert denies(store, NOW + 1)


@each_hint
@pytest.mark.parametrize("before", [True, False], ids=["before the restart", "during it"])
def test_what_was_deleted_counts_in_the_next_life_of_the_watcher(
    plural: str, tmp_path: Path, *, before: bool
) -> None:
    store = store_of(HINTS[plural])
    if before:
        vanish(store, plural, NOW)
    Publisher(tmp_path, Settings()).publish(store, NOW)
    again = Store()
    Snapshot(tmp_path).recall(again)
    for kept in (again.hints[plural], again.nodes):
        kept.begin()
        if kept is again.nodes:
            add(kinds(again, Settings()), "Node", NODE, 0, NOW)
        kept.end(NOW + HOUR)
    assert not denies(again, NOW + 23 * HOUR)
    assert denies(again, NOW + (24 if before else 25) * HOUR)


def test_a_node_pool_is_the_same_in_the_next_life_of_the_watcher(tmp_path: Path) -> None:
    requirement = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    taints = [{"key": GPU, "effect": "NoSchedule"}]
    made = {"requirements": [requirement], "taints": taints, "startupTaints": [{"key": "new"}]}
    pool = {"metadata": {"name": "g5"}, "spec": {"template": {"spec": made}}}
    store = store_of(("NodePool", pool), HINTS["configmaps"], HINTS["deviceclasses"])
    Publisher(tmp_path, Settings()).publish(store, NOW)
    again = Store()
    Snapshot(tmp_path).recall(again)
    for name in HINTS:
        assert again.hints[name].facts == store.hints[name].facts != {}


@each_hint
def test_what_may_not_be_listed_is_not_none(plural: str, tmp_path: Path) -> None:
    store = store_of()
    store.hints[plural].refuse()
    Publisher(tmp_path, Settings()).publish(store, NOW)
    inventory = Snapshot(tmp_path).refresh()
    assert inventory is not None
    (found,) = judged(inventory)
    assert found.severity is Severity.MANUAL
    assert f"may not list {plural}" in found.message
    store.hints[plural].begin()
    store.hints[plural].end(NOW)
    assert denies(store)
    assert Publisher(tmp_path, Settings()).publish(store, NOW)


@pytest.mark.parametrize("refused", [True, False])
def test_a_full_cluster_is_not_called_full_while_something_may_not_be_listed(
    *, refused: bool
) -> None:
    store = store_of()
    container = {"name": "c", "resources": {"limits": {GPU: "4"}}}
    holding = {"spec": {"nodeName": "n", "containers": [container]}}
    add(kinds(store, Settings()), "Pod", {"metadata": {"name": "p"}, **holding}, 0, NOW)
    if refused:
        store.device_classes.refuse()
    cx = Context(inventory=store.inventory(NOW), template=True, workload_gpus={GPU: 40})
    found = [*full_now.check(pod_of(4), cx), *workload_too_large.check(pod_of(4), cx)]
    assert bool(found) is not refused


ALL = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "namespaces": "/api/v1/namespaces",
    "runtimeclasses": "/apis/node.k8s.io/v1/runtimeclasses",
    "deviceclasses": "/apis/resource.k8s.io/v1/deviceclasses",
    "nodepools": "/apis/karpenter.sh/v1/nodepools",
    "configmaps": "/api/v1/namespaces/kube-system/configmaps",
}


@contextmanager
def watching(api: ApiServer, folder: Path) -> Iterator[Watcher]:
    client = Client(lambda: configuration(str(api.kubeconfig(folder))))
    (folder / "snapshot").mkdir()
    log = Log(os.open(os.devnull, os.O_WRONLY))
    watcher = Watcher(client, Settings(), folder / "snapshot", log)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.stopped.set()
        thread.join(5)
        log.close()


def verdict(api: ApiServer, folder: Path) -> set[Severity]:
    """Of the pod with 16 GPUs, as soon as the watcher says how old its snapshot is."""
    with watching(api, folder) as watcher:
        reader = Snapshot(folder / "snapshot")
        nodes = watcher.states["nodes"]
        until(lambda: nodes.state == "refused" or watcher.status()["as_of"] > 0, "its age")
        inventory = reader.refresh()
        return {each.severity for each in judged(inventory)} if inventory is not None else set()


def test_every_right_of_the_watcher_is_in_the_table() -> None:
    assert {each.name: each.paths[0] for each in kinds(Store(), Settings())} == ALL


@pytest.mark.parametrize("hint", [*HINTS, "nothing"])
@pytest.mark.parametrize("missing", ALL)
def test_no_right_that_is_missing_has_a_pod_denied_that_could_run(
    missing: str, hint: str, tmp_path: Path
) -> None:
    with ApiServer() as api:
        api.put("nodes", "n", NODE)
        if hint in HINTS:
            _, raw = HINTS[hint]
            api.put(hint, raw["metadata"]["name"], raw)
        api.say(ALL[missing], 403)
        found = verdict(api, tmp_path)
    unknown = hint != "nothing" or missing in {*HINTS, "nodes"}
    assert (Severity.DENY in found) is not unknown


@pytest.mark.parametrize("plural", ["deviceclasses", "nodepools"])
def test_what_may_not_be_listed_is_none_where_its_api_group_is_not_served(
    plural: str, tmp_path: Path
) -> None:
    with ApiServer() as api:
        api.put("nodes", "n", NODE)
        api.say(ALL[plural], 403)
        api.say(ALL[plural].rpartition("/v1/")[0], 404)
        assert verdict(api, tmp_path) == {Severity.DENY}
