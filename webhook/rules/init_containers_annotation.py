"""Finds init containers in an annotation.

Why: 1.3-1.7 read them from `pod.alpha.kubernetes.io/init-containers`, 1.4-1.7 first from the beta
annotation, and both before the field. Since 1.8 the API server drops the annotations without a
message, and the pod starts without the work of its init containers.

Does: writes them into `spec.initContainers` of each pod template, as the API server of 1.6 did:
JSON as Go reads it, beta before alpha, the annotation instead of the field. The rules for pods then
check these containers, too. If the field has other containers, both stay as they are: releases
since 1.8 have run those of the field, and only the author knows which are meant. Invalid JSON,
members that a container does not have now, and values that the API server would refuse (no name, no
image, a duplicate name, probes) are only reported. `null` and the `init-container-statuses` of
exported pods are removed.

Safety: safe. Where the field has other containers, the annotation takes their place only if unsafe
edits are wanted (`--unsafe`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.text_patterns import INIT_CONTAINERS_TEXT
from webhook.evaluation.workloads import templates_of
from webhook.kube import go_json
from webhook.kube.container_shape import CONTAINER
from webhook.kube.pod import Pod, Raw, as_items

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "init-containers-annotation"
CODE = "GPU124"
FACTS = Facts(
    Stage.MANIFEST,
    Trait.SEPARATE | Trait.TEXT,
    unsafe=True,
    words=("alpha.kubernetes.io", "pod.beta.kubernetes.io", "AnnotationKey"),
    patterns=(INIT_CONTAINERS_TEXT,),
)

ALPHA = "pod.alpha.kubernetes.io/init-containers"
BETA = "pod.beta.kubernetes.io/init-containers"
_STATUSES = (
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-container-statuses",
)
# Only a sidecar may have these, and there were none then (1.5.1 validateInitContainers).
_NOT_BEFORE_START = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def check(obj: Raw, cx: Context) -> Iterator[Finding]:
    for at in templates_of(obj, cx.settings):
        pod = Pod(obj, at)
        yield from _containers(pod, cx)
        for key in _STATUSES:
            if key in pod.annotations:
                place = pod.annotation_at(key)
                message = f"the annotation {key} was the kubelet's: delete it"
                yield Finding(CODE, place, message, (Remove(place),))


def _containers(pod: Pod, cx: Context) -> Iterator[Finding]:
    keys: list[str] = []
    for key in (BETA, ALPHA):
        if key in pod.annotations and pod.annotations[key] is None:
            at = pod.annotation_at(key)  # a chart that erases an old value
            yield Finding(CODE, at, f"the annotation {key} is null: delete the line", (Remove(at),))
        elif key in pod.annotations:
            keys.append(key)
    if keys:
        yield _taken_over(pod, keys, cx)


def _taken_over(pod: Pod, keys: list[str], cx: Context) -> Finding:
    """What becomes of these annotations, of which the first counts."""
    at, value = pod.annotation_at(keys[0]), pod.annotations[keys[0]]
    leaving = [Remove(pod.annotation_at(key)) for key in keys]
    said = pod.spec.get("initContainers")
    try:
        containers = _decoded(value)
        if containers != said:
            _judge(containers, pod)
    except go_json.Mistake as mistake:
        why = str(mistake)[:120]
        message = f"the annotation {keys[0]} cannot be taken over: {why}; write spec.initContainers"
        return Finding(CODE, at, message, severity=Severity.MANUAL)
    field = pod.spec_at / "initContainers"
    if containers == (said or []):
        message = f"the annotation {keys[0]} has no effect today and is removed: delete it"
        return Finding(CODE, at, message, tuple(leaving))
    edits = (Set(field, containers) if containers else Remove(field), *leaving)
    if said:
        stays = cx.leaves_choices(CODE)
        message = (
            f"the annotation {keys[0]} and spec.initContainers differ: releases before 1.8 ran the "
            f"annotation's, later ones the field's{'' if stays else ', which it replaces now'}; "
            "write what is meant into the field, and delete the annotation"
        )
        return Finding(CODE, at, message, edits, Severity.MANUAL, Safety.CHOICE)
    message = f"the annotation {keys[0]} has no effect today and is taken over: "
    message += "write spec.initContainers"
    return Finding(CODE, at, message, edits)


def _decoded(value: object) -> list[Raw]:
    if not isinstance(value, str):
        raise go_json.Mistake("it is not a string")
    raw = go_json.loads(value)
    containers: list[Raw] = go_json.read([] if raw is None else raw, [CONTAINER], "it", _refuse)
    return containers


def _refuse(where: str, member: str) -> None:
    raise go_json.Mistake(f"{where} has no {member[:40]!r}")


def _judge(containers: list[Raw], pod: Pod) -> None:
    """Raise Mistake for what ValidatePodSpec, then and now, refuses of a container itself."""
    names = [item.get("name") for _, item in as_items(pod.spec.get("containers"))]
    for number, container in enumerate(containers, start=1):
        name = container.get("name")
        if not name or not container.get("image"):
            raise go_json.Mistake(f"container {number} has no name, or no image")
        if name in names:
            raise go_json.Mistake(f"the name {name[:63]!r} occurs twice")
        names.append(name)
        barred = [each for each in _NOT_BEFORE_START if each in container]
        if barred and container.get("restartPolicy") != "Always":
            raise go_json.Mistake(f"an init container cannot have {barred[0]}")
