"""Turns the findings on an object into denial, warnings, audit annotations and patch.

A patch is tried before it is sent (verify.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from webhook.admission import response, workloads
from webhook.admission.review import Review, dump
from webhook.admission.verify import flaw
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode
from webhook.core.repaired_annotation import annotate, codes_of, is_noted, withdraw
from webhook.evaluation import repair_record
from webhook.kube.pod import as_map
from webhook.telemetry.metrics import decisions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.core.rule import Context
    from webhook.evaluation.evaluate import Evaluation
    from webhook.telemetry.metrics import Decision

OUTCOMES = (
    "passed",
    "patched",
    "denied",
    "reported",
    "audited",
    "excepted",
    "refused",
    "unfinished",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All of an answer except the uid. `word` is for the log; empty if there is nothing to log."""

    word: str
    codes: list[str] = field(default_factory=list)
    patch: bytes = b""
    warnings: list[str] = field(default_factory=list)
    audit: dict[str, str] = field(default_factory=dict)
    fault: dict[str, str] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()  # for the metrics
    denial: str = ""  # why the object is denied, if it is


NOTHING = Outcome("")


def judged(findings: Sequence[Finding], cx: Context, patch: bytes = b"") -> Outcome:
    """The outcome for these findings, with a patch that has been tried."""
    if not (findings or patch):
        return NOTHING
    contact, policy = cx.settings.messages.help, cx.settings.policy

    def allows_exception(code: str) -> bool:
        return policy.allows_exception(code, cx.namespace, cx.namespace_labels)

    denials = response.denials_of(findings, allows_exception, contact)
    return Outcome(
        "denied" if denials else "patched" if patch else _word(findings),
        sorted({found.code for found in findings}),
        patch,
        warnings=response.warnings_of(findings, contact),
        audit=response.audit_of(findings),
        decisions=tuple(dict.fromkeys(decisions_of(findings))),
        denial=denials,
    )


def is_early(findings: Sequence[Finding]) -> bool:
    """Whether the object is denied only by findings that a newer inventory may change."""
    denied = [each for each in findings if each.action == "denied"]
    return bool(denied) and all(each.lags for each in denied)


def as_unsure(found: Finding) -> Finding:
    """The finding, without the denial that only a newer inventory could justify."""
    if found.action != "denied":
        return found
    return replace(found, severity=Severity.MANUAL, outlook=_UNSURE)


_UNSURE = "not denied: the nodes may have changed just now"


def repaired(review: Review, made: Evaluation, cx: Context, *, of_any_size: bool) -> Outcome:
    """The repairs of the rules, with a tested patch; /mutate denies nothing.

    A denial becomes a manual finding there.
    """
    refused = workloads.refusal(made.foretold)
    findings = [_as_repair(each, refused) for each in made.findings]
    if not made.patch:
        return judged(findings, cx)
    patch, fault, level = _tried(
        review, made.patch + _note(review, made, cx), of_any_size=of_any_size
    )
    if fault:
        text = f"this object was admitted without repair: {fault}; repair its manifest"
        told = {"level": level, "error": fault}
        warnings = [response.warning(response.US, text)]
        return Outcome("refused", judged(findings, cx).codes, warnings=warnings, fault=told)
    return judged(findings, cx, patch)


def _as_repair(found: Finding, refused: str) -> Finding:
    """The finding while nothing is denied yet; a repaired pod may be `refused` later."""
    if refused and found.action == "repaired":
        return replace(found, outlook=refused)
    is_denial = found.severity is Severity.DENY
    return replace(found, severity=Severity.MANUAL) if is_denial else found


def place_of(error: Exception) -> str:
    """Type and place of an error. Not its text, which may quote the pod."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = trace.tb_frame.f_code if trace is not None else None
    line = trace.tb_lineno if trace is not None else 0
    name = where.co_filename.rpartition("/")[2] if where is not None else "?"
    return f"{type(error).__name__} in {name}:{line}"


def _word(findings: Sequence[Finding]) -> str:
    """The word for an object that is neither denied nor changed."""
    if all(found.exception for found in findings):
        return "excepted"
    return "audited" if all(found.mode is Mode.AUDIT for found in findings) else "reported"


def _note(review: Review, made: Evaluation, cx: Context) -> list[dict[str, Any]]:
    """The patch that records the repair on the object; a subresource has no annotations of its own.

    An update whose result is the stored spec keeps the stored annotation: its words may have been
    repaired in several rounds, by other rules. On a workload the annotation exists as long as the
    record of the repair, and keeps the stored codes until the last legacy word is removed:
    `kubectl rollout undo` sends older ones.
    """
    if not cx.settings.messages.annotation or review.request.get("subResource"):
        return []
    obj, stored = made.object, as_map(review.request.get("oldObject"))
    was_recorded = repair_record.is_on(stored)
    before, now = (as_map(each.get("metadata")) for each in (stored, obj))
    if was_recorded and (
        not repair_record.is_on(obj)
        or (repair_record.has_words(before) and not repair_record.has_words(now))
    ):
        return withdraw(obj) + annotate(obj, made.findings)
    if is_noted(obj) and obj.get("spec") == stored.get("spec"):
        return []
    return annotate(obj, made.findings, codes_of(stored) if was_recorded else ())


def _tried(
    review: Review, operations: list[dict[str, Any]], *, of_any_size: bool
) -> tuple[bytes, str, str]:
    """The patch in bytes; and the reason if it must not be sent, with its log level.

    It is for the object of the request, which the rules have edited in place.
    """
    edited = review.request["object"]
    try:
        patch = dump(operations)
        return patch, flaw(review, patch, edited, of_any_size=of_any_size), "warning"
    except RecursionError:
        return b"", "it is nested too deeply", "warning"
    except Exception as error:  # noqa: BLE001  # a patch that fails its test is not sent
        return b"", f"the patch fails its own test ({place_of(error)})", "error"
