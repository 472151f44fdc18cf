"""Real clusters of one node for the tests of this folder, with the shipped manifests applied.

Where something is missing they are skipped, and say what; in CI that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster import build as control_plane
from tests.node import build, machine
from tests.node.cluster import RealCluster
from tests.node.network import own_network

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMANDS = (
    "kubectl apply -k manifests/base",
    "kubectl -n gpu-webhook rollout status deployment/gpu-webhook --timeout=240s",
    "kubectl create -f examples/two-containers-five-gpus.yaml",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder: it needs root and what `make node` builds."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.node)


def missing() -> str:
    """Tell the first thing that prevents nodes on this machine."""
    if why := machine.lacks():
        return why
    if not (control_plane.is_built() and build.programs_folder().is_dir()):
        return "the programs are not built: run `make node`"
    return ""


@pytest.fixture(scope="session")
def _possible() -> None:
    why = missing()
    if why:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up(f"no nodes on this machine: {why}")
    # Before the network of our own, which reaches no package registry.
    build.everything()


@pytest.fixture(scope="module", params=["a CA as kubeadm makes it", "a CA without key identifiers"])
def cluster(_possible: None, request: pytest.FixtureRequest) -> Iterator[RealCluster]:
    """Start a cluster of one node; its API server is reached from this process only."""
    with (
        own_network(RealCluster.host),
        RealCluster(key_identifiers=request.param == "a CA as kubeadm makes it") as running,
    ):
        yield running


@dataclass(frozen=True, slots=True)
class Installed:
    """What the three commands of the README made."""

    cluster: RealCluster
    seconds: float  # from the first command until the pod of the third one runs


@pytest.fixture(scope="module")
def installed(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Apply manifests/base as it is, with three commands in a folder that has nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    for name in ("manifests", "examples"):
        shutil.copytree(build.ROOT / name, folder / name)
    environment = {
        "PATH": f"{cluster.programs}:/usr/bin:/bin",
        "HOME": str(folder),
        "KUBECONFIG": str(cluster.kubeconfig),
    }
    started = time.monotonic()
    for command in _COMMANDS:
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr, cluster.all_known())
    cluster.until_pod("default", "gpu-pod", "Running")
    return Installed(cluster, time.monotonic() - started)
