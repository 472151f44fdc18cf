"""Turns a decision into the bytes of an AdmissionReview; the only place that writes them."""

from __future__ import annotations

from base64 import b64encode
from itertools import accumulate
from typing import TYPE_CHECKING

import orjson

from webhook.core.exceptions import ALLOW
from webhook.core.modes import Mode
from webhook.telemetry.logs import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.admission.review import Review
    from webhook.core.findings import Finding

# kube-apiserver cuts warnings at 256 characters once all of them pass 4096.
LONGEST_WARNING = 256
MOST_WARNINGS = 10
MOST_CHARACTERS = 2048  # of one answer: a pod gets one of /mutate and one of /validate
US = "gpu-webhook"  # stands for the code in warnings about ourselves
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
    """The object may pass, with this RFC 6902 patch; or it must not, and `kubectl` prints why."""
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
    """One line, the code first, not longer than the API server lets through.

    A control character in it, and the API server would drop the warning without a word.
    """
    text, longest = printable(f"{code}: {message}"), LONGEST_WARNING - len(mark)
    return (text if len(text) <= longest else f"{text[: longest - 1]}…") + mark


def _mark(found: Finding) -> str:
    """What came of it, or will come of it: at the end of a message, where nothing is cut off."""
    if found.outlook is None:
        return f" [{found.mode}: {found.action}]"
    return f" [{found.outlook}]" if found.outlook else ""


def _told(found: Finding) -> bool:
    return found.mode is not Mode.AUDIT and not found.exception


def denials_of(
    findings: Iterable[Finding], allows_exception: Callable[[str], bool], contact: str
) -> str:
    """Why the object is refused: the first few of many reasons, then what its owner can do.

    Nothing if there is no reason. An exception is named only where it would be enough.
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
        lines.append(
            f"To be let in all the same, annotate the pod (of a workload: its template): {notes}."
        )
    lines.append(_with(contact, f"More: `gpu-webhook explain {codes[0]}`"))
    return "\n".join(lines)


def warnings_of(findings: Iterable[Finding], contact: str) -> list[str]:
    """A warning a finding, each text once, the first few of many; a denial says itself.

    The last one says where to learn more. It is the same for all, so the API server, which gives
    each text once, gives it once for all its webhooks.
    """
    told = (found for found in findings if _told(found) and found.action != "denied")
    texts = list(dict.fromkeys(warning(f.code, f.message, _mark(f)) for f in told))
    if not texts:
        return []
    last = _with(contact, f"{US}: `gpu-webhook explain CODE` says what each code means")
    shown = _fitting(texts, MOST_CHARACTERS - 2 * LONGEST_WARNING)
    more = len(texts) - len(shown)
    if more:
        code = texts[len(shown)].partition(":")[0]  # a warning begins with one
        shown.append(f"{code}: and {more} more; see `gpu-webhook review` on the manifest")
    return [*shown, last]


def _fitting(texts: list[str], most: int) -> list[str]:
    """The first few of the texts: not too many, and not too long together."""
    lengths = accumulate(map(len, texts))
    fitting = sum(1 for length in lengths if length <= most)
    return texts[: min(fitting, MOST_WARNINGS)]


def _with(contact: str, text: str) -> str:
    """The text, and where to ask."""
    return f"{text}; {contact}" if contact else text


def audit_of(findings: Iterable[Finding]) -> Audit:
    """What the audit log keeps: each code, its mode and what came of it; the gravest counts.

    A key with a slash is not taken by the API server.
    """
    audit: dict[str, tuple[int, str]] = {}
    for found in findings:
        key, rank = found.code.lower(), _GRAVITY.index(found.action)
        if key not in audit or rank < audit[key][0]:
            reason = f" ({printable(found.exception[:_REASON])})" if found.exception else ""
            audit[key] = (rank, f"{found.mode}: {found.action}{reason}")
    return {key: text for key, (_, text) in audit.items()}


_GRAVITY = ("denied", "repaired", "would deny", "would repair", "excepted", "reported")
