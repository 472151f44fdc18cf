"""An API server that limits system-cluster-critical outside kube-system, as those of GKE do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.client import until
from tests.cluster.controlplane import ControlPlane
from tests.cluster.webhook import ROOT
from webhook.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json

NAMESPACE, QUOTA = "gpu-webhook", "gpu-webhook-critical-pods"
# What GKE runs with: a pod of these classes needs a quota of its namespace that covers it.
LIMITED = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "ResourceQuota",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "ResourceQuotaConfiguration",
                "limitedResources": [
                    {
                        "resource": "pods",
                        "matchScopes": [
                            {
                                "scopeName": "PriorityClass",
                                "operator": "In",
                                "values": ["system-node-critical", "system-cluster-critical"],
                            }
                        ],
                    }
                ],
            },
        }
    ],
}


@pytest.fixture(scope="module")
def gke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    file = tmp_path_factory.mktemp("gke") / "admission.json"
    file.write_text(json.dumps(LIMITED))
    with ControlPlane(apiserver_flags=[f"--admission-control-config-file={file}"]) as running:
        yield running


def pods(plane: ControlPlane) -> list[Json]:
    return list(plane.client.list("Pod", NAMESPACE))


def events(plane: ControlPlane) -> str:
    return plane.kubectl("get", "events", "-n", NAMESPACE, "-o", "jsonpath={.items[*].message}")


def test_the_shipped_manifests_get_their_pods(gke: ControlPlane) -> None:
    gke.kubectl("apply", "-k", str(ROOT / "manifests" / "base"))

    until(lambda: len(pods(gke)) == 2, "both replicas to be made", 60)
    assert {each["spec"]["priorityClassName"] for each in pods(gke)} == {"system-cluster-critical"}


def test_a_rolling_update_gets_its_pods_too(gke: ControlPlane) -> None:
    """None is ready without a kubelet, so the old ones stay while a new one is made."""
    changed: Any = {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    gke.kubectl("patch", "deployment", NAMESPACE, "-n", NAMESPACE, "-p", json.dumps(changed))

    until(lambda: len(pods(gke)) == 3, "a pod of the new template", 60)


def test_without_the_quota_there_would_be_none(
    gke: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the tests above would say nothing of GKE. The doctor says why."""
    gke.kubectl("delete", "resourcequota", QUOTA, "-n", NAMESPACE)
    gke.kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--force", "--grace-period=0")

    until(lambda: "insufficient quota to match these scopes" in events(gke), "the refusal", 60)
    until(lambda: not pods(gke), "all pods to be gone", 60)
    assert main(["doctor", f"--kubeconfig={gke.kubeconfig}", "-o", "json"]) == 3
    lines = [each for each in json.loads(capsys.readouterr().out) if each["what"] == "quota"]
    assert [each["state"] for each in lines] == ["failed"]
    assert "insufficient quota to match these scopes" in lines[0]["text"]
