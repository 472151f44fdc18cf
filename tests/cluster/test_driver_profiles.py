"""Driver profiles where the API server would refuse what they add: then nothing is added.

The control plane is one of its own: its Pod Security default for namespaces without a label is
`baseline`, which nobody can read from inside the cluster.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import pytest

from tests.cluster import build, nodes
from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.pods import alpha, limits_of, modern, named, pod
from tests.cluster.scheduling import empty, node_of, pods_of
from tests.cluster.watcher import WatcherProcess
from tests.cluster.webhook import WebhookServer, registered
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cluster.client import Json

ADMISSION = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "PodSecurity",
            "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {"enforce": "baseline", "enforce-version": "latest"},
            },
        }
    ],
}
CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
    "scheduling": {"nodeSelector": {"disk": "hdd"}},
}
# Only the class tolerates the taint of this node, which alone has so many GPUs.
OF_TEAM = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "team"},
    "handler": "nvidia",
    "scheduling": {
        "nodeSelector": {"pool": "b"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
    },
}
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
HOST_PATH = {
    "profile": "host-path",
    "podSecurity": "baseline",
    "hostPath": {"mounts": [{"path": "/opt/driver", "mountPath": "/usr/local/nvidia"}]},
}
RUNTIME_CLASS = {"profile": "runtime-class", "runtimeClass": "nvidia"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if not build.is_built():
        pytest.fail("the control plane is not built: run `make cluster` first", pytrace=False)
    file = tmp_path_factory.mktemp("admission") / "admission.json"
    file.write_text(json.dumps(ADMISSION))
    with ControlPlane(apiserver_flags=[f"--admission-control-config-file={file}"]) as running:
        disks = ({"disk": "ssd"}, {"disk": "hdd"})
        made = [nodes.gpu_node(each["disk"], 4, labels=each) for each in disks]
        made.append(nodes.gpu_node("team", 8, labels={"pool": "b"}, taints=[TAINT]))
        nodes.add(running.client, made)
        running.client.create(CLASS)
        running.client.create(OF_TEAM)
        running.make_namespace("plain")
        yield running


@pytest.fixture
def driven(
    request: pytest.FixtureRequest, cluster: ControlPlane, tmp_path: Path
) -> Iterator[ControlPlane]:
    """Watcher and server with this driver profile, once they know the runtime class."""
    config = tmp_path / "settings.json"
    policy = {"rules": {"GPU301": "enforce"}}
    config.write_text(json.dumps({"drivers": request.param, "policy": policy}))
    watcher = WatcherProcess(tmp_path, cluster.kubeconfig)
    arguments = [f"--snapshot={watcher.snapshot}", f"--config={config}"]
    server = WebhookServer(tmp_path, cluster.authority, arguments)
    with watcher, server, registered(cluster, server.port, cluster.authority.bundle):
        yield cluster


@pytest.mark.parametrize("driven", [HOST_PATH], indirect=True, ids=["podSecurity: baseline"])
def test_a_pod_under_the_clusters_pod_security_default_gets_no_host_path(
    driven: ControlPlane,
) -> None:
    answer = driven.client.try_create(named(pod(alpha()), "legacy"), "plain")
    assert answer.ok, answer.message
    assert limits_of(answer.body) == [{"nvidia.com/gpu": "1"}]
    assert "the Pod Security level baseline" in " ".join(answer.warnings)


@pytest.mark.parametrize("driven", [RUNTIME_CLASS], indirect=True, ids=["runtime-class"])
def test_a_pod_that_contradicts_the_runtime_class_gets_none(driven: ControlPlane) -> None:
    there = {"disk": "hdd"}

    def is_known() -> bool:
        probe = named(pod(alpha(), nodeSelector=there), "probe")
        made = driven.client.try_create(probe, "plain", dry_run=True)
        return made.ok and made.body["spec"].get("runtimeClassName") == "nvidia"

    until(is_known, "the runtime class to be known", 30)
    answer = driven.client.try_create(
        named(pod(alpha(), nodeSelector={"disk": "ssd"}), "ssd"), "plain"
    )
    assert answer.ok, answer.message
    assert "runtimeClassName" not in answer.body["spec"]
    assert "the runtime class nvidia is not set" in " ".join(answer.warnings)
    assert node_of(driven.client, "plain", "ssd") == "ssd"


@pytest.mark.parametrize(
    ("driven", "spec"),
    [
        pytest.param({"profile": "runtime-class", "runtimeClass": "team"}, {}, id="set by us"),
        pytest.param({}, {"runtimeClassName": "team"}, id="its own"),
    ],
    indirect=["driven"],
)
@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
@pytest.mark.parametrize("gpus", [alpha, modern])
def test_a_pod_that_runs_by_its_class_is_never_said_to_be_refused(
    gpus: Callable[..., Json],
    kind: str,
    driven: ControlPlane,
    spec: Json,
    request: pytest.FixtureRequest,
) -> None:
    def is_known() -> bool:
        probe = named(pod(alpha(8), **spec), "probe")
        made = driven.client.try_create(probe, "plain", dry_run=True)
        return made.ok and made.body["spec"].get("runtimeClassName") == "team"

    until(is_known, "the runtime class to be known", 30)
    namespace = driven.make_namespace(f"class-{zlib.crc32(request.node.nodeid.encode())}")
    what = pod(gpus(8), **spec)
    what = named(what, "runs") if kind == "Pod" else made_by(kind, what, 1)
    answer = driven.client.try_create(what, namespace)
    assert answer.ok, answer.message
    assert "refused" not in " ".join(answer.warnings).lower()
    [made] = pods_of(driven.client, namespace, 1)
    assert node_of(driven.client, namespace, made["metadata"]["name"]) == "team"
    empty(driven.client, namespace)
