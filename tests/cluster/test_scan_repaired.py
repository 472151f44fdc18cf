"""`gpu-webhook scan --cluster` where templates are repaired: who still sends legacy manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cluster.pods import AFFINITY, ALPHA, MODEL, alpha, modern, pod
from tests.cluster.test_apply_twice import EVERYTHING
from tests.cluster.test_scan_cluster import KINDS, apply, found, scan
from tests.cluster.test_scan_modern import ARGO, WAYS, make, of_every_kind, ways
from tests.cluster.workloads import made_by
from webhook.evaluation.repair_record import ANNOTATION

if TYPE_CHECKING:
    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

pytestmark = pytest.mark.usefixtures("repairing")
NOTE = "if its manifest has been migrated since, remove the annotation"


def workloads(main: Json) -> list[Json]:
    return [each for each in of_every_kind(main, ALPHA) if each["kind"] in KINDS]


@ways
def test_workloads_are_named_until_their_manifests_are_migrated(
    words: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = workloads(alpha())
    make(cluster, namespace, made, words)
    assert scan(cluster, "-n", namespace, "-o", "json") == 2
    report = found(capsys.readouterr().out)
    names = {f"{namespace}/{each['kind']}/{each['metadata']['name']}" for each in made}
    assert report.keys() == names
    for path, findings in report.items():
        [amount] = [each["message"] for each in findings if each["code"] == "GPU101"]
        assert f"requests {ALPHA}" in amount, path
        assert f"; to be changed: {path.removeprefix(f'{namespace}/')} (last" in amount
        assert (NOTE in amount) == (words == ("create",)), path
    scan(cluster, "-n", namespace)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{len(made)} of "), last
    assert "came legacy" not in last

    at = ("-n", namespace)
    if words == ("create",):
        plurals = ",".join(each.lower() for each in KINDS)
        cluster.kubectl("annotate", plurals, "--all", f"{ANNOTATION}-", *at)
    else:
        cluster.kubectl("delete", "job", "job-of-gpu-pods", *at)  # its template cannot change
        sides = words[1:] if words[0] == "apply" else ()
        new = yaml.safe_dump_all(workloads(modern()))
        cluster.kubectl("apply", *sides, *at, "-f", "-", stdin=new)
    exit_code = scan(cluster, *at)
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("0 of "), out
    assert exit_code == 0


OWNERS: dict[str, tuple[dict[str, str], dict[str, str], str, str]] = {
    "argo": (
        {},
        {"argocd.argoproj.io/tracking-id": "ml:apps/Deployment:x/argo"},
        "argocd-controller",
        "Argo CD application ml",
    ),
    "flux": (
        {
            "kustomize.toolkit.fluxcd.io/name": "apps",
            "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
        },
        {},
        "kustomize-controller",
        "Flux Kustomization flux-system/apps",
    ),
    "helm": (
        {"app.kubernetes.io/managed-by": "Helm"},
        {"meta.helm.sh/release-name": "train", "meta.helm.sh/release-namespace": "x"},
        "helm",
        "Helm release train in x",
    ),
    "nobody": ({}, {}, "kubectl", "Deployment/nobody (last written by kubectl)"),
}


def test_owners_of_what_is_applied_on_the_server_are_named(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, (labels, notes, manager, _) in OWNERS.items():
        made = made_by("Deployment", pod(alpha(), nodeSelector={MODEL: "Tesla-P100"}), 0)
        made["metadata"] = {"name": name, "labels": labels, "annotations": notes}
        apply(cluster, namespace, made, *ARGO[:2], f"--field-manager={manager}")
    assert scan(cluster, "-n", namespace) == 2
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("4 of 8 objects are legacy; "), out
    assert NOTE not in out
    for name, (*_, owner) in OWNERS.items():
        about = out.split(f"{namespace}/Deployment/{name}\n")[1].split("\n\n")[0]
        assert about.startswith(f"  to be changed: {owner}\n")
        assert {"GPU101", "GPU105"} <= set(about.split()), about


def test_all_words_of_a_manifest_are_shown(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert AFFINITY in EVERYTHING["metadata"]["annotations"]
    codes = {}
    for side in ((), ARGO):
        made = made_by("Deployment", EVERYTHING, 0)
        made["metadata"]["name"] = f"side-{len(side)}"
        apply(cluster, namespace, made, *side)
    scan(cluster, "-n", namespace, "-o", "json")
    for path, findings in found(capsys.readouterr().out).items():
        codes[path] = sorted(each["code"] for each in findings)
    client_side, server_side = codes.values()
    assert client_side == server_side
    assert "GPU106" in client_side


@pytest.mark.parametrize(
    "words", [WAYS["server-side apply"], WAYS["create"]], ids=["apply", "create"]
)
def test_a_repaired_pod_is_named_and_worth_knowing(
    words: tuple[str, ...],
    cluster: ControlPlane,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A pod is gone before long, and its manifest is not in the cluster."""
    what = yaml.safe_dump(pod(alpha()))
    cluster.kubectl(words[0], "-n", namespace, *words[1:], "-f", "-", stdin=what)
    assert scan(cluster, "-n", namespace) == 0
    out = capsys.readouterr().out
    assert f"{namespace}/Pod/pod\n  to be changed: Pod/pod (last written by " in out
    assert "worth knowing: it was sent legacy and repaired (GPU101" in out
    assert out.splitlines()[-1].startswith("0 of 1 objects are legacy; 1 more came legacy and were")


def test_workloads_that_another_manager_takes_over_are_named(
    cluster: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first server-side apply removes all annotations of an object of `kubectl apply`."""
    made = workloads(alpha())
    make(cluster, namespace, made, ("apply",))
    text = yaml.safe_dump_all(made)
    cluster.kubectl("apply", *ARGO, "-n", namespace, "-f", "-", stdin=text)
    assert scan(cluster, "-n", namespace) == 2
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith(f"{len(made)} of "), out
    assert out.count(" GPU101 ") == len(made), out
