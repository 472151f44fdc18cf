"""Converted manifests before the real API server, and before the controllers that make pods."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.build import RELEASE, minor
from tests.cluster.client import until
from webhook.core.draft import Draft
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.evaluation import engine
from webhook.evaluation.workloads import around, templates_of
from webhook.kube.api_versions import OTHERS, WORKLOADS
from webhook.rules import MANIFEST, RULES

if TYPE_CHECKING:
    from tests.cluster.client import Answer, Json
    from tests.cluster.controlplane import ControlPlane

ROAD_2 = Context(Settings(scope="all-legacy"))
LEGACY = "alpha.kubernetes.io/nvidia-gpu"
INIT = (
    '[{"name": "fetch", "image": "registry.example/fetch:1",'
    ' "resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}}]'
)


def migrated(obj: Json, cx: Context = ROAD_2) -> Json:
    """The object as the second road leaves it, with nothing that failed."""
    draft = Draft(obj)
    assert engine.run_on_object(MANIFEST, draft, cx).failed == ()
    for at in templates_of(obj, cx.settings):
        assert engine.run(RULES, draft, around(cx, obj), at).failed == ()
    return obj


def plural(kind: str) -> str:
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def address(obj: Json, namespace: str = "") -> str:
    group = "api/v1" if obj["apiVersion"] == "v1" else f"apis/{obj['apiVersion']}"
    parts = [group, "namespaces", namespace] if namespace else [group]
    return "/".join([*parts, plural(obj["kind"])])


def tried(cluster: ControlPlane, obj: Json, namespace: str = "") -> Answer:
    """What the API server says of it: a dry run that refuses unknown and doubled members."""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    return cluster.client.request("POST", address(obj, namespace), obj, query=query)


def template(**more: Any) -> Json:
    spec: Json = {
        "containers": [
            {
                "name": "train",
                "image": "registry.example/train:1",
                "resources": {"limits": {LEGACY: 1}},
            }
        ],
        "serviceAccount": "default",
        **more,
    }
    return {
        "metadata": {
            "labels": {"app": "train"},
            "annotations": {
                "pod.beta.kubernetes.io/init-containers": INIT,
                "scheduler.alpha.kubernetes.io/tolerations": '[{"key": "dedicated"}]',
            },
        },
        "spec": spec,
    }


def legacy(version: str, kind: str, **spec: Any) -> Json:
    """A workload as its author left it, with all that only the old version had."""
    once = kind in {"Job", "CronJob", "ScheduledJob"}
    inside: Json = {"template": template(restartPolicy="Never") if once else template(), **spec}
    if kind in {"CronJob", "ScheduledJob"}:
        inside = {"schedule": "0 3 * * *", "jobTemplate": {"spec": inside}}
    if kind in {"PetSet", "StatefulSet"}:
        inside["serviceName"] = "train"
    if kind == "Deployment":
        inside |= {"rollbackTo": {"revision": 0}, "strategy": {"type": "RollingUpdate"}}
    if kind == "DaemonSet":
        inside["templateGeneration"] = 4
    if (version, kind) == ("extensions/v1beta1", "Job"):
        inside |= {"autoSelector": False, "selector": {"matchLabels": {"app": "train"}}}
    metadata = {
        "name": kind.lower(),
        "annotations": {"scheduler.alpha.kubernetes.io/affinity": "{}", "team": "a"},
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": inside}


@pytest.mark.parametrize(("version", "kind"), WORKLOADS, ids=" ".join)
def test_each_is_unknown_before_and_welcome_after(
    version: str, kind: str, cluster: ControlPlane, namespace: str
) -> None:
    before = legacy(version, kind)
    assert tried(cluster, before, namespace).status == 404

    after = migrated(legacy(version, kind))
    answer = tried(cluster, after, namespace)

    assert answer.ok, answer.message
    assert answer.warnings == ()
    assert answer.body["metadata"]["annotations"].items() >= {"team": "a"}.items()


@pytest.mark.parametrize(
    ("version", "kind", "place", "expected"),
    [
        pytest.param(
            *("extensions/v1beta1", "Deployment", "strategy"),
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            id="a Deployment of extensions goes on one by one",
        ),
        pytest.param(
            *("apps/v1beta1", "Deployment", "strategy"),
            {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
            id="a Deployment of apps/v1beta1 rolled by a quarter, and does",
        ),
        pytest.param(
            *("extensions/v1beta1", "DaemonSet", "updateStrategy"),
            {"type": "OnDelete"},
            id="a DaemonSet of extensions still waits",
        ),
        pytest.param(
            *("apps/v1beta1", "StatefulSet", "updateStrategy"),
            {"type": "OnDelete"},
            id="a StatefulSet of apps/v1beta1 still waits",
        ),
        pytest.param(
            *("apps/v1alpha1", "PetSet", "updateStrategy"),
            {"type": "OnDelete"},
            id="a PetSet still waits",
        ),
        pytest.param(
            *("extensions/v1beta1", "Deployment", "selector"),
            {"matchLabels": {"app": "train"}},
            id="the selector that was the default",
        ),
    ],
)
def test_what_the_server_makes_of_it_is_what_it_was(
    version: str,
    kind: str,
    place: str,
    expected: Json,
    cluster: ControlPlane,
    namespace: str,
) -> None:
    stored = tried(cluster, migrated(legacy(version, kind)), namespace).body
    assert stored["spec"][place] == expected


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("extensions/v1beta1", "Deployment"),
        ("extensions/v1beta1", "ReplicaSet"),
        ("extensions/v1beta1", "DaemonSet"),
        ("apps/v1beta1", "StatefulSet"),
        ("apps/v1alpha1", "PetSet"),
        ("extensions/v1beta1", "Job"),
        ("batch/v2alpha1", "ScheduledJob"),
    ],
)
def test_its_controller_makes_its_pods(
    version: str, kind: str, cluster: ControlPlane, namespace: str
) -> None:
    obj = migrated(legacy(version, kind))
    if kind == "ScheduledJob":
        obj["spec"]["schedule"] = "* * * * *"
    cluster.client.demand("POST", address(obj, namespace), obj)
    if kind == "ScheduledJob":  # it ran five minutes ago: the next run is due now
        ran = (datetime.now(UTC) - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        name, status = obj["metadata"]["name"], {"status": {"lastScheduleTime": ran}}
        cluster.client.patch("CronJob", name, status, namespace, subresource="status")

    pods = until(
        lambda: cluster.client.list("Pod", namespace) or None, "a pod of its controller", 90.0
    )

    spec = pods[0]["spec"]
    [init], [container] = spec["initContainers"], spec["containers"]
    assert (
        init["resources"]["limits"] == container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    )
    assert "dedicated" in {each.get("key") for each in spec["tolerations"]}
    cluster.client.request("DELETE", f"{address(obj, namespace)}/{obj['metadata']['name']}")


def other(version: str, kind: str) -> Json:
    """A small object of each kind whose fields are the same today."""
    group = version.partition("/")[0]
    what: dict[str, Json] = {
        "Role": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
        "ClusterRole": {"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]},
        "RoleBinding": binding("Role", version),
        "ClusterRoleBinding": binding("ClusterRole", version),
        "PodDisruptionBudget": {
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "train"}}}
        },
        "NetworkPolicy": {"spec": {"podSelector": {}, "ingress": [{}]}},
        "Ingress": {
            "spec": {
                "backend": {"serviceName": "a", "servicePort": 80},
                "rules": [
                    {"http": {"paths": [{"backend": {"serviceName": "b", "servicePort": "http"}}]}}
                ],
            }
        },
        "IngressClass": {"spec": {"controller": "example.com/ingress"}},
        "PriorityClass": {"value": 7},
        "StorageClass": {"provisioner": "example.com/disk"},
        "VolumeAttachment": {
            "spec": {"attacher": "a", "nodeName": "b", "source": {"persistentVolumeName": "c"}}
        },
        "CSIDriver": {"spec": {"attachRequired": False}},
        "CSINode": {"spec": {"drivers": []}},
        "CSIStorageCapacity": {"storageClassName": "a"},
        "APIService": {
            "spec": {
                "group": "example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "service": {"name": "a", "namespace": "b"},
                "insecureSkipTLSVerify": True,
            }
        },
        "Lease": {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 1}},
        "RuntimeClass": {"handler": "nvidia"},
        "HorizontalPodAutoscaler": {
            "spec": {
                "maxReplicas": 2,
                "scaleTargetRef": {
                    "apiVersion": "extensions/v1beta1",
                    "kind": "Deployment",
                    "name": "a",
                },
            }
        },
        "FlowSchema": {
            "spec": {"priorityLevelConfiguration": {"name": "a"}, "matchingPrecedence": 100}
        },
        "PriorityLevelConfiguration": {
            "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        },
    }
    names = {"APIService": "v1.example.com", "CSINode": "gpu-1"}
    metadata = {"name": names.get(kind, f"a-{group.partition('.')[0]}")}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **what[kind]}


def binding(role: str, version: str) -> Json:
    alpha = version.endswith("alpha1")
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "a"},
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": "a",
                "namespace": "b",
                **({"apiVersion": "v1"} if alpha else {}),
            },
            {
                "kind": "User",
                "name": "*" if alpha else "someone",
                **({} if alpha else {"apiGroup": "rbac.authorization.k8s.io"}),
            },
        ],
    }


_OF_A_NAMESPACE = {
    *("Role", "RoleBinding", "PodDisruptionBudget", "NetworkPolicy", "Ingress", "Lease"),
    *("HorizontalPodAutoscaler", "CSIStorageCapacity"),
}
CONVERTED = [
    key for key, row in OTHERS.items() if row.api_version and (not row.how or key[1] == "Ingress")
]


@pytest.mark.parametrize(("version", "kind"), CONVERTED, ids=" ".join)
def test_other_kinds_are_unknown_before_and_welcome_after(
    version: str, kind: str, cluster: ControlPlane, namespace: str
) -> None:
    where = namespace if kind in _OF_A_NAMESPACE else ""
    assert tried(cluster, other(version, kind), where).status == 404

    answer = tried(cluster, migrated(other(version, kind)), where)

    assert answer.ok, answer.message
    assert answer.warnings == ()


# Versions that are younger than the oldest release that we are tested on.
SINCE = {"resource.k8s.io/v1": 34}


def test_nobody_is_sent_to_a_version_that_is_not_served(cluster: ControlPlane) -> None:
    rows = [*WORKLOADS.values(), *OTHERS.values()]
    for version in {row.api_version for row in rows if row.api_version}:
        if minor(RELEASE) < SINCE.get(version, 0):
            assert not cluster.client.request("GET", f"apis/{version}").ok
            continue
        kinds = {row.kind for row in rows if row.api_version == version}
        served = cluster.client.demand("GET", f"apis/{version}").body["resources"]
        assert kinds <= {each["kind"] for each in served}


def test_no_version_of_the_table_is_served_any_more(cluster: ControlPlane) -> None:
    for version, kind in {**WORKLOADS, **OTHERS}:
        answer = cluster.client.request("GET", f"apis/{version}")
        if answer.ok:
            assert kind not in {each["kind"] for each in answer.body["resources"]}


def test_quotas_of_today_count(cluster: ControlPlane, namespace: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus"},
        "spec": {"hard": {f"requests.{LEGACY}": 1, f"limits.{LEGACY}": 1}},
    }
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "gpus"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {LEGACY: 1}}]},
    }
    unsafe = replace(ROAD_2, unsafe=True)
    made = cluster.client.demand("POST", address(quota, namespace), migrated(quota, unsafe))
    until(
        lambda: (
            "hard"
            in cluster.client.demand("GET", f"{address(quota, namespace)}/gpus").body.get(
                "status", {}
            )
        ),
        "the quota to be counted",
    )
    cluster.client.demand("POST", address(limits, namespace), migrated(limits, unsafe))
    assert made.body["spec"]["hard"] == {"requests.nvidia.com/gpu": "1"}

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "registry.example/a"}]},
    }
    first = cluster.client.request("POST", address(pod, namespace), pod)
    second = cluster.client.request(
        "POST", address(pod, namespace), {**pod, "metadata": {"name": "b"}}
    )
    assert first.ok, first.message
    assert "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1" in second.message
