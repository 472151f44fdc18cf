"""One control plane and one webhook server for the cluster tests of a process.

Each test has a namespace of its own, and a file takes away what it made without a namespace:
which files share a control plane depends on how fast the machine is.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster import build, nodes
from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.pods import NVIDIA, alpha, pod
from tests.cluster.remains import without_namespace
from tests.cluster.scheduling import leave
from tests.cluster.webhook import ROOT, Recorder, WebhookServer, failed_open, registered
from tests.cluster.workloads import made_by, serving
from tests.verifying.test_command import written
from webhook.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INVENTORY = ROOT / "examples" / "inventory.yaml"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder: it needs a real control plane."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture
def verify_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path, dict[str, str], dict[str, str]], tuple[int, str]]:
    """Runs `gpu-webhook verify` on the files of both sides, with these programs first in PATH.

    It returns the exit code and the output.
    """

    def run(programs: Path, was: dict[str, str], now: dict[str, str]) -> tuple[int, str]:
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        monkeypatch.chdir(tmp_path)
        written(tmp_path / "old", was)
        written(tmp_path / "new", now)
        code = main(["verify", "old", "new"])
        return code, capsys.readouterr().out

    return run


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Say at once what fails: a run that is stopped from outside has no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        sys.stderr.write(f"\n{report.nodeid} failed ({report.when}):\n{report.longreprtext}\n")


@contextmanager
def with_nodes() -> Iterator[ControlPlane]:
    """Start a control plane with the nodes of examples/inventory.yaml."""
    if not build.is_built():
        pytest.fail("the control plane is not built: run `make cluster` first", pytrace=False)
    with ControlPlane() as running:
        nodes.add(running.client, nodes.from_inventory(INVENTORY))
        yield running


@pytest.fixture(scope="session")
def shared() -> list[ControlPlane]:
    """The control plane that the files of a process share; a file may have one of its own."""
    return []


@pytest.fixture(scope="session")
def cluster(shared: list[ControlPlane]) -> Iterator[ControlPlane]:
    with with_nodes() as running:
        shared.append(running)
        yield running


@pytest.fixture(autouse=True)
def _all_programs_live(cluster: ControlPlane) -> Iterator[None]:
    """Say which program died, and its last words, before a test fails of it in some odd way."""
    cluster.check()
    yield
    cluster.check()


@pytest.fixture(scope="module", autouse=True)
def _leaves_nothing(cluster: ControlPlane, shared: list[ControlPlane]) -> Iterator[None]:
    """Fail the file that leaves a role, a node or a configuration behind, not the one after it."""
    if cluster not in shared:
        yield
        return
    before = without_namespace(cluster)
    yield

    def changed() -> set[str]:
        return without_namespace(cluster) ^ before

    with suppress(TimeoutError):
        until(lambda: not changed(), "what the file made to be deleted", 20)
    assert not changed()


@pytest.fixture
def namespace(cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a namespace of the test's own; its pods go when it ends, so that their GPUs are free."""
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    name = f"{readable[:40].strip('-')}-{zlib.crc32(request.node.nodeid.encode())}"
    cluster.make_namespace(name)
    yield name
    leave(cluster.client, name)


def until_templates_are_repaired(cluster: ControlPlane) -> None:
    """Wait until the entry is in force: without us the probe is stored as it is written."""
    probe = made_by("Deployment", pod(alpha()), 0)

    def is_repaired() -> bool:
        made = cluster.client.create(probe, "default", dry_run=True).body
        (main,) = made["spec"]["template"]["spec"]["containers"]
        return NVIDIA in main["resources"]["limits"]

    until(is_repaired, "the entry to be in force")


@pytest.fixture(scope="module")
def repairing(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    """Have templates repaired, from when the entry of the webhook is in force."""
    with serving(
        cluster, tmp_path_factory.mktemp("repairing"), {"workloads": {"repair": True}}
    ) as recorder:
        until_templates_are_repaired(cluster)
        yield recorder


@pytest.fixture
def team(cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Make namespaces of the test's own, named after its file and after what holds there."""
    made: list[str] = []

    def make(what: str) -> str:
        of = request.path.stem.removeprefix("test_")
        name = f"{of}-{what}-{zlib.crc32(request.node.nodeid.encode())}-{len(made)}"
        made.append(cluster.make_namespace(name))
        return name

    yield make
    for name in made:
        leave(cluster.client, name)


@pytest.fixture(scope="session")
def server(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookServer]:
    """`gpu-webhook serve` with the inventory that the cluster's nodes were made of."""
    folder = tmp_path_factory.mktemp("gpu-webhook")
    with WebhookServer(folder, cluster.authority, [f"--inventory={INVENTORY}"]) as running:
        yield running


@pytest.fixture(scope="session")
def recorder(server: WebhookServer) -> Iterator[Recorder]:
    with Recorder(server) as running:
        yield running


@pytest.fixture
def webhook(cluster: ControlPlane, recorder: Recorder) -> Iterator[Recorder]:
    """Register the shipped configuration; it is in force during the test."""
    with registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle):
        before = failed_open(cluster)
        yield recorder
        # A pod that failed open looks like one that was not repaired: say which it was.
        assert failed_open(cluster) == before, (
            "the API server gave up on a call: was it slower than timeoutSeconds? "
            f"slowest call: {recorder.slowest():.1f} s; {cluster.failed_calls()[-3:]}"
        )


@pytest.fixture
def only_tainted_gpu_nodes(cluster: ControlPlane) -> Iterator[None]:
    """All GPU nodes without a taint are cordoned."""
    names = [
        node["metadata"]["name"]
        for node in nodes.from_inventory(INVENTORY)
        if "nvidia.com/gpu" in node["status"]["capacity"] and "taints" not in node["spec"]
    ]
    with ExitStack() as afterwards:
        afterwards.callback(nodes.set_schedulable, cluster.client, names, schedulable=True)
        nodes.set_schedulable(cluster.client, names, schedulable=False)
        yield
