"""Releases of the chart by the real helm, on the real API server.

No kubelet runs here: nothing waits for pods, and `helm test` is run as its pod would run it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster import helm
from tests.cluster.own_chart import CHART, NAMESPACE
from tests.cluster.releases import HOW, Release, released
from tests.cluster.remains import everything
from tests.cluster.webhook import KINDS, registered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

ALL = ("--set", "guard.enabled=true,guard.refuse=true,workloadRepair.enabled=true")


@pytest.fixture
def release(cluster: ControlPlane, tmp_path: Path) -> Iterator[Release]:
    with released(cluster, tmp_path) as made:
        yield made


def rendered(release: Release) -> str:
    words = ("template", "gpu-webhook", str(CHART), "-n", NAMESPACE, "--skip-tests")
    return helm.run(release.home, *words).stdout


def test_tools_that_render_the_chart_leave_the_certificates_alone(release: Release) -> None:
    """As Argo CD does; docs/gitops.md says so."""
    cluster, text = release.cluster, rendered(release)
    argo = ("apply", "--server-side", "--field-manager=argocd-controller", "-f", "-")
    cluster.kubectl(*argo, stdin=text)
    release.keeper.pass_once()
    whole, pair = release.bundles(), release.secret()
    assert all(map(all, whole.values()))
    for words in (argo, ("apply", "-f", "-"), argo):
        cluster.kubectl(*words, stdin=text)
        assert (release.bundles(), release.secret()) == (whole, pair), words
    shown = cluster.try_kubectl(
        *("diff", "--server-side", "--field-manager=argocd-controller", "-f", "-"), stdin=text
    )
    assert (shown.returncode, shown.stdout) == (0, "")
    cluster.kubectl("delete", "--wait=false", "-f", "-", stdin=text)


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_install_upgrade_rollback_and_uninstall_leave_nothing(how: str, release: Release) -> None:
    before = everything(release.cluster)

    release.install(how)
    release.keeper.pass_once()
    whole, pair = release.bundles(), release.secret()
    assert len(whole) == 2
    assert all(map(all, whole.values())), "the keeper has filled each of them"

    release.upgrade(*ALL, "--set", "replicaCount=3", how)
    assert len(release.bundles()) == 5
    assert {name: release.bundles()[name] for name in whole} == whole, "an upgrade keeps them"
    assert release.secret() == pair
    release.keeper.pass_once()
    assert all(map(all, release.bundles().values()))

    release.helm("rollback", "gpu-webhook", "1", how)
    assert release.bundles() == whole, "the entries of the second revision are gone"
    assert release.secret() == pair
    deployment = release.cluster.client.get("Deployment", "gpu-webhook", NAMESPACE)
    assert deployment["spec"]["replicas"] == 2

    release.upgrade(*ALL, how)
    release.helm("uninstall", "gpu-webhook")
    release.until_only(before)


def test_uninstall_removes_the_configurations_first(release: Release) -> None:
    release.install(*ALL)
    said = release.helm("uninstall", "gpu-webhook", "--debug")
    kinds = re.findall(r"msg=\"[Ss]tarting delete resource\".* kind=(\w+)", said)
    configurations = [kind in KINDS for kind in kinds]
    assert sum(configurations) == 5
    assert configurations == sorted(configurations, reverse=True), kinds
    assert "Deployment" in kinds


FORMER = {  # certificates by hand, and a field that excludes the present one
    "resources": ["../manifests/secret"],
    "patches": [
        {
            "target": {"kind": "PodDisruptionBudget"},
            "patch": json.dumps(
                [
                    {"op": "remove", "path": "/spec/maxUnavailable"},
                    {"op": "add", "path": "/spec/minAvailable", "value": 1},
                ]
            ),
        }
    ],
}


def test_helm_takes_over_what_kubectl_applied(release: Release, tmp_path: Path) -> None:
    """With its certificates, so that no call fails; what an older version applied, too."""
    before = everything(release.cluster)
    shutil.copytree(CHART, tmp_path / "manifests")
    (tmp_path / "former").mkdir()
    (tmp_path / "former" / "kustomization.yaml").write_text(json.dumps(FORMER))
    release.cluster.kubectl("apply", "-k", str(tmp_path / "former"))
    release.cluster.kubectl("apply", "-k", str(CHART / "base"))
    release.cluster.kubectl("apply", "-k", str(CHART / "guard"))
    release.keeper.pass_once()
    whole, pair = release.bundles(), release.secret()

    refused = helm.run(
        release.home,
        *("install", "gpu-webhook", str(CHART), "-n", NAMESPACE, release.kubeconfig),
    )
    assert refused.returncode != 0
    assert "exists and cannot be imported" in refused.stderr
    release.install("--take-ownership", "--server-side=false", "--set", "guard.enabled=true")

    assert release.bundles() == whole
    assert release.secret() == pair
    release.upgrade("--set", "replicaCount=3")
    release.helm("uninstall", "gpu-webhook")
    release.until_only(before)


def test_helm_puts_back_what_kubectl_changed_if_it_is_forced(release: Release) -> None:
    """As doctor says it. caBundle stays: the chart does not have it."""
    release.install()
    release.keeper.pass_once()
    whole = release.bundles()
    role = ("clusterrole", "gpu-webhook")
    rules = ("get", *role, "-o", "jsonpath={.rules}")
    before = release.cluster.kubectl(*rules)
    patch = json.dumps([{"op": "remove", "path": "/rules/1"}])
    release.cluster.kubectl("patch", *role, "--type=json", "-p", patch)
    with pytest.raises(AssertionError, match="conflict"):
        release.upgrade("--reset-then-reuse-values")
    release.upgrade("--reset-then-reuse-values", "--force-conflicts")
    assert release.cluster.kubectl(*rules) == before
    assert release.bundles() == whole


def test_a_wrong_value_changes_nothing(release: Release) -> None:
    release.install()
    manifest = release.helm("get", "manifest", "gpu-webhook")
    done = helm.run(
        release.home,
        *("upgrade", "gpu-webhook", str(CHART), "-n", NAMESPACE, release.kubeconfig),
        *("--set", "settings.policy.mode=enforced"),
    )
    assert done.returncode != 0
    assert release.helm("get", "manifest", "gpu-webhook") == manifest


def test_the_notes_say_what_to_do_next(release: Release) -> None:
    said = release.install(*ALL)
    for words in (
        f"helm test gpu-webhook -n {NAMESPACE}",
        "gpu-webhook doctor",
        "gpu-webhook certs status",
        "gpu-webhook.dev/guard=enabled",
    ):
        assert words in said
    said = release.upgrade("--set", "certificates.mode=secret,auditOnly=true,guard.enabled=false")
    assert "certificates.caBundle is empty" in said
    assert "changes nothing" in said
    assert "certs status" not in said


def hooks(release: Release) -> list[Json]:
    """The objects of `helm test`."""
    text = release.helm("get", "hooks", "gpu-webhook")
    return [each for each in yaml.safe_load_all(text) if each is not None]


@pytest.fixture
def tested(release: Release, tmp_path: Path) -> Iterator[tuple[Json, dict[str, str]]]:
    """The pod of `helm test`, and the environment that a kubelet would give it."""
    release.install()
    *rights, pod = hooks(release)
    cluster = release.cluster
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(rights))
    token = cluster.kubectl("-n", NAMESPACE, "create", "token", "gpu-webhook-test")
    (tmp_path / "token").write_text(token)
    (tmp_path / "ca.crt").write_bytes(cluster.authority.bundle.read_bytes())
    given = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(cluster.port),
        "ACCOUNT": str(tmp_path),
        "SECONDS_TO_WAIT": "2",
    }
    own = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
    yield pod, given | own
    cluster.kubectl("delete", "-f", "-", stdin=yaml.safe_dump_all(rights))


def run(pod: Json, environment: dict[str, str]) -> tuple[int, str]:
    _, *words = pod["spec"]["containers"][0]["command"]
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_helm_test_says_whether_a_legacy_pod_is_repaired(
    cluster: ControlPlane, tested: tuple[Json, dict[str, str]], recorder: Recorder
) -> None:
    pod, environment = tested
    for kind in KINDS:  # they are those of the release, and nobody answers
        cluster.client.delete(kind, "gpu-webhook")
    status, said = run(pod, environment)
    assert (status, "was not repaired" in said) == (1, True)

    with registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle):
        assert run(pod, environment) == (0, "a legacy pod is repaired\n")

    away = environment | {"KUBERNETES_SERVICE_PORT": "1"}
    status, said = run(pod, away)
    assert (status, "no answer from the API server" in said) == (1, True)


def test_helm_test_may_do_nothing_else_and_its_pod_is_restricted(
    cluster: ControlPlane, tested: tuple[Json, dict[str, str]]
) -> None:
    pod, _ = tested
    who = f"--as=system:serviceaccount:{NAMESPACE}:gpu-webhook-test"
    asked = {
        ("create", "pods", "-n", "default"): "yes",
        ("create", "pods", "-n", NAMESPACE): "no",
        ("list", "pods", "-n", "default"): "no",
        ("delete", "pods", "-n", "default"): "no",
        ("get", "secrets", "-n", NAMESPACE): "no",
    }
    for words, wanted in asked.items():
        assert cluster.try_kubectl("auth", "can-i", *words, who).stdout.strip() == wanted
    said = cluster.try_kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(pod))
    assert (said.returncode, "Warning" in said.stderr) == (0, False), said.stderr
    text = cluster.kubectl("-n", NAMESPACE, "get", "service", "gpu-webhook", "-o", "json")
    selector: dict[str, str] = json.loads(text)["spec"]["selector"]
    assert not selector.items() <= pod["metadata"]["labels"].items(), "it is no server"
