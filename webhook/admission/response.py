"""From a decision to bytes. Nobody else writes the response of a review."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import orjson

from webhook.core.findings import Safety
from webhook.telemetry.logs import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.admission.review import Review
    from webhook.core.findings import Finding

# kube-apiserver cuts warnings at 256 characters once all of them pass 4096.
LONGEST_WARNING = 256
MOST_WARNINGS = 10
Audit = dict[str, str]


def allowed(
    review: Review, warnings: Iterable[str] = (), audit: Mapping[str, str] | None = None
) -> bytes:
    """The object may pass as it is."""
    return _answer(review, {"uid": review.uid, "allowed": True}, warnings, audit)


def patched(
    review: Review, patch: bytes, warnings: Iterable[str], audit: Mapping[str, str] | None
) -> bytes:
    """The object may pass with this RFC 6902 patch."""
    response = {
        "uid": review.uid,
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": b64encode(patch).decode("ascii"),
    }
    return _answer(review, response, warnings, audit)


def warning(code: str, message: str) -> str:
    """One line, the code first, not longer than the API server lets through.

    A control character in it, and the API server would drop the warning without a word.
    """
    text = printable(f"{code}: {message}")
    return text if len(text) <= LONGEST_WARNING else f"{text[: LONGEST_WARNING - 1]}…"


def warnings_of(findings: Iterable[Finding]) -> list[str]:
    """A warning a finding, each text once, the first few of many."""
    texts = list(dict.fromkeys(warning(found.code, found.message) for found in findings))
    more = len(texts) - MOST_WARNINGS
    if more <= 0:
        return texts
    code = texts[MOST_WARNINGS].partition(":")[0]  # a warning begins with one
    rest = f"{code}: and {more} more; see `gpu-webhook review` on the manifest"
    return [*texts[:MOST_WARNINGS], rest]


def audit_of(findings: Iterable[Finding]) -> Audit:
    """What the audit log keeps: each code, and whether it was repaired or only reported.

    A key with a slash is not taken by the API server.
    """
    audit: Audit = {}
    for found in findings:
        repaired = bool(found.edits) and found.safety is Safety.SAFE
        key = found.code.lower()
        if repaired or key not in audit:
            audit[key] = "repaired" if repaired else "reported"
    return audit


def _answer(
    review: Review,
    response: dict[str, object],
    warnings: Iterable[str],
    audit: Mapping[str, str] | None,
) -> bytes:
    if texts := list(warnings):
        response["warnings"] = texts
    if audit:
        response["auditAnnotations"] = audit
    return orjson.dumps(
        {"kind": "AdmissionReview", "apiVersion": review.version, "response": response}
    )
