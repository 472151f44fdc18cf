"""The network policy: it never stands between the API server and the webhook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests"


def policy() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        (MANIFESTS / "network-policy" / "network-policy.yaml").read_text()
    )
    return found


def template() -> dict[str, Any]:
    deployment = yaml.safe_load((MANIFESTS / "base" / "deployment.yaml").read_text())
    found: dict[str, Any] = deployment["spec"]["template"]
    return found


def test_it_is_a_component_that_nobody_installs_unasked() -> None:
    component = yaml.safe_load((MANIFESTS / "network-policy" / "kustomization.yaml").read_text())
    assert component["kind"] == "Component"
    for name in ("base", "cert-manager"):
        assert "network-policy" not in (MANIFESTS / name / "kustomization.yaml").read_text()


def test_it_is_for_the_pods_of_the_deployment_and_for_what_comes_in() -> None:
    spec = policy()["spec"]
    wanted = spec["podSelector"]["matchLabels"].items()
    assert wanted <= template()["metadata"]["labels"].items()
    assert spec["policyTypes"] == ["Ingress"]  # the watcher must reach the API server


def test_the_port_of_reviews_is_open_to_all_and_that_of_metrics_is_not() -> None:
    ports = {
        port["name"]: port["containerPort"]
        for container in template()["spec"]["containers"]
        for port in container.get("ports", ())
    }
    reviews, metrics = policy()["spec"]["ingress"]
    assert reviews == {"ports": [{"port": ports["https"], "protocol": "TCP"}]}
    assert metrics["ports"] == [{"port": ports["metrics"], "protocol": "TCP"}]
    assert metrics["from"] == [
        {"namespaceSelector": {"matchLabels": {"gpu-webhook.dev/metrics": "enabled"}}}
    ]
