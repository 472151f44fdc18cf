"""Releases of the chart by the real helm, on the real API server.

No kubelet runs here: nothing waits for pods, and `helm test` is run as its pod would run it.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster import helm
from tests.cluster.client import until
from tests.cluster.own_chart import CHART, NAMESPACE
from tests.cluster.remains import everything
from tests.cluster.replicas import keeper_of
from tests.cluster.scheduling import empty, remove
from tests.cluster.webhook import KINDS, registered
from webhook.certs.authority import blocks_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder

ALL = ("--set", "guard.enabled=true,guard.refuse=true,workloadRepair.enabled=true")


class Release:
    """The release `gpu-webhook`, and what it has made in the cluster."""

    def __init__(self, cluster: ControlPlane, home: Path) -> None:
        self.cluster, self.home = cluster, home
        self.kubeconfig = f"--kubeconfig={cluster.kubeconfig}"
        # Stands for the watchers of the pods, which no kubelet runs.
        self.keeper = keeper_of(cluster, home / "tls", f"gpu-webhook.{NAMESPACE}.svc")

    def helm(self, *words: str) -> str:
        done = helm.run(self.home, *words, "-n", NAMESPACE, self.kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def install(self, *words: str) -> str:
        return self.helm("install", "gpu-webhook", str(CHART), *words)

    def upgrade(self, *words: str) -> str:
        return self.helm("upgrade", "gpu-webhook", str(CHART), *words)

    def bundles(self) -> dict[str, set[str]]:
        """The caBundles of each configuration; an empty text where the field is missing."""
        return {
            f"{kind} {each['metadata']['name']}": {
                entry["clientConfig"].get("caBundle", "") for entry in each["webhooks"]
            }
            for kind in KINDS
            for each in self.cluster.client.list(kind)
        }

    def secret(self) -> Json:
        text = self.cluster.kubectl(
            *("-n", NAMESPACE, "get", "secret", "gpu-webhook-certificates", "-o", "json")
        )
        found: Json = json.loads(text)["data"]
        return found

    def until_only(self, before: set[str]) -> None:
        empty(self.cluster.client, NAMESPACE)  # no kubelet would end the pods
        until(lambda: everything(self.cluster) == before, "nothing of it to be left", 60)


@pytest.fixture
def release(cluster: ControlPlane, tmp_path: Path) -> Iterator[Release]:
    remove(cluster.client, NAMESPACE)  # of another file, in the cluster of this worker
    cluster.make_namespace(NAMESPACE, {"pod-security.kubernetes.io/enforce": "restricted"})
    made = Release(cluster, tmp_path)
    yield made
    helm.run(tmp_path, "uninstall", "gpu-webhook", "-n", NAMESPACE, made.kubeconfig)
    for kind in KINDS:
        cluster.client.delete_all(kind)
    remove(cluster.client, NAMESPACE)


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


HOW = {"server-side apply": "--server-side=true", "three-way merges": "--server-side=false"}


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


def test_another_mode_of_certificates_takes_the_rights_away(release: Release) -> None:
    release.install()
    release.keeper.pass_once()
    rights = ("get", "role,rolebinding,secret,lease", "-n", NAMESPACE, "-o", "name")
    assert "gpu-webhook-certificates" in release.cluster.kubectl(*rights)

    release.upgrade("--set", "certificates.mode=openshift")

    assert "gpu-webhook-certificates" not in release.cluster.kubectl(*rights)
    roles = release.cluster.kubectl("get", "clusterrole,clusterrolebinding", "-o", "name")
    assert "gpu-webhook-certificates" not in roles


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


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_a_ca_of_ones_own_stays_until_the_watchers_have_taken_over(
    how: str, release: Release
) -> None:
    """docs/install.md has these steps."""
    own = release.cluster.authority.bundle
    given = ("--set", "certificates.mode=secret", "--set-file", f"certificates.caBundle={own}")
    release.install(*given, how)
    before = release.bundles()

    release.upgrade("--reset-then-reuse-values", "--set", "certificates.mode=self", how)
    assert release.bundles() == before, "the replicas of before still have their certificate"
    release.keeper.pass_once()
    filled = release.bundles()
    for texts in filled.values():
        (text,) = texts
        assert len(blocks_in(base64.b64decode(text))) == 2

    last = ("--server-side=true", "--force-conflicts")
    release.upgrade("--reset-then-reuse-values", "--set", "certificates.caBundle=", *last)
    assert release.bundles() == filled


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
