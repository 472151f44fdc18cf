"""Road 1: from a review to the answer.

`mutate` never refuses a pod, `validate` and `refuse` never change one. `guard` refuses only a pod
that it could not judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from webhook.admission import response, subject, workloads
from webhook.admission.review import dump, is_heavy
from webhook.admission.verify import flaw
from webhook.core.budget import MOST_TEMPLATES, excess
from webhook.core.draft import Draft, copied
from webhook.core.findings import Severity
from webhook.core.modes import Mode, is_opted_out, modes_for
from webhook.core.repaired import annotate, is_noted
from webhook.core.rule import Context
from webhook.evaluation import again
from webhook.evaluation.engine import run
from webhook.evaluation.evaluate import has_label
from webhook.evaluation.workloads import is_known_kind
from webhook.kube.pod import Pod, as_map
from webhook.kube.pointer import Path
from webhook.rules import is_legacy
from webhook.telemetry.metrics import NONE, OTHER, decisions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.review import Review
    from webhook.capacity.nodes import Inventory
    from webhook.core.findings import Finding, Verdict
    from webhook.core.rule import Rule
    from webhook.core.settings import Settings
    from webhook.telemetry.logs import Log
    from webhook.telemetry.metrics import Decision, Metrics

MUTATE, VALIDATE, GUARD, REFUSE = "/mutate", "/validate", "/guard", "/guard/refuse"
PATHS = (MUTATE, VALIDATE, GUARD, REFUSE)
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
_OF_CONTAINER = 3  # tokens of the place of a container: spec, kind and position
_MOST_NAMESPACES = 4096  # whose modes are remembered


@dataclass(frozen=True, slots=True)
class Outcome:
    """All of an answer but the uid. `word` is for the log, empty if there is nothing to say."""

    word: str
    codes: list[str] = field(default_factory=list)
    patch: bytes = b""
    warnings: list[str] = field(default_factory=list)
    audit: dict[str, str] = field(default_factory=dict)
    fault: dict[str, str] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()  # for the metrics
    denial: str = ""  # why the object is refused, if it is


@dataclass(frozen=True, slots=True)
class Decider:
    """All that a decision depends on. A new one takes over when settings or inventory change."""

    rules: Sequence[Rule]
    settings: Settings
    inventory: Inventory | None
    log: Log
    policy: Sequence[Rule] = ()
    guards: Sequence[Rule] = ()
    metrics: Metrics = NONE
    fresh: bool = True  # the inventory is not behind the cluster
    _contexts: dict[str, Context] = field(default_factory=dict)

    def mutate(self, review: Review) -> bytes:
        """Repair the pod if it is one of ours; anything else passes untouched.

        Of an update only legacy words are translated (evaluation/again.py). Templates of workloads
        are repaired only if the settings say so.
        """
        began = perf_counter()
        update = subject.updated_pod_of(review.request)
        pod = subject.pod_of(review.request) if update is None else update[0]
        if pod is None:
            if self.settings.workloads.repair:
                return self._workload(MUTATE, review, began)
            return self._passed(MUTATE, review, began)
        cx = self._context(review.request["namespace"])
        if is_opted_out(cx.namespace_labels) or has_label(pod):
            return self._passed(MUTATE, review, began)
        if over := _excess(review, pod) or _stored_excess(review):
            return self._unfinished(MUTATE, review, began, over)
        verdict = self._made(pod, cx) if update is None else again.pod(*update, self.rules, cx)
        outcome = self._repaired(review, pod, began, verdict)
        return self._answer(MUTATE, review, pod, began, outcome)

    def guard(self, review: Review) -> bytes:
        """Keep GPUs out of the sight of containers that asked for none."""
        if (update := subject.updated_pod_of(review.request)) is not None:
            return self._sent_again(review, *update)
        return self._guarded(GUARD, review)

    def refuse(self, review: Review) -> bytes:
        """Refuse a pod that the guard, or what changed the pod after it, left unsafe."""
        if (update := subject.updated_pod_of(review.request)) is not None:
            return self._opened(review, *update)
        return self._guarded(REFUSE, review)

    def _guarded(self, path: str, review: Review) -> bytes:
        began = perf_counter()
        made = subject.pod_of(review.request)
        pod = made or subject.debugged_pod_of(review.request)
        if pod is None:
            return self._passed(path, review, began)
        cx = self._context(review.request["namespace"])
        if is_opted_out(cx.namespace_labels):
            return self._passed(path, review, began)
        if over := _excess(review, pod):
            return self._unfinished(path, review, began, over)
        added = None if made is not None else subject.added_to(review.request)
        final = path == REFUSE
        cx = replace(cx, today=_today(), fresh=self.fresh, only_ephemeral=added, final=final)
        verdict = run(self.guards, pod, cx, every_pod=True)
        if final:
            self._report_failures(review, pod, began, verdict)
            outcome = self._outcome(review, verdict.findings)
        else:
            outcome = self._repaired(review, pod, began, verdict, of_any_size=True)
            if fault := outcome.fault:  # to let it in would be a way round the guard
                error, level = fault["error"], fault["level"]
                return self._unfinished(path, review, began, error, level=level)
        return self._answer(path, review, pod, began, outcome)

    def _opened(self, review: Review, pod: dict[str, Any], stored: dict[str, Any]) -> bytes:
        """Refuse an update that leaves a container open which was not so before.

        A part of a GPU may be asked for by an annotation, which may go while the pod waits for it.
        """
        began = perf_counter()
        cx = self._context(review.request["namespace"])
        if is_opted_out(cx.namespace_labels):
            return self._passed(REFUSE, review, began)
        if over := _excess(review, pod) or _stored_excess(review):
            return self._unfinished(REFUSE, review, began, over)
        cx = replace(cx, today=_today(), fresh=self.fresh, final=True)
        verdict = run(self.guards, pod, cx, every_pod=True)
        before = {each.at for each in run(self.guards, stored, cx, every_pod=True).findings}
        self._report_failures(review, pod, began, verdict)
        found = [each for each in verdict.findings if each.at not in before]
        return self._answer(REFUSE, review, pod, began, self._outcome(review, found))

    def _sent_again(self, review: Review, pod: dict[str, Any], stored: dict[str, Any]) -> bytes:
        """Send the variable that is stored, where that is what the guard makes of an update.

        So the same pod can be applied again, with a new image too. Of the rest the API server says
        itself what cannot change.
        """
        began = perf_counter()
        cx = self._context(review.request["namespace"])
        if is_opted_out(cx.namespace_labels) or _excess(review, pod):
            return self._passed(GUARD, review, began)
        cx = replace(cx, today=_today(), fresh=self.fresh)
        guarded = copied(pod)
        verdict = run(self.guards, guarded, cx, every_pod=True)
        now, then = (
            {each.at: each.raw.get("env") for each in Pod(one).containers}
            for one in (guarded, stored)
        )
        found = tuple(
            each
            for each in verdict.findings
            if each.action == "repaired" and (at := Path(each.at[:_OF_CONTAINER])) in then
            if now[at] == then[at]
        )
        if not found:
            return self._passed(GUARD, review, began)
        draft = Draft(pod)
        draft.apply(edit for each in found for edit in each.edits)
        verdict = replace(verdict, findings=found, object=pod, patch=draft.patch(), draft=draft)
        outcome = self._repaired(review, pod, began, verdict, of_any_size=True)
        return self._answer(GUARD, review, pod, began, outcome)

    def validate(self, review: Review) -> bytes:
        """Refuse a pod that the rules in force deny; tell of whatever else was found.

        Of a workload all is told to the person who applies it, and nothing is refused.
        """
        began = perf_counter()
        pod = subject.made_pod_of(review.request)
        if pod is None:
            return self._workload(VALIDATE, review, began)
        cx = self._context(review.request["namespace"])
        if is_opted_out(cx.namespace_labels):
            return self._passed(VALIDATE, review, began)
        if over := _excess(review, pod):
            # One without GPUs comes as it has more names than its matchConditions may look at.
            if not any(each.names_gpus(self.settings) for each in Pod(pod).containers):
                return self._passed(VALIDATE, review, began)
            return self._unfinished(VALIDATE, review, began, over)
        cx = replace(cx, today=_today(), fresh=self.fresh, final=True)
        verdict = run(self.policy, pod, cx)
        self._report_failures(review, pod, began, verdict)
        return self._answer(VALIDATE, review, pod, began, self._outcome(review, verdict.findings))

    def _workload(self, path: str, review: Review, began: float) -> bytes:
        """Judge, or repair, the templates of a workload that a person applies."""
        found = workloads.workload_of(review.request, self.settings)
        if found is None:
            return self._passed(path, review, began)
        cx = self._context(found.namespace)
        if is_opted_out(cx.namespace_labels):
            return self._passed(path, review, began)
        over = _excess(review, found.obj, len(found.templates))
        if over := over or (_stored_excess(review) if path == MUTATE else ""):
            return self._unfinished(path, review, began, over)
        cx = replace(cx, today=_today(), fresh=self.fresh)
        if path == MUTATE:
            verdict = workloads.repair(found, self.rules, cx)
        else:
            verdict = workloads.judge(found, self.rules, self.policy, cx)
        outcome = self._repaired(review, found.obj, began, verdict)
        return self._answer(path, review, found.obj, began, outcome)

    def _made(self, pod: dict[str, Any], cx: Context) -> Verdict:
        """The verdict on a pod that is made; one that /validate will refuse is not repaired."""
        enforced = [rule for rule in self.policy if cx.modes.of(rule) is Mode.ENFORCE]
        was_stuck = bool(enforced) and Pod(pod).asks_under_legacy_name(self.settings)
        verdict = run(self.rules, pod, cx)
        if not verdict.patch or not enforced:
            return verdict
        cx = replace(cx, was_stuck=was_stuck, today=_today(), fresh=self.fresh)
        refused = workloads.refusal(run(enforced, pod, cx, patched=False).findings)
        if not refused:
            return verdict
        found = (
            replace(each, outlook=refused) if each.action == "repaired" else each
            for each in verdict.findings
        )
        return replace(verdict, findings=tuple(found))

    def late(self, path: str, why: str, review: Review) -> bytes:
        """Answer what cannot be read, or not in time; the review may lack its objects."""
        return self._unfinished(path, review, perf_counter(), why)

    def _unfinished(
        self, path: str, review: Review, began: float, why: str, *, level: str = "info"
    ) -> bytes:
        """Say that the object was not judged; refuse a pod that a rule in force might have denied.

        Else whoever may make a pod could switch the rules off by making it large.
        """
        namespace = subject.text(review.request.get("namespace"))
        cx = self._context(namespace)
        rules = {MUTATE: self.rules, VALIDATE: self.policy}.get(path, self.guards)
        modes = {cx.modes.of(rule): rule.CODE for rule in reversed(rules)}
        if is_opted_out(cx.namespace_labels) or modes.keys() <= {Mode.OFF}:
            return self._passed(path, review, began)
        denial, warnings = "", []
        changes = path == GUARD and subject.changes_a_pod(review.request)
        guarded = path in {GUARD, REFUSE} and not changes
        is_pod = guarded or (path == VALIDATE and subject.makes_a_pod(review.request))
        if is_pod and Mode.ENFORCE in modes:
            code = modes[Mode.ENFORCE]
            denial = f"{response.US}: {code} is in force here and could not judge this pod: {why}"
        elif path != REFUSE and modes.keys() & {Mode.WARN, Mode.ENFORCE}:
            what = "unjudged" if path == VALIDATE else "unrepaired"
            warnings = [response.warning(response.US, f"this was let through {what}: {why}")]
        obj = as_map(review.request.get("object"))
        fault = {"level": level, "error": why}
        outcome = Outcome("unfinished", warnings=warnings, denial=denial, fault=fault)
        return self._answer(path, review, obj, began, outcome)

    def _context(self, namespace: str) -> Context:
        """What holds in this namespace. One that the inventory does not know has no labels."""
        cx = self._contexts.get(namespace)
        if cx is None:
            known = self.inventory.namespaces if self.inventory is not None else {}
            labels = known.get(namespace, {})
            modes = modes_for(self.settings.policy, namespace, labels)
            cx = Context(
                self.settings, self.inventory, namespace, modes=modes, namespace_labels=labels
            )
            if len(self._contexts) >= _MOST_NAMESPACES:
                self._contexts.clear()
            self._contexts[namespace] = cx
        return cx

    def _repaired(
        self,
        review: Review,
        pod: dict[str, Any],
        began: float,
        verdict: Verdict,
        *,
        of_any_size: bool = False,
    ) -> Outcome:
        """What the rules did, with a patch that has been tried."""
        self._report_failures(review, pod, began, verdict)
        outcome = self._outcome(review, _undenied(verdict.findings))
        if not verdict.patch:
            return outcome
        noted = self._annotated(review, pod, verdict)
        patch, fault, level = _tried(review, noted, of_any_size=of_any_size)
        if fault:
            text = f"this was let through unrepaired: {fault}; repair its manifest"
            told = {"level": level, "error": fault}
            warnings = [response.warning(response.US, text)]
            return Outcome("refused", outcome.codes, warnings=warnings, fault=told)
        return replace(outcome, word="patched", patch=patch)

    def _annotated(self, review: Review, obj: dict[str, Any], verdict: Verdict) -> Verdict:
        """The verdict with the note on the object; a subresource has no annotations of its own.

        An update that comes to what is stored keeps the note that is there: its words may have been
        repaired in more rounds then, by other rules.
        """
        if not self.settings.messages.annotation or review.request.get("subResource"):
            return verdict
        stored = as_map(review.request.get("oldObject"))
        if is_noted(obj) and obj.get("spec") == stored.get("spec"):
            return verdict
        note = annotate(obj, verdict.findings)
        return replace(verdict, patch=[*verdict.patch, *note])

    def _outcome(self, review: Review, findings: Sequence[Finding]) -> Outcome:
        """The answer to these findings, without a patch."""
        if not findings:
            return Outcome("")
        contact, policy = self.settings.messages.help, self.settings.policy
        cx = self._context(review.request["namespace"])

        def allows_exception(code: str) -> bool:
            return policy.allows_exception(code, cx.namespace, cx.namespace_labels)

        denials = response.denials_of(findings, allows_exception, contact)
        return Outcome(
            "denied" if denials else _word(findings),
            sorted({found.code for found in findings}),
            warnings=response.warnings_of(findings, contact),
            audit=response.audit_of(findings),
            decisions=tuple(dict.fromkeys(decisions_of(findings))),
            denial=denials,
        )

    def _report_failures(
        self, review: Review, pod: dict[str, Any], began: float, verdict: Verdict
    ) -> None:
        for code, error in verdict.failed:
            self.metrics.rule_failed(code)
            self._log(
                review, pod, began, "failed", level="error", codes=[code], error=_place(error)
            )

    def _passed(self, path: str, review: Review, began: float) -> bytes:
        """Nothing here is any of our business."""
        self.metrics.review(path, "passed", perf_counter() - began)
        return response.allowed(review)

    def _answer(
        self, path: str, review: Review, pod: dict[str, Any], began: float, outcome: Outcome
    ) -> bytes:
        if outcome.word:
            more: dict[str, Any] = dict(outcome.fault)
            if outcome.decisions:
                actions = [f"{code} {mode}: {action}" for code, mode, action in outcome.decisions]
                more["actions"] = actions
                self.metrics.decided(outcome.decisions)
            more["legacy"] = any(map(is_legacy, outcome.codes))
            if review.request.get("dryRun") is True:
                more["dryRun"] = True
            elif more["legacy"]:
                self.metrics.legacy(review.request["namespace"], self._kind(pod))
            self._log(review, pod, began, outcome.word, codes=outcome.codes, **more)
        self.metrics.review(path, outcome.word or "passed", perf_counter() - began)
        if outcome.denial:
            return response.denied(review, outcome.denial, outcome.warnings, outcome.audit)
        if outcome.patch:
            return response.patched(review, outcome.patch, outcome.warnings, outcome.audit)
        return response.allowed(review, outcome.warnings, outcome.audit)

    def _kind(self, obj: dict[str, Any]) -> str:
        """The kind of what made the object, or its own. A tenant may make up any number of them."""
        owner = subject.owner_of(as_map(obj.get("metadata")))
        kind = owner["kind"] if owner else subject.text(obj.get("kind"))
        return kind if is_known_kind(kind, self.settings) else OTHER

    def _log(  # noqa: PLR0913  # one line says it all
        self,
        review: Review,
        pod: dict[str, Any],
        began: float,
        outcome: str,
        *,
        codes: list[str],
        level: str = "info",
        **more: object,
    ) -> None:
        metadata = as_map(pod.get("metadata"))
        self.log.write(
            level,
            f"{(subject.text(pod.get('kind')) or 'pod').lower()} {outcome}",
            uid=review.uid,
            namespace=subject.text(review.request.get("namespace")),
            name=_name(review, metadata),
            owner=subject.owner_of(metadata),
            user=subject.user_of(review.request),
            codes=codes,
            outcome=outcome,
            milliseconds=round((perf_counter() - began) * 1000, 3),
            **more,
        )


def _today() -> Any:
    return datetime.now(UTC).date()


def _name(review: Review, metadata: dict[str, Any]) -> str:
    """The object's name, or what it will begin with. Of a late review only the request is there."""
    names = (metadata.get("name"), metadata.get("generateName"), review.request.get("name"))
    return next(filter(None, map(subject.text, names)), "")


def _excess(review: Review, obj: dict[str, Any], templates: int = 1) -> str:
    """Why the object is too large to be judged, if it is."""
    may_be = templates > MOST_TEMPLATES or is_heavy(review.body)
    over = excess(obj, templates) if may_be else ""
    return f"{over}; make it smaller" if over else ""


def _stored_excess(review: Review) -> str:
    """Why what is stored is too large to be compared with an update, if it is."""
    over = _excess(review, as_map(review.request.get("oldObject")))
    return f"in the object that is stored: {over}" if over else ""


def _undenied(findings: Sequence[Finding]) -> list[Finding]:
    """The findings where nothing is refused: a denial is a person's matter there."""
    return [
        replace(f, severity=Severity.PERSON) if f.severity is Severity.DENY else f for f in findings
    ]


def _word(findings: Sequence[Finding]) -> str:
    """What became of an object that is neither refused nor changed."""
    if all(found.exception for found in findings):
        return "excepted"
    return "audited" if all(found.mode is Mode.AUDIT for found in findings) else "reported"


def _tried(review: Review, verdict: Verdict, *, of_any_size: bool) -> tuple[bytes, str, str]:
    """The patch in bytes; why it must not be sent, if so, and how bad that is.

    It is for the object of the request, which the rules have edited in place.
    """
    edited = review.request["object"]
    try:
        patch = dump(verdict.patch)
        return patch, flaw(review, patch, edited, of_any_size=of_any_size), "warning"
    except RecursionError:
        return b"", "it is nested too deeply", "warning"
    except Exception as error:  # noqa: BLE001  # a patch that fails its test is not sent
        return b"", f"the patch fails its own test ({_place(error)})", "error"


def _place(error: Exception) -> str:
    """Kind and place of an error. Not its text, which may quote the pod."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = trace.tb_frame.f_code if trace is not None else None
    line = trace.tb_lineno if trace is not None else 0
    name = where.co_filename.rpartition("/")[2] if where is not None else "?"
    return f"{type(error).__name__} in {name}:{line}"
