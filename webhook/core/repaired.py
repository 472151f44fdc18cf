"""The annotation on what we changed: `gpu-webhook.dev/repaired: GPU101,GPU106`.

Who owns a pod rarely sees the warnings of the request that made it. The annotation stands on the
pod, or on a workload whose template was repaired: never in a template, whose change would make the
workload roll out, and never on what we did not change.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.core.draft import Draft
from webhook.core.edits import Set
from webhook.core.errors import EditError
from webhook.core.pod import as_items, as_map
from webhook.core.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.draft import Operation
    from webhook.core.findings import Finding

REPAIRED = "gpu-webhook.dev/repaired"
_AT = ROOT / "metadata" / "annotations" / REPAIRED
_CODE = re.compile(r"GPU(?:[12][0-9]{2}|303)")  # of the rules that change pods, the guard included
_LONGEST = 400  # characters that are read of it
_MOST = (
    256 * 1024
)  # bytes of all annotations: what the API server takes (TotalAnnotationSizeLimitB)


def codes_in(text: object) -> tuple[str, ...]:
    """The codes in such an annotation, sorted; whatever else stands there is passed over."""
    if not isinstance(text, str):
        return ()
    return tuple(sorted({each for each in text[:_LONGEST].split(",") if _CODE.fullmatch(each)}))


def annotate(
    obj: dict[str, Any], findings: Iterable[Finding], old: Mapping[str, Any]
) -> list[Operation]:
    """Write the codes of what was repaired onto the object; give the patch for it.

    `old` is what the object was before an update. Codes of an earlier round of the same request
    (reinvocationPolicy) stay. Where there is no place for an annotation there is none.
    """
    codes = {found.code for found in findings if found.action == "repaired"}
    if not codes:
        return []
    text = ",".join(sorted(codes | set(_earlier(obj, old))))
    draft = Draft(obj)
    if _annotations_with(obj, text) > _MOST:
        return []
    try:
        draft.apply([Set(_AT, text)])
    except EditError:  # the API server refuses such metadata in its own words
        return []
    return draft.patch()


def _earlier(obj: Mapping[str, Any], old: Mapping[str, Any]) -> tuple[str, ...]:
    """The codes that an earlier round of this request wrote; none if somebody else wrote them.

    What stood there before an update is not of this round. And managedFields names what whoever
    sent the request wrote (KEP-555): they are made before the first webhook is asked.
    """
    text = _annotations(obj).get(REPAIRED)
    if text == _annotations(old).get(REPAIRED) or _was_sent(obj):
        return ()
    return codes_in(text)


def _was_sent(obj: Mapping[str, Any]) -> bool:
    return any(
        f"f:{REPAIRED}" in as_map(as_map(fields.get("f:metadata")).get("f:annotations"))
        for _, entry in as_items(as_map(obj.get("metadata")).get("managedFields"))
        for fields in [as_map(entry.get("fieldsV1"))]
    )


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_map(as_map(obj.get("metadata")).get("annotations"))


def _annotations_with(obj: Mapping[str, Any], text: str) -> int:
    """How many bytes all annotations have with this one, as the API server counts them."""
    texts = [part for pair in ({**_annotations(obj), REPAIRED: text}).items() for part in pair]
    return sum(len(str(each).encode(errors="surrogatepass")) for each in texts)
