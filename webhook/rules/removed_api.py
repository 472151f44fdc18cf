"""Finds other objects in API versions that are no longer served.

Why: a manifest of a GPU workload often contains its roles, its Ingress or its disruption budget,
and `kubectl apply` stops at the first kind that the API server does not know.

Does: writes the current version if the fields are the same (RBAC, PodDisruptionBudget,
NetworkPolicy, PriorityClass, StorageClass and similar kinds), with the few differences of RBAC
`v1alpha1`, and converts an Ingress as the API server did. Otherwise it only names the successor and
the finding is manual: a budget with an empty selector (it selected no pods, now it selects all pods
of the namespace), custom resource definitions, webhook configurations, autoscalers with metrics.
For removed kinds (PodSecurityPolicy, PodPreset, third party resources) it names the alternative. A
version that the target release (`--target-version`) still serves stays.

Safety: safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Edit, Remove, Rename, Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.text_patterns import Pattern
from webhook.kube.api_versions import OTHERS, Successor, other_successor
from webhook.kube.pod import Raw, as_items, as_map
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


NAME = "removed-api"
CODE = "GPU123"
FACTS = Facts(
    Stage.MANIFEST,
    Trait.VERSION,
    words=(
        *[version for version, _ in OTHERS],
        *("apiextensions.k8s.io/v1alpha1", "settings.k8s.io/v1beta1"),  # in programs
    ),
    patterns=(
        Pattern(
            "removed-api",
            r"\b(?:rbac\.authorization|apiextensions|settings)\.k8s\.io/v1(?:alpha|beta)1\b"
            r"|\bpolicy/v1beta1\b|\bresource\.k8s\.io/v1alpha[12]\b",
            "no API server of 1.25 or later knows it",
            "write v1 of the same group",
            words=("k8s.io/v1", "policy/v1beta1"),
        ),
    ),
)

_SPEC = ROOT / "spec"
_EVERYBODY = "system:authenticated"  # what the user * of v1alpha1 stood for


class _ManualError(Exception):
    """Why an object cannot be written in the new version as it is."""


def check(obj: Raw, cx: Context) -> Iterator[Finding]:
    successor = other_successor(obj, cx.target)
    if successor is None:
        return
    at = ROOT / "apiVersion"
    message = _message(obj, successor)
    convert = _CONVERTED.get(str(obj["kind"]))
    if convert is None and (successor.how or not successor.api_version):
        yield Finding(CODE, at, f"{message}; {successor.how}", severity=Severity.MANUAL)
        return
    try:
        edits = tuple(convert(obj)) if convert is not None else ()
    except _ManualError as why:
        yield Finding(CODE, at, f"{message}; {why}", severity=Severity.MANUAL)
    else:
        yield Finding(CODE, at, message, (Set(at, successor.api_version), *edits))


def _message(obj: Raw, successor: Successor) -> str:
    major, minor = successor.removed
    gone = f"{obj['kind']} of {obj['apiVersion']} was removed in {major}.{minor}"
    return f"{gone}: write {successor.api_version}" if successor.api_version else gone


def _binding(obj: Raw) -> Iterator[Edit]:
    """Convert_v1alpha1_Subject_To_rbac_Subject."""
    for position, subject in as_items(obj.get("subjects")):
        at = ROOT / "subjects" / position
        if "apiVersion" in subject:
            yield Remove(at / "apiVersion")
        alpha = str(obj["apiVersion"]).endswith("alpha1")
        if alpha and subject.get("kind") == "User" and subject.get("name") == "*":
            yield Set(at / "kind", "Group")
            yield Set(at / "name", _EVERYBODY)


def _role(obj: Raw) -> Iterator[Edit]:
    for position, rule in as_items(obj.get("rules")):
        if "attributeRestrictions" in rule:  # never implemented, removed in 1.7
            yield Remove(ROOT / "rules" / position / "attributeRestrictions")


def _budget(obj: Raw) -> Iterator[Edit]:
    spec = as_map(obj.get("spec"))
    if spec.get("selector") == {}:
        raise _ManualError("its empty selector meant no pod, and means all of them today")
    yield from ()


def _ingress(obj: Raw) -> Iterator[Edit]:
    """Convert_v1beta1_IngressSpec_To_networking_IngressSpec."""
    spec = as_map(obj.get("spec"))
    if "backend" in spec:
        yield from _backend(_SPEC / "backend", spec["backend"])
        yield Rename(_SPEC / "backend", "defaultBackend")
    for number, rule in as_items(spec.get("rules")):
        paths = _SPEC / "rules" / number / "http" / "paths"
        for position, path in as_items(as_map(rule.get("http")).get("paths")):
            at = paths / position
            yield from _backend(at / "backend", path.get("backend"))
            if not path.get("pathType"):
                yield Set(at / "pathType", "ImplementationSpecific")


def _backend(at: Path, backend: object) -> Iterator[Edit]:
    raw = as_map(backend)
    if "resource" in raw and "serviceName" not in raw:
        return
    name, port = raw.get("serviceName"), raw.get("servicePort")
    if not isinstance(name, str) or type(port) not in {int, str}:
        raise _ManualError("a backend names no service, or no port")
    member = "number" if isinstance(port, int) else "name"
    yield Set(at, {"service": {"name": name, "port": {member: port}}})


_CONVERTED: dict[str, Callable[[Raw], Iterator[Edit]]] = {
    "Role": _role,
    "ClusterRole": _role,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "PodDisruptionBudget": _budget,
    "Ingress": _ingress,
}
