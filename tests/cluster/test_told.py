"""What people are told comes true: of a workload's pods, of a refused pod, of what was changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cluster.client import until
from tests.cluster.pods import ALPHA, NVIDIA, alpha, limits_of, modern, named, pod
from tests.cluster.scheduling import pods_of
from tests.cluster.watcher import WatcherProcess
from tests.cluster.webhook import BASE
from tests.cluster.workloads import made_by, serving

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

    Team = Callable[[str], str]
    Apply = Callable[..., "subprocess.CompletedProcess[str]"]

REPAIRED = "gpu-webhook.dev/repaired"
HELP = "ask #gpu, https://wiki.example.com/gpu"
SETTINGS: Json = {
    "policy": {
        "overrides": [
            {"namespaces": ["told-strict-*"], "rules": {"GPU301": "enforce"}},
            {"namespaces": ["told-careful-*"], "mode": "warn"},
        ],
        "exceptions": [{"rules": ["GPU301"], "namespaces": ["told-strict-*"]}],
    },
    "messages": {"help": HELP},
}


@pytest.fixture(scope="module")
def told(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    with serving(cluster, tmp_path_factory.mktemp("told"), SETTINGS) as recorder:
        yield recorder


@pytest.fixture
def apply(cluster: ControlPlane) -> Apply:
    def run(namespace: str, what: Json, *words: str) -> subprocess.CompletedProcess[str]:
        command = words or ("apply",)
        return cluster.try_kubectl(
            *command, f"--namespace={namespace}", "-f", "-", stdin=yaml.safe_dump(what)
        )

    return run


def note(obj: Json) -> str | None:
    text: str | None = (obj["metadata"].get("annotations") or {}).get(REPAIRED)
    return text


# --- of a workload's pods


@pytest.mark.usefixtures("told")
def test_pods_that_will_be_repaired_are(cluster: ControlPlane, team: Team, apply: Apply) -> None:
    namespace = team("usual")
    done = apply(namespace, made_by("Deployment", pod(alpha()), 1))
    assert "[its pods will be repaired]" in done.stderr
    assert f"`gpu-webhook explain CODE` explains each code; {HELP}" in done.stderr
    [made] = pods_of(cluster.client, namespace, 1)
    assert limits_of(made) == [{NVIDIA: "1"}]


@pytest.mark.usefixtures("told")
def test_pods_that_will_not_be_repaired_are_not(
    cluster: ControlPlane, team: Team, apply: Apply
) -> None:
    namespace = team("careful")
    done = apply(namespace, made_by("Deployment", pod(alpha()), 1))
    assert f"[its pods will not be repaired in namespace {namespace}]" in done.stderr
    [made] = pods_of(cluster.client, namespace, 1)
    assert limits_of(made) == [{ALPHA: "1"}]
    assert note(made) is None


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "ReplicaSet"])
def test_pods_that_will_be_refused_are(
    kind: str, cluster: ControlPlane, team: Team, apply: Apply
) -> None:
    namespace = team("strict")
    done = apply(namespace, made_by(kind, pod(alpha(99)), 1))
    assert done.returncode == 0
    assert f"[its pods WILL BE REFUSED in namespace {namespace}]" in done.stderr

    def refused() -> list[str] | None:
        events = cluster.client.list("Event", namespace)
        return [each["message"] for each in events if each["reason"] == "FailedCreate"] or None

    [why, *_] = until(refused, "the controller to fail")
    assert "GPU301: requests 99" in why
    assert why.endswith(f"More: `gpu-webhook explain GPU301`; {HELP}"), "the way out is not cut"
    assert cluster.client.list("Pod", namespace) == []


@pytest.mark.usefixtures("told")
def test_where_nothing_is_refused_nobody_is_told_so(
    cluster: ControlPlane, team: Team, apply: Apply
) -> None:
    namespace = team("usual")
    done = apply(namespace, made_by("Deployment", pod(alpha(99)), 1))
    assert f"[its pods will not be refused in namespace {namespace}]" in done.stderr
    pods_of(cluster.client, namespace, 1)


# --- of a refused pod


@pytest.mark.usefixtures("told")
def test_a_refused_pod_names_the_way_out_and_the_way_is_one(team: Team, apply: Apply) -> None:
    namespace = team("strict")
    what = named(pod(alpha(99)), "big")

    refused = apply(namespace, what)
    what["metadata"]["annotations"] = {"gpu-webhook.dev/allow.GPU301": "tried by a test"}
    let_in = apply(namespace, what)

    assert refused.returncode != 0
    assert "[the pod is refused]" in refused.stderr
    assert "repaired]" not in refused.stderr
    assert 'gpu-webhook.dev/allow.GPU301: "reason (until DATE)"' in refused.stderr
    assert f"More: `gpu-webhook explain GPU301`; {HELP}" in refused.stderr
    assert let_in.returncode == 0, let_in.stderr


# --- of what was changed


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    "words", [("apply",), ("apply", "--server-side")], ids=["client side", "server side"]
)
def test_the_annotation_is_not_in_the_way_of_a_second_apply(
    words: tuple[str, ...], cluster: ControlPlane, team: Team, apply: Apply
) -> None:
    namespace, what = team("usual"), named(pod(modern(1)), "again")
    first = apply(namespace, what, *words)
    made = cluster.client.get("Pod", "again", namespace)
    diff = apply(namespace, what, "diff", *words[1:])
    second = apply(namespace, what, *words)
    after = cluster.client.get("Pod", "again", namespace)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert note(made) == note(after) == "GPU201"
    placed = {"nodeName": "by the scheduler, meanwhile"}
    assert after["spec"] | placed == made["spec"] | placed
    assert (diff.returncode, diff.stdout) == (0, "")
    what["metadata"]["labels"] = {"new": "label"}
    assert apply(namespace, what, *words).returncode == 0
    assert note(cluster.client.get("Pod", "again", namespace)) == "GPU201"


@pytest.mark.usefixtures("told")
def test_pods_of_a_workload_say_it_and_nothing_rolls_out(
    cluster: ControlPlane, team: Team, apply: Apply
) -> None:
    namespace, what = team("usual"), made_by("Deployment", pod(alpha()), 2)
    apply(namespace, what)
    pods = pods_of(cluster.client, namespace, 2)
    apply(namespace, what)

    assert {note(each) for each in pods} == {"GPU101,GPU201"}
    [of_deployment] = cluster.client.list("Deployment", namespace)
    [replica_set] = cluster.client.list("ReplicaSet", namespace)
    assert note(of_deployment) is note(replica_set) is None
    assert of_deployment["metadata"]["generation"] == 1


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("forged", ["GPU101,GPU106,GPU109", "none at all", ""])
def test_a_forged_annotation_is_replaced_by_the_truth(
    forged: str, cluster: ControlPlane, team: Team
) -> None:
    namespace = team("usual")
    by_hand = named(pod(alpha(), annotations={REPAIRED: forged}), "by-hand")
    made = cluster.client.create(by_hand, namespace).body
    cluster.client.create(made_by("ReplicaSet", by_hand, 1), namespace)
    pods_of(cluster.client, namespace, 2)

    assert note(made) == "GPU101,GPU201"
    assert {note(each) for each in cluster.client.list("Pod", namespace)} == {"GPU101,GPU201"}


@pytest.mark.usefixtures("told")
def test_a_forged_annotation_on_a_pod_that_is_not_changed_stays(
    cluster: ControlPlane, team: Team
) -> None:
    tolerant = [{"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}]
    fine = pod(modern(1), annotations={REPAIRED: "GPU101"}, tolerations=tolerant)
    assert note(cluster.client.create(fine, team("usual")).body) == "GPU101"


# --- by an Event


def ours(cluster: ControlPlane, namespace: str) -> list[Json]:
    events = cluster.client.list("Event", namespace)
    return [each for each in events if each["reason"] == "PodRepaired"]


@pytest.mark.usefixtures("told")
def test_an_owner_gets_one_event_though_two_watchers_run(
    cluster: ControlPlane, team: Team, apply: Apply, tmp_path: Path
) -> None:
    namespace = team("usual")
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with (
        WatcherProcess(folders[0], cluster.kubeconfig) as one,
        WatcherProcess(folders[1], cluster.kubeconfig) as two,
    ):
        both = (one, two)
        until(lambda: all(w.kind("pods")["state"] == "watching" for w in both), "both watches")
        apply(namespace, made_by("Deployment", pod(alpha()), 3))
        cluster.client.create(named(pod(alpha()), "by-hand"), namespace)
        pods_of(cluster.client, namespace, 4)
        until(lambda: len(ours(cluster, namespace)) >= 2, "the Events")
        cluster.client.create(named(pod(alpha()), "later"), namespace)
        until(lambda: len(ours(cluster, namespace)) >= 3, "the Event of a later pod")
        assert one.warned() == two.warned() == [], "nothing went wrong"

    [replica_set] = cluster.client.list("ReplicaSet", namespace)
    about = sorted(
        (e["involvedObject"]["kind"], e["involvedObject"]["name"]) for e in ours(cluster, namespace)
    )
    assert about == [
        ("Pod", "by-hand"),
        ("Pod", "later"),
        ("ReplicaSet", replica_set["metadata"]["name"]),
    ]
    described = cluster.kubectl(
        "describe", "replicaset", replica_set["metadata"]["name"], f"--namespace={namespace}"
    )
    assert "PodRepaired" in described
    assert "Change the manifest: `gpu-webhook explain GPU101`" in described


@pytest.fixture
def _without_its_role(cluster: ControlPlane) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "clusterrole/sender", "clusterrolebinding/sender")


@pytest.mark.usefixtures("told", "_without_its_role")
def test_the_shipped_role_is_enough_and_without_the_right_only_the_event_is_missing(
    cluster: ControlPlane, team: Team, tmp_path: Path
) -> None:
    namespace = team("usual")
    kubeconfig = cluster._write_kubeconfig("sender", cluster.authority.client("sender"))
    role = next(iter(yaml.safe_load_all((BASE / "cluster-role.yaml").read_text())))
    without = [rule for rule in role["rules"] if "events" not in rule["resources"]]
    _grant(cluster, "sender", without)
    with WatcherProcess(tmp_path, kubeconfig) as watcher:
        until(lambda: watcher.kind("pods")["state"] == "watching", "a watch of pods")
        cluster.client.create(named(pod(alpha()), "first"), namespace)
        cluster.client.create(named(pod(alpha()), "second"), namespace)
        lines = until(lambda: watcher.warned() or None, "a line")
        watcher.until_equal(cluster.client, tmp_path)
        assert [line["message"] for line in lines] == [
            "owners of repaired pods get no Events: RBAC forbids creating them"
        ]
        assert 'User "sender" cannot create resource "events"' in lines[0]["reason"]
        assert ours(cluster, namespace) == []

    _grant(cluster, "sender", role["rules"])
    with WatcherProcess(tmp_path, kubeconfig) as watcher:
        until(lambda: len(ours(cluster, namespace)) == 2, "the Events of young pods")
        watcher.until_equal(cluster.client, tmp_path)
        assert watcher.warned() == []


def _grant(cluster: ControlPlane, user: str, rules: list[Any]) -> None:
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": user}}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
    }
    cluster.kubectl(
        "apply", "-f", "-", stdin=yaml.safe_dump_all([role | {"rules": rules}, binding])
    )
