"""`kubectl gpu-migrate`, called by the real kubectl."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.cluster.pods import ALPHA, NVIDIA, alpha, pod
from tests.cluster.webhook import ROOT
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from tests.cluster.controlplane import ControlPlane

PROGRAMS = Path(sys.executable).parent
PAGE = (ROOT / "docs" / "migrate.md").read_text()


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


def test_the_commands_of_the_page_work(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    config = json.loads(cluster.kubeconfig.read_bytes())
    config["contexts"][0]["context"]["namespace"] = namespace
    (tmp_path / "config").write_text(json.dumps(config))
    manifest = made_by("Deployment", pod(alpha(1)))
    manifest["metadata"] = {"name": "trainer"}
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "trainer.yaml").write_text(yaml.safe_dump(manifest))
    cluster.kubectl("apply", f"--namespace={namespace}", f"--filename={tmp_path / 'deploy'}")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    commands = [
        line
        for each in blocks
        for line in each.splitlines()
        if re.search("--cluster|^kubectl", line)
    ]
    assert len(commands) == 4
    path = f"{PROGRAMS}:{cluster.programs}:{os.environ['PATH']}"
    said = []
    for command in commands:
        done = subprocess.run(
            ["bash", "-euc", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "KUBECONFIG": str(tmp_path / "config")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        said.append((done.returncode, done.stdout))
    for code, out in (said[0], said[2]):
        assert code in (2, 3)
        assert f"{namespace}/Deployment/trainer\n" in out
    assert said[1][0] == 2
    assert "--- a/deploy/trainer.yaml" in said[1][1]
    assert said[3] == (0, "deployment.apps/trainer configured\n")
    (container,) = cluster.client.get("Deployment", "trainer", namespace)["spec"]["template"][
        "spec"
    ]["containers"]
    assert container["resources"]["limits"] == {NVIDIA: "1"}
    assert container["resources"].get("requests", {}).get(ALPHA) is None
