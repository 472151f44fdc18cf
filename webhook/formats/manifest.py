"""Migrates a YAML or JSON file: text in, new text and findings out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.core.edits import Edit, place_of
from webhook.core.findings import Finding, Severity
from webhook.files.results import (
    FileResult,
    Located,
    Packed,
    Plan,
    Skipped,
    Status,
    not_done,
    order,
)
from webhook.formats import legacy_pods, unfinished
from webhook.formats.file_objects import (
    AMOUNTS,
    evaluations,
    failures,
    right_labels,
    selects_nodes,
)
from webhook.formats.mentions import Reported, lines_reported, mentions
from webhook.formats.opt_outs import LEFT_ALONE, with_namespaces
from webhook.kube.pod import as_map
from webhook.kube.pointer import Path, value_at
from webhook.rules import missing_selector, removed_workload_api
from webhook.yamlpatch import documents, verify
from webhook.yamlpatch.nodes import Scalar
from webhook.yamlpatch.splice import RefusedError, apply, splice
from webhook.yamlpatch.style import line_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.evaluation.evaluate import Evaluation
    from webhook.files.source import Source
    from webhook.yamlpatch.documents import Document, Part, Stream
    from webhook.yamlpatch.places import Place, Replacement


@dataclass(slots=True)
class _Work:
    """The work on one document: the results of the rules, and of writing them into the text."""

    document: Document
    data: Any  # as edited
    evaluations: list[Evaluation]
    replacements: list[Replacement] = field(default_factory=list)
    refused: str = ""
    alone: dict[Path, str] = field(default_factory=dict)  # objects that are refused alone, with why
    # By the edits of a finding: many have the same, as where all volumes of a list are removed.
    fixes: dict[tuple[int, ...], tuple[Replacement, ...]] = field(default_factory=dict)

    @property
    def wanted(self) -> Any:
        """The data that the new text must have."""
        return self.data if self.replacements else self.document.data

    @property
    def edits(self) -> list[Edit]:
        return [edit for each in self.evaluations for edit in each.edits]

    def refuse(self, reason: str) -> None:
        self.refused, self.replacements = reason, []


def migrate(source: Source, plan: Plan) -> FileResult:
    """Run the rules on each document, and write their edits into the text."""
    plan = with_namespaces(plan, source.text)
    done = _Done(source, plan)
    if why := done.take_all():
        done = _Done(source, plan, refused=why)
        done.take_all()
    return done.result()


@dataclass(slots=True)
class _Done:
    """What remains of the documents of a file: new texts, findings and places.

    They are read, edited and checked one by one, and their nodes, data and evaluations dropped:
    these need some hundred times the memory of the text.
    """

    source: Source
    plan: Plan
    refused: str = ""  # why no document is edited
    documents: int = 0
    texts: list[str] = field(default_factory=list)
    located: Packed = field(default_factory=Packed)
    _reported: Reported = field(init=False)
    left_alone: list[Place] = field(default_factory=list)
    right: list[tuple[int, int]] = field(default_factory=list)
    unread: list[Skipped] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    uncompared: bool = False

    def __post_init__(self) -> None:
        """No line has a finding yet."""
        self._reported = Reported(self.source)

    def take_all(self) -> str:
        """Work on all documents. Returns why the file must stay as it is, if it must."""
        text, end = self.source.text, 0
        for part in documents.parts(text, json=self.source.kind == "json"):
            self.texts.append(text[end : part.start])
            if why := self._take(part):
                return why
            end = part.end
        self.texts.append(text[end:])
        return ""

    def _take(self, part: Part) -> str:
        works = [_spliced(each, self.plan, self.source) for each in part.documents]
        for work in works if self.refused else ():
            work.refuse(self.refused)
        new_text, why = _verified(self.source, part, works, self.plan, self.documents + 1)
        self.documents += len(works)
        self.texts.append(new_text)
        for work in works:
            self._note(work)
        for each in part.unread:
            place = self.source.place(each.at, line_end(self.source.text, each.at))
            self.unread.append(Skipped(each.reason, place))
        return why

    def _note(self, work: _Work) -> None:
        source, made = self.source, work.evaluations
        located = sorted(_located(source, work), key=order)
        for found in located:
            self.located.add(found)
        self._reported.update(
            lines_reported(source, (*located, *_spoken_of(source, work, self.plan)))
        )
        self.skipped += _skipped(source, work)
        for each in made:
            places = map(work.document.place, each.left_alone)
            self.left_alone += [source.place(start, end) for start, end in places]
            self.right += right_labels(work.document, each, self.plan)
            self.uncompared |= each.uncompared

    def result(self) -> FileResult:
        """The file with all findings and edits."""
        source, alone = self.source, self.left_alone
        more = mentions(source, self.plan, self._reported, left_alone=alone, right=self.right)
        skipped = (*self.unread, *self.skipped)
        for each in more:
            self.located.add(each)
        made = FileResult.of(source, "".join(self.texts), self.located, skipped)
        return replace(made, uncompared=self.uncompared)


def _verified(
    source: Source, part: Part, works: list[_Work], plan: Plan, first: int
) -> tuple[str, str]:
    """The new text of a part, and why the whole file must stay as it is.

    If a document would have another meaning than intended, the part keeps its old text.
    """
    text = source.text[part.start : part.end]
    edits = [each for work in works for each in work.replacements]
    if edits:
        moved = [replace(e, start=e.start - part.start, end=e.end - part.start) for e in edits]
        new_text = apply(text, moved)
        new = part.again(new_text)
        why = verify.why_not(new, [work.wanted for work in works], len(part.unread), first)
        if not why and part.end < len(source.text) and not new_text.endswith("\n"):
            why = "the next document would be a part of it"
        if not why:
            return new_text, _unstable(source, new, works, plan, first)
        for work in works:
            work.refuse(why)
    return text, ""


def _unstable(source: Source, new: Stream, works: list[_Work], plan: Plan, first: int) -> str:
    """Why a second run would change the new text."""
    for number, (document, work) in enumerate(zip(new.documents, works, strict=True), first):
        again = _work(document, plan, source, work.alone)
        if again.edits and not work.refused:
            made = ((each, found) for each in again.evaluations for found in each.findings)
            codes = sorted({found.code for each, found in made if each.edits_of(found)})
            return f"a second run would change document {number} again ({', '.join(codes)})"
    return ""


def _located(source: Source, work: _Work) -> Iterator[Located]:
    for made in work.evaluations:
        for found in made.findings:
            status, why = _status(work, found)
            yield Located(
                found.code,
                not_done(found.message, why) if why else found.message,
                status,
                _place(source, work.document, found.origin, found.word),
                found.origin.dotted,
                found.object,
                _fix(work, made, found) if status is not Status.NOTICE else (),
            )
        whole = source.place(work.document.root.start, work.document.root.start)
        yield from failures(made, whole)


def _spoken_of(source: Source, work: _Work, plan: Plan) -> Iterator[Located]:
    """Edited places, and whole texts with a finding: words in them need no further finding."""
    for each in work.replacements:
        place = source.place(each.start, max(each.start, each.end - 1))
        yield Located("", "", Status.NOTICE, place)
    for found in (found for each in work.evaluations for found in each.findings):
        for edit in found.touched if found.held and found.code in plan.held else ():
            place = source.place(*work.document.place(place_of(edit)))
            yield Located(found.code, "", Status.NOTICE, place)
        node = work.document.find(found.origin)
        if isinstance(node, Scalar) and not found.word:
            place = source.place(node.start, node.end)
            yield Located("", "", Status.NOTICE, place)


def _spliced(document: Document, plan: Plan, source: Source) -> _Work:
    """The work on a document, without the objects of a List that cannot be edited."""
    work = _work(document, plan, source, {})
    try:
        work.replacements = splice(document, work.edits)
    except RefusedError as error:
        work.refuse(error.reason)
        alone = dict(_refused_alone(work)) if len(work.evaluations) > 1 else {}
        if 0 < len(alone) < len(work.evaluations):
            again = _work(document, plan, source, alone)
            with suppress(RefusedError):
                again.replacements = splice(document, again.edits)
                return again
    return work


def _refused_alone(work: _Work) -> Iterator[tuple[Path, str]]:
    """The objects of which the edits cannot be made without those of others."""
    for each in work.evaluations:
        try:
            splice(work.document, each.edits)
        except RefusedError as error:
            yield each.at, error.reason


def _work(document: Document, plan: Plan, source: Source, alone: dict[Path, str]) -> _Work:
    """Run the rules on a document; objects in `alone` are not edited.

    If its author must choose first, run them again without the edits.
    """
    waiting: dict[Path, tuple[str, Path]] = {}
    unlabelled: dict[Path, Path] = {}
    lost: dict[Path, tuple[str, Path]] = {}

    def line_of(at: Path) -> int:
        return source.place(*document.place(at)).line

    def held(code: str, at: Path) -> str:
        if why := _why_not(code, at, document.data, plan, alone):
            return why
        if code in legacy_pods.OF_CHOICES and (waits := waiting.get(legacy_pods.pod_of(at))):
            cause, place = waits
            if code != cause or place != at:
                return legacy_pods.of_same_pod(cause, line_of(place))
        if code == removed_workload_api.CODE and (labels := unlabelled.get(at)) is not None:
            line = line_of(labels)
            return f"it needs the labels that {missing_selector.CODE} asks for (line {line})"
        if code in AMOUNTS and (because := lost.get(legacy_pods.pod_of(at))):
            cause, place = because
            return legacy_pods.of_same_pod(cause, line_of(place))
        is_whole = not plan.is_values and legacy_pods.is_of_object(document.data, at)
        if code not in AMOUNTS or not plan.left or is_whole:
            return ""
        return legacy_pods.elsewhere(*next(iter(plan.left.items())))

    data = copied(document.data)
    made = evaluations(data, plan, held)
    waiting = legacy_pods.waiting(found for each in made for found in each.findings)
    unlabelled = legacy_pods.unlabelled(made)
    lost = {pod: why for each in made for pod, why in legacy_pods.lost(each.findings).items()}
    if waiting or unlabelled or lost:
        data = copied(document.data)
        made = evaluations(data, plan, held)
    return _Work(document, data, made, alone=alone)


def _why_not(code: str, at: Path, data: Any, plan: Plan, alone: dict[Path, str]) -> str:
    """Why this edit must not be made whatever else is found; empty if nothing is against it."""
    if selects_nodes(code, at, plan):
        spec = as_map(value_at(data, legacy_pods.pod_of(at) / "spec"))
        if unfinished.is_selection_unfinished(spec):
            return unfinished.OF_SELECTION
    around = (Path(at[:depth]) for depth in range(len(at) + 1)) if alone else ()
    return plan.held.get(code) or next((alone[each] for each in around if each in alone), "")


def _status(work: _Work, found: Finding) -> tuple[Status, str]:
    """The status of a finding, and why its edits were not made.

    Empty if they were, or if it has none.
    """
    if found.exception or (found.is_remark and found.action != "repaired"):
        return Status.NOTICE, ""
    if found.held:
        return Status.MANUAL, found.held
    if found.action != "repaired":
        return Status.MANUAL, ""
    if work.refused:
        return Status.MANUAL, work.refused
    # A notice has edits only with --unsafe.
    is_whole = found.severity in {Severity.REPAIR, Severity.NOTICE}
    return Status.FIXABLE if is_whole else Status.MANUAL, ""


def _fix(work: _Work, made: Evaluation, found: Finding) -> tuple[Replacement, ...]:
    """The replacements for this finding alone."""
    edits = made.edits_of(found)
    if not work.replacements or found.action != "repaired" or not edits:
        return ()
    known = tuple(map(id, edits))
    if known not in work.fixes:
        try:
            work.fixes[known] = tuple(splice(work.document, edits))
        except RefusedError:  # right only together with others
            work.fixes[known] = ()
    return work.fixes[known]


def _place(source: Source, document: Document, at: Path, word: str = "") -> Place:
    """The first line of the value at the path, or of its nearest parent; or the word in it."""
    start, end = document.place(at, word)
    return source.place(start, min(end, line_end(source.text, start)))


def _skipped(source: Source, work: _Work) -> Iterator[Skipped]:
    for twice in work.document.duplicates:
        reason = f"{twice.at.dotted} occurs twice, and only one counts: delete one"
        yield Skipped(reason, source.place(twice.key.start, twice.key.end))
    for at in (at for each in work.evaluations for at in each.left_alone):
        yield Skipped(LEFT_ALONE, _place(source, work.document, at))
