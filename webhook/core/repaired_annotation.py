"""The annotation on changed objects: `gpu-webhook.dev/repaired: GPU101,GPU106`.

Owners of pods rarely see the warnings of the request that created the pod, so the webhook sets an
annotation. It is on the pod, or on a workload with a repaired template: never in a template,
because a change there would roll out the workload, and never on unchanged objects.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.core.draft import Draft
from webhook.core.edits import Remove, Set
from webhook.core.errors import EditError
from webhook.core.object_size import MOST_ANNOTATION_BYTES, annotation_bytes
from webhook.kube.managed_fields import has_annotation
from webhook.kube.pod import annotations_of
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.findings import Finding
    from webhook.core.touched import Operation

REPAIRED = "gpu-webhook.dev/repaired"
_AT = ROOT / "metadata" / "annotations" / REPAIRED
_PATH, _PATH_OF_ALL = str(_AT), str(_AT.parent)
_CODE = re.compile(r"GPU(?:[12][0-9]{2}|303)")  # of the rules that change pods, with the guard
_LONGEST = 400  # characters that are read of it


def codes_in(text: object) -> tuple[str, ...]:
    """The codes in such an annotation, sorted; other text is ignored."""
    if not isinstance(text, str):
        return ()
    return tuple(sorted({each for each in text[:_LONGEST].split(",") if _CODE.fullmatch(each)}))


def annotate(
    obj: dict[str, Any], findings: Iterable[Finding], stored: Iterable[str] = ()
) -> list[Operation]:
    """Write the codes of the repairs onto the object; return the patch for it.

    Earlier codes stay: those of an earlier round of the same request (reinvocationPolicy), and
    those of a workload that is `stored` repaired, but for rules that only warn now. An object
    without a place for annotations gets none.
    """
    actions = {(found.action, found.code) for found in findings}
    codes = {code for action, code in actions if action == "repaired"}
    if not codes:
        return []
    left = {code for action, code in actions if action == "would repair"}
    text = ",".join(sorted(codes | ({*earlier(obj), *stored} - left)))
    there = annotations_of(obj)
    if annotation_bytes({**there, REPAIRED: text}) > MOST_ANNOTATION_BYTES:
        return []
    metadata = obj.get("metadata")
    if there and REPAIRED not in there:  # this and the next are what a draft would make of it
        there[REPAIRED] = text
        return [{"op": "add", "path": _PATH, "value": text}]
    if isinstance(metadata, dict) and "annotations" not in metadata:
        metadata["annotations"] = {REPAIRED: text}
        return [{"op": "add", "path": _PATH_OF_ALL, "value": metadata["annotations"]}]
    draft = Draft(obj)
    try:
        draft.apply([Set(_AT, text)])
    except EditError:  # the API server rejects such metadata with its own message
        return []
    return draft.patch()


def withdraw(obj: dict[str, Any]) -> list[Operation]:
    """Remove the codes that the webhook wrote before; return the patch for it."""
    draft = Draft(obj)
    if is_noted(obj):
        draft.apply([Remove(_AT)])
    return draft.patch()


def codes_of(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """The codes on the object, from any writer."""
    return codes_in(annotations_of(obj).get(REPAIRED))


def is_noted(obj: Mapping[str, Any]) -> bool:
    """Whether the object has codes that the webhook wrote before."""
    return bool(earlier(obj))


def earlier(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """The codes that the webhook wrote before; none if a client sent the annotation.

    managedFields list what clients sent, and never what a webhook added.
    """
    codes = codes_of(obj)
    return () if codes and was_sent(obj) else codes


def was_sent(obj: Mapping[str, Any]) -> bool:
    """Whether a client sent the annotation, according to managedFields."""
    return has_annotation(obj, REPAIRED)
