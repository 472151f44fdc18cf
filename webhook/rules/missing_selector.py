"""Finds workloads whose selector is missing or refused in the current API version.

Why: `apps/v1` requires a `spec.selector`; earlier versions took a missing one from the labels of
the template. A Job of `batch/v1` generates its own selector and refuses another one; in
`extensions` it also took its selector from the template, unless `autoSelector` was set.

Does: writes the selector that was the default, the labels of the template. It writes `matchLabels`
around a selector in the style of a ReplicationController. It removes `autoSelector`, and the
selector of a Job without `manualSelector`, with the `controller-uid` that an exported Job brings
from its cluster. A CronJob may have no selector at all. If the template has no labels, or a
selector does not match them, no release accepted the object, and the rule only reports it. Without
labels the version stays as it is, too. An object of `apps/v1` that has neither may be a patch and
is not reported.

Safety: safe. Without labels the version is written only if unsafe edits are wanted (`--unsafe`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.kube.api_versions import workload_successor
from webhook.kube.pod import Raw, as_map, labels_of
from webhook.kube.pointer import ROOT, Path
from webhook.kube.selectors import selects

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "missing-selector"
CODE = "GPU121"
FACTS = Facts(Stage.MANIFEST, Trait.OBJECT | Trait.WHOLE, unsafe=True)

_APPS = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "PetSet")
_CRON_JOBS = ("CronJob", "ScheduledJob")
_TODAY = ("apps/v1", "batch/v1")
_SPEC = ROOT / "spec"
_JOB_SPEC = Path(("spec", "jobTemplate", "spec"))
_MEMBERS = ("matchLabels", "matchExpressions")
# What the Job controller of the cluster that an object was exported from had put there.
_GENERATED = ("controller-uid", "batch.kubernetes.io/controller-uid")


def check(obj: Raw, cx: Context) -> Iterator[Finding]:
    if obj.get("apiVersion") not in _TODAY and workload_successor(obj, cx.target) is None:
        return
    spec, kind = as_map(obj.get("spec")), obj.get("kind")
    if kind in _APPS and not _may_be_patch(obj, spec):
        yield from _controller(spec)
    elif kind == "Job":
        yield from _job(_SPEC, spec, may_select=spec.get("manualSelector") is True)
    elif kind in _CRON_JOBS:
        job = as_map(as_map(spec.get("jobTemplate")).get("spec"))
        yield from _job(_JOB_SPEC, job, may_select=False)


def _may_be_patch(obj: Raw, spec: Raw) -> bool:
    """Whether it says nothing of its labels: no API server took that as an object of apps/v1."""
    has_labels = "labels" in as_map(as_map(spec.get("template")).get("metadata"))
    return obj.get("apiVersion") in _TODAY and not has_labels and not spec.get("selector")


def _controller(spec: Raw) -> Iterator[Finding]:
    labels, selector = labels_of(as_map(spec.get("template"))), spec.get("selector")
    at = _SPEC / "selector"
    if not labels or not all(isinstance(value, str) for value in labels.values()):
        message = "the template has no labels that a selector could match: write some, and both"
        # apps/v1 without both may be a patch, of which nothing is said: so the old version waits.
        yield Finding(
            CODE, _SPEC / "template", message, severity=Severity.MANUAL, safety=Safety.CHOICE
        )
    elif _is_empty(selector):
        message = "apps/v1 needs spec.selector: write the template's labels, which were the default"
        yield Finding(CODE, _SPEC, message, (Set(at, {"matchLabels": dict(labels)}),))
    elif not isinstance(selector, dict):
        yield _unlike(at)
    elif any(member in selector for member in _MEMBERS):
        if not selects(selector, labels):
            yield _unlike(at)
    elif selector.items() <= labels.items():
        message = "write matchLabels around the selector, as all kinds of apps/v1 want it"
        yield Finding(CODE, at, message, (Set(at, {"matchLabels": dict(selector)}),))
    else:
        yield _unlike(at)


def _is_empty(selector: object) -> bool:
    """None, and one without a requirement: a controller refuses it, since it selects all pods."""
    if not isinstance(selector, dict):
        return not selector
    return selector.keys() <= {*_MEMBERS} and not any(selector.values())


def _unlike(at: Path) -> Finding:
    message = "the selector does not match the labels of the template: write the same in both"
    return Finding(CODE, at, message, severity=Severity.MANUAL)


def _job(at: Path, spec: Raw, *, may_select: bool) -> Iterator[Finding]:
    if "autoSelector" in spec:
        message = "batch/v1 has no autoSelector: delete it, a Job makes its own selector"
        yield Finding(CODE, at / "autoSelector", message, (Remove(at / "autoSelector"),))
    selector, labels = spec.get("selector"), labels_of(as_map(spec.get("template")))
    if selector is None or may_select:
        return
    asked = as_map(as_map(selector).get("matchLabels"))
    generated = [name for name in _GENERATED if name in asked]
    if not generated and not selects(as_map(selector), labels):
        yield _unlike(at / "selector")
        return
    edits = [Remove(at / "selector")]
    if "manualSelector" in spec:  # false, or refused in a CronJob
        edits.append(Remove(at / "manualSelector"))
    template = at / "template" / "metadata" / "labels"
    edits += [Remove(template / name) for name in _GENERATED if generated and name in labels]
    message = "a Job of batch/v1 makes its own selector and refuses this one: delete it"
    yield Finding(CODE, at / "selector", message, tuple(edits))
