"""From a decision to bytes. Nobody else writes the response of a review."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import orjson

from webhook.core.modes import Mode
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


def denied(
    review: Review, message: str, warnings: Iterable[str], audit: Mapping[str, str] | None
) -> bytes:
    """The object must not pass; the message is what `kubectl` prints."""
    status = {"code": 403, "reason": "Forbidden", "message": message}
    response = {"uid": review.uid, "allowed": False, "status": status}
    return _answer(review, response, warnings, audit)


def warning(code: str, message: str, mark: str = "") -> str:
    """One line, the code first, not longer than the API server lets through.

    A control character in it, and the API server would drop the warning without a word.
    """
    text, longest = printable(f"{code}: {message}"), LONGEST_WARNING - len(mark)
    return (text if len(text) <= longest else f"{text[: longest - 1]}…") + mark


def _mark(found: Finding) -> str:
    """Which mode acted, and what came of it: at the end of a message."""
    return f" [{found.mode}: {found.action}]"


def _told(found: Finding) -> bool:
    return found.mode is not Mode.AUDIT and not found.exception


def denials_of(findings: Iterable[Finding]) -> str:
    """All reasons for which the object is refused, a line each; nothing if there is none."""
    found = [each for each in findings if each.action == "denied"]
    return "\n".join(dict.fromkeys(printable(f"{e.code}: {e.message}{_mark(e)}") for e in found))


def warnings_of(findings: Iterable[Finding]) -> list[str]:
    """A warning a finding, each text once, the first few of many; a denial says itself."""
    told = (found for found in findings if _told(found) and found.action != "denied")
    texts = list(dict.fromkeys(warning(f.code, f.message, _mark(f)) for f in told))
    more = len(texts) - MOST_WARNINGS
    if more <= 0:
        return texts
    code = texts[MOST_WARNINGS].partition(":")[0]  # a warning begins with one
    rest = f"{code}: and {more} more; see `gpu-webhook review` on the manifest"
    return [*texts[:MOST_WARNINGS], rest]


def audit_of(findings: Iterable[Finding]) -> Audit:
    """What the audit log keeps: each code, its mode and what came of it; the gravest counts.

    A key with a slash is not taken by the API server.
    """
    audit: dict[str, tuple[int, str]] = {}
    for found in findings:
        key, rank = found.code.lower(), _GRAVITY.index(found.action)
        if key not in audit or rank < audit[key][0]:
            reason = f" ({printable(found.exception)[:200]})" if found.exception else ""
            audit[key] = (rank, f"{found.mode}: {found.action}{reason}")
    return {key: text for key, (_, text) in audit.items()}


_GRAVITY = ("denied", "repaired", "would deny", "would repair", "excepted", "reported")


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
