"""The rules asked of a document that may be a part of a manifest, or of what a template shows.

Pods count by their shape here, too: a fragment has no kind, and a chart may wrap a job into a kind
of its own. What may not be edited is taken back from the rules finding by finding, never edit by
edit: a volume goes with its mounts or not at all.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from webhook.core import engine
from webhook.core.draft import Draft
from webhook.core.edits import Append, Rename
from webhook.core.findings import Severity
from webhook.core.pod import SECTIONS, as_map
from webhook.core.pointer import ROOT, Path, value_at
from webhook.core.workloads import around, objects, templates_of
from webhook.migration.asking import (
    Heeding,
    Tracing,
    context,
    is_left_alone,
    is_opted_out_by_others,
    is_pod,
    name_of,
)
from webhook.rules import (
    MANIFEST,
    RULES,
    changed_default,
    dead_api_version,
    fractional_amount,
    kind_case,
    legacy_name_elsewhere,
    legacy_resource,
    missing_selector,
    missing_toleration,
    request_without_limit,
    unequal_amounts,
    unfinished_object,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.core.edits import Edit
    from webhook.core.findings import Finding, Verdict
    from webhook.core.pod import Pod
    from webhook.core.rule import Context, ObjectRule
    from webhook.migration.results import Plan

    Raw = dict[str, Any]
    Held = Callable[[str, Path], bool]  # of a code, and the place of a finding

# What is said of the amounts of one container; nothing else is known of a bare `resources`.
_AMOUNTS = (unequal_amounts, fractional_amount, legacy_resource, request_without_limit)
# What is about the object itself, and not about its pods.
OF_OBJECTS = frozenset(
    rule.CODE
    for rule in (
        *(changed_default, dead_api_version, kind_case, missing_selector),
        unfinished_object,
    )
)
# A toleration lets a pod onto more nodes and never off one, so it may stand where no GPU is asked.
HARMLESS = frozenset({missing_toleration.CODE})
# What is said of GPUs that a container asks for: half of it is refused by the API server.
AMOUNTS = frozenset(rule.CODE for rule in _AMOUNTS)
_AROUND = Path(("spec", "containers", 0, "resources"))


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with its place, and those of its edits, in the document as it came."""

    finding: Finding
    at: Path
    object: str
    touches: tuple[Path, ...] = ()
    held: bool = False  # its edits are not made, since they may not be
    asked_at: Path = ROOT  # its place in the words of the rule: names of today

    @property
    def cause(self) -> Path:
        """Where its cause is: of what is missing, all that it is missing in."""
        return self.at.parent if self.finding.code in HARMLESS else self.at

    @property
    def repaired(self) -> bool:
        return self.finding.action == "repaired" and bool(self.touches)


@dataclass(slots=True)
class Judged:
    """What the rules made of one document: `edits` are at places of it as it came."""

    data: Any
    found: list[Found] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # codes of rules that raised
    left_alone: list[Path] = field(default_factory=list)  # pods whose label says so


def judge(data: Any, plan: Plan, held: Held) -> Judged:
    """Ask the rules of all objects in the data, which is copied.

    `held` says of which findings no edit may be made.
    """
    judged = Judged(copy.deepcopy(data))
    known = [(at, obj) for at, obj in objects(judged.data) if isinstance(obj.get("kind"), str)]
    for at, obj in known:
        _Judge(judged, plan, held, at, name_of(obj)).ask(obj)
    if not known:
        _Judge(judged, plan, held, ROOT, "").ask_fragment(judged.data)
    _give_names_back(judged)
    return judged


def _give_names_back(judged: Judged) -> None:
    """Rules that came later spoke of members by the names that they had been given."""
    were = {
        Path((*edit.at.parent, edit.name)): edit.at
        for edit in judged.edits
        if isinstance(edit, Rename)
    }

    def as_it_was(at: Path) -> Path:
        was = ROOT
        for token in at:
            was = were.get(was / token, was / token)
        return was

    judged.found = [
        replace(each, at=as_it_was(each.at), touches=tuple(map(as_it_was, each.touches)))
        for each in judged.found
    ]


def shapes(data: Any, at: Path = ROOT) -> Iterator[tuple[Path, Raw]]:
    """What a rule can be asked of in any data: pods, or else `resources`.

    A pod is a map with `spec.containers`; `resources` is one with limits or requests.
    """
    if isinstance(data, list):
        for position, item in enumerate(data):
            yield from shapes(item, at / position)
    if not isinstance(data, dict):
        return
    if is_pod(data) or any(isinstance(data.get(section), dict) for section in SECTIONS):
        yield at, data
        return
    for name, value in data.items():
        if isinstance(name, str):
            yield from shapes(value, at / name)


def _kind_of(data: Raw) -> Raw:
    """A kind for a fragment by its shape; empty if it has none that a pod is in."""
    if "kind" in data:
        return {}
    spec = as_map(data.get("spec"))
    if is_pod(data):
        return {"apiVersion": "v1", "kind": "Pod"} if "apiVersion" not in data else {}
    if isinstance(as_map(spec.get("template")).get("spec"), dict) and "apiVersion" not in data:
        return {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {}


def _meets(at: Path, places: Iterable[Path]) -> bool:
    return any(at[: len(place)] == place[: len(at)] for place in places)


def place_of(edit: Edit) -> Path:
    """What the edit is about."""
    return edit.to if isinstance(edit, Append) else edit.at


@dataclass(slots=True)
class _Judge:
    """One object, at its place in the document."""

    judged: Judged
    plan: Plan
    held: Held
    at: Path
    name: str
    fragment: bool = False

    def ask(self, obj: Raw) -> None:
        if is_opted_out_by_others(obj, self.plan):
            self.judged.left_alone.append(self.at)
            return
        draft, tracing = Draft(obj), Tracing(obj)
        cx = context(obj, self.plan)
        places = templates_of(obj, self.plan.settings)
        rest = [(at, part) for at, part in shapes(obj) if not _meets(at, places)]
        all_left = self.plan.opted_out.templates
        left = [place for place in places if all_left or is_left_alone(value_at(obj, place))]
        self.judged.left_alone += [Path((*self.at, *place)) for place in left]
        asked = self._rules(_elsewhere([at for at, _ in rest]), self.at, tracing)
        self._note(engine.run_on_object(asked, obj, cx, draft), asked)
        inside = cx if places in ([], [ROOT]) else around(cx, obj)
        for place in (each for each in places if each not in left):
            asked = self._rules(RULES, self.at, tracing)
            self._note(engine.run(asked, obj, inside, place, draft=draft), asked)
        self.judged.edits += [below(self.at, edit) for edit in draft.changes()]
        for at, part in rest:
            self._part(obj, part, at)

    def ask_fragment(self, data: Any) -> None:
        """What has no kind: a document shows only what matters to it, and a patch what it sets."""
        if not isinstance(data, dict) or not (kind := _kind_of(data)):
            for at, part in shapes(data):
                self._part(data, part, at)
            return
        data.update(kind)  # for the rules to know where the pod is; no edit is about it
        self.fragment = True
        self.ask(data)
        for name in kind:
            del data[name]

    def _part(self, data: Any, part: Raw, place: Path) -> None:
        """A pod without a kind, or a `resources` of which nobody knows whose it is."""
        at = Path((*self.at, *place))
        if is_left_alone(part) or (not is_pod(part) and _has_label_beside(data, place)):
            self.judged.left_alone.append(at)
            return
        if is_pod(part):
            pod, skip, rules = part, ROOT, RULES
        else:
            # A container around it, for the rules to look at; its name is what holds it.
            holder = str(at[-2]) if len(at) > 1 else "?"
            pod = {"spec": {"containers": [{"name": holder, "resources": part}]}}
            skip, rules = _AROUND, _AMOUNTS
        draft, tracing = Draft(pod), Tracing(pod)
        asked = self._rules(rules, at, tracing, skip)
        self._note(engine.run(asked, pod, context(pod, self.plan), draft=draft), asked)
        self.judged.edits += [below(at, edit, skip) for edit in draft.changes()]

    def _rules(
        self, rules: Iterable[Any], at: Path, tracing: Tracing, skip: Path = ROOT
    ) -> list[_Asked]:
        return [
            _Asked(rule, self.held, at, tracing, skip)
            for rule in rules
            if self.plan.asks(rule.CODE) and not (self.fragment and rule.CODE in OF_OBJECTS)
        ]

    def _note(self, verdict: Verdict, asked: list[_Asked]) -> None:
        """Take down what was said."""
        heard = {rule.CODE: list(rule.heard) for rule in asked}
        for finding in verdict.findings:
            at, touches, is_held = heard[finding.code].pop(0)
            self.judged.found.append(Found(finding, at, self.name, touches, is_held, at))
        self.judged.failed += [code for code, _ in verdict.failed]


def _has_label_beside(data: Any, at: Path) -> bool:
    """Whether labels that say to leave the pod alone stand beside what is on the way there.

    So a chart's values have `podLabels` and `resources`.
    """
    beside = (value_at(data, Path(at[:depth])) for depth in range(len(at)))
    return any(
        is_left_alone({"metadata": {"labels": value}})
        for holder in beside
        for value in as_map(holder).values()
    )


def _elsewhere(pods: list[Path]) -> list[Any]:
    """The rules of objects; that on data says nothing of what is a pod by its shape."""
    return [
        _Outside(rule, pods) if rule is legacy_name_elsewhere else Heeding(rule)
        for rule in MANIFEST
    ]


class _Outside:
    """A rule that is silent of some places."""

    def __init__(self, rule: ObjectRule, places: list[Path]) -> None:
        self.NAME, self.CODE = rule.NAME, rule.CODE
        self._rule, self._places = Heeding(rule), places

    def check(self, obj: Raw, cx: Context) -> Iterator[Finding]:
        for finding in self._rule.check(obj, cx):
            if not any(finding.at[: len(place)] == place for place in self._places):
                yield finding


class _Asked:
    """A rule whose findings lose their edits where these may not be made."""

    def __init__(self, rule: Any, held: Held, at: Path, tracing: Tracing, skip: Path) -> None:
        self.NAME, self.CODE = rule.NAME, rule.CODE
        self.heard: list[tuple[Path, tuple[Path, ...], bool]] = []
        self._rule, self._held, self._tracing = rule, held, tracing
        self._at, self._skip = at, len(skip)

    def check(self, looked_at: Pod | Raw, cx: Context) -> Iterator[Finding]:
        for finding in self._rule.check(looked_at, cx):
            at = self._place(finding.at)
            touches = tuple(self._place(place_of(edit)) for edit in finding.edits)
            is_held = bool(finding.edits) and self._held(finding.code, at)
            self.heard.append((at, touches, is_held))
            if is_held:
                yield replace(finding, edits=(), severity=Severity.PERSON)
            else:
                yield finding

    def _place(self, at: Path) -> Path:
        return Path((*self._at, *self._tracing.place(at)[self._skip :]))


def below(at: Path, edit: Edit, skip: Path = ROOT) -> Edit:
    """The same edit where `at` is the root of what it is about, less what it is in (`skip`)."""
    if isinstance(edit, Append):
        return replace(edit, to=Path((*at, *edit.to[len(skip) :])))
    return replace(edit, at=Path((*at, *edit.at[len(skip) :])))
