"""Runs rules on one pod or object, in order: a draft in, which is edited, and the verdict out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.capacity.daemonsets import placement_of
from webhook.core.findings import Finding, Safety, Severity, Verdict
from webhook.core.gpu_amounts import counted
from webhook.core.modes import Mode
from webhook.core.policy_exceptions import Claim, claim
from webhook.core.rule import Trait
from webhook.kube.pod import Pod
from webhook.kube.pointer import ROOT, Path
from webhook.kube.typed import is_typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webhook.core.draft import Draft
    from webhook.core.rule import Context, ObjectRule, Rule

    # Returns the finding as it is to be used; None to drop it.
    OnFinding = Callable[[Finding], Finding | None]

_INSERTED = "the field that it writes has another type, as where text is inserted later"


def run(  # noqa: PLR0913  # the options of a run
    rules: Sequence[Rule],
    draft: Draft,
    cx: Context,
    at: Path = ROOT,
    *,
    every_pod: bool = False,
    on_finding: OnFinding | None = None,
) -> Verdict:
    """Repair the pod at `at` in the draft's object: a Pod, or an object with a pod template.

    A rule that raises an exception changes nothing and is named in the verdict, unless the pod has
    types that no API server sends; the other rules run. Only rules with the mode `enforce` change
    the pod, so rules with other modes see it unchanged. Outside the scope of the settings no rule
    runs, unless the rules are for `every_pod`. `on_finding` is called with each finding before its
    edits are made.
    """
    obj = draft.object
    pod = Pod(obj, at)
    if not every_pod and not pod.is_in_scope(cx.settings):
        return Verdict(())
    asked = cx.modes.asked(rules)
    chosen, cx = cx, _as_it_came(pod, cx, asked)
    if chosen.was_chosen:
        chosen = _as_it_came(pod, replace(chosen, was_stuck=True), asked)
    findings: list[Finding] = []
    failed: list[tuple[str, Exception]] = []
    for rule, mode in asked:
        found: tuple[Finding, ...] = ()
        try:
            of_choice = cx.was_chosen and Trait.CHOICE in rule.FACTS.traits
            found = tuple(rule.check(pod, chosen if of_choice else cx))
            if not found:  # the usual case
                continue
            found = _allowed(found, mode, cx, on_finding)
            if found and rule.FACTS.has_exceptions:
                found = _excepted(found, pod, cx)
            edits = [e for f in found if f.action == "repaired" for e in f.edits]
            if edits:
                draft.apply(edits, texts_stay=True)
                pod = Pod(obj, at)
        except Exception as error:  # noqa: BLE001  # one broken rule must not stop the others
            if is_typed(pod.raw):  # otherwise the pod is malformed
                failed.append((rule.CODE, error))
            else:
                findings.extend(_held(rule, found, cx))
        else:
            findings.extend(found)
    return Verdict(tuple(findings), failed=tuple(failed))


def _held(rule: Rule, found: Iterable[Finding], cx: Context) -> Iterator[Finding]:
    """Findings whose edits do not fit into a manifest: a text may stand for a whole field."""
    if cx.in_manifest and Trait.LEGACY_PODS in rule.FACTS.traits:
        for each in found:
            is_held = each.action == "repaired"
            held = replace(each, edits=(), severity=Severity.MANUAL, held=_INSERTED)
            yield held if is_held else each


def _as_it_came(pod: Pod, cx: Context, asked: Iterable[tuple[Rule, Mode]]) -> Context:
    """The context with facts that the rules will no longer find in the pod."""
    if not cx.was_stuck and not pod.asks_under_legacy_name(cx.settings):
        return (
            replace(cx, stuck=False, legacy=frozenset(), repairing=frozenset(), written=None)
            if cx.stuck
            else cx
        )
    legacy = frozenset([container.at for container, _ in counted(pod, cx)])
    repairing = frozenset([rule.CODE for rule, mode in asked if mode is Mode.ENFORCE])
    written = placement_of(pod) if cx.makes_daemons else None
    return cx.of_stuck(legacy, repairing, written)


def run_on_object(
    rules: Sequence[ObjectRule],
    draft: Draft,
    cx: Context,
    on_finding: OnFinding | None = None,
) -> Verdict:
    """The same for rules on whole objects."""
    findings: list[Finding] = []
    failed: list[tuple[str, Exception]] = []
    for rule, mode in cx.modes.asked(rules):
        try:
            found = tuple(rule.check(draft.object, cx))
            if not found:
                continue
            found = _allowed(found, mode, cx, on_finding)
            edits = [e for f in found if f.action == "repaired" for e in f.edits]
            if edits:
                draft.apply(edits, texts_stay=True)
        except Exception as error:  # noqa: BLE001  # one broken rule must not stop the others
            failed.append((rule.CODE, error))
        else:
            findings.extend(found)
    return Verdict(tuple(findings), failed=tuple(failed))


def _allowed(
    found: tuple[Finding, ...], mode: Mode, cx: Context, on_finding: OnFinding | None
) -> tuple[Finding, ...]:
    """The findings; unsafe edits count as safe if the user asked for them."""
    if on_finding is not None:
        found = tuple([each for each in map(on_finding, found) if each is not None])
    if mode is not Mode.ENFORCE:
        found = tuple([replace(each, mode=mode) for each in found])
    return tuple(
        [
            replace(each, safety=Safety.SAFE)
            if each.safety is not Safety.SAFE and _may_be_made(each, cx)
            else each
            for each in found
        ]
    )


def _may_be_made(finding: Finding, cx: Context) -> bool:
    if finding.safety is Safety.CHOICE:
        return not cx.leaves_choices(finding.code)
    return cx.wants_unsafe(finding.code)


def _excepted(found: tuple[Finding, ...], pod: Pod, cx: Context) -> tuple[Finding, ...]:
    """The findings of one policy rule, with the pod's exception if it has one that counts."""
    code = found[0].code
    allowed = cx.settings.policy.allows_exception(code, cx.namespace, cx.namespace_labels)
    made = claim(code, pod.annotations, allowed=allowed, today=cx.today)
    # A notice requires nothing, so there is nothing to except the pod from.
    return tuple(f if f.severity is Severity.NOTICE else _claimed(f, made) for f in found)


def _claimed(finding: Finding, made: Claim) -> Finding:
    if made.why_not:
        return replace(finding, message=f"{finding.message} ({made.why_not})")
    return replace(finding, exception=made.reason)
