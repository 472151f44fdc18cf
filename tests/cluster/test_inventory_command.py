"""`gpu-webhook inventory` and its page in docs/, against the real API server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster import nodes
from tests.cluster.pods import NVIDIA, PRODUCT, modern, named, pod
from tests.cluster.webhook import ROOT
from webhook.cli.main import main
from webhook.cluster import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.controlplane import ControlPlane

PAGE = (ROOT / "docs" / "inventory.md").read_text()
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
MODEL = "Test-GPU"
TAINT = {"key": "test", "value": "inventory", "effect": "NoSchedule"}


@pytest.fixture
def gpu_nodes(cluster: ControlPlane, namespace: str) -> Iterator[list[str]]:
    """Two nodes of a model of their own; two pods hold three GPUs of the first one."""
    made = [
        nodes.gpu_node(f"inventory-{n}", 4, labels={PRODUCT: MODEL}, taints=[TAINT]) for n in "ab"
    ]
    names = nodes.add(cluster.client, made)
    for name, gpus in (("one", 1), ("two", 2)):
        bound = pod(modern(gpus), nodeName="inventory-a", tolerations=[{"operator": "Exists"}])
        cluster.client.create(named(bound, name), namespace)
    spy = pod(modern(0), nodeName="inventory-a", tolerations=[{"operator": "Exists"}])
    spy["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    cluster.client.create(named(spy, "spy"), namespace)
    yield names
    for name in names:
        cluster.client.delete("Node", name)


def inventory(cluster: ControlPlane, *words: str) -> int:
    return main(["inventory", f"--kubeconfig={cluster.kubeconfig}", *words])


def of_model(found: dict[str, Any]) -> dict[str, Any]:
    (mine,) = (each for each in found["classes"] if each["model"] == MODEL)
    assert isinstance(mine, dict)
    return mine


def test_it_counts_what_is_there(
    cluster: ControlPlane, gpu_nodes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert inventory(cluster, "-o", "json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    mine = of_model(found)
    assert mine["nodes"] == gpu_nodes
    assert mine["gpus"] == {
        NVIDIA: {"total": 8, "allocatable": 8, "used": 3, "free": 5, "largestNode": 4}
    }
    assert mine["taints"] == [{**TAINT, "notNow": False}]
    assert found["nodes"] == len(cluster.client.list("Node"))
    assert found["podsKnown"] is True
    assert found["leakGuard"]["by"]["privileged"] >= 1


def test_a_list_of_many_pages_says_the_same(
    cluster: ControlPlane,
    gpu_nodes: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inventory(cluster, "-o", "json")
    whole = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(listing, "MOST_OBJECTS", 2)
    inventory(cluster, "-o", "json")
    assert json.loads(capsys.readouterr().out) == whole
    assert of_model(whole)["nodes"] == gpu_nodes


def test_a_cordoned_node_is_a_line_of_its_own(
    cluster: ControlPlane,
    gpu_nodes: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller that taints cordoned nodes does not run here: the taint is made by hand."""
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    cluster.client.patch("Node", gpu_nodes[1], {"spec": {"taints": [TAINT, cordon]}})
    monkeypatch.setenv("COLUMNS", "80")
    assert inventory(cluster) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines() if MODEL in line]
    assert [(line[0], line[3:7]) for line in lines] == [
        ("1", ["4", "4", "3", "1"]),
        ("1", ["4", "4", "0", "4"]),
    ]
    assert "(cordoned)" in out


@pytest.fixture
def alice(cluster: ControlPlane) -> Iterator[Path]:
    """The kubeconfig of a person without any right; what is granted goes when the test ends."""
    yield cluster._write_kubeconfig("alice", cluster.authority.client("alice"))
    for kind in ("clusterrole", "clusterrolebinding"):
        cluster.kubectl("delete", kind, "--ignore-not-found", "gpu-inventory", "nodes-only")
    cluster.kubectl("delete", "clusterrolebinding", "--ignore-not-found", "gpu-inventory-alice")


def test_who_may_not_list_nodes_is_told(alice: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inventory", f"--kubeconfig={alice}"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Ask for the right to list nodes" in err
    assert 'User "alice" cannot list resource "nodes"' in err


def test_who_may_not_list_pods_sees_the_nodes(
    cluster: ControlPlane, alice: Path, gpu_nodes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.kubectl("create", "clusterrole", "nodes-only", "--verb=list", "--resource=nodes")
    cluster.kubectl(
        "create", "clusterrolebinding", "nodes-only", "--clusterrole=nodes-only", "--user=alice"
    )
    assert main(["inventory", f"--kubeconfig={alice}"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert MODEL in out
    assert "USED" not in out
    assert "RBAC forbids listing the pods of all namespaces" in out
    assert main(["inventory", f"--kubeconfig={alice}", "-o", "json"]) == 0
    out, err = capsys.readouterr()
    assert "RBAC forbids listing the pods" in err
    assert of_model(json.loads(out))["gpus"][NVIDIA]["used"] is None
    assert gpu_nodes == of_model(json.loads(out))["nodes"]


def test_the_page_shows_what_the_command_prints() -> None:
    golden = ROOT / "tests" / "cli" / "inventory" / "80-columns.txt"
    block = re.search(r"<!-- table:.*?-->\n```\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    assert block[1] == golden.read_text()


def test_every_command_of_the_page_works(
    cluster: ControlPlane, alice: Path, gpu_nodes: list[str], tmp_path: Path
) -> None:
    path = f"{cluster.programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert len(COMMANDS) == 5
    for block in COMMANDS:
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=tmp_path,
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), block
        if "gpu-webhook inventory" in block:
            assert MODEL in done.stdout
            assert "unknown" not in done.stdout, "pods are known on every road"
    as_alice = subprocess.run(
        [Path(sys.executable).parent / "gpu-webhook", "inventory", f"--kubeconfig={alice}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "USED" in as_alice.stdout
    assert gpu_nodes
