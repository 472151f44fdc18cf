"""Data: API versions that are no longer served, with their successors.

`removed` is the first release without them: APILifecycleRemoved of k8s.io/api, and the changelogs
for earlier removals. Alpha versions were never served by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Release = tuple[int, int]
    # Removed, old version, kinds, new version, what else changes.
    Row = tuple[Release, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Successor:
    """The successor of one kind in one version."""

    removed: Release
    api_version: str  # the current version; empty: none
    kind: str  # its current name
    how: str = ""  # what must change besides the version; empty: nothing


def workload_successor(obj: Mapping[str, Any], target: Release) -> Successor | None:
    """The name of this workload at the target, if its own version is not served there."""
    return _find(WORKLOADS, obj, target)


def other_successor(obj: Mapping[str, Any], target: Release) -> Successor | None:
    """The same for any other built-in object."""
    return _find(OTHERS, obj, target)


def is_served(version: str, target: Release) -> bool | None:
    """Whether an API server of the target has this version, as Helm names it: `batch/v1/Job`.

    None if the tables do not know it. A version that still has newer kinds, which are off by
    default, counts as removed with the kinds that all clusters had.
    """
    name = version.split("/")
    at, kind = "/".join(name[:2]), "".join(name[2:3])
    rows = [*WORKLOADS.items(), *OTHERS.items()]
    old = [each.removed for (was, of), each in rows if was == at and kind in {"", of}]
    if old and target >= max(old):
        return False
    new = [e.removed for _, e in rows if e.api_version == at and kind in {"", e.kind}]
    return True if new and target >= max(new) else None


def _find(
    table: Mapping[tuple[str, str], Successor], obj: Mapping[str, Any], target: Release
) -> Successor | None:
    found = table.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    return found if found is not None and target >= found.removed else None


def _table(rows: Iterable[Row]) -> dict[tuple[str, str], Successor]:
    return {
        (old, kind): Successor(removed, new, _RENAMED.get(kind, kind), how)
        for removed, old, kinds, new, how in rows
        for kind in kinds.split()
    }


_RENAMED = {"PetSet": "StatefulSet", "ScheduledJob": "CronJob"}

# No version of `apps` before v1 had all of these; a file with one of them means the same.
_APPS = "Deployment DaemonSet ReplicaSet StatefulSet"

WORKLOADS = _table(
    [
        ((1, 16), "extensions/v1beta1", _APPS, "apps/v1", ""),
        ((1, 16), "apps/v1beta1", _APPS, "apps/v1", ""),
        ((1, 16), "apps/v1beta2", _APPS, "apps/v1", ""),
        ((1, 5), "apps/v1alpha1", "PetSet", "apps/v1", ""),
        ((1, 6), "extensions/v1beta1", "Job", "batch/v1", ""),
        ((1, 8), "batch/v2alpha1", "ScheduledJob", "batch/v1", ""),
        ((1, 21), "batch/v2alpha1", "Job CronJob", "batch/v1", ""),
        ((1, 25), "batch/v1beta1", "CronJob", "batch/v1", ""),
    ]
)

_RBAC = "rbac.authorization.k8s.io"
_ROLES = "Role RoleBinding ClusterRole ClusterRoleBinding"
_NETWORKING = "networking.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_STORAGE = "storage.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_WEBHOOKS = "MutatingWebhookConfiguration ValidatingWebhookConfiguration"
_CERTIFICATES = "certificates.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_SCALER = "HorizontalPodAutoscaler"
_SHARES = "PriorityLevelConfiguration"

_BACKENDS = "a backend is written as service.name and service.port, each path has a pathType"
_HOOKS = "sideEffects and admissionReviewVersions are required, and other defaults changed"
_SCHEMA = "each version needs a schema"
_METRICS = "a metric is written as name and target"
_SCALE_REF = "scaleRef is scaleTargetRef, cpuUtilization is targetCPUUtilizationPercentage"
_SIGNER = "signerName is required"
_HANDLER = "spec.runtimeHandler is handler, beside metadata"
_TOPOLOGY = "topology became nodeName and zone"
_NOMINAL = "assuredConcurrencyShares is nominalConcurrencyShares"
_PSP = "set the Pod Security labels of the namespaces"
_DEVICES = "a claim asks for devices of a DeviceClass, a slice lists them (KEP-4381)"
_CLASS = "write a DeviceClass of resource.k8s.io/v1"
_NO_PARAMETERS = "the driver reads the claim itself"
_UNDO = "run kubectl rollout undo"

OTHERS = _table(
    [
        # the same fields
        ((1, 22), f"{_RBAC}/v1beta1", _ROLES, f"{_RBAC}/v1", ""),
        ((1, 23), f"{_RBAC}/v1alpha1", _ROLES, f"{_RBAC}/v1", ""),
        ((1, 6), "policy/v1alpha1", "PodDisruptionBudget", "policy/v1", ""),
        ((1, 25), "policy/v1beta1", "PodDisruptionBudget", "policy/v1", ""),
        ((1, 16), "extensions/v1beta1", "NetworkPolicy", f"{_NETWORKING}/v1", ""),
        ((1, 22), f"{_NETWORKING}/v1beta1", "IngressClass", f"{_NETWORKING}/v1", ""),
        ((1, 22), f"{_SCHEDULING}/v1beta1", "PriorityClass", f"{_SCHEDULING}/v1", ""),
        ((1, 23), f"{_SCHEDULING}/v1alpha1", "PriorityClass", f"{_SCHEDULING}/v1", ""),
        ((1, 24), f"{_STORAGE}/v1alpha1", "VolumeAttachment", f"{_STORAGE}/v1", ""),
        ((1, 22), f"{_STORAGE}/v1beta1", "StorageClass VolumeAttachment", f"{_STORAGE}/v1", ""),
        ((1, 22), f"{_STORAGE}/v1beta1", "CSIDriver CSINode", f"{_STORAGE}/v1", ""),
        ((1, 27), f"{_STORAGE}/v1beta1", "CSIStorageCapacity", f"{_STORAGE}/v1", ""),
        ((1, 22), "apiregistration.k8s.io/v1beta1", "APIService", "apiregistration.k8s.io/v1", ""),
        ((1, 22), "coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1", ""),
        ((1, 25), "node.k8s.io/v1beta1", "RuntimeClass", "node.k8s.io/v1", ""),
        ((1, 26), "autoscaling/v2beta2", _SCALER, "autoscaling/v2", ""),
        ((1, 32), f"{_FLOW}/v1beta3", f"FlowSchema {_SHARES}", f"{_FLOW}/v1", ""),
        ((1, 26), f"{_FLOW}/v1beta1", "FlowSchema", f"{_FLOW}/v1", ""),
        ((1, 29), f"{_FLOW}/v1beta2", "FlowSchema", f"{_FLOW}/v1", ""),
        # other fields
        ((1, 22), "extensions/v1beta1", "Ingress", f"{_NETWORKING}/v1", _BACKENDS),
        ((1, 22), f"{_NETWORKING}/v1beta1", "Ingress", f"{_NETWORKING}/v1", _BACKENDS),
        (
            *((1, 22), "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
            *("apiextensions.k8s.io/v1", _SCHEMA),
        ),
        ((1, 22), f"{_ADMISSION}/v1beta1", _WEBHOOKS, f"{_ADMISSION}/v1", _HOOKS),
        ((1, 8), "extensions/v1beta1", _SCALER, "autoscaling/v1", _SCALE_REF),
        ((1, 8), "autoscaling/v2alpha1", _SCALER, "autoscaling/v2", _METRICS),
        ((1, 25), "autoscaling/v2beta1", _SCALER, "autoscaling/v2", _METRICS),
        (
            *((1, 6), f"{_CERTIFICATES}/v1alpha1", "CertificateSigningRequest"),
            *(f"{_CERTIFICATES}/v1", _SIGNER),
        ),
        (
            *((1, 22), f"{_CERTIFICATES}/v1beta1", "CertificateSigningRequest"),
            *(f"{_CERTIFICATES}/v1", _SIGNER),
        ),
        ((1, 20), "node.k8s.io/v1alpha1", "RuntimeClass", "node.k8s.io/v1", _HANDLER),
        ((1, 25), "discovery.k8s.io/v1beta1", "EndpointSlice", "discovery.k8s.io/v1", _TOPOLOGY),
        ((1, 26), f"{_FLOW}/v1beta1", _SHARES, f"{_FLOW}/v1", _NOMINAL),
        ((1, 29), f"{_FLOW}/v1beta2", _SHARES, f"{_FLOW}/v1", _NOMINAL),
        (
            *((1, 27), "resource.k8s.io/v1alpha1", "ResourceClaim ResourceClaimTemplate"),
            *("resource.k8s.io/v1", _DEVICES),
        ),
        (
            *((1, 31), "resource.k8s.io/v1alpha2"),
            *("ResourceClaim ResourceClaimTemplate ResourceSlice", "resource.k8s.io/v1", _DEVICES),
        ),
        # without a successor
        ((1, 27), "resource.k8s.io/v1alpha1", "ResourceClass", "", _CLASS),
        ((1, 31), "resource.k8s.io/v1alpha2", "ResourceClass", "", _CLASS),
        (
            *((1, 31), "resource.k8s.io/v1alpha2"),
            *("ResourceClaimParameters ResourceClassParameters", "", _NO_PARAMETERS),
        ),
        ((1, 16), "extensions/v1beta1", "PodSecurityPolicy", "", _PSP),
        ((1, 25), "policy/v1beta1", "PodSecurityPolicy", "", _PSP),
        ((1, 20), "settings.k8s.io/v1alpha1", "PodPreset", "", "write it into the pod templates"),
        ((1, 8), "extensions/v1beta1", "ThirdPartyResource", "", "write a custom resource"),
        ((1, 14), f"{_ADMISSION}/v1alpha1", "InitializerConfiguration", "", "write a webhook"),
        (
            *((1, 9), f"{_ADMISSION}/v1alpha1", "ExternalAdmissionHookConfiguration"),
            *("", "write a webhook configuration"),
        ),
        ((1, 16), "extensions/v1beta1", "DeploymentRollback", "", _UNDO),
        ((1, 16), "apps/v1beta1", "DeploymentRollback", "", _UNDO),
    ]
)
