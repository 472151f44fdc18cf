"""Runs all stages of rules on one object: the object as it came in, findings and edits out.

This module decides, for admission, `review`, manifests, templates and patches alike: which pods are
opted out, the order and the context of the rules, and which edits are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.changes import Changes
from webhook.core.draft import Draft
from webhook.core.edits import Edit, Rename, at_place, place_of
from webhook.core.findings import Finding, Severity, Verdict
from webhook.core.modes import Mode, is_opted_out
from webhook.core.rule import Context, ObjectRule, Rule
from webhook.evaluation.engine import run, run_on_object
from webhook.evaluation.workloads import around, templates_of
from webhook.kube.pod import Pod, Raw, as_map, labels_of
from webhook.kube.pointer import ROOT, Path, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from webhook.evaluation.engine import OnFinding

    # Takes a code and a place in the document; returns why the edits are not made, or an empty
    # text.
    Held = Callable[[str, Path], str]
    # Runs the rules of a stage with edits on an update (evaluation/template_updates.py).
    Again = Callable[["Asking", Context, Path], Verdict]


@dataclass(frozen=True, slots=True)
class Stages:
    """The rules that run, in their order."""

    manifest: Sequence[ObjectRule] = ()
    repairs: Sequence[Rule] = ()
    guards: Sequence[Rule] = ()
    policy: Sequence[Rule] = ()  # for pods after the repair
    # Policy rules that run elsewhere on the pods that are repaired here: what they would do if
    # enforced.
    foretold: Sequence[Rule] = ()

    def only(self, asks: Callable[[str], bool]) -> Stages:
        """The same stages with only the rules whose codes are accepted."""
        return Stages(
            [rule for rule in self.manifest if asks(rule.CODE)],
            [rule for rule in self.repairs if asks(rule.CODE)],
            [rule for rule in self.guards if asks(rule.CODE)],
            [rule for rule in self.policy if asks(rule.CODE)],
        )


class Asking(NamedTuple):
    """The rules of one stage, to be run on a pod: once, or several times for an update."""

    rules: Sequence[Rule]
    every_pod: bool = False
    on_finding: OnFinding | None = None

    def of(self, draft: Draft, cx: Context, at: Path = ROOT) -> Verdict:
        """Run them on the pod or template at this place of the draft's object, which is edited."""
        every, on_finding = self.every_pod, self.on_finding
        return run(self.rules, draft, cx, at, every_pod=every, on_finding=on_finding)

    def only(self, asks: Callable[[Rule], bool]) -> Asking:
        """The same with only the accepted rules."""
        return self._replace(rules=list(filter(asks, self.rules)))


@dataclass(slots=True)
class Evaluation:
    """The results of the rules on one object.

    `at` is the place of the object in its document; all places refer to the original document.
    `judged` are the pods and templates that the rules on pods ran on, `left_alone` those that opted
    out, `failed` the rules that raised an exception. An object that is `over` the budget was not
    evaluated.
    """

    object: Raw
    name: str = ""
    at: Path = ROOT
    # The number of tokens that the evaluated object has around it and the document has not.
    skip: int = 0
    findings: list[Finding] = field(default_factory=list)
    failed: list[tuple[str, Exception]] = field(default_factory=list)
    judged: list[Path] = field(default_factory=list)
    left_alone: list[Path] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)  # the edits of all rules
    patch: list[dict[str, Any]] = field(default_factory=list)  # the same, as RFC 6902
    stuck: Collection[Path] = ()  # the pods that could never run before the repair
    foretold: Sequence[Finding] = ()
    over: str = ""
    uncompared: bool = False  # text is inserted into a GPU pod of it later (in files)
    draft: Draft = field(init=False, repr=False)
    _changes: Changes | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin with the object as it came."""
        self.draft = Draft(self.object)

    def edits_of(self, finding: Finding) -> tuple[Edit, ...]:
        """The result of the edits of this finding."""
        if self._changes is None or self._changes.edits is not self.edits:
            self._changes = Changes(self.edits)
        return self._changes.about(finding.touched)

    def placed(self, at: Path) -> Path:
        """A place of the object, in the document."""
        return Path((*self.at, *at[self.skip :]))

    def take(self, verdict: Verdict) -> None:
        """Add the results of one stage."""
        self.findings += verdict.findings
        self.failed += verdict.failed


def nothing_is_held(_code: str, _at: Path) -> str:
    """Make every edit."""
    return ""


def has_label(pod: Raw) -> bool:
    """Whether the pod has the opt-out label for repairs.

    The author of a pod cannot opt out of policy and guard rules.
    """
    return is_opted_out(labels_of(pod))


def nothing_is_over() -> str:
    """Evaluate objects of any size."""
    return ""


def in_force(rules: Sequence[Rule], cx: Context) -> Mapping[Mode, str]:
    """The modes of these rules, each with its first rule; none in an opted-out namespace.

    For answers that are needed before an object can be evaluated.
    """
    if is_opted_out(cx.namespace_labels):
        return {}
    return {cx.modes.of(rule): rule.CODE for rule in reversed(rules)}


def evaluate(  # noqa: PLR0913  # the rules, the object, and limits
    obj: Raw,
    stages: Stages,
    cx: Context,
    at: Path = ROOT,
    *,
    name: str | None = None,
    skip: int = 0,
    templates: Sequence[Path] | None = None,
    held: Held | None = nothing_is_held,
    is_left_alone: Callable[[Raw], bool] = has_label,
    excess: Callable[[], str] = nothing_is_over,
    again: Again | None = None,
    later: Callable[[], Context] = Context,
) -> Evaluation:
    """Run all stages on the object, which is edited; `at` is its place in the document.

    An object without a kind does not show its `templates`: then the caller passes them. In an
    opted-out namespace nothing is reported. A pod or template with the opt-out label is not
    repaired. Policy rules protect the cluster, so they run on it in admission; in files of its
    author they do not. Remaining rules run unless `excess` reports that the object is too large.
    With `held` of None the findings have no places in the original document. `again` runs the rules
    on an update, and `later` returns the context of rules that are predicted.
    """
    made = Evaluation(obj, name_of(obj) if name is None else name, at, skip)
    if is_opted_out(cx.namespace_labels):
        made.left_alone.append(at)
        return made
    on_finding = None if held is None else _Hearing(made, held)
    if stages.manifest:
        made.take(_of_object(made, stages.manifest, cx, on_finding, is_left_alone))
    # Only now: a kind in lower case may have been corrected before.
    places = templates_of(obj, cx.settings) if templates is None else templates
    rest = places
    if left := {p for p in places if cx.pods_opted_out or is_left_alone(value_at(obj, p))}:
        made.left_alone += [made.placed(made.draft.origin(at)) for at in places if at in left]
        rest = [place for place in places if place not in left]
    if rest or stages.guards or stages.policy:
        made.over = excess()
    if on_finding is not None and stages.repairs:
        made.judged += [made.placed(made.draft.origin(at)) for at in rest if not made.over]
    if not made.over:
        _of_pods(made, stages, cx, (places, rest), on_finding, again, later)
    if held is not None:
        made.edits = [at_place(e, made.placed(place_of(e))) for e in made.draft.changes()]
    return made


def _of_object(
    made: Evaluation,
    rules: Sequence[ObjectRule],
    cx: Context,
    on_finding: OnFinding | None,
    is_left_alone: Callable[[Raw], bool],
) -> Verdict:
    """Run the rules on whole objects, without edits in opted-out pods."""

    def of_object(finding: Finding) -> Finding | None:
        around_it = (each for each in _on_the_way(made.object, finding.at) if is_pod(each))
        if any(map(is_left_alone, around_it)):
            return None
        return finding if on_finding is None else on_finding(finding)

    return run_on_object(rules, made.draft, cx, of_object)


def _of_pods(  # noqa: PLR0913, PLR0917  # the rules, the pods, and the context
    made: Evaluation,
    stages: Stages,
    cx: Context,
    pods: tuple[Sequence[Path], Sequence[Path]],
    on_finding: OnFinding | None,
    again: Again | None,
    later: Callable[[], Context],
) -> None:
    """Run the stages in turn, on all pods of the object or on those that did not opt out."""
    (places, rest), obj, draft = pods, made.object, made.draft
    is_workload = any(places)  # the place of a pod is the root
    foretold = [rule for rule, mode in cx.modes.asked(stages.foretold) if mode is Mode.ENFORCE]
    if stages.repairs and (foretold or stages.policy):
        made.stuck = {at for at in places if Pod(obj, at).asks_under_legacy_name(cx.settings)}
    inside = replace(cx, template=True, workload=obj) if is_workload else cx
    for rules, asked_of in ((stages.repairs, rest), (stages.guards, places)):
        if not (rules and asked_of):
            continue
        asking = Asking(rules, rules is stages.guards, on_finding)
        for place in asked_of:
            if again is None:
                verdict = asking.of(draft, inside, place)
            else:
                verdict = again(asking, inside, place)
            made.take(verdict)
            made.patch += verdict.patch
    made.patch += draft.patch()
    if foretold and made.patch:
        then = replace(later(), was_stuck=True) if made.stuck else later()
        made.foretold = Asking(foretold).of(Draft(obj), then).findings
    if stages.policy:
        inside = around(cx, obj) if is_workload else cx
        asking = Asking(stages.policy, on_finding=on_finding)
        repaired = replace(inside, was_stuck=True) if made.stuck else inside
        for place in rest if cx.in_manifest else places:
            made.take(asking.of(draft, repaired if place in made.stuck else inside, place))


def is_pod(data: Raw) -> bool:
    """Whether the data has the shape of a pod or a pod template."""
    return isinstance(as_map(data.get("spec")).get("containers"), list)


def name_of(obj: Raw) -> str:
    """The name as `Deployment/name`; empty if it has neither."""
    metadata = as_map(obj.get("metadata"))
    name = metadata.get("name") or metadata.get("generateName")
    return f"{obj.get('kind', '')}/{name or '(no name)'}" if name or obj.get("kind") else ""


@dataclass(frozen=True, slots=True)
class _Hearing:
    """Adds the places in the original document to each finding, and holds edits back."""

    made: Evaluation
    held: Held

    def __call__(self, finding: Finding) -> Finding:
        """The finding for the engine."""
        renamed = {
            Path((*each.at.parent, each.name)): each.at
            for each in finding.edits
            if isinstance(each, Rename)
        }
        origin = self._origin(finding.at, renamed)
        touched = tuple(
            at_place(each, self._origin(place_of(each), renamed)) for each in finding.edits
        )
        why = self.held(finding.code, origin) if touched else ""
        found = replace(finding, object=self.made.name, origin=origin, touched=touched, held=why)
        return replace(found, edits=(), severity=Severity.MANUAL) if why else found

    def _origin(self, at: Path, renamed: dict[Path, Path]) -> Path:
        was = ROOT
        for token in at:  # names that the finding itself is about to write
            here = was / token
            was = renamed.get(here, here)
        return self.made.placed(self.made.draft.origin(was))


def _on_the_way(obj: Any, at: Path) -> Iterator[Raw]:
    """The maps around a place, and the one at the place."""
    waiting: list[Any] = [*reversed(at)]
    while isinstance(obj, dict | list):
        if isinstance(obj, dict):
            yield obj
        if not waiting:
            return
        try:
            obj = obj[waiting.pop()]
        except (LookupError, TypeError):
            return
