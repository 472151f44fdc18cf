"""The rules asked of the objects of one document: what they say, and what is to be edited.

Rules name places as they are when their turn comes: after a removal the third volume is the second.
Everything is traced back to where it was in the document as it came, which is what the text says.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from webhook.core import engine
from webhook.core.draft import Draft
from webhook.core.edits import Append, Rename
from webhook.core.modes import IGNORE, Mode, Modes, is_opted_out, modes_for, usual
from webhook.core.pod import as_map
from webhook.core.pointer import ROOT, Path, value_at
from webhook.core.rule import Context
from webhook.core.workloads import around, objects, templates_of
from webhook.migration import documents
from webhook.migration.masks import stands_for_action
from webhook.migration.yaml_words import is_same
from webhook.rules import ALL, MANIFEST, POLICY, RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.core.edits import Edit
    from webhook.core.findings import Finding
    from webhook.core.pod import Pod
    from webhook.core.rule import ObjectRule, Rule
    from webhook.migration.results import Plan

    Raw = dict[str, Any]

LEFT_ALONE = (
    "the label gpu-webhook.dev/ignore (of the pod, its namespace or its kustomization) says to "
    "leave it alone"
)


@dataclass(slots=True)
class Said:
    """One finding, with its place and its edits' places in the document as it came."""

    finding: Finding
    at: Path
    object: str
    edits: tuple[Edit, ...] = ()  # of the document: what its own came to, in the end

    @property
    def is_repaired(self) -> bool:
        return self.finding.action == "repaired"


@dataclass(slots=True)
class Asked:
    """What came of one document: `data` is the document as edited."""

    data: Any
    said: list[Said] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)  # at places of the document as it came
    failed: list[tuple[str, str, Exception]] = field(default_factory=list)  # code, object, error
    left_alone: list[Path] = field(default_factory=list)  # pods whose label says so


def ask(data: Any, plan: Plan) -> Asked:
    """Ask the rules of every object in the data, which is edited."""
    asked = Asked(data)
    for at, obj in list(objects(data)):
        _ask_of_object(asked, obj, at, plan)
    return asked


def name_of(obj: Raw) -> str:
    """As `Deployment/name`; empty if it has none of both."""
    name = as_map(obj.get("metadata")).get("name") or as_map(obj.get("metadata")).get(
        "generateName"
    )
    return f"{obj.get('kind', '')}/{name or '(no name)'}" if name or obj.get("kind") else ""


def _ask_of_object(asked: Asked, obj: Raw, at: Path, plan: Plan) -> None:
    if is_opted_out_by_others(obj, plan):
        asked.left_alone.append(at)
        return
    draft, tracing = Draft(obj), Tracing(obj)
    cx = context(obj, plan)
    listening = _Listening(map(Heeding, MANIFEST), plan, tracing)
    heard = [(listening, engine.run_on_object(listening.rules, obj, cx, draft))]
    places = templates_of(obj, plan.settings)
    left = [
        place for place in places if plan.opted_out.templates or is_left_alone(value_at(obj, place))
    ]
    templates = [place for place in places if place not in left]
    asked.left_alone += [Path(at + place) for place in left]
    for rules in (RULES, POLICY):  # policy is asked of what is repaired
        inside = cx if templates == [ROOT] else around(cx, obj)
        for place in templates:
            listening = _Listening(rules, plan, tracing)
            heard.append((listening, engine.run(listening.rules, obj, inside, place, draft=draft)))
    changes = draft.changes()
    named = Names(changes)
    for listening, verdict in heard:
        asked.failed += [(code, name_of(obj), error) for code, error in verdict.failed]
        for finding in verdict.findings:
            found_at, touched = listening.heard[finding.code].pop(0)
            came_to = tuple(_below(at, each) for each in changes if named.meets(each, touched))
            asked.said.append(
                Said(finding, Path(at + named.as_it_was(found_at)), name_of(obj), came_to)
            )
    asked.edits += [_below(at, each) for each in changes]


def context(obj: Raw, plan: Plan) -> Context:
    """What holds for this object. Of the modes only `off` counts: the others are for admission."""
    namespace = as_map(obj.get("metadata")).get("namespace")
    name = namespace if isinstance(namespace, str) and namespace else "default"
    known = plan.inventory.namespaces if plan.inventory is not None else {}
    labels = known.get(name, {})
    modes = modes_for(plan.settings.policy, name, labels)
    off = {rule.CODE for rule in ALL if modes.of(rule.CODE) is Mode.OFF}
    return Context(
        replace(plan.settings, scope="all-legacy"),
        plan.inventory,
        name,
        modes=Modes(rules={r.CODE: Mode.OFF if r.CODE in off else usual(r.CODE) for r in ALL}),
        namespace_labels=labels,
        today=datetime.now(UTC).date(),
        at_rest=True,
        target=plan.target,
        unsafe=plan.unsafe,
    )


def is_left_alone(pod: Raw) -> bool:
    """Whether the pod's label says that no repair is wanted, or whether a template decides that."""
    labels = as_map(as_map(pod.get("metadata")).get("labels"))
    value = labels.get(IGNORE)
    # Without quotes it is no text, and the API server refuses it; what is meant is clear.
    return is_opted_out(labels) or value is True or stands_for_action(value)


def is_pod(data: Raw) -> bool:
    """Whether it has the shape of a pod or a pod template."""
    return isinstance(as_map(data.get("spec")).get("containers"), list)


def is_opted_out_by_others(obj: Raw, plan: Plan) -> bool:
    """Whether the object's namespace, or its kustomization, says that nobody touches it."""
    metadata, said = as_map(obj.get("metadata")), plan.opted_out
    namespace = said.namespace or metadata.get("namespace") or "default"
    known = plan.inventory.namespaces if plan.inventory is not None else {}
    if namespace in said.namespaces or is_opted_out(known.get(str(namespace), {})):
        return True
    return said.pods and obj.get("kind") == "Pod"


def with_namespaces(plan: Plan, text: str) -> Plan:
    """The plan with the namespaces that the text itself makes, and labels so."""
    names = namespaces_left_alone(text)
    if not names:
        return plan
    said = replace(plan.opted_out, namespaces=plan.opted_out.namespaces | names)
    return replace(plan, opted_out=said)


def namespaces_left_alone(text: str, *, label: bool = False) -> frozenset[str]:
    """The names of the namespaces in a text that have the label, or get it from elsewhere."""
    if "Namespace" not in text or not (label or IGNORE in text):
        return frozenset()
    found = (obj for each in documents.read(text).documents for _, obj in objects(each.data))
    return frozenset(
        str(as_map(obj.get("metadata")).get("name"))
        for obj in found
        if obj.get("kind") == "Namespace" and (label or is_left_alone(obj))
    )


class Heeding:
    """A rule of manifests that is silent of pods whose label says so."""

    def __init__(self, rule: ObjectRule) -> None:
        self.NAME, self.CODE = rule.NAME, rule.CODE
        self._rule = rule

    def check(self, obj: Raw, cx: Context) -> Iterator[Finding]:
        for finding in self._rule.check(obj, cx):
            if not any(is_pod(each) and is_left_alone(each) for each in _on_the_way(obj, finding)):
                yield finding


def _on_the_way(obj: Any, finding: Finding) -> Iterator[Raw]:
    """The maps around what a finding is about."""
    for token in (*finding.at, None):
        if isinstance(obj, dict):
            yield obj
        try:
            obj = obj[token]
        except (LookupError, TypeError):
            return


def _below(at: Path, edit: Edit) -> Edit:
    if isinstance(edit, Append):
        return replace(edit, to=Path(at + edit.to))
    return replace(edit, at=Path(at + edit.at))


def _place(edit: Edit) -> Path:
    return edit.to if isinstance(edit, Append) else edit.at


class Names:
    """Places in the words of today, back to those of the object as it came."""

    def __init__(self, changes: Iterable[Edit]) -> None:
        self._were = {
            Path((*each.at.parent, each.name)): each.at
            for each in changes
            if isinstance(each, Rename)
        }

    def as_it_was(self, at: Path) -> Path:
        """The place with the names that the members on the way had."""
        was = ROOT
        for token in at:
            was = self._were.get(was / token, was / token)
        return was

    def meets(self, change: Edit, touched: Iterable[Edit]) -> bool:
        """Whether one of these edits has to do with the change."""
        place = _place(change)
        for edit in touched:
            if isinstance(change, Append) and isinstance(edit, Append) and place == edit.to:
                if is_same(_plain(change.value), _plain(edit.value)):
                    return True
                continue
            was = self.as_it_was(_place(edit))
            if was[: len(place)] == place or place[: len(was)] == was:
                return True
        return False


def _plain(value: Any) -> Any:
    """The value with lists for tuples, as it is in an object."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


class Tracing:
    """Knows where each map and list of the object was before the first edit."""

    def __init__(self, obj: Raw) -> None:
        self._object = obj
        self._were: dict[int, Path] = {}
        self._kept: list[Any] = []  # what is removed must not give its id() away
        self._note(obj, ROOT)

    def _note(self, value: Any, at: Path) -> None:
        if not isinstance(value, dict | list):
            return
        self._were[id(value)] = at
        self._kept.append(value)
        for token, item in value.items() if isinstance(value, dict) else enumerate(value):
            self._note(item, at / token)

    def edit(self, edit: Edit) -> Edit:
        if isinstance(edit, Append):
            return replace(edit, to=self.place(edit.to))
        return replace(edit, at=self.place(edit.at))

    def place(self, at: Path) -> Path:
        """Where this place was: behind the nearest map or list that was there."""
        here: Any = self._object
        was = ROOT
        for token in at:
            was = was / token
            try:
                here = here[token]
            except (LookupError, TypeError):
                here = None
            was = self._were.get(id(here), was)
        return was


class _Listening:
    """Rules that are asked, and what each said: where it was, and what its edits touched there."""

    def __init__(self, rules: Iterable[Any], plan: Plan, tracing: Tracing) -> None:
        self.rules = [_Heard(rule, self) for rule in rules if plan.asks(rule.CODE)]
        self.heard: dict[str, list[tuple[Path, tuple[Edit, ...]]]] = defaultdict(list)
        self.tracing = tracing


class _Heard:
    """A rule that is listened to."""

    def __init__(self, rule: Rule | ObjectRule, listening: _Listening) -> None:
        self.NAME, self.CODE = rule.NAME, rule.CODE
        self._check: Any = rule.check
        self._listening = listening

    def check(self, looked_at: Pod | Raw, cx: Context) -> Iterator[Finding]:
        tracing = self._listening.tracing
        for finding in self._check(looked_at, cx):
            edits = tuple(map(tracing.edit, finding.edits))
            self._listening.heard[finding.code].append((tracing.place(finding.at), edits))
            yield finding
