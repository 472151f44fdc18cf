"""The guides' pods run on a real node and see their GPUs, with manifests/base as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from examples.demo import EXAMPLES, PODS
from tests.cluster.client import until
from tests.cluster.pods import alpha, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json
    from tests.node.cluster import RealCluster
    from tests.node.conftest import Installed

_SECONDS = 60.0
_BOUND = 180.0  # seconds; about 25 where nothing else runs


def _pod_of(name: str) -> Json:
    read: Json = yaml.safe_load((EXAMPLES / name).read_text())
    for container in read["spec"]["containers"]:
        # One of them names no tag, so the kubelet would ask a registry each time.
        container.setdefault("imagePullPolicy", "IfNotPresent")
    return read


def _gpus(written: Json) -> dict[str, int]:
    """Give how many GPUs each container asks for, in the old name or in the new one."""
    return {
        container["name"]: next(
            int(amount)
            for name, amount in container["resources"]["limits"].items()
            if name.endswith("gpu")
        )
        for container in written["spec"]["containers"]
    }


@pytest.fixture
def namespace(cluster: RealCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"guides-{abs(hash(request.node.nodeid))}"
    yield cluster.make_namespace(name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    cluster.kubectl("-n", name, "delete", "pods", "--all", "--grace-period=0", "--force")


def test_a_legacy_pod_runs_after_three_commands(installed: Installed) -> None:
    made = installed.cluster.client.get("Pod", "gpu-pod", "default")
    assert [each["ready"] for each in made["status"]["containerStatuses"]] == [True, True]
    assert installed.seconds < _BOUND
    print(f"\nthree commands until the pod runs: {installed.seconds:.1f} s")  # noqa: T201 - pytest -s


@pytest.mark.parametrize("name", PODS)
def test_a_pod_of_the_guides_runs_and_sees_its_gpus(
    name: str, installed: Installed, namespace: str
) -> None:
    cluster, written = installed.cluster, _pod_of(name)
    cluster.client.create(written, namespace)
    called = written["metadata"]["name"]
    phase = "Succeeded" if written["spec"].get("restartPolicy") == "Never" else "Running"
    cluster.until_pod(namespace, called, phase)
    seen = [cluster.gpus_seen(namespace, called, each) for each in _gpus(written)]
    assert [len(each) for each in seen] == list(_gpus(written).values())
    assert len(set().union(*seen)) == sum(_gpus(written).values()), "no GPU is given twice"


def test_a_pod_that_asks_for_more_gpus_than_the_node_has_is_warned_of_it(
    installed: Installed, namespace: str
) -> None:
    """The watcher in the pod reaches the API server, with its token, and reads the node."""

    def warned() -> bool:
        answer = installed.cluster.client.create(pod(alpha(17)), namespace, dry_run=True)
        return any(each.startswith("GPU301") and "16" in each for each in answer.warnings)

    until(warned, "GPU301", _SECONDS)
