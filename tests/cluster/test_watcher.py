"""The watcher against a real API server on its bad days (F1-F6): in the end it knows what is there.

The control plane is one of its own: its API server is killed, and its history thrown away.
"""

from __future__ import annotations

import http.client
import signal
import time
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import yaml

from tests.cluster import build, nodes
from tests.cluster.api_proxy import ApiProxy
from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.watcher import WatcherProcess, kubeconfig_of
from tests.cluster.webhook import ROOT
from tests.cluster.workloads import definition
from webhook.inventory.publish import Snapshot

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.api_proxy import Request
    from tests.cluster.client import Client, Json

pytestmark = pytest.mark.slow  # it waits for minutes: the other tests run meanwhile

INVENTORY = ROOT / "examples" / "inventory.yaml"
NAMESPACE = "watched"


class OwnPlane(ControlPlane):
    """A control plane whose API server may be taken away."""

    def kill_apiserver(self) -> list[str]:
        process = self._running["kube-apiserver"]
        process.kill()
        process.wait()
        return _arguments(process)

    def start_apiserver(self, flags: list[str]) -> None:
        self._run("kube-apiserver", flags)
        self._wait("kube-apiserver", self._serves)

    def compact(self) -> None:
        """Throw away the history: who requests it is told 410."""
        flags = _arguments(self._running["etcd"])
        url = next(each for each in flags if each.startswith("--listen-client-urls="))
        etcd = http.client.HTTPConnection(url.rpartition("/")[2], timeout=10)
        etcd.request("POST", "/v3/kv/range", orjson.dumps({"key": "AA=="}))
        revision = orjson.loads(etcd.getresponse().read())["header"]["revision"]
        body = orjson.dumps({"revision": revision, "physical": True})
        etcd.request("POST", "/v3/kv/compaction", body)
        answer = etcd.getresponse()
        assert answer.status == http.HTTPStatus.OK, answer.read()
        etcd.close()


def _arguments(process: subprocess.Popen[bytes]) -> list[str]:
    assert isinstance(process.args, list)
    return [str(each) for each in process.args[1:]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[OwnPlane]:
    if not build.is_built():
        pytest.fail("the control plane is not built: run `make cluster` first", pytrace=False)
    with OwnPlane() as running:
        nodes.add(running.client, nodes.from_inventory(INVENTORY))
        running.make_namespace(NAMESPACE, {"gpu-webhook.dev/guard": "enabled"})
        yield running


@pytest.fixture
def proxy(cluster: OwnPlane) -> Iterator[ApiProxy]:
    with ApiProxy(cluster) as running:
        yield running


@pytest.fixture
def direct(cluster: OwnPlane, tmp_path: Path) -> Iterator[WatcherProcess]:
    with WatcherProcess(tmp_path, cluster.kubeconfig) as running:
        yield running


@pytest.fixture
def watcher(cluster: OwnPlane, proxy: ApiProxy, tmp_path: Path) -> Iterator[WatcherProcess]:
    """A watcher that speaks through the proxy."""
    with WatcherProcess(tmp_path, kubeconfig_of(cluster, proxy.port, tmp_path)) as running:
        yield running


@pytest.fixture
def settled(watcher: WatcherProcess, cluster: OwnPlane, tmp_path: Path) -> WatcherProcess:
    """The same, once it knows the cluster and watches everything."""
    watcher.until_equal(cluster.client, tmp_path)
    until(lambda: all_watch(watcher), "all watches")
    return watcher


def all_watch(watcher: WatcherProcess) -> bool:
    """Whether it watches all that this API server has: device classes are of 1.34 and later.

    NodePools are Karpenter's, and there are none of that.
    """
    states = {name: each["state"] for name, each in watcher.status().get("kinds", {}).items()}
    if states.pop("nodepools", "absent") != "absent":
        return False
    if states.get("deviceclasses") == "absent" and build.minor(build.RELEASE) < 34:
        del states["deviceclasses"]
    return bool(states) and set(states.values()) == {"watching"}


def gpu_pod(name: str, gpus: int = 1, **spec: Any) -> Json:
    container = {
        "name": "main",
        "image": "cuda",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def churn(client: Client, name: str) -> None:
    """Change something of each kind."""
    nodes.add(client, [nodes.gpu_node(name, 8, labels={"rack": name})])
    client.create(gpu_pod(f"on-{name}", 2, nodeName=name), NAMESPACE)
    client.create(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
        | {"metadata": {"name": f"class-{name}"}}
    )
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    client.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )


def say(record: Any, what: str, seconds: float) -> None:
    """Keep a figure in the report of the run."""
    record(what, round(seconds, 1))
    print(f"{what}: {seconds:.1f} s")  # noqa: T201 - shown with -s, and when the test fails


def test_pods_that_come_and_go(
    direct: WatcherProcess, cluster: OwnPlane, tmp_path: Path, record_property: Any
) -> None:
    client = cluster.client
    nodes.add(client, [nodes.gpu_node("busy", 8)])
    for name in ("first", "second"):
        client.create(gpu_pod(name, 3, nodeName="busy"), NAMESPACE)
    say(record_property, "two pods", direct.until_equal(client, tmp_path))
    totals = direct.facts()
    assert totals is not None
    assert totals["totals"]["nvidia.com/gpu"][3] == 6
    shape = direct.status()["shape"]

    client.patch(
        "Pod", "first", {"status": {"phase": "Succeeded"}}, NAMESPACE, subresource="status"
    )
    client.delete("Pod", "second", NAMESPACE)
    client.create(gpu_pod("second", 1, nodeName="busy"), NAMESPACE)
    say(record_property, "one done, one replaced", direct.until_equal(client, tmp_path))
    totals = direct.facts()
    assert totals is not None
    assert totals["totals"]["nvidia.com/gpu"][3] == 1
    assert direct.status()["shape"] == shape, "only pods came and went"
    client.delete_all("Pod", NAMESPACE)


def test_a_pod_whose_managed_fields_are_nested_deeply_hides_no_other(
    direct: WatcherProcess, cluster: OwnPlane, tmp_path: Path
) -> None:
    """Any tenant may make one, and the API server takes it; by a watch, and by a list."""
    client = cluster.client
    nodes.add(client, [nodes.gpu_node("beside", 8)])
    direct.until_equal(client, tmp_path)
    levels, folder = 1_100, tmp_path / "new"
    folder.mkdir()
    fields = orjson.Fragment('{"f:a":' * levels + "{}" + "}" * levels)
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    deep = gpu_pod("deep", 1, nodeName="beside")
    deep["metadata"]["managedFields"] = [{**entry, "fieldsV1": fields}]
    path = f"api/v1/namespaces/{NAMESPACE}/pods"
    try:
        assert client.request("POST", path, deep).status == http.HTTPStatus.CREATED
        client.create(gpu_pod("plain", 3, nodeName="beside"), NAMESPACE)
        until(lambda: in_use(direct) == 4, "both pods")
        with WatcherProcess(folder, cluster.kubeconfig) as another:
            until(lambda: in_use(another) == 4, "both pods in a list")
    finally:
        client.delete_all("Pod", NAMESPACE)


def in_use(watcher: WatcherProcess) -> int:
    totals = watcher.facts()
    return totals["totals"]["nvidia.com/gpu"][3] if totals else 0


def test_f1_away_at_start_f2_killed_in_flight(
    cluster: OwnPlane, tmp_path: Path, record_property: Any
) -> None:
    client, flags = cluster.client, cluster.kill_apiserver()
    with WatcherProcess(tmp_path, cluster.kubeconfig) as watcher:
        try:
            until(lambda: watcher.kind("nodes")["faults"] >= 3, "three attempts", 30)
            assert watcher.facts() is None, "nothing is known, and nothing is published"
            assert watcher.status()["as_of"] == 0
            beat = watcher.status()["beat"]
            until(lambda: watcher.status()["beat"] > beat, "it lives", 5)
        finally:
            cluster.start_apiserver(flags)
        seconds = watcher.until_equal(client, tmp_path)
        say(record_property, "F1: known after the API server is there", seconds)
        assert seconds <= 5

        until(lambda: all_watch(watcher) and watcher.status()["as_of"] > 0, "all watches")
        flags, killed = cluster.kill_apiserver(), time.time()
        try:
            time.sleep(15)
            assert watcher.status()["as_of"] <= killed, "it does not claim what it cannot know"
            assert watcher.facts() is not None, "what was known stays"
        finally:
            cluster.start_apiserver(flags)
        churn(client, "after-f2")
        seconds = watcher.until_equal(client, tmp_path)
        say(record_property, "F2: right after its return", seconds)
        faults = [each for each in watcher.lines() if each["level"] == "warning"]
        assert 1 <= len(faults) <= 6, "at most one line in ten seconds"


def test_f3_frozen_without_fin(
    settled: WatcherProcess,
    proxy: ApiProxy,
    cluster: OwnPlane,
    tmp_path: Path,
    record_property: Any,
) -> None:
    lists = len(proxy.lists("nodes"))
    proxy.freeze()
    frozen = time.monotonic()
    churn(cluster.client, "in-f3")
    time.sleep(1)
    proxy.thaw()  # new connections work again; those that were open stay dead
    settled.until_equal(cluster.client, tmp_path, seconds=60)
    say(record_property, "F3: noticed and right", time.monotonic() - frozen)
    assert len(proxy.lists("nodes")) == lists, "it went on where it was, and listed nothing again"


def test_f4_history_thrown_away(
    settled: WatcherProcess,
    proxy: ApiProxy,
    cluster: OwnPlane,
    tmp_path: Path,
    record_property: Any,
) -> None:
    """Stopped while the API server starts anew and etcd forgets: its resource version is gone."""
    settled.process.send_signal(signal.SIGSTOP)
    client, lists = cluster.client, len(proxy.lists("nodes"))
    client.delete("Node", "a100-1")
    churn(client, "in-f4")
    flags = cluster.kill_apiserver()
    cluster.start_apiserver(flags)
    for number in range(150):  # more than a watch cache begins with
        client.patch("Node", "in-f4", {"metadata": {"labels": {"tick": str(number)}}})
    cluster.compact()
    settled.process.send_signal(signal.SIGCONT)
    say(record_property, "F4: right after 410", settled.until_equal(client, tmp_path, 30))
    assert len(proxy.lists("nodes")) > lists, "the API server did say 410"


@pytest.mark.parametrize("how", ["gone", "gone-event"])
def test_f4_gone_as_status_or_as_event(
    how: str,
    settled: WatcherProcess,
    proxy: ApiProxy,
    cluster: OwnPlane,
    tmp_path: Path,
    record_property: Any,
) -> None:
    """410 on the watch of nodes, once; the connection is cut so that it comes soon."""
    told: list[Request] = []

    def rule(request: Request) -> str:
        if request.is_watch and request.plural == "nodes" and not told:
            told.append(request)
            return how
        return ""

    lists = len(proxy.lists("nodes"))
    proxy.rule = rule
    proxy.cut()
    cluster.client.delete("Node", f"f4-{how}")
    churn(cluster.client, f"f4-{how}")
    seconds = settled.until_equal(cluster.client, tmp_path, 30)
    say(record_property, f"F4: right after 410 ({how})", seconds)
    until(lambda: len(proxy.lists("nodes")) == lists + 1, "one list", 20)
    assert told


def test_f4_gone_in_the_middle_of_a_list(
    proxy: ApiProxy,
    cluster: OwnPlane,
    tmp_path: Path,
    record_property: Any,
) -> None:
    """The continue token is refused; what the first page told is not counted twice."""
    many = [nodes.gpu_node(f"many-{number}", 4) for number in range(520)]
    told: list[Request] = []

    def rule(request: Request) -> str:
        if "continue" in request.query and request.plural == "nodes" and not told:
            told.append(request)
            return "gone"
        return ""

    proxy.rule = rule
    nodes.add(cluster.client, many)
    with WatcherProcess(tmp_path, kubeconfig_of(cluster, proxy.port, tmp_path)) as late:
        seconds = late.until_equal(cluster.client, tmp_path, 40)
        say(record_property, "F4: right after 410 on a continue token", seconds)
        assert told
        # The status is written once a second, the snapshot when there is something new.
        until(lambda: late.kind("nodes")["lists"] >= 2, "the status to say so")
        assert late.kind("nodes")["lists"] == 2
        for node in many:
            cluster.client.delete("Node", node["metadata"]["name"])
        say(record_property, "520 nodes gone", late.until_equal(cluster.client, tmp_path))


BAD_ANSWERS = ("429", "503", "500", "html", "truncated", "drip")


def test_f5_bad_answers(
    cluster: OwnPlane, tmp_path: Path, record_property: Any, subtests: pytest.Subtests
) -> None:
    """All at the same time: each bad answer has a proxy and a watcher of its own."""
    client, began = cluster.client, {}
    with ExitStack() as stack:
        proxies = {each: stack.enter_context(ApiProxy(cluster)) for each in BAD_ANSWERS}
        watchers = {}
        for answer, proxy in proxies.items():
            folder = tmp_path / answer
            folder.mkdir()
            kubeconfig = kubeconfig_of(cluster, proxy.port, folder)
            watchers[answer] = stack.enter_context(WatcherProcess(folder, kubeconfig))
        for watcher in watchers.values():
            watcher.until_equal(client, tmp_path)
            until(lambda watcher=watcher: all_watch(watcher), "all watches")  # type: ignore[misc]
        for answer, proxy in proxies.items():
            proxy.rule = lambda request, answer=answer: "gone" if request.is_watch else answer  # type: ignore[misc]
            proxy.cut()
            began[answer] = time.monotonic()
        churn(client, "f5")
        time.sleep(25)
        tried = {answer: proxy.lists("nodes") for answer, proxy in proxies.items()}
        for proxy in proxies.values():
            proxy.rule = lambda _: ""
        lifted = time.monotonic()

        for answer, watcher in watchers.items():
            with subtests.test(answer):
                during = [each for each in tried[answer] if each > began[answer]]
                gaps = [later - sooner for sooner, later in pairwise(during)]
                assert during, "it tried"
                assert all(gap >= 9.9 for gap in gaps), "one list in ten seconds at most"
                watcher.until_equal(client, tmp_path, 75)
                say(record_property, f"F5: right after {answer}", time.monotonic() - lifted)
                faults = [each for each in watcher.lines() if each["level"] == "warning"]
                assert 1 <= len(faults) <= 12, "at most one line in ten seconds"


def test_f6_nodes_that_flap(
    settled: WatcherProcess, cluster: OwnPlane, tmp_path: Path, record_property: Any
) -> None:
    """Made, tainted, relabelled, deleted and made again under the same name, for ten seconds."""
    client, end, number = cluster.client, time.monotonic() + 10, 0
    nodes.add(client, [nodes.gpu_node(f"flap-{each}", 8) for each in range(10)])
    while time.monotonic() < end:
        number += 1
        name = f"flap-{number % 10}"
        match number % 3:
            case 0:
                client.delete("Node", name)
                nodes.add(client, [nodes.gpu_node(name, 8, labels={"round": str(number)})])
            case 1:
                taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
                client.patch("Node", name, {"spec": {"taints": [taint]}})
            case _:
                client.patch("Node", name, {"metadata": {"labels": {"round": str(number)}}})
    seconds = settled.until_equal(client, tmp_path)
    say(record_property, f"F6: right after {number} changes", seconds)
    assert seconds <= 5


def test_the_rights_it_is_given_are_enough_and_none_is_spare(
    cluster: OwnPlane, tmp_path: Path
) -> None:
    """As a user with the shipped role; without a right, what it is for is unknown."""
    identity = cluster.authority.client("just-the-watcher")
    kubeconfig = cluster._write_kubeconfig("just-the-watcher", identity)
    client = cluster.client
    (tmp_path / "all").mkdir()
    grant(cluster)
    with WatcherProcess(tmp_path / "all", kubeconfig) as allowed:
        allowed.until_equal(client, tmp_path)
        until(lambda: all_watch(allowed), "all watches")
        assert [each for each in allowed.lines() if each["level"] == "warning"] == []

    (tmp_path / "few").mkdir()
    # Device classes are served by default since 1.34: before, nothing is there to be forbidden.
    few = ["deviceclasses", "configmaps"][build.minor(build.RELEASE) < 34 :]
    grant(cluster, without=tuple(few))
    with WatcherProcess(tmp_path / "few", kubeconfig) as limited:
        limited.until_equal(client, tmp_path)
        until(lambda: {limited.kind(each)["state"] for each in few} == {"refused"}, "it says so")
        until(lambda: limited.status()["as_of"] > 0, "the rest is known to be true")
        warned = [each for each in limited.lines() if each["level"] == "warning"]
        assert {each["message"] for each in warned} == {
            f"{name} are unknown: RBAC forbids listing them" for name in few
        }
        inventory = Snapshot(limited.snapshot).refresh()
        assert inventory is not None
        assert inventory.refused == few


NODE_POOLS = definition("NodePool", "karpenter.sh", "nodepools", scope="Cluster")


def test_hints_of_autoscalers_are_read_with_the_shipped_role(
    cluster: OwnPlane, tmp_path: Path
) -> None:
    kubeconfig = cluster._write_kubeconfig(
        "just-the-watcher", cluster.authority.client("just-the-watcher")
    )
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "spot"}}
    status = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    grows = {"status": "nodeGroups:\n- name: large\n  health:\n    maxSize: 3\n"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": status, "data": grows}
    grant(cluster)
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(NODE_POOLS))
    cluster.kubectl("wait", "--for=condition=Established", "crd/nodepools.karpenter.sh")
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([pool, config_map]))
    nodes.add(cluster.client, [nodes.gpu_node("any", 1)])
    try:
        with WatcherProcess(tmp_path, kubeconfig) as running:

            def hints() -> list[str] | None:
                inventory = running.reader.refresh()
                return (inventory and [words for words, _ in inventory.index.hinted]) or None

            assert until(hints, "a snapshot") == [
                "NodePool spot (Karpenter)",
                "node group large (cluster-autoscaler)",
            ]
            assert [each for each in running.lines() if each["level"] == "warning"] == []
    finally:
        cluster.kubectl("delete", "crd", "nodepools.karpenter.sh")
        cluster.kubectl("delete", "configmap", "-n", "kube-system", status["name"])
        cluster.client.delete("Node", "any")


@pytest.mark.parametrize("name", ["cluster-autoscaler-status", "my-status"])
def test_the_status_of_cluster_autoscaler_may_be_in_another_namespace(
    cluster: OwnPlane, tmp_path: Path, name: str
) -> None:
    """Its Helm chart runs it in the namespace of the release."""
    kubeconfig = cluster._write_kubeconfig(
        "just-the-watcher", cluster.authority.client("just-the-watcher")
    )
    grant(cluster)
    cluster.kubectl("create", "namespace", "scaling")
    role = ("--verb=list,watch", "--resource=configmaps", f"--resource-name={name}")
    config = tmp_path / "settings.yaml"
    config.write_text(f"capacity: {{autoscalerStatus: scaling/{name}}}\n")
    status = "nodeGroups:\n- name: large\n  health:\n    maxSize: 3\n"
    nodes.add(cluster.client, [nodes.gpu_node("any", 1)])
    try:
        cluster.kubectl(
            "create", "configmap", name, "-n", "scaling", f"--from-literal=status={status}"
        )
        if name == "my-status":
            cluster.kubectl("create", "role", "status", "-n", "scaling", *role)
            bound = ("--role=status", "--user=just-the-watcher")
            cluster.kubectl("create", "rolebinding", "status", "-n", "scaling", *bound)
        with WatcherProcess(tmp_path, kubeconfig, [f"--config={config}"]) as running:
            inventory = until(running.reader.refresh, "a snapshot")
            hints = [words for words, _ in inventory.index.hinted]
            assert (hints, inventory.refused) == (["node group large (cluster-autoscaler)"], [])
    finally:
        cluster.kubectl("delete", "namespace", "scaling")
        cluster.client.delete("Node", "any")


def grant(cluster: OwnPlane, without: tuple[str, ...] = ()) -> None:
    """Give the rights of the shipped role, less those for some resources."""
    file = ROOT / "manifests" / "base" / "cluster-role.yaml"
    shipped = next(each for each in yaml.safe_load_all(file.read_text()) if "rules" in each)
    rules = [
        {**rule, "resources": left}
        for rule in shipped["rules"]
        if (left := [each for each in rule["resources"] if each not in without])
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"} | {
        "metadata": {"name": "just-the-watcher"},
        "rules": rules,
    }
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"} | {
        "metadata": {"name": "just-the-watcher"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "just-the-watcher",
        },
        "subjects": [
            {"kind": "User", "name": "just-the-watcher", "apiGroup": "rbac.authorization.k8s.io"}
        ],
    }
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([role, binding]))


def test_sigterm_ends_it_at_once(settled: WatcherProcess, proxy: ApiProxy) -> None:
    proxy.freeze()
    code, _ = settled.stop()  # which waits 10 s, and no longer
    assert code == 0
    assert settled.lines()[-1]["message"] == "stopped"
