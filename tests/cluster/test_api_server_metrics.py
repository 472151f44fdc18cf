"""What alerts and the dashboard ask of the API server: the real one counts it under these names."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.cluster.client import until
from tests.cluster.pods import pod
from tests.monitoring.queries import API_SERVER, CONDITIONS, FAILED_OPEN, REJECTED

if TYPE_CHECKING:
    from tests.cluster.controlplane import ControlPlane

OURS = {f"{name}.gpu-webhook.dev" for name in ("open", "closed", "condition")}
NOWHERE = "https://127.0.0.1:1/"


def entry(name: str, **more: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]}
    return {
        "name": f"{name}.gpu-webhook.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": NOWHERE},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        **more,
    }


def test_calls_that_fail_are_counted_with_these_labels(cluster: ControlPlane) -> None:
    broken = {"name": "broken", "expression": "object.spec.nothing == 1"}
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "fails"},
        "webhooks": [
            entry("open", failurePolicy="Ignore"),
            entry("closed", failurePolicy="Fail"),
            entry("condition", failurePolicy="Ignore", matchConditions=[broken]),
        ],
    }
    cluster.client.create(configuration)
    try:
        found = until(lambda: _counted(cluster), "the API server to count all three")
    finally:
        cluster.client.delete("ValidatingWebhookConfiguration", "fails")
    assert {name: set(labels) for name, labels in found.items()} == API_SERVER
    names = {name: labels["name"] for name, labels in found.items()}
    assert names[FAILED_OPEN] == {"open.gpu-webhook.dev"}
    assert names[REJECTED] == {"closed.gpu-webhook.dev"}
    # A denial has `no_error`, which the alert leaves out.
    assert found[REJECTED]["error_type"] == {"calling_webhook_error"}
    assert names[CONDITIONS] == {"condition.gpu-webhook.dev"}


def _counted(cluster: ControlPlane) -> dict[str, dict[str, set[str]]] | None:
    """The values of each label of each counter, of these entries only, once there are all."""
    refused = cluster.client.try_create(pod(), "default", dry_run=True)
    if refused.ok:  # the configuration is not in force yet
        return None
    page: str = cluster.client.demand("GET", "/metrics").body
    found: dict[str, dict[str, set[str]]] = {}
    for name in API_SERVER:
        labels: dict[str, set[str]] = defaultdict(set)
        for line in re.findall(rf"^{name}\{{(.*)\}} ", page, re.MULTILINE):
            counted = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if counted["name"] in OURS:  # other tests have entries at this API server, too
                for label, value in counted.items():
                    labels[label].add(value)
        found[name] = labels
    return found if all(found.values()) else None
