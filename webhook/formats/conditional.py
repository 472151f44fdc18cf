"""Migrates one manifest inside a template: keeps the edits that are right in every branch.

The part is read once for each combination of branches (branch_views.py). The rules run repeatedly,
each time without the edits that held_edits.py has rejected, until it rejects none. Findings without
edits are reported as manual.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from webhook.core.findings import Finding, Severity
from webhook.core.text_patterns import find
from webhook.files.results import Located, Plan, Status, not_done
from webhook.formats import legacy_pods
from webhook.formats.branch_views import BranchView, BranchViews
from webhook.formats.file_objects import (
    AMOUNTS,
    HARMLESS,
    OF_OBJECTS,
    evaluations,
    failures,
    right_labels,
    selects_nodes,
)
from webhook.formats.held_edits import EvaluatedView, HeldEdits, all_replacements, cause_in, without
from webhook.formats.template_edits import written
from webhook.kube.pointer import Path, value_at
from webhook.rules import (
    PATTERNS,
    driver_paths,
    ignored_annotations,
    missing_selector,
)
from webhook.templates import produced_selection, unseen_mounts
from webhook.templates.blocks import Kind
from webhook.templates.placeholders import Masks, TooManyError, stands_for_part
from webhook.templates.produced_annotations import made_annotations
from webhook.yamlpatch.places import Place, Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.files.source import Source
    from webhook.formats.template_edits import EditGroup
    from webhook.templates.actions import Template
    from webhook.templates.known_labels import KnownLabels
    from webhook.templates.open_places import OpenPlaces
    from webhook.templates.regions import Region
    from webhook.yamlpatch.documents import Document

_MOST_ROUNDS = 20
_LOOK_FIRST = "another part of this file needs manual changes first"


@dataclass(slots=True)
class Outcome:
    """The result for a part. `why` is the reason if it could not be read."""

    replacements: list[Replacement] = field(default_factory=list)
    located: list[Located] = field(default_factory=list)
    why: str = ""
    hidden: bool = False  # the template produces annotations
    left_alone: list[Place] = field(default_factory=list)  # pods with the opt-out label
    right: list[tuple[int, int]] = field(default_factory=list)  # model labels that nodes have
    uncompared: bool = False  # text is inserted into a GPU pod later


def migrate_part(
    source: Source,
    template: Template,
    region: Region,
    plan: Plan,
    only: frozenset[str] = frozenset(),
) -> Outcome:
    """The result of the rules on this part of the text; with `only`, edits of these rules alone."""
    if template.excess:
        return Outcome(why=template.excess)
    try:
        masks = Masks(template, region, plan.settings)
    except TooManyError as error:
        return Outcome(why=str(error))
    branches = BranchViews(template, region, masks)
    if not branches.views:
        return Outcome(why=branches.why)
    plan = replace(plan, inserted=masks.amounts)
    return _Part(source, plan, branches, HeldEdits(source, branches), only).run()


@dataclass(slots=True)
class _Part:
    """One run over one part."""

    source: Source
    plan: Plan
    branches: BranchViews
    holding: HeldEdits
    only: frozenset[str]
    unseen: dict[int, str] = field(default_factory=dict)  # by id() of a document of the views

    def run(self) -> Outcome:
        views = self.branches.views
        for _ in range(_MOST_ROUNDS):
            made = [self._make(view, each) for view in views for each in view.documents]
            if not self.holding.hold(made):
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
        right = [
            span
            for each in made
            for evaluation in each.evaluations
            for span in right_labels(each.document, evaluation, self.plan)
        ]
        uncompared = any(evaluation.uncompared for each in made for evaluation in each.evaluations)
        return Outcome(
            self._replacements(made), located, "", hidden, alone, right, uncompared=uncompared
        )

    # -- one document in one view

    def _make(self, view: BranchView, document: Document) -> EvaluatedView:
        template = self.branches.template
        hidden = document.once(self._hidden)
        open_ = self.branches.open(document)
        labels = self.branches.labels(document, open_)

        def held(code: str, at: Path) -> str:
            # Edits that make another object of it wait while its pod needs manual changes.
            if hidden and code in OF_OBJECTS:
                return _LOOK_FIRST
            cause = cause_in(code, at, document)
            if cause in self.holding.held:
                return self.holding.held[cause]
            if self.only and code not in self.only:
                return _LOOK_FIRST
            if selects_nodes(code, at, self.plan) and produced_selection.may_be_made(
                document, template, open_, view.shown, legacy_pods.pod_of(at) / "spec"
            ):
                why = produced_selection.WHY
            else:
                why = self._why_out_of_sight(code, at, document, open_, labels)
            if why:
                self.holding.held[cause] = why
            return why

        data = without(document.data, hidden)
        done = evaluations(data, self.plan, held, self.branches.open_objects(view, document))
        for each in done:
            each.findings = list(_told(each.findings, labels))
        written_here = written(template, document, done, document, open_)
        made = EvaluatedView(view, document, hidden, data, done, written_here)
        wrong = self.holding.wrong(made)
        bare = self.branches.bare(view.case) if wrong else ()
        if len(bare) == len(view.documents):
            into = bare[view.documents.index(document)]
            other = written(template, document, done, into, self.branches.open(into))
            other_made = replace(made, written=other)
            if self.holding.wrong(other_made) < wrong:
                return other_made
        return made

    def _hidden(self, document: Document) -> list[Path]:
        return list(made_annotations(document, self.branches.template))

    def _why_out_of_sight(
        self, code: str, at: Path, document: Document, open_: OpenPlaces, labels: KnownLabels
    ) -> str:
        """Why the template forbids this edit by what it may write next to it.

        Empty if it does not.
        """
        if code in self.plan.held:
            return self.plan.held[code]
        if code in AMOUNTS:
            return self._why_alone(document, open_, at)
        if code == driver_paths.CODE and self._may_be_mounted(document, open_, at):
            return unseen_mounts.WHY
        copies = code == missing_selector.CODE and at[-1] == "spec"
        return labels.why_no_copy(at) if copies else ""

    def _why_alone(self, document: Document, open_: OpenPlaces, at: Path) -> str:
        """Why the amounts of this pod must not be renamed; empty if all of the pod is known."""
        if id(document) not in self.unseen:
            self.unseen[id(document)] = self._why_unseen(document)
        if why := self.unseen[id(document)]:
            return why
        is_whole = not self.plan.is_values and legacy_pods.is_of_object(document.data, at)
        for code, where in self.plan.left.items():
            if not is_whole or any(
                self._is_made(document, open_, each)
                for each in legacy_pods.places(legacy_pods.pod_of(at), code)
            ):
                return legacy_pods.elsewhere(code, where)
        return ""

    def _why_unseen(self, document: Document) -> str:
        """The same for a word that no view shows; it counts for all pods of a document."""
        start, end, template = document.root.start, document.root.end, self.branches.template
        for word, first, last in legacy_pods.words(template.text[start:end], self.plan):
            here = (start + first, start + last)
            if not self.branches.show(*here) or template.actions_in(*here):
                return legacy_pods.of_same_pod(word, self.source.place(*here).line)
        return ""

    def _is_made(self, document: Document, open_: OpenPlaces, at: Path) -> bool:
        """Whether the template may write fields that a rule on placement or drivers reads."""
        node = document.find(at)
        if node is None:
            return False
        if at[-1:] and at[-1] in legacy_pods.WHOLE:
            touched = self.branches.template.actions_in(node.start, node.end)
            if any(each.kind is Kind.WRITES for each in touched):
                return True
        return open_.may_hold_more(at) or stands_for_part(value_at(document.data, at))

    def _may_be_mounted(self, document: Document, open_: OpenPlaces, at: Path) -> bool:
        """Whether a part that no view shows may also mount this volume."""
        if at[-2:-1] != ("volumes",):
            return False
        text, region = self.branches.template.text, self.branches.region
        mount = unseen_mounts.in_the_text(value_at(document.data, at))
        return unseen_mounts.may_be_mounted(document, open_, at) or any(
            not self.branches.show(*found.span())
            for found in mount.finditer(text, region.start, region.end)
        )

    # -- findings

    def _replacements(self, made: list[EvaluatedView]) -> list[Replacement]:
        restored = self.branches.masks.restored
        return [replace(each, text=restored(each.text)) for each in all_replacements(made)]

    def _located_in_doubled(self, made: list[EvaluatedView]) -> Iterator[Located]:
        """Findings on text that no other view shows; this text is never edited."""
        shown = {id(each.view): each.view for each in made}.values()
        doubled = [
            self._make(view, each) for view in self.branches.doubled for each in view.documents
        ]
        for each in self._located(doubled):
            place = self.source.index(each.place.line, each.place.column)
            if not any(self.branches.shows(view, place, place + 1) for view in shown):
                yield replace(each, status=Status.MANUAL, fix=()) if each.fix else each

    def _located(self, made: list[EvaluatedView]) -> list[Located]:
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

    def _say_all(self, made: EvaluatedView) -> Iterator[Located]:
        whole = self.source.place(made.document.root.start, made.document.root.start)
        groups: dict[int, list[EditGroup]] = {}  # by id() of their findings
        for group in made.written.groups:
            for found in group.causes:
                groups.setdefault(id(found), []).append(group)
        for found in made.findings:
            yield self._say(found, made, groups.get(id(found), []))
        for evaluation in made.evaluations:
            yield from failures(evaluation, whole)

    def _say(self, found: Finding, made: EvaluatedView, groups: list[EditGroup]) -> Located:
        restored = self.branches.masks.restored
        start, end = made.document.place(found.origin, found.word)
        message = restored(found.message)
        status = Status.NOTICE if found.is_remark else Status.MANUAL
        fix: tuple[Replacement, ...] = ()
        if found.held:
            status = Status.NOTICE if found.code in HARMLESS else Status.MANUAL
            message = not_done(message, found.held)
        elif found.action == "repaired":
            status = Status.MANUAL if found.severity is Severity.MANUAL else Status.FIXABLE
            fix = tuple(
                Replacement(each.start, each.end, restored(each.text))
                for group in groups
                for each in group.replacements
            )
        place = self.source.place(start, end)
        at, name = restored(found.origin.dotted), restored(found.object)
        return Located(found.code, message, status, place, at, name, fix)

    def _say_hidden(self, at: Path, made: EvaluatedView) -> Located:
        start, end = made.document.place(at)
        match = next(find(str(at[-1]), PATTERNS, self.plan.settings), None)
        what = match.message if match else f"the annotation {at[-1]} has no effect today"
        code = match.code if match else ignored_annotations.CODE
        message = f"{what}; a template produces a part of it, so change it manually"
        place = self.source.place(start, end)
        return Located(code, message, Status.MANUAL, place, self.branches.masks.restored(at.dotted))


def _told(found: list[Finding], labels: KnownLabels) -> Iterator[Finding]:
    """The findings, without those on selectors and labels that are unknown before rendering."""
    for each in found:
        if each.code != missing_selector.CODE or each.action == "repaired":
            yield each
        elif message := labels.message(each, each.origin):
            yield replace(each, message=message)
