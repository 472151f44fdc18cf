"""From an AdmissionReview to the answer: finds the object and what the request asks for.

`mutate` never denies a pod; `validate` and `refuse` never change one. `guard` denies only a pod
that it could not evaluate. This module maps requests to questions; evaluation/evaluate.py answers
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.admission import outcome, request_pods, response, updates, view, workloads
from webhook.admission.outcome import Outcome
from webhook.admission.recorder import Recorder
from webhook.admission.review import Review, is_heavy
from webhook.admission.verify import applies
from webhook.core.modes import Mode, modes_for, strictest_modes
from webhook.core.object_size import MOST_TEMPLATES, excess
from webhook.core.rule import Context, Rule
from webhook.evaluation import pod_updates
from webhook.evaluation.evaluate import Evaluation, Stages, evaluate, in_force
from webhook.kube.pod import Pod, as_map
from webhook.kube.pointer import ROOT
from webhook.telemetry.metrics import NONE, Metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.capacity.nodes import Inventory
    from webhook.core.settings import Settings
    from webhook.telemetry.logs import Log

    Raw = dict[str, Any]
    Known = tuple[tuple[str, Any], ...]  # names of fields of a Context, with the values

MUTATE, VALIDATE, GUARD, REFUSE = "/mutate", "/validate", "/guard", "/guard/refuse"
PATHS = (MUTATE, VALIDATE, GUARD, REFUSE)
_CHANGING = (MUTATE, GUARD)
_MOST_CONTEXTS = 4096  # that are remembered
_MOST_OUTCOMES = 1024  # the same
_NEW = Outcome("")  # stands for one that is not remembered
_POD = (ROOT,)  # the place of the pod in a Pod
_AGAIN = "The labels of this namespace are not known yet; with others it may pass. Create it again"
_STRICT: Known = (("labels_unknown", True),)
STALLED_SECONDS = 5.0  # a watcher that has confirmed nothing for so long is not waited for


class Early(Exception):  # noqa: N818 - what happened
    """The answer needs an inventory that is newer than the review, or that has its namespace."""

    def __init__(self, namespace: str = "") -> None:
        super().__init__(namespace)
        self.namespace = namespace


class Question(NamedTuple):
    """What one request asks, and about which object."""

    obj: Raw
    ask: Callable[..., Evaluation]  # called with a context
    known: Known = ()  # besides the namespace
    templates: int = 1
    looks_at_stored: bool = False  # so the stored object must not be too large, either
    has_view: bool = False  # replicas of the object may have the same answer (view.py)
    # Whether an object that is too large is silently ignored.
    may_be_large: Callable[[], bool] = bool


@dataclass(slots=True)
class Decider:
    """Everything on which a decision depends; replaced when settings or inventory change."""

    rules: Sequence[Rule]
    settings: Settings
    inventory: Inventory | None
    log: Log
    policy: Sequence[Rule] = ()
    guards: Sequence[Rule] = ()
    metrics: Metrics = NONE
    fresh: bool = True  # the inventory is up to date with the cluster
    # Until when the inventory has all changes; of a file that nobody watches, for ever.
    known_until: Callable[[], float] = lambda: inf
    _recorder: Recorder = field(init=False)
    _asks: Mapping[str, Callable[[Raw], Question | None]] = field(init=False)
    _repairing: Stages = field(init=False)
    _judging: Stages = field(init=False)
    _guarding: Stages = field(init=False)
    _contexts: dict[tuple[str, Known], Context] = field(default_factory=dict)
    # By path, moment and view; None: pods with this view are judged whole.
    _outcomes: dict[tuple[str, Known, bytes], Outcome | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compute what is the same for all reviews."""
        self._recorder = Recorder(self.settings, self.log, self.metrics)
        self._asks = {
            MUTATE: self._to_mutate,
            VALIDATE: self._to_validate,
            GUARD: self._to_guard,
            REFUSE: self._to_refuse,
        }
        self._repairing = Stages(repairs=self.rules, foretold=self.policy)
        self._judging = Stages(policy=self.policy)
        self._guarding = Stages(guards=self.guards)

    def answer(
        self, path: str, review: Review, moment: float = 0.0, *, may_wait: bool = False
    ) -> bytes:
        """The answer for all paths: the question, its evaluation, and the outcome.

        A pod is denied for capacity only if the inventory is known to be as new as this moment.
        Otherwise Early is raised, or if nothing more can be waited for, the denial is a warning.
        Early is also raised for a namespace that the watcher has not received yet: its labels
        choose the modes of the rules, and its annotations the tolerations that may be added. If
        nothing more can be waited for, what the labels may put in force denies and guards, so that
        no flood of reviews opens a new namespace. A watcher that has stopped puts nothing in force.
        """
        began = perf_counter()
        question = self._asks[path](review.request)
        if question is None:
            return self._recorder.passed(path, review, began)
        namespace = review.request["namespace"]
        if may_wait and self.is_new(namespace) and self.known_until() < moment:
            raise Early(namespace)
        if strict := self._strict(path, namespace, moment):
            question = question._replace(known=question.known + strict, has_view=False)
        came = self._of_view(path, review, question.obj, moment) if question.has_view else None
        if came is None:
            made, cx = self._made(review, question)
            self._recorder.failures(review, question.obj, began, made.failed)
            if outcome.is_early(made.findings) and self.known_until() < moment:
                if may_wait:
                    raise Early
                made.findings = [outcome.as_unsure(each) for each in made.findings]
            if outcome.is_early(made.foretold) and self.known_until() < moment:
                made.foretold = [replace(each, may_run=True) for each in made.foretold]
            came = self._outcome(path, review, question, made, cx)
        return self._recorder.answer(path, review, question.obj, began, came)

    def _strict(self, path: str, namespace: str, moment: float) -> Known:
        """What is known besides if the watcher works, but has not this namespace in time."""
        if path == MUTATE or not self.is_new(namespace):
            return ()
        return _STRICT if moment - STALLED_SECONDS <= self.known_until() < moment else ()

    def is_new(self, namespace: str) -> bool:
        """Whether the watcher lists namespaces, but the inventory has not got this one yet."""
        return self.inventory is not None and self.inventory.is_new(namespace)

    def _of_view(self, path: str, review: Review, pod: Raw, moment: float) -> Outcome | None:
        """The outcome of all pods with the view of this one; None if the whole pod must be judged.

        That is so if the outcome depends on more than the view, if a rule failed, and if the patch
        does not fit this very pod.
        """
        body = view.body_of(review)
        if body is None:
            return None
        now = self._now()
        came = self._outcomes.get((path, now, body), _NEW)
        if came is _NEW:
            came, stays = self._of_new_view(path, view.review_of(body, review), moment)
            if stays and len(body) + len(came.patch if came else b"") <= view.LARGEST:
                if len(self._outcomes) >= _MOST_OUTCOMES:
                    self._outcomes.clear()
                # A copy: orjson's bytes keep the buffer they were written into, ten times as long.
                self._outcomes[path, now, bytes(memoryview(body))] = came
        if came is None or not came.patch or applies(came.patch, pod):
            return came
        pod.clear()  # it was changed in part
        pod.update(review.fresh_object())
        return None

    def _of_new_view(self, path: str, seen: Review, moment: float) -> tuple[Outcome | None, bool]:
        """The outcome for this view, and whether it is the same at each moment.

        None if each pod with this view must be judged whole.
        """
        question = self._asks[path](seen.request)
        if question is None:
            return None, True
        made, cx = self._made(seen, question)
        early = outcome.is_early(made.findings) or outcome.is_early(made.foretold)
        if made.failed or (early and self.known_until() < moment):
            return None, not early
        came = self._outcome(path, seen, question, made, cx)
        return (None if came.fault else came), not early

    def _made(self, review: Review, question: Question) -> tuple[Evaluation, Context]:
        cx = self._context(review.request["namespace"], question.known)
        return question.ask(cx, excess=partial(_excess, review, question)), cx

    def _outcome(
        self, path: str, review: Review, question: Question, made: Evaluation, cx: Context
    ) -> Outcome:
        if made.over:
            large = question.may_be_large()
            return outcome.NOTHING if large else self._unfinished(path, review, made.over, cx)
        if path not in _CHANGING:
            came = outcome.judged(made.findings, cx)
            is_unsure = came.denial and cx.labels_unknown
            return replace(came, denial=f"{came.denial}\n{_AGAIN}") if is_unsure else came
        came = outcome.repaired(review, made, cx, of_any_size=path == GUARD)
        if path == GUARD and (fault := came.fault):  # admitting it would bypass the guard
            return self._unfinished(path, review, fault["error"], cx, level=fault["level"])
        return came

    def late(self, path: str, why: str, review: Review) -> bytes:
        """The answer to a review that cannot be read, or not in time; it may lack its objects."""
        began, obj = perf_counter(), as_map(review.request.get("object"))
        namespace = request_pods.text(review.request.get("namespace"))
        cx = self._context(namespace, self._strict(path, namespace, time()))
        came = self._unfinished(path, review, why, cx)
        return self._recorder.answer(path, review, obj, began, came)

    def _to_mutate(self, request: Raw) -> Question | None:
        """Repair the pod if the webhook is responsible for it; anything else passes unchanged.

        In an update only legacy words are translated (evaluation/pod_updates.py). Templates of
        workloads are repaired only if the settings allow it.
        """
        if (update := request_pods.updated_pod_of(request)) is not None:
            ask = _of_pod(
                update[0], Stages(repairs=self.rules), again=partial(pod_updates.pod, *update)
            )
            return Question(update[0], ask, looks_at_stored=True)
        if (pod := request_pods.pod_of(request)) is not None:
            namespace = request["namespace"]
            ask = _of_pod(pod, self._repairing, later=lambda: self._context(namespace, self._now()))
            return Question(pod, ask, looks_at_stored=True, has_view=True)
        if not self.settings.workloads.repair:
            return None
        if (found := workloads.workload_of(request, self.settings)) is None:
            return None
        ask = partial(workloads.repair, found, self.rules)
        return Question(found.obj, ask, self._now(), len(found.templates), looks_at_stored=True)

    def _to_validate(self, request: Raw) -> Question | None:
        """Deny a pod that the rules in force deny; warn about all other findings.

        For a workload all findings are warnings to the user who applies it, and nothing is denied.
        """
        if (pod := request_pods.made_pod_of(request)) is not None:
            ask, known = _of_pod(pod, self._judging), self._now(final=True)
            # A pod without GPUs gets here if it has more names than its matchConditions may check.
            return Question(
                *(pod, ask, known),
                may_be_large=partial(_is_without_gpus, pod, self.settings),
                has_view=True,
            )
        if (found := workloads.workload_of(request, self.settings)) is None:
            return None
        ask = partial(workloads.judge, found, self.rules, self.policy)
        return Question(found.obj, ask, self._now(), len(found.templates))

    def _to_guard(self, request: Raw) -> Question | None:
        """Hide GPUs from containers that requested none."""
        if (update := request_pods.updated_pod_of(request)) is None:
            return self._of_containers(request, final=False)
        ask = _of_pod(update[0], self._guarding, again=partial(updates.sent_again, *update))
        return Question(update[0], ask, self._now(), may_be_large=lambda: True)

    def _to_refuse(self, request: Raw) -> Question | None:
        """Deny a pod that the guard, or a change after it, left unsafe.

        An update of the status may change annotations, too (podStatusStrategy).
        """
        if (update := request_pods.updated_pod_of(request, "status")) is None:
            return self._of_containers(request, final=True)
        ask = _of_pod(update[0], self._guarding, again=partial(updates.opened, *update))
        return Question(update[0], ask, self._now(final=True), looks_at_stored=True)

    def _of_containers(self, request: Raw, *, final: bool) -> Question | None:
        """All containers of a new pod, or those that `kubectl debug` adds to a pod."""
        pod, stages = request_pods.pod_of(request), self._guarding
        if pod is not None:
            return Question(pod, _of_pod(pod, stages), self._now(final=final))
        if (pod := request_pods.debugged_pod_of(request)) is None:
            return None
        added = request_pods.added_to(request)

        def ask(cx: Context, excess: Callable[[], str]) -> Evaluation:
            return _of_pod(pod, stages)(replace(cx, only_ephemeral=added), excess=excess)

        return Question(pod, ask, self._now(final=final))

    def _unfinished(
        self, path: str, review: Review, why: str, cx: Context, *, level: str = "info"
    ) -> Outcome:
        """Report that the object was not evaluated.

        Deny a pod that a rule in force might have denied. Otherwise every author of a pod could
        switch the rules off by making it large.
        """
        rules = {MUTATE: self.rules, VALIDATE: self.policy}.get(path, self.guards)
        modes = in_force(rules, cx)
        if modes.keys() <= {Mode.OFF}:
            return outcome.NOTHING
        denial, warnings = "", []
        changes = path == GUARD and request_pods.changes_a_pod(review.request)
        guarded = path in {GUARD, REFUSE} and not changes
        is_pod = guarded or (path == VALIDATE and request_pods.makes_a_pod(review.request))
        if is_pod and Mode.ENFORCE in modes:
            code = modes[Mode.ENFORCE]
            denial = f"{response.US}: {code} is in force here and could not check this pod: {why}"
        elif path != REFUSE and modes.keys() & {Mode.WARN, Mode.ENFORCE}:
            what = "without checks" if path == VALIDATE else "without repair"
            warnings = [response.warning(response.US, f"this object was admitted {what}: {why}")]
        fault = {"level": level, "error": why}
        return Outcome("unfinished", warnings=warnings, denial=denial, fault=fault)

    def _context(self, namespace: str, known: Known = ()) -> Context:
        """The context for this namespace.

        A namespace that the inventory does not know has no labels.
        """
        cx = self._contexts.get((namespace, known))
        if cx is None:
            cx = self._made_context(namespace, known)
            if len(self._contexts) >= _MOST_CONTEXTS:
                self._contexts.clear()
            self._contexts[namespace, known] = cx
        return cx

    def _made_context(self, namespace: str, known: Known) -> Context:
        if known:
            cx = replace(self._context(namespace), **dict(known))
            if not cx.labels_unknown:
                return cx
            return replace(cx, modes=strictest_modes(self.settings.policy, namespace))
        namespaces = self.inventory.namespaces if self.inventory is not None else {}
        labels = namespaces.get(namespace, {})
        modes = modes_for(self.settings.policy, namespace, labels)
        return Context(
            self.settings, self.inventory, namespace, modes=modes, namespace_labels=labels
        )

    def _now(self, *, final: bool = False) -> Known:
        return ("today", datetime.now(UTC).date()), ("fresh", self.fresh), ("final", final)


def _of_pod(pod: Raw, stages: Stages, **more: Any) -> Callable[..., Evaluation]:
    return partial(evaluate, pod, stages, name="", templates=_POD, held=None, **more)


def _is_without_gpus(pod: Raw, settings: Settings) -> bool:
    return not any(each.names_gpus(settings) for each in Pod(pod).containers)


def _excess(review: Review, question: Question) -> str:
    """Why the object, or the stored one, is too large to be evaluated; empty if it is not."""
    if question.templates <= MOST_TEMPLATES and not is_heavy(review.body):
        return ""
    over, where = excess(question.obj, question.templates), ""
    if not over and question.looks_at_stored:
        over, where = (
            excess(as_map(review.request.get("oldObject"))),
            "in the object that is stored: ",
        )
    return f"{where}{over}; make it smaller" if over else ""
