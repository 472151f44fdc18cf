"""Workloads around a pod, as their controllers take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cluster.client import Json

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
