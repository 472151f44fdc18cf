"""Workloads around a pod, as their controllers take them, and a server that judges them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from tests.cluster.webhook import ROOT, Recorder, WebhookServer, registered
from webhook.evaluation.match_conditions import workload_match_conditions, workload_rules
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

_VERSIONS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "PodTemplate": "v1",
}


DEFINITIONS = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(kind: str, group: str, plural: str, scope: str = "Namespaced") -> Json:
    """The definition of a custom kind that takes anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


def made_by(kind: str, pod: Json, replicas: int = 2) -> Json:
    """Give a workload of this kind whose controller makes so many of these pods."""
    name = f"{kind.lower()}-of-gpu-pods"
    template: Json = {
        "metadata": {
            "labels": {"app": name},
            "annotations": pod["metadata"].get("annotations", {}),
        },
        "spec": dict(pod["spec"]),
    }
    template["spec"].pop("restartPolicy", None)  # each kind allows only its own
    if kind == "PodTemplate":
        return {
            "apiVersion": _VERSIONS[kind],
            "kind": kind,
            "metadata": {"name": name},
            "template": template,
        }
    spec: Json = {"template": template}
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = "Never"
        spec |= {"parallelism": replicas, "completions": replicas}
        if kind == "CronJob":
            spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}}
    elif kind == "ReplicationController":
        spec |= {"replicas": replicas, "selector": {"app": name}}
    else:
        spec |= {"selector": {"matchLabels": {"app": name}}}
        if kind != "DaemonSet":
            spec |= {"replicas": replicas}
        if kind == "StatefulSet":
            # Without a kubelet the first pod never becomes ready, and the second would wait for it.
            spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {
        "apiVersion": _VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


_REGISTRATION = "apis/admissionregistration.k8s.io/v1"
_ENTRY = "workloads.gpu-webhook.dev"


@contextmanager
def serving(
    cluster: ControlPlane,
    folder: Path,
    given: Json,
    inventory: Path = ROOT / "examples" / "inventory.yaml",
) -> Iterator[Recorder]:
    """Serve with these settings behind the shipped configuration.

    Its entry for workloads is made anew from the settings, as a user would. Where they have
    templates repaired, there is one for /mutate as well.
    """
    file = folder / "settings.yaml"
    file.write_text(yaml.safe_dump(given))
    settings = settings_file.load(str(file))
    server = WebhookServer(
        folder, cluster.authority, [f"--config={file}", f"--inventory={inventory}"]
    )
    made = {
        "name": _ENTRY,
        "rules": workload_rules(settings),
        "matchConditions": workload_match_conditions(settings),
    }
    with (
        server,
        Recorder(server) as recorder,
        registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle),
    ):
        validating = f"{_REGISTRATION}/validatingwebhookconfigurations/gpu-webhook"
        entries = cluster.client.demand("GET", validating).body["webhooks"]
        entries = [each | made if each["name"] == _ENTRY else each for each in entries]
        _replace(cluster, validating, entries)
        if settings.workloads.repair:
            mutating = f"{_REGISTRATION}/mutatingwebhookconfigurations/gpu-webhook"
            [of_pods] = cluster.client.demand("GET", mutating).body["webhooks"]
            conditions = workload_match_conditions(settings, repaired=True)
            of_templates = of_pods | made | {"matchConditions": conditions}
            _replace(cluster, mutating, [of_pods, of_templates])
        yield recorder


def _replace(cluster: ControlPlane, configuration: str, entries: list[Json]) -> None:
    change = {"webhooks": entries}
    cluster.client.demand("PATCH", configuration, change, media_type="application/merge-patch+json")
