"""`kubectl gpu-migrate`, called by the real kubectl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.cluster.pods import ALPHA, NVIDIA, alpha, pod
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from tests.cluster.controlplane import ControlPlane

PROGRAMS = Path(sys.executable).parent


def kubectl(
    cluster: ControlPlane, folder: Path, *words: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    path = f"{PROGRAMS}:{cluster.programs}:{os.environ['PATH']}"
    return subprocess.run(
        [cluster.programs / "kubectl", *words],
        cwd=folder,
        env={**os.environ, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_kubectl_finds_it(cluster: ControlPlane, tmp_path: Path) -> None:
    done = kubectl(cluster, tmp_path, "plugin", "list")
    assert str(PROGRAMS / "kubectl-gpu_migrate") in done.stdout
    assert "warning" not in done.stderr.lower()


def test_it_migrates_files(cluster: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(pod(alpha(1))))
    checked = kubectl(cluster, tmp_path, "gpu-migrate", "--check", "-f", "pod.yaml")
    assert (checked.returncode, checked.stdout) == (2, "pod.yaml\n"), checked.stderr
    written = kubectl(cluster, tmp_path, "gpu-migrate", "-w", "-f", "pod.yaml")
    assert written.returncode == 0
    assert NVIDIA in file.read_text()
    assert ALPHA not in file.read_text()


def test_it_stands_in_a_pipe_before_apply(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    manifest = yaml.safe_dump(made_by("Deployment", pod(alpha(1))))
    migrated = kubectl(cluster, tmp_path, "gpu-migrate", "-f", "-", stdin=manifest)
    applied = kubectl(
        cluster, tmp_path, "apply", f"--namespace={namespace}", "-f", "-", stdin=migrated.stdout
    )
    assert applied.returncode == 0, applied.stderr
    (deployment,) = cluster.client.list("Deployment", namespace)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {NVIDIA: "1"}


def test_other_commands_stand_behind_it(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    cluster.client.create(pod(alpha(1)), namespace)
    found = kubectl(cluster, tmp_path, "gpu-migrate", "scan", "--cluster", "-n", namespace)
    assert f"{namespace}/Pod/pod\n" in found.stdout
    manual = kubectl(cluster, tmp_path, "gpu-migrate", "explain", "GPU101")
    assert manual.stdout.startswith("GPU101 legacy-resource\n")
