"""Finds workloads without a field whose default differs in the current API version.

Why: DaemonSets of `extensions`, and PetSets and StatefulSets of `apps/v1beta1`, replaced a pod only
after it was deleted, and Deployments of `extensions` replaced one pod at a time. In `apps/v1` all
of them use rolling updates, Deployments with 25 %. A Deployment with one replica then requests the
GPU for the new pod first, and waits if the node has no other.

Does: writes the old update strategy if the manifest has none. Other changed defaults are only
reported, as a notice: the number of old revisions and finished Jobs that are kept, deadlines,
retries, and the labels that an object without labels took from its template.

Safety: safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.kube.api_versions import WORKLOADS, workload_successor
from webhook.kube.pod import Raw, as_map, labels_of
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "changed-default"
CODE = "GPU122"
FACTS = Facts(
    Stage.MANIFEST, Trait.OBJECT | Trait.WHOLE, words=tuple([version for version, _ in WORKLOADS])
)

_SPEC = ROOT / "spec"
_EXTENSIONS = "extensions/v1beta1"
_ALPHA_JOBS = "batch/v2alpha1"
_WAITED = {
    (_EXTENSIONS, "DaemonSet"),
    ("apps/v1beta1", "StatefulSet"),
    ("apps/v1alpha1", "PetSet"),
}
_ROLLED = {(_EXTENSIONS, "Deployment")}
_AT_ONCE = ("maxSurge", "maxUnavailable")
_ALL = (1 << 31) - 1  # the API server takes no more, and for a deadline it means none
_TOOK_LABELS = (_EXTENSIONS, "apps/v1beta1")


def check(obj: Raw, cx: Context) -> Iterator[Finding]:
    if workload_successor(obj, cx.target) is None:
        return
    version, kind, spec = obj["apiVersion"], obj["kind"], as_map(obj.get("spec"))
    if (version, kind) in _WAITED and not as_map(spec.get("updateStrategy")).get("type"):
        message = (
            f"a {kind} of {version} waited until somebody deleted a pod, today's rolls: "
            "write updateStrategy.type: OnDelete"
        )
        yield Finding(CODE, _SPEC, message, (Set(_SPEC / "updateStrategy" / "type", "OnDelete"),))
    if (version, kind) in _ROLLED:
        yield from _rolling(as_map(spec.get("strategy")))
    changed = list(_changed(version, kind, obj, spec))
    if changed:
        message = f"to keep the defaults of {version}, write {'; '.join(changed)}"
        yield Finding(CODE, ROOT / "apiVersion", message, severity=Severity.NOTICE)


def _rolling(strategy: Raw) -> Iterator[Finding]:
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    at = _SPEC / "strategy" / "rollingUpdate"
    said = as_map(strategy.get("rollingUpdate"))
    edits = tuple(Set(at / name, 1) for name in _AT_ONCE if said.get(name) is None)
    if edits:
        names = " and ".join(str(edit.at[-1]) for edit in edits)
        message = (
            f"a Deployment of {_EXTENSIONS} rolled one pod at a time, today's rolls by 25 %: "
            f"write 1 as {names} of strategy.rollingUpdate"
        )
        yield Finding(CODE, _SPEC, message, edits)


def _changed(version: str, kind: str, obj: Raw, spec: Raw) -> Iterator[str]:
    """What is otherwise today, for fields that the file does not set."""
    if kind == "Deployment":
        kept = {_EXTENSIONS: _ALL, "apps/v1beta1": 2}.get(version)
        if kept and spec.get("revisionHistoryLimit") is None:
            yield f"revisionHistoryLimit: {kept} (now 10)"
        if version == _EXTENSIONS and spec.get("progressDeadlineSeconds") is None:
            yield f"progressDeadlineSeconds: {_ALL} (now 600)"
    if version == _ALPHA_JOBS and kind != "Job":
        if spec.get("successfulJobsHistoryLimit") is None:
            yield f"successfulJobsHistoryLimit: {_ALL} (now 3)"
        if spec.get("failedJobsHistoryLimit") is None:
            yield f"failedJobsHistoryLimit: {_ALL} (now 1)"
    if kind == "Job" and spec.get("backoffLimit") is None:
        yield f"backoffLimit: {_ALL} (now 6)"
    template = as_map(spec.get("template"))
    if version in _TOOK_LABELS and labels_of(template) and not labels_of(obj):
        yield "the template's labels as metadata.labels (now none)"
