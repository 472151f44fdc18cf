"""Releases of the chart by the real helm, on the real API server.

No kubelet runs here: nothing waits for pods, and `helm test` is run as its pod would run it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster import helm, own_chart
from tests.cluster.client import until
from tests.cluster.own_chart import CHART, NAMESPACE
from tests.cluster.releases import HOW, Release, released
from tests.cluster.remains import everything
from tests.cluster.replicas import own_address
from tests.cluster.webhook import KINDS, registered
from tests.laws.test_manifests import documented, granted
from webhook.cli.main import main
from webhook.issuing.objects import SECRET

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


@dataclass(frozen=True)
class HelmTest:
    """The pod of `helm test` and its rights, and a login as its ServiceAccount."""

    pod: Json
    rights: list[Json]
    login: str

    @property
    def words(self) -> list[str]:
        """The arguments of doctor."""
        return [*self.pod["spec"]["containers"][0]["args"], self.login]

    def forbidden(self, capsys: pytest.CaptureFixture[str]) -> list[str]:
        """The lines of doctor for which a right is missing."""
        main(["doctor", *self.words, "-o", "json"])
        lines: list[Json] = json.loads(capsys.readouterr().out)
        return [line["what"] for line in lines if "forbidden" in line["text"]]


@pytest.fixture
def tested(release: Release, tmp_path: Path) -> Iterator[HelmTest]:
    release.install()
    *rights, pod = hooks(release)
    cluster = release.cluster
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(rights))
    token = cluster.kubectl("-n", NAMESPACE, "create", "token", "gpu-webhook-test")
    login = json.loads(cluster.kubeconfig.read_text())
    login["users"][0]["user"] = {"token": token}
    file = tmp_path / "of-test.kubeconfig"
    file.write_text(json.dumps(login))
    yield HelmTest(pod, rights, f"--kubeconfig={file}")
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=yaml.safe_dump_all(rights))


def test_helm_test_prints_what_doctor_finds(
    cluster: ControlPlane, tested: HelmTest, recorder: Recorder
) -> None:
    script = tested.pod["spec"]["containers"][0]["command"][2]

    def ended() -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", script, *tested.words],
            capture_output=True,
            text=True,
            check=False,
            env={"SECONDS_TO_WAIT": "0"},
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    status, said = ended()
    assert (status, "a legacy pod came back unrepaired" in said) == (3, True), said
    assert "0 of 2 replicas are ready" in said, "no kubelet runs here; tests/node has one"
    for kind in KINDS:  # they are those of the release, and nobody answers
        cluster.client.delete(kind, "gpu-webhook")
    with registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle):
        assert "a legacy pod in namespace default is repaired" in ended()[1]


def _one_less(rights: list[Json]) -> Iterator[tuple[str, Json]]:
    """Each right, and the role without it."""
    for role in rights:
        for number, rule in enumerate(role.get("rules", [])):
            for member in ("resources", "resourceNames"):
                for name in rule.get(member, []):
                    fewer = [each for each in rule[member] if each != name]
                    # No name in resourceNames means all, so the rule goes with its last one.
                    less = [{**rule, member: fewer}] if fewer else []
                    rules = [*role["rules"][:number], *less, *role["rules"][number + 1 :]]
                    yield f"{rule['verbs']} {name}", {**role, "rules": rules}


def test_security_md_lists_each_right_of_helm_test(tested: HelmTest) -> None:
    rules = [rule for role in tested.rights for rule in role.get("rules", [])]
    assert granted(rules) == documented()[1]


def test_helm_test_has_the_rights_that_doctor_needs_and_no_more(
    cluster: ControlPlane, tested: HelmTest, capsys: pytest.CaptureFixture[str]
) -> None:
    made = until(lambda: cluster.client.list("Pod", NAMESPACE), "the pods")
    name = made[0]["metadata"]["name"]
    address = own_address()  # where nothing listens: doctor asks only a pod that has one
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    cluster.client.patch("Pod", name, {"status": status}, NAMESPACE, subresource="status")
    assert tested.forbidden(capsys) == []
    roles = {(each["kind"], each["metadata"]["name"]): each for each in tested.rights}
    tried = 0
    for right, role in _one_less(tested.rights):
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(role))
        until(lambda: bool(tested.forbidden(capsys)), f"doctor to miss {right}", 10)
        whole = roles[role["kind"], role["metadata"]["name"]]
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(whole))
        until(lambda: not tested.forbidden(capsys), f"doctor to have {right} again", 10)
        tried += 1
    assert tried > 15


@pytest.mark.parametrize("mode", ["self", "cert-manager", "secret", "openshift"])
def test_helm_test_reads_the_secret_that_the_servers_use(mode: str, tmp_path: Path) -> None:
    words = ("template", "gpu-webhook", str(CHART), "-n", NAMESPACE, "-s")
    done = helm.run(
        tmp_path, *words, "templates/tests/doctor.yaml", "--set", f"certificates.mode={mode}"
    )
    assert done.returncode == 0, done.stderr
    (named,) = (
        rule["resourceNames"]
        for each in yaml.safe_load_all(done.stdout)
        for rule in each.get("rules", [])
        if "secrets" in rule["resources"]
    )
    deployment = own_chart.rendered(tmp_path, {"certificates": {"mode": mode}})
    volumes = deployment["Deployment", "gpu-webhook"]["spec"]["template"]["spec"]["volumes"]
    mounted = [each["secret"]["secretName"] for each in volumes if "secret" in each]
    assert named == (mounted or [SECRET])


def test_helm_test_may_do_nothing_else_and_its_pod_is_restricted(
    cluster: ControlPlane, tested: HelmTest
) -> None:
    pod = tested.pod
    who = f"--as=system:serviceaccount:{NAMESPACE}:gpu-webhook-test"
    asked = {
        ("create", "pods", "-n", "default"): "yes",
        ("create", "pods", "-n", NAMESPACE): "no",
        ("list", "pods", "-n", "default"): "no",
        ("delete", "pods", "-n", "default"): "no",
        ("get", "secrets", "-n", NAMESPACE): "no",
        ("get", "secrets/gpu-webhook-certificates", "-n", NAMESPACE): "yes",
        ("update", "secrets/gpu-webhook-certificates", "-n", NAMESPACE): "no",
        ("patch", "mutatingwebhookconfigurations/gpu-webhook"): "no",
    }
    for words, wanted in asked.items():
        assert cluster.try_kubectl("auth", "can-i", *words, who).stdout.strip() == wanted, words
    said = cluster.try_kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(pod))
    assert (said.returncode, "Warning" in said.stderr) == (0, False), said.stderr
    text = cluster.kubectl("-n", NAMESPACE, "get", "service", "gpu-webhook", "-o", "json")
    selector: dict[str, str] = json.loads(text)["spec"]["selector"]
    assert not selector.items() <= pod["metadata"]["labels"].items(), "it is no server"
