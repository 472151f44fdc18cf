"""Finds pods that an annotation marks as critical.

Why: `scheduler.alpha.kubernetes.io/critical-pod` has had no effect since 1.16. Before, it had an
effect only in the namespace `kube-system` and only with an empty value. `priorityClassName`
replaces it.

Does: where it had an effect, writes `priorityClassName: system-cluster-critical`, as the API server
of 1.9-1.15 did, unless a class or a priority is already set. In another namespace, or with another
value, it never had an effect and is removed. If the manifest does not name its namespace, or a
template sets it, this rule does nothing, and ignored-annotations reports the annotation.

Safety: safe.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding
from webhook.core.rule import Context, Facts, Stage
from webhook.core.text_patterns import END, NO_EFFECT, Pattern
from webhook.evaluation.workloads import templates_of
from webhook.kube.pod import Pod, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "critical-pod"
CODE = "GPU127"
FACTS = Facts(
    Stage.MANIFEST,
    words=("alpha.kubernetes.io",),
    patterns=(
        Pattern(
            "critical-pod",
            rf"scheduler\.alpha\.kubernetes\.io/critical-pod{END}",
            f"{NO_EFFECT} 1.16",
            "write priorityClassName: system-cluster-critical",
        ),
    ),
)

_KEY = "scheduler.alpha.kubernetes.io/critical-pod"
_NAMESPACE = "kube-system"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")  # of any namespace; a template's is none
_CLASS = "system-cluster-critical"


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    said = as_map(obj.get("metadata")).get("namespace")
    namespace = said if isinstance(said, str) and _NAME.fullmatch(said) else ""
    for at in templates_of(obj, cx.settings):
        pod = Pod(obj, at)
        if _KEY not in pod.annotations:
            continue
        place, value = pod.annotation_at(_KEY), pod.annotations[_KEY]
        if value is None or (namespace and (namespace != _NAMESPACE or value != "")):
            message = (
                f"the annotation {_KEY} counted in {_NAMESPACE} and with an empty value alone, so "
                "it never had an effect here: delete it"
            )
            yield Finding(CODE, place, message, (Remove(place),))
        elif namespace and {"priorityClassName", "priority"} & pod.spec.keys():
            message = f"the annotation {_KEY} has no effect today: delete it, the pod has a class"
            yield Finding(CODE, place, message, (Remove(place),))
        elif namespace:
            message = (
                f"the annotation {_KEY} has no effect today: write priorityClassName: {_CLASS}"
            )
            edit = Set(pod.spec_at / "priorityClassName", _CLASS)
            yield Finding(CODE, place, message, (edit, Remove(place)))
