"""Decides which edits must not be written into a template, each with the reason.

An edit must be right in all views and change no action. It must be under the same conditions as its
cause, and must not add to a map or list to which the template may add, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.core.edits import Append, Remove, Set
from webhook.formats import legacy_pods
from webhook.formats.file_objects import AMOUNTS, HARMLESS, OF_OBJECTS, cause_of
from webhook.formats.template_edits import adds_lines, follows
from webhook.kube.pod import KINDS, SECTIONS, as_map
from webhook.kube.pointer import ROOT, Path, value_at
from webhook.rules import driver_paths, legacy_resource, missing_selector, removed_workload_api
from webhook.templates.blocks import Kind
from webhook.templates.cases import Rest
from webhook.templates.known_labels import NOT_ALWAYS, NOT_KNOWN, is_of_old
from webhook.templates.regions import lines_of
from webhook.yamlpatch import style, verify
from webhook.yamlpatch.places import Replacement
from webhook.yamlpatch.splice import apply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.findings import Finding
    from webhook.evaluation.evaluate import Evaluation
    from webhook.files.source import Source
    from webhook.formats.branch_views import BranchView, BranchViews
    from webhook.formats.template_edits import EditGroup, TemplateEdits
    from webhook.templates.actions import Template
    from webhook.templates.blocks import Arm
    from webhook.templates.open_places import OpenPlaces
    from webhook.yamlpatch.documents import Document

    # The code of a finding, and its place or that of the group that it belongs to.
    Cause = tuple[str, int]

_SELECTING = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
_ELSE = "it is wrong in another branch of a condition"


@dataclass(eq=False, slots=True)
class EvaluatedView:
    """The result of the rules on one document in one view."""

    view: BranchView
    document: Document
    hidden: list[Path]  # annotations that the template produces
    data: Any  # as edited
    evaluations: list[Evaluation]
    written: TemplateEdits
    _amounts: dict[str, list[Finding]] | None = None

    @property
    def findings(self) -> list[Finding]:
        return [found for each in self.evaluations for found in each.findings]

    @property
    def amounts(self) -> dict[str, list[Finding]]:
        """The findings on amounts, by their object."""
        if self._amounts is None:
            self._amounts = {}
            for found in self.findings:
                if found.code in AMOUNTS:
                    self._amounts.setdefault(found.object, []).append(found)
        return self._amounts


@dataclass(slots=True)
class HeldEdits:
    """The edits that must not be made in one part."""

    source: Source
    branches: BranchViews
    held: dict[Cause, str] = field(default_factory=dict)  # with the reason

    def hold(self, made: list[EvaluatedView]) -> bool:
        """Hold the edits that must not be made; False if there are none."""
        before = len(self.held)
        for each in made:
            open_ = self.branches.open(each.document)
            for group in each.written.groups:
                why = self._why_not(group, each, open_)
                if why:
                    self._hold_causes(group, each, why)
        for each in made:
            self._hold_unselected(each)
        checks = (self._hold_conflicts, self._hold_meeting, self._hold_untrue, self._hold_spoiling)
        for check in checks:
            if len(self.held) == before:
                check(made)
        for each in made if len(self.held) == before else ():
            self._hold_amounts(each)
        return len(self.held) > before

    def wrong(self, made: EvaluatedView) -> int:
        """How many groups of edits must not be written."""
        open_ = self.branches.open(made.document)
        return sum(bool(self._why_not(group, made, open_)) for group in made.written.groups)

    def _hold_causes(self, group: EditGroup, made: EvaluatedView, why: str) -> None:
        causes = group.causes or made.findings
        for found in causes:
            self._hold_one(found, made, why)
            if found.code in OF_OBJECTS:
                self._hold_object(found, made, why)

    def _hold_object(self, found: Finding, made: EvaluatedView, why: str) -> None:
        """Hold the new API version together with the edits that it needs."""
        for each in made.findings:
            if each.code in OF_OBJECTS and each.object == found.object:
                self._hold_one(each, made, why)

    def _hold_one(self, found: Finding, made: EvaluatedView, why: str) -> None:
        if found.action == "repaired":
            cause = cause_in(found.code, found.origin, made.document)
            self.held.setdefault(cause, why)

    def _hold_amounts(self, made: EvaluatedView) -> None:
        """Hold the amounts of a pod if the webhook would repair more of it than this run does."""
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

    def _why_not(self, group: EditGroup, made: EvaluatedView, open_: OpenPlaces) -> str:
        if group.refused:
            return group.refused
        if made.view.case.rest is Rest.NONE and _adds(group):
            return "too much of the text depends on conditions"
        goes_on = not group.lines and any(map(open_.goes_on, group.edits))
        if goes_on or any(map(open_.may_meet, group.edits)):
            return "the template may write there, too"
        codes = {found.code for found in group.causes}
        amounts = codes == {legacy_resource.CODE} and all(
            isinstance(each, Remove) for each in group.edits
        )
        for each in group.replacements:
            if _is_trimmed(self.branches.template.text, each):
                return "the template takes away the line end before it"
            if _is_torn(self.branches.template, each):
                return "the lines after it may belong to the text before it"
            touched = self.branches.template.actions_in(each.start, each.end)
            if touched and not (amounts and all(a.kind is Kind.WRITES for a in touched)):
                return "it would remove template actions"
            arms = self.branches.template.arms_around(each.start, each.end)
            for cause in self._causes(group, made):
                if not self.branches.template.covers(arms, cause):
                    return "it is inside a condition, and its cause is not"
        return ""

    def _causes(self, group: EditGroup, made: EvaluatedView) -> Iterator[list[Arm]]:
        """The branches around the cause of the edits.

        For a toleration, around the GPUs of its pod.
        """
        for found in group.causes:
            around = self.branches.template.arms_around(*made.document.place(cause_of(found)))
            gpus = [
                self.branches.template.arms_around(*made.document.place(each.origin))
                for each in made.amounts.get(found.object, ())
            ]
            if found.code in HARMLESS and gpus:
                yield from ([*around, *each] for each in gpus)
            else:
                yield around

    def _hold_unselected(self, made: EvaluatedView) -> None:
        """Hold a version that requires a selector where there may be none."""
        labels = self.branches.labels(made.document, self.branches.open(made.document))
        for found in made.findings:
            if found.code != removed_workload_api.CODE or found.action != "repaired":
                continue
            obj = as_map(value_at(made.data, found.origin.parent))
            if obj.get("kind") not in _SELECTING:
                continue
            if is_of_old(as_map(obj.get("spec")).get("selector")):
                spec = made.document.place(found.origin.parent / "spec")[0]
                why = self.held.get((missing_selector.CODE, spec), NOT_KNOWN)
                self._hold_object(found, made, why)
            elif not labels.is_always_selected(found.origin):
                self._hold_object(found, made, NOT_ALWAYS)

    def _hold_conflicts(self, made: list[EvaluatedView]) -> None:
        """An edit of one view must also be made in all other views in which the text counts."""
        views = {id(each.view): each.view for each in made}
        for replacement, makers in _wanted(made).items():
            codes = {found.code for group, _ in makers for found in group.causes}
            if codes <= HARMLESS:
                continue
            wants = {id(maker.view) for _, maker in makers}
            if any(
                n not in wants and self.branches.is_active(v, replacement) for n, v in views.items()
            ):
                for group, maker in makers:
                    self._hold_causes(group, maker, _ELSE)

    def _hold_meeting(self, made: list[EvaluatedView]) -> None:
        """Two views must not write different text at one place."""
        wanted = _wanted(made)
        ordered = sorted(wanted, key=lambda each: (each.start, each.end))
        for one, other in pairwise(ordered):
            meet = other.start < one.end or (one.start, one.end) == (other.start, other.end)
            # Edits of one document in one view always fit together.
            mine = {id(maker) for _, maker in wanted[one]}
            if meet and not any(id(maker) in mine for _, maker in wanted[other]):
                for group, maker in (*wanted[one], *wanted[other]):
                    self._hold_causes(group, maker, "two branches need different text here")

    def _hold_untrue(self, made: list[EvaluatedView]) -> None:
        """The edited text must have the same meaning as the edited data."""
        for each in made:
            if each.written.groups and not self._is_true(each):
                self._hold_some([each], "the new text would have another meaning")

    def _is_true(self, made: EvaluatedView) -> bool:
        replacements = made.written.all_replacements()
        if replacements is None:
            return False
        stream = self.branches.read(apply(made.view.shown, replacements))
        if stream.unread or len(stream.documents) != len(made.view.documents):
            return False
        document = stream.documents[made.view.documents.index(made.document)]
        told = without(document.data, made.hidden)
        is_worse = len(document.duplicates) > len(made.document.duplicates)
        return not is_worse and verify.meant(told) == verify.meant(made.data)

    def _hold_some(self, made: list[EvaluatedView], why: str) -> None:
        """Hold the least important edits first: usually an addition is what does not fit."""
        pairs = [(group, each) for each in made for group in each.written.groups]
        for matters_less in (_is_harmless, _adds, bool):
            held = [(group, each) for group, each in pairs if matters_less(group)]
            for group, each in held:
                self._hold_causes(group, each, why)
            if held:
                return

    def _hold_spoiling(self, made: list[EvaluatedView]) -> None:
        """With other branches of irrelevant conditions, the text must stay as good as it was."""
        every = all_replacements(made)
        for view in self.branches.others if every else ():
            active = [each for each in every if self.branches.is_active(view, each)]
            stream = self.branches.read(apply(view.shown, active))
            twice = sum(len(document.duplicates) for document in stream.documents)
            if stream.unread or twice > view.duplicates:
                self._hold_some(made, _ELSE)


def cause_in(code: str, at: Path, document: Document) -> Cause:
    """The group of edits that are held together: the API server rejects a pod with half of them.

    The volumes of a pod belong to their mounts and search paths, and a request to its limit.
    """
    holders: tuple[str, ...] = ()
    if code == driver_paths.CODE:
        holders = ("volumes", *KINDS)
    elif code in AMOUNTS:
        code, holders = legacy_resource.CODE, SECTIONS
    ends = [depth for depth, token in enumerate(at) if token in holders]
    return code, document.place(Path(at[: ends[-1]]) if ends else at)[0]


def _wanted(made: list[EvaluatedView]) -> dict[Replacement, list[tuple[EditGroup, EvaluatedView]]]:
    wanted: dict[Replacement, list[tuple[EditGroup, EvaluatedView]]] = {}
    for each in made:
        for group in each.written.groups:
            for replacement in group.replacements:
                wanted.setdefault(replacement, []).append((group, each))
    return wanted


def all_replacements(made: list[EvaluatedView]) -> list[Replacement]:
    """The replacements of all views.

    If one view adds more than another, its text contains the other's.
    """
    found: dict[tuple[int, int], str] = {}
    for each in made:
        for replacement in each.written.all_replacements() or ():
            place = (replacement.start, replacement.end)
            if place not in found or len(replacement.text) > len(found[place]):
                found[place] = replacement.text
    return [Replacement(start, end, text) for (start, end), text in sorted(found.items())]


def _is_harmless(group: EditGroup) -> bool:
    return any(found.code in HARMLESS for found in group.causes)


def _adds(group: EditGroup) -> bool:
    return any(isinstance(edit, Append | Set) for edit in group.edits)


def _is_trimmed(text: str, added: Replacement) -> bool:
    """Whether an action before the added text trims blanks and line ends after it."""
    end = added.start
    while end and text[end - 1].isspace():
        end -= 1
    return adds_lines(text, added) and text.endswith(("-}}", "-%}"), 0, end)


def _is_torn(template: Template, added: Replacement) -> bool:
    """Whether following lines, in any branch, belong to the text before the added lines."""
    if not adds_lines(template.text, added):
        return False
    lines = added.text.lstrip("\r\n")
    shown, end, start = template.shown, added.end, added.end
    if lines != added.text:  # after the line in which it begins
        end, start = style.line_end(shown, end), style.next_line(shown, end)
    behind = (each.text for each in lines_of(shown, start))
    following = next(filter(_says_something, behind), "")
    said = following.strip()
    if said and not said.strip("@") and _is_open(shown, end):  # an action, at any indent
        return True
    return follows(following, lines)


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


# The end of a line whose value is below it: a key, the header of a block scalar, an item.
_OPEN = re.compile(r"(?:^|[\s\"'\w}])(?:[:-]|[:-][ \t]+[|>][-+\d]*)[ \t]*(?:#.*)?$")


def _is_open(text: str, end: int) -> bool:
    """Whether the value of the last line with content, or what an action wrote, may go on below."""
    while end > 0:
        start = style.line_start(text, end)
        line = text[start:end]
        if _says_something(line):
            return _OPEN.search(line.rstrip()) is not None or not line.strip(" @")
        end = start - 1
    return False


def without(data: Any, places: list[Path], at: Path = ROOT) -> Any:
    """A copy of the data without these members."""
    if not places:
        return copied(data)
    if isinstance(data, dict):
        return {
            name: without(value, places, at / name)
            for name, value in data.items()
            if at / name not in places
        }
    if isinstance(data, list):
        return [without(value, places, at / position) for position, value in enumerate(data)]
    return data
