"""Migrates one manifest inside a template: keeps the edits that are right in every branch.

The part is read once for every way in which the template can turn out (actions.py). An
edit is made only if it is right in all of them, touches no action, stands where its cause stands,
and adds to nothing that the template may add to, too. What is left is reported as manual.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from webhook.core.edits import Append, Remove, Set
from webhook.core.findings import Severity
from webhook.core.modes import IGNORE
from webhook.core.text_patterns import find
from webhook.files.results import Located, Status, not_done
from webhook.formats import legacy_pods
from webhook.formats.file_objects import (
    AMOUNTS,
    HARMLESS,
    OF_OBJECTS,
    cause_of,
    evaluations,
    failures,
)
from webhook.formats.spans import adds_lines, follows, written
from webhook.kube.pod import KINDS, SECTIONS, as_map
from webhook.kube.pointer import ROOT, Path, value_at
from webhook.rules import (
    PATTERNS,
    dead_annotations,
    dead_api_version,
    driver_paths,
    legacy_resource,
    missing_selector,
)
from webhook.templates import actions, unseen_mounts
from webhook.templates.actions import Case, Kind, Rest
from webhook.templates.labels_in_sight import NOT_ALWAYS, NOT_IN_SIGHT, LabelsInSight, is_of_old
from webhook.templates.made_annotations import made_annotations
from webhook.templates.open_places import OpenPlaces
from webhook.templates.placeholders import Masks, TooManyError
from webhook.yamlpatch import documents
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.splice import apply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.findings import Finding
    from webhook.evaluation.evaluate import Evaluation
    from webhook.files.results import Plan
    from webhook.files.source import Source
    from webhook.formats.spans import Group, Written
    from webhook.templates.actions import Arm, Template
    from webhook.templates.regions import Region
    from webhook.yamlpatch.documents import Document
    from webhook.yamlpatch.places import Place

    Cause = tuple[str, int]  # the code of a finding, and where it or what it goes together with is

_MOST_ROUNDS = 20
_LEGACY = re.compile(r"alpha\.kubernetes\.io|pod\.beta\.kubernetes\.io")
_OF_RULES = re.compile(rf"{_LEGACY.pattern}|nvidia|privileged")
_SELECTING = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
_LOOK_FIRST = "check this file manually first"
_ELSE = "it is wrong if a condition turns out else"


@dataclass(slots=True)
class Outcome:
    """What became of a part. `why` says why it could not be read, if it could not."""

    replacements: list[Replacement] = field(default_factory=list)
    located: list[Located] = field(default_factory=list)
    why: str = ""
    hidden: bool = False  # there are annotations that the template makes
    left_alone: list[Place] = field(default_factory=list)  # pods whose label says so


@dataclass(eq=False, slots=True)
class _View:
    """The part as it is if the conditions turn out so."""

    case: Case
    shown: str
    documents: tuple[Document, ...]

    @property
    def duplicates(self) -> int:
        """Names that stand twice in a map: in a case that never is, or by mistake."""
        return sum(len(each.duplicates) for each in self.documents)


@dataclass(eq=False, slots=True)
class _Made:
    """What was made of one document in one view."""

    view: _View
    document: Document
    hidden: list[Path]  # annotations that the template makes
    data: Any  # as edited
    evaluations: list[Evaluation]
    written: Written

    @property
    def findings(self) -> list[Finding]:
        return [found for each in self.evaluations for found in each.findings]


def migrate_part(
    source: Source,
    template: Template,
    region: Region,
    plan: Plan,
    only: frozenset[str] = frozenset(),
) -> Outcome:
    """What the rules make of this part of the text; with `only`, edits of these rules alone."""
    try:
        masks = Masks(template, region, plan.settings)
    except TooManyError as error:
        return Outcome(why=str(error))
    return _Part(source, template, region, plan, masks, only).run()


@dataclass(slots=True)
class _Part:
    """One run over one part."""

    source: Source
    template: Template
    region: Region
    plan: Plan
    masks: Masks
    only: frozenset[str]
    held: dict[Cause, str] = field(default_factory=dict)  # with the reason
    before: str = ""  # blanks, as long as what is before the part
    views: list[_View] = field(default_factory=list)
    others: list[_View] = field(default_factory=list)  # which must stay YAML
    doubled: list[_View] = field(default_factory=list)  # of which only findings are told

    def run(self) -> Outcome:
        views, why = self._views()
        if not views:
            return Outcome(why=why)
        self.views = views
        for _ in range(_MOST_ROUNDS):
            made = [self._make(view, each) for view in views for each in view.documents]
            if not self._hold(made):
                break
        else:
            self.only = frozenset({"none"})
            made = [self._make(view, each) for view in views for each in view.documents]
        hidden = any(each.hidden for each in made)
        left = {
            each.document.place(at)
            for each in made
            for evaluation in each.evaluations
            for at in evaluation.left_alone
        }
        alone = [self.source.place(*each) for each in sorted(left)]
        located = [*self._located(made), *self._located_in_doubled(made)]
        located = [each for each in located if not any(map(each.is_in, alone))]
        return Outcome(self._replacements(made), located, "", hidden, alone)

    # -- the ways in which the template can turn out

    def _views(self) -> tuple[list[_View], str]:
        """The views that can be read, and why others cannot.

        Those conditions that do not matter are taken one way in all of them: that which leaves
        most readable. With the other ways the text need only stay YAML.
        """
        region, why = self.region, "holds nothing"
        known = actions.views(self.template, region.start, region.end, _matters)
        best: list[_View] = []
        for rest in Rest:
            views: list[_View] = []
            texts: set[str] = set()
            for each in known:
                view, reason = self._view(Case(each, rest), texts)
                why = reason or why
                views += [view] if view is not None else []
            clean = self._telling(views)
            self.others += [each for each in views if len({*each.case.known.values()}) <= 1]
            if _readable(clean) > _readable(best):
                best, self.doubled = clean, self._doubled(views, clean)
        self.others = [each for each in self.others if each not in best]
        return best, why

    def _telling(self, views: list[_View]) -> list[_View]:
        """The views without duplicates, and those with what no other shows."""
        telling = [each for each in views if not each.duplicates]
        text, region = self.template.text, self.region
        for found in _LEGACY.finditer(text, region.start, region.end):
            shows = [v for v in views if self._shows(v, *found.span())]
            if not any(each in telling for each in shows):
                telling += shows
        return telling or views

    def _doubled(self, views: list[_View], clean: list[_View]) -> list[_View]:
        """Views that alone show a word, although a name stands twice in them."""
        found: list[_View] = []
        for word in _OF_RULES.finditer(self.template.text, self.region.start, self.region.end):
            shows = [each for each in views if self._shows(each, *word.span())]
            if not any(each in clean or each in found for each in shows):
                found += shows[:1]
        return found

    def _located_in_doubled(self, made: list[_Made]) -> Iterator[Located]:
        """What is said of text that no other view shows; nothing of it is edited."""
        shown = {id(each.view): each.view for each in made}.values()
        doubled = [self._make(view, each) for view in self.doubled for each in view.documents]
        for each in self._located(doubled):
            place = self.source.index(each.place.line, each.place.column)
            if not any(self._shows(view, place, place + 1) for view in shown):
                yield replace(each, status=Status.MANUAL, fix=()) if each.fix else each

    def _shows(self, view: _View, start: int, end: int) -> bool:
        return actions.is_active(self.template, view.case, start, end)

    def _view(self, case: Case, texts: set[str]) -> tuple[_View | None, str]:
        shown = self._shown(case)
        if shown in texts:
            return None, ""
        texts.add(shown)
        stream = documents.read(shown)
        if stream.unread:
            return None, stream.unread[0].reason
        if not stream.documents:
            return None, ""
        return _View(case, shown, stream.documents), ""

    def _bare(self, case: Case) -> tuple[Document, ...]:
        """The same without what hangs on conditions of no interest: there edits can be added."""
        if case.rest is Rest.NONE:
            return ()
        return documents.read(self._shown(Case(case.known, Rest.NONE))).documents

    def _shown(self, case: Case) -> str:
        inside = actions.hidden(self.template, case, self.masks)
        self.before = self.before or actions.blank(self.template.text[: self.region.start])
        return self.before + inside[self.region.start : self.region.end]

    # -- one document in one view

    def _make(self, view: _View, document: Document) -> _Made:
        hidden = list(made_annotations(document, self.template))
        open_ = self._open(document)
        labels = self._labels(document, open_)

        def held(code: str, at: Path) -> str:
            # What makes another object of it waits for a part of its pod that needs manual changes.
            if hidden and code in OF_OBJECTS:
                return _LOOK_FIRST
            cause = _cause(code, at, document)
            if cause in self.held:
                return self.held[cause]
            if self.only and code not in self.only:
                return _LOOK_FIRST
            if why := self._why_out_of_sight(code, at, document, open_, labels):
                self.held[cause] = why
            return why

        data = _without(document.data, hidden)
        done = evaluations(data, self.plan, held)
        for each in done:
            each.findings = list(_told(each.findings, labels))
        written_here = written(self.template, document, done, document, open_)
        made = _Made(view, document, hidden, data, done, written_here)
        wrong = self._wrong(made)
        bare = self._bare(view.case) if wrong else ()
        if len(bare) == len(view.documents):
            into = bare[view.documents.index(document)]
            other = written(self.template, document, done, into, self._open(into))
            other_made = replace(made, written=other)
            if self._wrong(other_made) < wrong:
                return other_made
        return made

    def _why_out_of_sight(
        self, code: str, at: Path, document: Document, open_: OpenPlaces, labels: LabelsInSight
    ) -> str:
        """Why what the template may write beside it forbids an edit; empty if nothing does."""
        if code in self.plan.held:
            return self.plan.held[code]
        if code in AMOUNTS:
            return self._why_alone(document, open_, at)
        if code == driver_paths.CODE and self._may_be_mounted(document, open_, at):
            return unseen_mounts.WHY
        copies = code == missing_selector.CODE and at[-1] == "spec"
        return labels.why_no_copy(at) if copies else ""

    def _why_alone(self, document: Document, open_: OpenPlaces, at: Path) -> str:
        """Why the amounts of this pod may not be renamed; empty if all of it is in sight."""
        start, end = document.root.start, document.root.end
        for word, first, last in legacy_pods.words(self.template.text[start:end], self.plan):
            here = (start + first, start + last)
            is_shown = any(self._shows(each, *here) for each in self.views)
            if not is_shown or self.template.actions_in(*here):
                return legacy_pods.of_same_pod(word, self.source.place(*here).line)
        for code, where in self.plan.left.items():
            if not legacy_pods.is_of_object(document.data, at) or any(
                self._is_made(document, open_, each)
                for each in legacy_pods.places(legacy_pods.pod_of(at), code)
            ):
                return legacy_pods.elsewhere(code, where)
        return ""

    def _is_made(self, document: Document, open_: OpenPlaces, at: Path) -> bool:
        """Whether the template may write what a rule on placement or drivers looks at there."""
        node = document.find(at)
        if node is None:
            return False
        if at[-1:] and at[-1] in legacy_pods.WHOLE:
            touched = self.template.actions_in(node.start, node.end)
            if any(each.kind is Kind.WRITES for each in touched):
                return True
        return open_.may_hold_more(at) or legacy_pods.has_made_names(value_at(document.data, at))

    def _may_be_mounted(self, document: Document, open_: OpenPlaces, at: Path) -> bool:
        """Whether what no view shows may mount this volume, too."""
        if at[-2:-1] != ("volumes",):
            return False
        text, region = self.template.text, self.region
        mount = unseen_mounts.in_the_text(value_at(document.data, at))
        return unseen_mounts.may_be_mounted(document, open_, at) or any(
            not any(self._shows(each, *found.span()) for each in self.views)
            for found in mount.finditer(text, region.start, region.end)
        )

    def _open(self, document: Document) -> OpenPlaces:
        return OpenPlaces(document, self.template, self.masks, self.region)

    def _labels(self, document: Document, open_: OpenPlaces) -> LabelsInSight:
        return LabelsInSight(document, self.template, self.masks, open_)

    def _wrong(self, made: _Made) -> int:
        open_ = self._open(made.document)
        return sum(bool(self._why_not(group, made, open_)) for group in made.written.groups)

    # -- what may not be done

    def _hold(self, made: list[_Made]) -> bool:
        """Hold what may not be done; False if there is nothing of the kind."""
        before = len(self.held)
        for each in made:
            open_ = self._open(each.document)
            for group in each.written.groups:
                why = self._why_not(group, each, open_)
                if why:
                    self._hold_causes(group, each, why)
        for each in made:
            self._hold_unselected(each)
        for check in (self._hold_conflicts, self._hold_meeting, self._hold_untrue):
            if len(self.held) == before:
                check(made)
        if len(self.held) == before:
            self._hold_spoiling(made)
        if len(self.held) == before:
            for each in made:
                self._hold_amounts(each)
        return len(self.held) > before

    def _hold_causes(self, group: Group, made: _Made, why: str) -> None:
        causes = group.causes or made.findings
        for found in causes:
            self._hold_one(found, made, why)
            if found.code in OF_OBJECTS:
                self._hold_object(found, made, why)

    def _hold_object(self, found: Finding, made: _Made, why: str) -> None:
        """Hold the version and what it needs, which go together."""
        for each in made.findings:
            if each.code in OF_OBJECTS and each.object == found.object:
                self._hold_one(each, made, why)

    def _hold_one(self, found: Finding, made: _Made, why: str) -> None:
        if found.action == "repaired":
            cause = _cause(found.code, found.origin, made.document)
            self.held.setdefault(cause, why)

    def _hold_amounts(self, made: _Made) -> None:
        """Hold the amounts of a pod of which the webhook repairs more than can be done here."""
        held = legacy_pods.lost(made.findings, made.document.data)
        for at in made.hidden:
            if code := legacy_pods.code_of(str(at[-1])):
                held[legacy_pods.pod_of(at)] = code, at
        waiting = legacy_pods.waiting(made.findings)
        for found in made.findings:
            pod = legacy_pods.pod_of(found.origin)
            because = held.get(pod) if found.code in AMOUNTS else None
            if found.code in legacy_pods.OF_CHOICES:
                because = waiting.get(pod, because)
            if because is not None:
                code, at = because
                line = self.source.place(*made.document.place(at)).line
                self._hold_one(found, made, legacy_pods.of_same_pod(code, line))

    def _why_not(self, group: Group, made: _Made, open_: OpenPlaces) -> str:
        if group.refused:
            return group.refused
        if made.view.case.rest is Rest.NONE and _adds(group):
            return "too much of the text hangs on conditions"
        goes_on = not group.lines and any(map(open_.goes_on, group.edits))
        if goes_on or any(map(open_.may_meet, group.edits)):
            return "the template may write there, too"
        codes = {found.code for found in group.causes}
        amounts = codes == {legacy_resource.CODE} and all(
            isinstance(each, Remove) for each in group.edits
        )
        for each in group.replacements:
            if _is_trimmed(self.template.text, each):
                return "the template takes away the line end before it"
            if _is_torn(self.template, each):
                return "what follows under a condition would be torn off"
            touched = self.template.actions_in(each.start, each.end)
            if touched and not (amounts and all(a.kind is Kind.WRITES for a in touched)):
                return "it would take template actions with it"
            arms = self.template.arms_around(each.start, each.end)
            for cause in self._causes(group, made):
                if not self.template.covers(arms, cause):
                    return "it is under a condition that its cause is not under"
        return ""

    def _causes(self, group: Group, made: _Made) -> Iterator[list[Arm]]:
        """The arms around what the edits are for; a toleration is for the GPUs of its pod."""
        for found in group.causes:
            around = self.template.arms_around(*made.document.place(cause_of(found)))
            gpus = [
                self.template.arms_around(*made.document.place(each.origin))
                for each in made.findings
                if each.code in AMOUNTS and each.object == found.object
            ]
            if found.code in HARMLESS and gpus:
                yield from ([*around, *each] for each in gpus)
            else:
                yield around

    def _hold_unselected(self, made: _Made) -> None:
        """No version that needs a selector while there may be none."""
        labels = self._labels(made.document, self._open(made.document))
        for found in made.findings:
            if found.code != dead_api_version.CODE or found.action != "repaired":
                continue
            obj = as_map(value_at(made.data, found.origin.parent))
            if obj.get("kind") not in _SELECTING:
                continue
            if is_of_old(as_map(obj.get("spec")).get("selector")):
                spec = made.document.place(found.origin.parent / "spec")[0]
                why = self.held.get((missing_selector.CODE, spec), NOT_IN_SIGHT)
                self._hold_object(found, made, why)
            elif not labels.is_always_selected(found.origin):
                self._hold_object(found, made, NOT_ALWAYS)

    def _hold_conflicts(self, made: list[_Made]) -> None:
        """What one view wants must be wanted in all views in which that text counts."""
        views = {id(each.view): each.view for each in made}
        for replacement, makers in _wanted(made).items():
            codes = {found.code for group, _ in makers for found in group.causes}
            if codes <= HARMLESS:
                continue
            wants = {id(maker.view) for _, maker in makers}
            if any(n not in wants and self._is_active(v, replacement) for n, v in views.items()):
                for group, maker in makers:
                    self._hold_causes(group, maker, _ELSE)

    def _hold_meeting(self, made: list[_Made]) -> None:
        """Two views must not want two texts for one place."""
        wanted = _wanted(made)
        ordered = sorted(wanted, key=lambda each: (each.start, each.end))
        for one, other in pairwise(ordered):
            meet = other.start < one.end or (one.start, one.end) == (other.start, other.end)
            # One document in one view knows how its own go together.
            mine = {id(maker) for _, maker in wanted[one]}
            if meet and not any(id(maker) in mine for _, maker in wanted[other]):
                for group, maker in (*wanted[one], *wanted[other]):
                    self._hold_causes(group, maker, "two conditions want two texts here")

    def _is_active(self, view: _View, replacement: Replacement) -> bool:
        wide = replacement.start == replacement.end
        return actions.is_active(
            self.template, view.case, replacement.start - wide, replacement.end + wide
        )

    def _hold_untrue(self, made: list[_Made]) -> None:
        """The text as edited must say what the rules made of the data."""
        for each in made:
            if each.written.groups and not _is_true(each):
                self._hold_some([each], "the text would not say what it should")

    def _hold_some(self, made: list[_Made], why: str) -> None:
        """Hold what matters least first: it mostly is what is added that does not fit."""
        pairs = [(group, each) for each in made for group in each.written.groups]
        for matters_less in (_is_harmless, _adds, bool):
            held = [(group, each) for group, each in pairs if matters_less(group)]
            for group, each in held:
                self._hold_causes(group, each, why)
            if held:
                return

    def _hold_spoiling(self, made: list[_Made]) -> None:
        """Where conditions of no interest turn out else, the text must be no worse than it was."""
        every = _all_replacements(made)
        for view in self.others if every else ():
            active = [each for each in every if self._is_active(view, each)]
            stream = documents.read(apply(view.shown, active))
            twice = sum(len(document.duplicates) for document in stream.documents)
            if stream.unread or twice > view.duplicates:
                self._hold_some(made, _ELSE)

    # -- what is said

    def _replacements(self, made: list[_Made]) -> list[Replacement]:
        return [
            replace(each, text=self.masks.restored(each.text)) for each in _all_replacements(made)
        ]

    def _located(self, made: list[_Made]) -> list[Located]:
        known: dict[tuple[str, int, str], Located] = {}
        for each in made:
            for located in self._say_all(each):
                key = (located.code, located.place.line, located.message)
                if key not in known or known[key].status is Status.FIXABLE:
                    known[key] = located
            for at in each.hidden:
                located = self._say_hidden(at, each)
                known.setdefault((located.code, located.place.line, located.message), located)
        return list(known.values())

    def _say_all(self, made: _Made) -> Iterator[Located]:
        whole = self.source.place(made.document.root.start, made.document.root.start)
        for found in made.findings:
            yield self._say(found, made)
        for evaluation in made.evaluations:
            yield from failures(evaluation, whole)

    def _say(self, found: Finding, made: _Made) -> Located:
        start, end = made.document.place(found.origin)
        message = self.masks.restored(found.message)
        status = Status.NOTICE if found.is_remark else Status.MANUAL
        fix: tuple[Replacement, ...] = ()
        if found.held:
            status = Status.NOTICE if found.code in HARMLESS else Status.MANUAL
            message = not_done(message, found.held)
        elif found.action == "repaired":
            status = Status.MANUAL if found.severity is Severity.MANUAL else Status.FIXABLE
            fix = tuple(
                Replacement(each.start, each.end, self.masks.restored(each.text))
                for group in made.written.groups
                if found in group.causes
                for each in group.replacements
            )
        place = self.source.place(start, end)
        at, name = self.masks.restored(found.origin.dotted), self.masks.restored(found.object)
        return Located(found.code, message, status, place, at, name, fix)

    def _say_hidden(self, at: Path, made: _Made) -> Located:
        start, end = made.document.place(at)
        match = next(find(str(at[-1]), PATTERNS, self.plan.settings), None)
        what = match.message if match else f"the annotation {at[-1]} has no effect today"
        code = match.code if match else dead_annotations.CODE
        message = f"{what}; a template produces a part of it, so change it manually"
        place = self.source.place(start, end)
        return Located(code, message, Status.MANUAL, place, self.masks.restored(at.dotted))


def _cause(code: str, at: Path, document: Document) -> Cause:
    """What is held together: half of it would be no pod that the API server takes.

    The volumes of a pod go with their mounts and search paths, and a request with its limit.
    """
    holders: tuple[str, ...] = ()
    if code == driver_paths.CODE:
        holders = ("volumes", *KINDS)
    elif code in AMOUNTS:
        code, holders = legacy_resource.CODE, SECTIONS
    ends = [depth for depth, token in enumerate(at) if token in holders]
    return code, document.place(Path(at[: ends[-1]]) if ends else at)[0]


def _told(found: list[Finding], labels: LabelsInSight) -> Iterator[Finding]:
    """What was found, without what nobody can know of selectors and labels."""
    for each in found:
        if each.code != missing_selector.CODE or each.action == "repaired":
            yield each
        elif message := labels.message(each, each.origin):
            yield replace(each, message=message)


def _readable(views: list[_View]) -> tuple[bool, int]:
    return bool(views) and not any(each.duplicates for each in views), len(views)


def _matters(text: str) -> bool:
    return _LEGACY.search(text) is not None or "nvidia" in text or IGNORE in text


def _wanted(made: list[_Made]) -> dict[Replacement, list[tuple[Group, _Made]]]:
    wanted: dict[Replacement, list[tuple[Group, _Made]]] = {}
    for each in made:
        for group in each.written.groups:
            for replacement in group.replacements:
                wanted.setdefault(replacement, []).append((group, each))
    return wanted


def _all_replacements(made: list[_Made]) -> list[Replacement]:
    """What all views come to. Where one adds more than another, its text holds the other's."""
    found: dict[tuple[int, int], str] = {}
    for each in made:
        for replacement in each.written.all_replacements() or ():
            place = (replacement.start, replacement.end)
            if place not in found or len(replacement.text) > len(found[place]):
                found[place] = replacement.text
    return [Replacement(start, end, text) for (start, end), text in sorted(found.items())]


def _is_harmless(group: Group) -> bool:
    return any(found.code in HARMLESS for found in group.causes)


def _adds(group: Group) -> bool:
    return any(isinstance(edit, Append | Set) for edit in group.edits)


def _is_true(made: _Made) -> bool:
    replacements = made.written.all_replacements()
    if replacements is None:
        return False
    stream = documents.read(apply(made.view.shown, replacements))
    if stream.unread or len(stream.documents) != len(made.view.documents):
        return False
    document = stream.documents[made.view.documents.index(made.document)]
    told = _without(document.data, made.hidden)
    is_worse = len(document.duplicates) > len(made.document.duplicates)
    return not is_worse and _said(told) == _said(made.data)


def _is_trimmed(text: str, added: Replacement) -> bool:
    """Whether an action before what is added takes away blanks and line ends behind it."""
    before = text[: added.start].rstrip()
    return adds_lines(text, added) and before.endswith(("-}}", "-%}"))


def _is_torn(template: Template, added: Replacement) -> bool:
    """Whether lines that follow, in any arm, belong to what is before the lines that are added."""
    if not adds_lines(template.text, added):
        return False
    lines = added.text.lstrip("\r\n")
    behind = template.shown[added.end :].split("\n")
    before = template.shown[: added.end]
    if lines != added.text:  # behind the line that it begins in
        before += behind[0]
        behind = behind[1:]
    following = next(filter(_says_something, behind), "")
    said = following.strip()
    if said and not said.strip("@") and _is_open(before):  # an action, at whatever indent
        return True
    return follows(following, lines)


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


# The end of a line whose value is below it: a key, the head of a block scalar, an item.
_OPEN = re.compile(r"(?:^|[\s\"'\w}])(?:[:-]|[:-][ \t]+[|>][-+\d]*)[ \t]*(?:#.*)?$")


def _is_open(before: str) -> bool:
    """Whether the last line that says something leaves its value to the lines below it."""
    while before:
        before, _, line = before.rpartition("\n")
        if _says_something(line):
            return _OPEN.search(line.rstrip()) is not None
    return False


def _said(data: Any) -> Any:
    """The data without what says nothing: null and empty maps and lists."""
    if isinstance(data, dict):
        said = {name: _said(value) for name, value in data.items()}
        return {name: value for name, value in said.items() if value not in (None, {}, [])}
    if isinstance(data, list):
        return [_said(value) for value in data]
    return data


def _without(data: Any, places: list[Path], at: Path = ROOT) -> Any:
    """A copy of the data without these members."""
    if isinstance(data, dict):
        return {
            name: _without(value, places, at / name)
            for name, value in data.items()
            if at / name not in places
        }
    if isinstance(data, list):
        return [_without(value, places, at / position) for position, value in enumerate(data)]
    return data
