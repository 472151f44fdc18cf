"""Turns a decision into the bytes of an AdmissionReview; the only place that writes them."""

from __future__ import annotations

from base64 import b64encode
from itertools import accumulate
from typing import TYPE_CHECKING

import orjson

from webhook.core.modes import Mode
from webhook.core.policy_exceptions import ALLOW
from webhook.telemetry.logs import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.admission.review import Review
    from webhook.core.findings import Finding

# kube-apiserver cuts warnings at 256 characters once all of them pass 4096.
LONGEST_WARNING = 256
MOST_WARNINGS = 10
MOST_CHARACTERS = 2048  # of one answer: a pod gets one from /mutate and one from /validate
US = "gpu-webhook"  # stands for the code in warnings about the webhook itself
_REASON = 200  # characters of an exception's reason
Audit = dict[str, str]


def answer(
    review: Review,
    *,
    denial: str = "",
    patch: bytes = b"",
    warnings: Sequence[str] = (),
    audit: Audit | None = None,
) -> bytes:
    """The object is admitted, with this RFC 6902 patch.

    Or it is denied, and `kubectl` prints why.
    """
    response: dict[str, object] = {"uid": review.uid, "allowed": not denial}
    if denial:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": denial}
    elif patch:
        response |= {"patchType": "JSONPatch", "patch": b64encode(patch).decode("ascii")}
    if warnings:
        response["warnings"] = warnings
    if audit:
        response["auditAnnotations"] = audit
    return orjson.dumps(
        {"kind": "AdmissionReview", "apiVersion": review.version, "response": response}
    )


def warning(code: str, message: str, mark: str = "") -> str:
    """One line, the code first, not longer than the API server accepts.

    The API server silently drops a warning with a control character.
    """
    text, longest = printable(f"{code}: {message}"), LONGEST_WARNING - len(mark)
    return (text if len(text) <= longest else f"{text[: longest - 1]}…") + mark


def _mark(found: Finding) -> str:
    """The result, present or future, for the end of a message, where nothing is cut off."""
    if found.outlook is None:
        return f" [{found.mode}: {found.action}]"
    return f" [{found.outlook}]" if found.outlook else ""


def _told(found: Finding) -> bool:
    return found.mode is not Mode.AUDIT and not found.exception


def denials_of(
    findings: Iterable[Finding], allows_exception: Callable[[str], bool], contact: str
) -> str:
    """Why the object is denied: the first few of many reasons, and what its owner can do.

    Empty without a reason. An exception is offered only if it would be enough.
    """
    found = [each for each in findings if each.action == "denied"]
    if not found:
        return ""
    reasons = list(dict.fromkeys(printable(f"{e.code}: {e.message}{_mark(e)}") for e in found))
    lines, more = reasons[:MOST_WARNINGS], len(reasons) - MOST_WARNINGS
    if more > 0:
        lines.append(f"and {more} more")
    codes = list(dict.fromkeys(each.code for each in found))
    if all(map(allows_exception, codes)):
        notes = ", ".join(f'{ALLOW}{code}: "reason (until DATE)"' for code in codes)
        lines.append(f"To run it anyway, annotate the pod (of a workload: its template): {notes}.")
    lines.append(_with(contact, f"More: `gpu-webhook explain {codes[0]}`"))
    return "\n".join(lines)


def warnings_of(findings: Iterable[Finding], contact: str) -> list[str]:
    """A warning for each finding, each text once, the first few of many; denials are not included.

    The last warning shows where to learn more. Its text is always the same, so the API server,
    which prints each text once, prints it once for all its webhooks.
    """
    told = (found for found in findings if _told(found) and found.action != "denied")
    texts = list(dict.fromkeys(warning(f.code, f.message, _mark(f)) for f in told))
    if not texts:
        return []
    last = _with(contact, f"{US}: `gpu-webhook explain CODE` explains each code")
    shown = _fitting(texts, MOST_CHARACTERS - 2 * LONGEST_WARNING)
    more = len(texts) - len(shown)
    if more:
        code = texts[len(shown)].partition(":")[0]  # a warning begins with its code
        shown.append(f"{code}: and {more} more; see `gpu-webhook review` on the manifest")
    return [*shown, last]


def _fitting(texts: list[str], most: int) -> list[str]:
    """The first few of the texts, within the limits for their number and their total length."""
    if len(texts) <= MOST_WARNINGS and sum(map(len, texts)) <= most:  # the usual case
        return texts
    lengths = accumulate(map(len, texts))
    fitting = sum(1 for length in lengths if length <= most)
    return texts[: min(fitting, MOST_WARNINGS)]


def _with(contact: str, text: str) -> str:
    """The text, and where to ask for help."""
    return f"{text}; {contact}" if contact else text


def audit_of(findings: Iterable[Finding]) -> Audit:
    """For the audit log: each code, its mode and result; the most severe result counts.

    The API server rejects keys with a slash.
    """
    audit: dict[str, tuple[int, str]] = {}
    for found in findings:
        key, rank = found.code.lower(), _GRAVITY.index(found.action)
        if key not in audit or rank < audit[key][0]:
            reason = f" ({printable(found.exception[:_REASON])})" if found.exception else ""
            audit[key] = (rank, f"{found.mode}: {found.action}{reason}")
    return {key: text for key, (_, text) in audit.items()}


_GRAVITY = ("denied", "repaired", "would deny", "would repair", "excepted", "reported")
