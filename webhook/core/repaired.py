"""The annotation on changed objects: `gpu-webhook.dev/repaired: GPU101,GPU106`.

Who owns a pod rarely sees the warnings of the request that made it. The annotation stands on the
pod, or on a workload whose template was repaired: never in a template, whose change would make the
workload roll out, and never on what we did not change.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.core.budget import MOST_ANNOTATION_BYTES, annotation_bytes
from webhook.core.draft import Draft
from webhook.core.edits import Set
from webhook.core.errors import EditError
from webhook.kube.managed_fields import has_annotation
from webhook.kube.pod import as_map
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.draft import Operation
    from webhook.core.findings import Finding

REPAIRED = "gpu-webhook.dev/repaired"
_AT = ROOT / "metadata" / "annotations" / REPAIRED
_CODE = re.compile(r"GPU(?:[12][0-9]{2}|303)")  # of the rules that change pods, the guard included
_LONGEST = 400  # characters that are read of it


def codes_in(text: object) -> tuple[str, ...]:
    """The codes in such an annotation, sorted; whatever else stands there is passed over."""
    if not isinstance(text, str):
        return ()
    return tuple(sorted({each for each in text[:_LONGEST].split(",") if _CODE.fullmatch(each)}))


def annotate(obj: dict[str, Any], findings: Iterable[Finding]) -> list[Operation]:
    """Write the codes of what was repaired onto the object; give the patch for it.

    Codes that we wrote before stay: those of an earlier round of the same request
    (reinvocationPolicy), and those of a workload, which is stored as it was repaired then. Where
    there is no place for an annotation there is none.
    """
    codes = {found.code for found in findings if found.action == "repaired"}
    if not codes:
        return []
    text = ",".join(sorted(codes | set(earlier(obj))))
    draft = Draft(obj)
    if annotation_bytes({**_annotations(obj), REPAIRED: text}) > MOST_ANNOTATION_BYTES:
        return []
    try:
        draft.apply([Set(_AT, text)])
    except EditError:  # the API server refuses such metadata in its own words
        return []
    return draft.patch()


def is_noted(obj: Mapping[str, Any]) -> bool:
    """Whether the object carries codes that we wrote before."""
    return bool(earlier(obj))


def earlier(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """The codes that we wrote before; none if whoever sent the object wrote the annotation.

    managedFields name what they wrote, and never what a webhook added.
    """
    codes = codes_in(_annotations(obj).get(REPAIRED))
    return () if codes and was_sent(obj) else codes


def was_sent(obj: Mapping[str, Any]) -> bool:
    """Whether somebody else wrote the annotation, as managedFields tell."""
    return has_annotation(obj, REPAIRED)


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_map(as_map(obj.get("metadata")).get("annotations"))
