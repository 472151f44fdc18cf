"""Finds workloads in API versions that are no longer served.

Why: Deployments, DaemonSets, ReplicaSets and StatefulSets of `extensions/v1beta1`, `apps/v1beta1`
and `apps/v1beta2` are refused since 1.16 ("no matches for kind"), CronJobs of `batch/v1beta1` since
1.25. PetSets, ScheduledJobs and Jobs of `extensions` were removed long before.

Does: writes `apps/v1` or `batch/v1`, StatefulSet for PetSet and CronJob for ScheduledJob, also
where a HorizontalPodAutoscaler or an owner reference names such a workload. It deletes fields that
only the old version had (`rollbackTo`, `templateGeneration`, `uniqueLabelKey`,
`metadata.initializers` and `clusterName`). missing-selector adds what else the new version
requires, and changed-default reports different defaults. A StatefulSet without `serviceName`
is as good in `apps/v1` as it was, so it is converted, with a notice. A version that the target
release (`--target-version`) still serves stays.

Safety: safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Edit, Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.text_patterns import Pattern
from webhook.kube.api_versions import WORKLOADS, Successor, workload_successor
from webhook.kube.pod import as_map
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "removed-workload-api"
CODE = "GPU120"
FACTS = Facts(
    Stage.MANIFEST,
    Trait.OBJECT | Trait.VERSION,
    # The target of a patch names the version apart from its group.
    words=tuple(
        [word for at, _ in WORKLOADS for word in (at, f"version: {at.rpartition('/')[2]}")]
    ),
    patterns=(
        Pattern(
            "removed-workload-api",
            r"\b(?:extensions/v1beta1|apps/v1beta[12]|apps/v1alpha1)\b",
            "no API server of 1.22 or later knows it",
            "write apps/v1 (a Job: batch/v1, an Ingress or NetworkPolicy: networking.k8s.io/v1)",
            words=("extensions/v1beta1", "apps/v1beta", "apps/v1alpha1"),
        ),
        Pattern(
            "removed-batch-version",
            r"\bbatch/(?:v2alpha1|v1beta1)\b",
            "no API server of 1.25 or later knows it",
            "write batch/v1",
            words=("batch/v2alpha1", "batch/v1beta1"),
        ),
    ),
)

_SPEC = ROOT / "spec"
_OWNERS = ROOT / "metadata" / "ownerReferences"
_ONLY_OLD: dict[str, tuple[str, ...]] = {
    "Deployment": ("rollbackTo", "uniqueLabelKey"),
    "DaemonSet": ("templateGeneration", "uniqueLabelKey"),
}
_ONLY_OLD_METADATA = ("initializers", "clusterName")  # removed in 1.14 and 1.24


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    successor = workload_successor(obj, cx.target)
    if successor is not None:
        yield from _converted(obj, successor)
    for at, reference in _references(obj):
        successor = workload_successor(reference, cx.target)
        if successor is not None:
            yield _renamed(at, reference, successor)


def _references(obj: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Where another object is named by its version, kind and name."""
    yield _SPEC / "scaleTargetRef", as_map(as_map(obj.get("spec")).get("scaleTargetRef"))
    owners = as_map(obj.get("metadata")).get("ownerReferences")
    for position, owner in enumerate(owners if isinstance(owners, list) else ()):
        yield _OWNERS / position, as_map(owner)


def _converted(obj: dict[str, Any], successor: Successor) -> Iterator[Finding]:
    spec, metadata = as_map(obj.get("spec")), as_map(obj.get("metadata"))
    leaving = [_SPEC / name for name in _ONLY_OLD.get(successor.kind, ()) if name in spec]
    leaving += [ROOT / "metadata" / name for name in _ONLY_OLD_METADATA if name in metadata]
    more = f"; delete {', '.join(at.dotted for at in leaving)}" if leaving else ""
    edits = (*_names(ROOT, obj, successor), *map(Remove, leaving))
    yield Finding(CODE, ROOT / "apiVersion", _message(obj, successor) + more, edits)
    if successor.kind == "StatefulSet" and not spec.get("serviceName"):
        # No API server ever asked for it (ValidateStatefulSetSpec).
        message = (
            f"this {obj['kind']} has no serviceName, so its pods get no DNS names of their own; if "
            "they need some, write serviceName: the name of its headless Service"
        )
        yield Finding(CODE, _SPEC, message, severity=Severity.NOTICE)


def _renamed(at: Path, reference: dict[str, Any], successor: Successor) -> Finding:
    edits = tuple(_names(at, reference, successor))
    return Finding(CODE, at / "apiVersion", _message(reference, successor), edits)


def _names(at: Path, obj: dict[str, Any], successor: Successor) -> Iterator[Edit]:
    yield Set(at / "apiVersion", successor.api_version)
    if successor.kind != obj["kind"]:
        yield Set(at / "kind", successor.kind)


def _message(obj: dict[str, Any], successor: Successor) -> str:
    major, minor = successor.removed
    return (
        f"{obj['kind']} of {obj['apiVersion']} was removed in {major}.{minor}: "
        f"write {successor.kind} of {successor.api_version}"
    )
