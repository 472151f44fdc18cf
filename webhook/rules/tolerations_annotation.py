"""Finds tolerations in the annotation `scheduler.alpha.kubernetes.io/tolerations`.

Why: the annotation has had no effect since 1.6, but current API servers still validate it: they
reject a pod with a malformed one.

Does: adds its tolerations to spec.tolerations, without exact duplicates, and removes the
annotation. A malformed annotation is removed. An entry without a key was invalid while the
annotation had an effect and would now tolerate every taint, so it is not added. In a file a pod
without GPUs gets its tolerations, too: a DaemonSet then also runs on nodes with these taints.

Safety: safe for pods: a toleration only adds nodes on which a pod may run. In a file the whole pod
stays as it is if an entry cannot be converted, except with `--unsafe`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from webhook.core.edits import Append, Remove
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.legacy_names import TOLERATIONS_ANNOTATION
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.text_patterns import TOLERATIONS_TEXT
from webhook.kube import go_json, labels, tolerations
from webhook.kube.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.pod import Pod, Raw


NAME = "tolerations-annotation"
CODE = "GPU107"
FACTS = Facts(
    Stage.REPAIR,
    Trait.ANNOTATION | Trait.LEGACY_PODS | Trait.SEPARATE | Trait.TEXT,
    unsafe=True,
    words=("alpha.kubernetes.io", "AnnotationKey"),
    patterns=(TOLERATIONS_TEXT,),
)

_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    if TOLERATIONS_ANNOTATION not in pod.annotations:
        return
    at = pod.annotation_at(TOLERATIONS_ANNOTATION)
    text = pod.annotations[TOLERATIONS_ANNOTATION]
    gone = Remove(at)
    try:
        listed = _decode(text)
    except (ValueError, go_json.Mistake) as mistake:
        message = (
            f"the tolerations annotation is malformed ({mistake}) and would have the pod refused; "
            f"{'' if cx.leaves_choices(CODE) else 'it is removed: '}write spec.tolerations"
        )
        yield Finding(CODE, at, message, (gone,), Severity.MANUAL, Safety.CHOICE)
        return
    new: list[Raw] = []
    safety = Safety.SAFE
    known = set(map(_text, pod.tolerations()))
    for toleration in listed:
        if not toleration.get("key"):
            message = (
                "a toleration without a key tolerates every taint today, and was refused when the "
                "annotation counted: it is left out; write it into spec.tolerations if it is meant"
            )
            safety = Safety.CHOICE
            yield Finding(CODE, at, message, severity=Severity.MANUAL)
        elif (same := _text(toleration)) not in known:
            known.add(same)
            new.append(toleration)
    if not new:
        message = "the tolerations annotation adds nothing to spec.tolerations: delete it"
        yield Finding(CODE, at, message, (gone,), safety=safety)
        return
    to = pod.spec_at / "tolerations"
    message = (
        "the tolerations annotation has had no effect since Kubernetes 1.6; "
        "it is spec.tolerations now: move it there"
    )
    added = (Append(to, each) for each in new)
    yield Finding(CODE, at, message, (*added, gone), safety=safety)


def _text(toleration: Raw) -> str:
    """One text for tolerations that say the same: empty members say nothing."""
    return canonical({name: item for name, item in toleration.items() if item not in ("", None)})


def _decode(text: object) -> list[Raw]:
    """The tolerations, with empty members left out; the reason is raised if they are malformed."""
    if text is None or text == "":
        return []
    if not isinstance(text, str):
        raise ValueError("it is not a string")  # noqa: TRY004  # one kind of error for all its faults
    try:
        listed = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is too deeply nested") from None
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise ValueError("it is no JSON list")  # noqa: TRY004
    return [_toleration(raw) for raw in listed]


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _toleration(raw: object) -> Raw:
    shape = tolerations.SHAPE
    read = go_json.read({} if raw is None else raw, shape, "an entry", tolerations.pass_over)
    toleration = {name: value for name, value in read.items() if value != ""}
    _validate(toleration)
    return toleration


def _validate(toleration: Raw) -> None:
    """The rules of ValidateTolerations, which today's API server applies to the annotation."""
    key, operator = toleration.get("key"), toleration.get("operator", "Equal")
    if key is not None and not labels.is_key(key):
        raise ValueError(f"{key[:40]!r} is no taint key")
    if operator not in ("Equal", "Exists"):
        raise ValueError(f"{operator[:40]!r} is not an operator")
    if key is None and operator != "Exists":
        raise ValueError("an entry without a key must have the operator Exists")
    if operator == "Exists" and "value" in toleration:
        raise ValueError("an entry with the operator Exists has a value")
    if operator == "Equal" and not labels.is_value(toleration.get("value", "")):
        raise ValueError(f"{toleration['value'][:40]!r} is no taint value")
    effect = toleration.get("effect", "")
    if effect not in _EFFECTS:
        raise ValueError(f"{effect[:40]!r} is no effect")
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        raise ValueError("tolerationSeconds needs the effect NoExecute")
