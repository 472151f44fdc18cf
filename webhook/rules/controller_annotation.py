"""Finds annotations for pods that are on the controller instead of its template.

Why: a Deployment does not copy its own annotations to its pods. On the controller, the alpha
annotations for schedulers and init containers never had an effect, in any release.

Does: removes them. It never moves them into the template, because there they would add constraints
to pods that have run without them for years. On Namespaces these annotations have an effect
(`defaultTolerations`, `tolerationsWhitelist`, `node-selector`), and an operator may read them on
custom kinds. Neither is changed.

Safety: safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.edits import Remove
from webhook.core.findings import Finding
from webhook.core.rule import Context, Facts, Stage
from webhook.evaluation.workloads import is_built_in
from webhook.kube.pod import annotations_of, as_map
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


NAME = "controller-annotation"
CODE = "GPU126"
FACTS = Facts(Stage.MANIFEST, words=("alpha.kubernetes.io", "pod.beta.kubernetes.io"))

_FOR_PODS = (
    "scheduler.alpha.kubernetes.io/affinity",
    "scheduler.alpha.kubernetes.io/tolerations",
    "scheduler.alpha.kubernetes.io/name",
    "scheduler.alpha.kubernetes.io/critical-pod",
    "scheduler.alpha.kubernetes.io/nvidiaGPU",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/initialized",
    "pod.beta.kubernetes.io/hostname",
    "pod.beta.kubernetes.io/subdomain",
    "security.alpha.kubernetes.io/sysctls",
    "security.alpha.kubernetes.io/unsafe-sysctls",
    "seccomp.security.alpha.kubernetes.io/pod",
)


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:  # noqa: ARG001
    if not is_built_in(obj) or obj["kind"] == "Pod":
        return
    yield from _dead(obj, ROOT)
    job = as_map(as_map(obj.get("spec")).get("jobTemplate"))
    yield from _dead(job, ROOT / "spec" / "jobTemplate")


def _dead(holder: Mapping[str, Any], at: Path) -> Iterator[Finding]:
    annotations = annotations_of(holder)
    for key in _FOR_PODS:
        if key in annotations:
            place = at / "metadata" / "annotations" / key
            message = (
                f"the annotation {key} is not in the pod template and never had an effect: delete "
                "it; what is wanted of the pods today is a field of the template's spec"
            )
            yield Finding(CODE, place, message, (Remove(place),))
