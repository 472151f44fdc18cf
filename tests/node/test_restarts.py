"""Three real nodes and three replicas under load: restarts, drains, a dead node, no replica."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import orjson
import pytest

from tests.cluster.client import until
from tests.cluster.pods import alpha, container, named, pod
from tests.monitoring.queries import FAILED_OPEN
from tests.node import build
from tests.node.cluster import GPUS, RealCluster
from tests.node.load import REPAIRED, UNREPAIRED, Load, admit
from tests.node.network import own_network

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json

# `make nightly` makes them 200 and 10.
RATE = float(os.environ.get("RESTARTS_RATE", "25"))  # admissions a second
RESTARTS = int(os.environ.get("RESTARTS", "1"))
_NAMESPACE = "gpu-webhook"
_PORT = 8443
_REPLICAS = 3
_DEAD = 120.0  # seconds until a node that is silent is not ready; 50 of them are the controller's
_DRAINED = 180.0  # seconds; about 20 where nothing else runs
_LEFT = 90.0  # seconds until the last replica of before has ended
_TIMEOUT = 3.0  # seconds of the repairing webhook
_IDLE = 90.0  # seconds until the API server closes a connection that it does not use
_MANY = 100.0  # calls a second; with 25 a restart of three abrupt replicas may miss none
_AT_ONCE = ("--grace-period=0", "--force")
_REQUESTS = "apiserver_admission_webhook_request_total"
_EXCLUSIONS = "apiserver_admission_match_condition_exclusions_total"
# Ends at once when it is to stop, as a server does that knows nothing of rolling updates.
_ABRUPT = """from webhook.serving.server import Parent
from webhook.cli.main import main
Parent.handle_term = Parent.handle_quit
main()
"""


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kustomization with three replicas, as docs/operate.md has it."""
    folder = tmp_path_factory.mktemp("of-a-user")
    base = os.path.relpath(build.ROOT / "manifests" / "base", folder)
    (folder / "kustomization.yaml").write_text(
        f"resources: [{base}]\nreplicas: [{{name: gpu-webhook, count: {_REPLICAS}}}]\n"
    )
    return folder


@pytest.fixture(scope="module")
def three(_possible: None, manifests: Path) -> Iterator[RealCluster]:
    """Start three nodes, and three replicas on them."""
    with own_network(RealCluster.host), RealCluster(3) as running:
        running.install(manifests)
        until(lambda: admit(running) == REPAIRED, "a repaired pod")
        yield running


def _pods(cluster: RealCluster) -> list[Json]:
    """Give the pods of the webhook, those too that are about to end."""
    return cluster.client.list("Pod", _NAMESPACE, "app.kubernetes.io/name=gpu-webhook")


def _ready(cluster: RealCluster) -> list[Json]:
    return [
        each
        for each in _pods(cluster)
        if "deletionTimestamp" not in each["metadata"]
        for condition in each["status"].get("conditions", [])
        if (condition["type"], condition["status"]) == ("Ready", "True")
    ]


def _settle(cluster: RealCluster, count: int = _REPLICAS) -> None:
    """Wait until the replicas are these, and those of before have ended."""
    cluster.until_rolled_out(_NAMESPACE, "gpu-webhook")
    until(lambda: len(_pods(cluster)) == count, f"{count} replicas and no others", _LEFT)


def _restart(cluster: RealCluster) -> None:
    cluster.kubectl("-n", _NAMESPACE, "rollout", "restart", "deployment/gpu-webhook")
    cluster.until_rolled_out(_NAMESPACE, "gpu-webhook")


def _of_ours(cluster: RealCluster, metric: str) -> Counter[str]:
    """Give what the API server has counted for each of our webhooks."""
    page: str = cluster.client.demand("GET", "/metrics").body
    counted: Counter[str] = Counter()
    pattern = rf'^{metric}\{{.*?\bname="(\w+)\.gpu-webhook\.dev".*\}} (\S+)$'
    for name, value in re.findall(pattern, page, re.MULTILINE):
        counted[name] += int(float(value))
    return counted


def _say(what: str, load: Load) -> None:
    print(f"\n{what}: {load}")  # noqa: T201 - pytest -s


def test_no_gpu_of_three_nodes_is_given_twice(three: RealCluster) -> None:
    half = alpha(GPUS // 2, image=build.PAUSE)
    names = [f"half-{number}" for number in range(6)]
    for name in names:
        three.client.create(named(pod(half), name), "default")
    given: dict[str, list[str]] = defaultdict(list)
    for name in names:
        three.until_pod("default", name, "Running")
        where = three.client.get("Pod", name, "default")["spec"]["nodeName"]
        given[where] += three.gpus_seen("default", name, half["name"])
    assert {node: len(set(gpus)) for node, gpus in given.items()} == dict.fromkeys(given, GPUS)
    assert len(given) == 3
    # A drain would not move them: no controller has made them.
    three.kubectl("delete", "pods", *names, *_AT_ONCE)


def test_no_pod_is_missed_while_all_replicas_are_replaced(three: RealCluster) -> None:
    with Load(three, RATE) as load:
        for _ in range(RESTARTS):
            _restart(three)
        _settle(three)
    _say(f"{RESTARTS} rolling restarts", load)
    assert (load.missed(), load.failed_calls()) == ([], {})
    assert load.kept_its_rate()


def _drain(cluster: RealCluster, node: str) -> None:
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=50s")

    def is_drained() -> bool:
        return cluster.try_kubectl("drain", node, *options).returncode == 0

    until(is_drained, f"{node} to be drained", _DRAINED)


def test_no_pod_is_missed_while_two_nodes_are_drained_at_once(three: RealCluster) -> None:
    names = [node.place.name for node in three.nodes[1:]]
    with Load(three, RATE) as load, ThreadPoolExecutor() as threads:
        drains = [threads.submit(_drain, three, name) for name in names]
        fewest = _REPLICAS
        while not all(each.done() for each in drains):
            fewest = min(fewest, len(_ready(three)))
            time.sleep(0.1)
        _settle(three)
        places = {each["spec"]["nodeName"] for each in _pods(three)}
        three.kubectl("uncordon", *names)
        for each in drains:
            each.result()
    _say("drains of two nodes", load)
    assert places == {three.nodes[0].place.name}
    assert fewest >= _REPLICAS - 1, "the PodDisruptionBudget holds the second drain back"
    assert (load.missed(), load.failed_calls()) == ([], {})
    assert load.kept_its_rate()


@pytest.mark.parametrize("how", ["killed", *(["replaced"] if RATE >= _MANY else [])])
def test_pods_are_missed_where_replicas_stop_at_once(
    three: RealCluster, manifests: Path, how: str
) -> None:
    """The control: without preStop and the server's last second the tests above would fail."""
    if how == "replaced":
        abrupt = {"name": "gpu-webhook", "command": ["python", "-c", _ABRUPT], "lifecycle": None}
        spec = {"terminationGracePeriodSeconds": 1, "containers": [abrupt]}
        patch = orjson.dumps({"spec": {"template": {"spec": spec}}}).decode()
        three.kubectl("-n", _NAMESPACE, "patch", "deployment", "gpu-webhook", "-p", patch)
        _settle(three)
    with Load(three, RATE) as load:
        if how == "killed":
            three.kubectl("-n", _NAMESPACE, "delete", "pods", "--all", *_AT_ONCE, "--wait=false")
            until(lambda: load.missed() or None, "a call that no replica answers")
        else:
            for _ in range(RESTARTS):
                _restart(three)
        _settle(three)
    _say(f"control: all are {how} at once", load)
    assert {each.outcome for each in load.missed()} == {UNREPAIRED}
    assert load.failed_calls("repair").total() == len(load.missed())
    if how == "replaced":  # another apply would leave the command there
        three.kubectl("-n", _NAMESPACE, "delete", "deployment", "gpu-webhook")
        three.install(manifests)


def test_pods_that_are_none_of_ours_need_no_call_while_there_is_no_replica(
    three: RealCluster, manifests: Path
) -> None:
    plain = pod(container(image=build.PAUSE))
    template = {"metadata": {"labels": {"app": "plain"}}, "spec": plain["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "plain"},
        "spec": {"selector": {"matchLabels": {"app": "plain"}}, "template": template},
    }

    def seconds_of(count: int) -> float:
        waits = []
        for _ in range(count):
            started = time.monotonic()
            three.client.create(named(plain, "plain"), "default", dry_run=True)
            waits.append(time.monotonic() - started)
        return statistics.median(waits)

    before = seconds_of(50)
    three.kubectl("-n", _NAMESPACE, "scale", "deployment/gpu-webhook", "--replicas=0")
    _settle(three, 0)
    metrics = (_REQUESTS, FAILED_OPEN, _EXCLUSIONS)
    counted = {name: _of_ours(three, name) for name in metrics}

    def more() -> list[Counter[str]]:
        return [_of_ours(three, name) - counted[name] for name in metrics]

    after = seconds_of(50)
    three.client.create(named(plain, "plain"), "default")
    three.until_pod("default", "plain", "Running")
    three.client.create(deployment, "default", dry_run=True)
    assert more() == [Counter(), Counter(), Counter(repair=51, policy=51, workloads=1)]
    print(f"\na plain pod: {1000 * before:.1f} ms, {1000 * after:.1f} ms without a replica")  # noqa: T201

    assert [admit(three) for _ in range(5)] == [UNREPAIRED] * 5
    failed = Counter(repair=5)
    assert more()[:2] == [failed, failed], "failurePolicy: Ignore"
    three.install(manifests)
    _settle(three)
    until(lambda: admit(three) == REPAIRED, "a repaired pod")


def _connections(cluster: RealCluster, replica: Json) -> int:
    """Count what is open at the server of a replica."""
    established = f"each[1].endswith(':{_PORT:04X}') and each[3] == '01'"
    code = f"print(sum({established} for each in map(str.split, open('/proc/net/tcp6'))))"
    name = replica["metadata"]["name"]
    return int(cluster.kubectl("-n", _NAMESPACE, "exec", name, "--", "python", "-c", code))


def test_a_dead_node_takes_no_more_calls_than_it_had_connections(three: RealCluster) -> None:
    """The API server notices only by a call that such a connection is dead."""
    places = {each["spec"]["nodeName"]: each for each in _ready(three)}
    assert len(places) == _REPLICAS, "the replicas are spread over the nodes"
    victim = three.nodes[-1]  # the API server is on the first one

    def is_dead() -> bool:
        conditions = three.client.get("Node", victim.place.name)["status"]["conditions"]
        return any(each["type"] == "Ready" and each["status"] == "Unknown" for each in conditions)

    with Load(three, RATE) as load:
        time.sleep(5)
        connections = _connections(three, places[victim.place.name])
        killed = time.monotonic()
        victim.kill()
        until(is_dead, f"{victim.place.name} to be found dead", _DEAD)
        dead = time.monotonic() - killed
        time.sleep(5)
    _say(f"a node killed that had {connections} connections, found dead after {dead:.0f} s", load)
    missed = load.missed()
    moments = [round(each.sent - killed, 1) for each in missed]
    print(f"{moments} seconds after the death pods were missed")  # noqa: T201
    assert {each.outcome for each in missed} <= {UNREPAIRED}
    assert load.failed_calls("repair").total() == len(missed)
    assert len(missed) <= connections
    assert all(-_TIMEOUT < moment < _IDLE for moment in moments)
    assert load.kept_its_rate()
