"""The chart as it is on a real node, by the real helm: from the installation to its removal."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING, Self

import pytest

from tests.cluster import helm
from tests.cluster.client import until
from tests.cluster.pods import NVIDIA, alpha, limits_of, named, pod
from tests.cluster.remains import everything
from tests.cluster.replicas import PROGRAM
from tests.node.build import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.node.cluster import RealCluster

_NAMESPACE = "gpu-webhook"
_PAUSE = 0.05  # seconds between two calls


@pytest.fixture
def home(cluster: RealCluster, tmp_path: Path) -> Iterator[Path]:
    """An empty folder for helm; what is there afterwards is removed."""
    yield tmp_path
    helm.run(tmp_path, *_words(cluster, "uninstall", "gpu-webhook", "--ignore-not-found", "--wait"))
    cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found")


def _words(cluster: RealCluster, *words: str) -> tuple[str, ...]:
    return (*words, "-n", _NAMESPACE, f"--kubeconfig={cluster.kubeconfig}")


def run(cluster: RealCluster, home: Path, *words: str) -> str:
    done = helm.run(home, *_words(cluster, *words))
    assert done.returncode == 0, (done.stderr, cluster.all_known())
    return done.stdout


def is_repaired(cluster: RealCluster) -> bool:
    made = cluster.client.create(named(pod(alpha(1)), "probe"), "default", dry_run=True)
    return limits_of(made.body) == [{NVIDIA: "1"}]


class Calls:
    """Legacy pods as dry runs, one after the other, while the block runs."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster, self._stopped = cluster, threading.Event()
        self._thread = threading.Thread(target=self._call, daemon=True)
        self.made = self.unrepaired = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _call(self) -> None:
        while not self._stopped.wait(_PAUSE):
            self.unrepaired += not is_repaired(self._cluster)
            self.made += 1


def test_the_chart_installs_tests_upgrades_rolls_back_and_goes(
    cluster: RealCluster, home: Path
) -> None:
    before = everything(cluster)
    chart = str(ROOT / "manifests")

    run(cluster, home, "install", "gpu-webhook", chart, "--create-namespace", "--wait")
    assert is_repaired(cluster), "as soon as helm says that it is installed"
    until(lambda: len(ready(cluster)) == 2, "both replicas")

    said = run(cluster, home, "test", "gpu-webhook", "--logs")
    assert "Succeeded" in said
    assert re.search(r"^0 failed, 0 warnings, \d\d ok$", said, re.MULTILINE), said
    assert of_test(cluster) == set()

    status, said = doctor(cluster)
    assert status == 0, said

    with Calls(cluster) as calls:
        new = ("--set", "podAnnotations.new=pods,guard.enabled=true", "--wait")
        run(cluster, home, "upgrade", "gpu-webhook", chart, *new)
        run(cluster, home, "rollback", "gpu-webhook", "1", "--wait")
    print(f"\n{calls.made} calls during an upgrade and a rollback")  # noqa: T201 - pytest -s
    assert calls.made > 50
    assert calls.unrepaired == 0

    run(cluster, home, "uninstall", "gpu-webhook", "--wait")
    cluster.kubectl("delete", "namespace", _NAMESPACE)
    until(lambda: everything(cluster) == before, "nothing of it to be left", 60)


def test_a_failed_test_shows_why_and_leaves_no_right(cluster: RealCluster, home: Path) -> None:
    chart = shutil.copytree(ROOT / "manifests", home / "chart")
    script = chart / "checks" / "doctor.py"
    script.write_text(script.read_text().replace('"60"', '"1"'))  # seconds
    run(cluster, home, "install", "gpu-webhook", str(chart), "--create-namespace", "--wait")
    cluster.kubectl("-n", _NAMESPACE, "delete", "service", "gpu-webhook")
    done = helm.run(home, *_words(cluster, "test", "gpu-webhook"))
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "calls gpu-webhook/gpu-webhook, which is not there" in said, said
    assert of_test(cluster) == {"pod/gpu-webhook-test"}


def of_test(cluster: RealCluster) -> set[str]:
    """What `helm test` has left."""
    kinds = "pods,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
    found = cluster.kubectl("get", kinds, "--all-namespaces", "-o", "name").split()
    return {each for each in found if "gpu-webhook-test" in each}


def doctor(cluster: RealCluster) -> tuple[int, str]:
    """What `gpu-webhook doctor` finds."""
    done = subprocess.run(
        [PROGRAM, "doctor", f"--kubeconfig={cluster.kubeconfig}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"COLUMNS": "200", "PATH": ""},
    )
    return done.returncode, done.stdout + done.stderr


def ready(cluster: RealCluster) -> list[str]:
    pods = cluster.client.list("Pod", _NAMESPACE)
    names = [each["metadata"]["name"] for each in pods]
    return [name for name in names if cluster.phase(_NAMESPACE, name) == "Running"]
