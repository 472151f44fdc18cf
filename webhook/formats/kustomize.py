"""Kustomizations and their patches: renames legacy names; no other rule applies to a patch.

A patch is a part of an object in another file. A missing limit, selector or toleration in it means
nothing; 0 GPUs may remove those of its base, and a list replaces the list of the base. So the
resource is renamed wherever the patch names it (in strategic merge patches and in the paths of JSON
6902), removed API versions become those of the target, and everything else is manual. So are the
paths of replacements and vars, and projects/building.py holds the objects that they name.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from webhook.core.draft import Draft, copied
from webhook.core.edits import Edit, Rename, Set, at_place, place_of
from webhook.core.findings import Finding
from webhook.core.modes import is_opted_out
from webhook.core.rule import Trait
from webhook.core.text_patterns import find
from webhook.evaluation.evaluate import Stages, evaluate, name_of
from webhook.evaluation.workloads import template_at, tokens
from webhook.files.results import FileResult, Located, OptedOut, Plan, Skipped, Status, not_done
from webhook.formats import kustomization
from webhook.formats.file_objects import context, shapes
from webhook.formats.mentions import lines_reported, mentions
from webhook.formats.opt_outs import LEFT_ALONE, is_left_alone
from webhook.kube.api_versions import workload_successor
from webhook.kube.pod import SECTIONS, as_items, as_map
from webhook.kube.pointer import ROOT, Path, escape, value_at
from webhook.kube.walk import walk
from webhook.rules import (
    MANIFEST,
    PATTERNS,
    codes,
    legacy_resource,
    removed_workload_api,
    request_without_limit,
)
from webhook.templates import actions
from webhook.templates.regions import Region
from webhook.yamlpatch import documents
from webhook.yamlpatch.nodes import Scalar
from webhook.yamlpatch.splice import RefusedError, apply, splice
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.files.source import Source
    from webhook.yamlpatch.documents import Document
    from webhook.yamlpatch.places import Place, Replacement

    Raw = dict[str, Any]

_CODE = legacy_resource.CODE
_VERSIONS = Stages(MANIFEST).only(codes(Trait.VERSION).__contains__)
_OPERATION = re.compile(r"\bop[\"']?[ \t]*:")
_WITH_TARGETS = ("patches", "patchesJson6902")
_ANNOTATIONS = "commonAnnotations"
# Fields that the patched object may have although the patch does not: selector, labels, strategy,
# name, and tolerations, a list that a list in the patch would replace.
# A limit that is missing in the patch may be in what it patches, and larger.
OF_WHOLE_OBJECTS = (*sorted(codes(Trait.WHOLE)), request_without_limit.CODE)


def is_patch(source: Source) -> bool:
    """Whether every document of the file is a patch by its shape.

    A patch is a list of JSON 6902 operations, or a workload in which no container has an image.
    """
    text = source.text
    if "image" in text and not _OPERATION.search(text):
        return False
    stream = documents.read(text)
    shapes = [_is_patch(each.data) for each in stream.documents if each.data is not None]
    return bool(shapes) and all(shapes) and not stream.unread


def migrate(source: Source, plan: Plan) -> FileResult:
    """Migrate a kustomization.yaml: the inline patches in it."""
    work = _Work(source, plan)
    for document in documents.read(source.text).documents:
        for at, value in walk(document.data):
            if at and at[0] in kustomization.PATCHES and isinstance(value, str):
                work.written_out(document, at)
        work.look(document)
        work.targets(document)
    return work.result()


def migrate_patch(source: Source, plan: Plan) -> FileResult:
    """Migrate a file with a patch."""
    work = _Work(source, plan)
    stream = documents.read(source.text)
    for document in stream.documents:
        work.patch(document)
    for each in stream.unread:
        work.skipped.append(Skipped(each.reason, source.place(each.start, each.end)))
    return work.result()


def is_replacement(data: Any) -> bool:
    """Whether the data is one replacement, a list of them, or the transformer with them."""
    if as_map(data).get("kind") == "ReplacementTransformer":
        return True
    listed = data if isinstance(data, list) else [data]
    return bool(listed) and all("targets" in as_map(each) for each in listed)


def planned(path: str, plan: Plan) -> Plan:
    """The plan with the opt-outs of the file's kustomization; with -k, another one opts out."""
    opted_out, patch = kustomization.known_of(path)
    if plan.opted_out != OptedOut():
        opted_out = plan.opted_out
    ignored = (*plan.ignored, *(OF_WHOLE_OBJECTS if patch else ()))
    return replace(plan, opted_out=opted_out, ignored=ignored, is_patch=patch)


def _is_patch(data: Any) -> bool:
    if is_replacement(data):
        return True
    if isinstance(data, list):
        return bool(data) and all("op" in as_map(each) and "path" in as_map(each) for each in data)
    obj = as_map(data)
    at = template_at(obj)
    if not at:  # guides show pods without an image
        return False
    spec = as_map(value_at(obj, at).get("spec"))
    kinds = ("initContainers", "containers")
    listed = [each for kind in kinds for _, each in as_items(spec.get(kind))]
    return bool(listed) and not any("image" in each for each in listed)


@dataclass(slots=True)
class _Work:
    """The work on one file."""

    source: Source
    plan: Plan
    replacements: list[Replacement] = field(default_factory=list)
    located: list[Located] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    left_alone: list[Place] = field(default_factory=list)

    def written_out(self, holder: Document, at: Path) -> None:
        """An inline patch, which is a string in the kustomization."""
        node = holder.find(at)
        if not isinstance(node, Scalar) or node.style != "|":
            return  # legacy names in it are reported line by line
        text = self.source.text
        start = text.find("\n", node.start) + 1
        region = Region(start, node.end)
        shown = actions.blank_until(text, region.start) + text[region.start : region.end]
        for document in documents.read(shown).documents:
            self.patch(document)

    def patch(self, document: Document) -> None:
        """One patch of either kind."""
        if is_replacement(document.data):
            self.targets(document)
            return
        if isinstance(document.data, list):
            said = _of_operations(document.data, self.plan)
        else:
            said = _of_object(document.data, self.plan)
        left = _left_alone(document.data, self.plan)
        for at in left:
            place = self.source.place(*document.place(at))
            self.left_alone.append(place)
            self.skipped.append(Skipped(LEFT_ALONE, self.source.first_line(place)))
        found = [
            each
            for each in said
            if self.plan.asks(each.code) and not any(each.at[: len(at)] == at for at in left)
        ]
        edits = [edit for each in found for edit in each.edits]
        refused = self._refused(document, edits)
        for each in found:
            self._say(document, each, refused)

    def targets(self, document: Document) -> None:
        """What replacements read, and what they write into."""
        for at, value in walk(document.data):
            inside = at[-1:] in {("source",), ("select",)} or at[-2:-1] == ("reject",)
            if inside and isinstance(value, dict):
                self._target(document, at, value, "what a replacement names")

    def look(self, document: Document) -> None:
        """Other names in a kustomization."""
        for name in as_map(as_map(document.data).get(_ANNOTATIONS)):
            match = next(find(name, PATTERNS, self.plan.settings), None)
            if match is not None and self.plan.asks(match.code):
                message = f"{match.message} in a patch of what needs it, and delete this line"
                self._add(document, match.code, ROOT / _ANNOTATIONS / name, message)
        for section in _WITH_TARGETS:
            for position, patch in as_items(as_map(document.data).get(section)):
                target = as_map(patch.get("target"))
                at = ROOT / section / position / "target"
                self._target(document, at, target, "the target of a patch")

    def _target(self, document: Document, at: Path, target: Raw, what: str) -> None:
        """A target by group, version and kind: it must be found under its current version."""
        version = f"{target.get('group', '')}/{target.get('version', '')}"
        old = {"apiVersion": version, "kind": target.get("kind")}
        successor = workload_successor(old, self.plan.target)
        match = next(find(version, PATTERNS, self.plan.settings), None)
        if successor is not None and self.plan.asks(removed_workload_api.CODE):
            group, _, today = successor.api_version.partition("/")
            edits: list[Edit] = [Set(at / "group", group), Set(at / "version", today)]
            if successor.kind != target["kind"]:
                edits.append(Set(at / "kind", successor.kind))
            message = f"{what} is now {successor.kind} of {successor.api_version}"
            said = Finding(removed_workload_api.CODE, at, f"{message}: write that", tuple(edits))
            self._say(document, said, self._refused(document, edits))
        elif match is not None and self.plan.asks(match.code):
            self._add(document, match.code, at, f"{what}: {match.message}")

    def result(self) -> FileResult:
        new_text = apply(self.source.text, self.replacements)
        said = lines_reported(self.source, self.located)
        more = mentions(self.source, self.plan, said, left_alone=self.left_alone)
        return FileResult.of(self.source, new_text, (*self.located, *more), self.skipped)

    def _refused(self, document: Document, edits: list[Edit]) -> str:
        """Write the edits; returns the reason if they cannot be written."""
        try:
            replacements = splice(document, edits)
        except RefusedError as error:
            return error.reason
        wanted = _edited(document.data, edits)
        again = documents.read(apply(document.text, replacements)).documents
        if not any(is_same(each.data, wanted) for each in again):
            return "the new text would have another meaning"
        self.replacements += replacements
        return ""

    def _say(self, document: Document, found: Finding, refused: str) -> None:
        fix: tuple[Replacement, ...] = ()
        message, status = found.message, Status.MANUAL
        if found.edits and refused:
            message = not_done(message, refused)
        elif found.edits:
            status = Status.FIXABLE
            with suppress(RefusedError):  # right only together with others, as with an alias
                fix = tuple(splice(document, found.edits))
        self._add(document, found.code, found.at, message, status, fix, found.object)

    def _add(  # noqa: PLR0913, PLR0917  # the parts of a finding
        self,
        document: Document,
        code: str,
        at: Path,
        message: str,
        status: Status = Status.MANUAL,
        fix: tuple[Replacement, ...] = (),
        name: str = "",
    ) -> None:
        place = self.source.place(*document.place(at))
        self.located.append(Located(code, message, status, place, at.dotted, name, fix))


def _left_alone(data: Any, plan: Plan) -> list[Path]:
    """The pods in a patch with the opt-out label.

    The whole patch if an operation sets the label.
    """
    if plan.opted_out.templates or is_opted_out(context(as_map(data), plan).namespace_labels):
        return [ROOT]
    for _, operation in as_items(data):
        way = tokens(str(operation.get("path", "")))
        made: Any = operation.get("value")
        for token in reversed(way[way.index("metadata") :] if "metadata" in way else ()):
            made = {token: made}
        if is_left_alone(as_map(made)):
            return [ROOT]
    return [at for at, part in shapes(data) if is_left_alone(part)]


def _of_object(data: Any, plan: Plan) -> Iterator[Finding]:
    """A strategic merge patch."""
    obj = as_map(data)
    if not obj:
        return
    name = name_of(obj)
    stages, copy = _VERSIONS.only(plan.asks), copied(obj)
    made = evaluate(copy, stages, context(copy, plan), is_left_alone=is_left_alone)
    for finding in made.findings:
        edits = finding.touched if finding.action == "repaired" else ()
        message = f"{finding.message}; the base that it patches, too"
        yield Finding(finding.code, finding.origin, message, edits, object=name)
    yield from _names(obj, ROOT, plan, name)


def _names(
    data: Any, at: Path, plan: Plan, name: str = "", section: str | int = ""
) -> Iterator[Finding]:
    """Every legacy name below limits or requests: the amount stays, also 0 and null.

    `section` is the path at which the data itself is placed.
    """
    for there, _ in walk(data, at):
        holder = there[-2] if len(there) > len(at) + 1 else section
        legacy, new = there[-1] if there else "", plan.settings.gpu_resource
        if legacy not in plan.settings.legacy_resources or len(there) == len(at):
            continue
        if holder not in SECTIONS:
            message = f"{legacy} is a name in the data of a program: write {new} if it is one"
            yield Finding(_CODE, there, message, object=name)
        elif new in as_map(value_at(data, Path(there[len(at) : -1]))):
            message = f"the patch names {legacy} next to {new}: give only {new}, the larger amount"
            yield Finding(_CODE, there, message, object=name)
        else:
            message = f"the patch names {legacy}, which no node offers; write {new}"
            yield Finding(_CODE, there, message, (Rename(there, new),), object=name)


def _of_operations(operations: list[Any], plan: Plan) -> Iterator[Finding]:
    """A JSON 6902 patch."""
    for position, operation in as_items(operations):
        at = ROOT / position
        for member in ("path", "from"):
            yield from _pointer(at / member, operation.get(member), plan)
        way = tokens(str(operation.get("path", "")))
        section = way[-1] if way else ""
        yield from _names(operation.get("value"), at / "value", plan, section=section)


def _pointer(at: Path, pointer: Any, plan: Plan) -> Iterator[Finding]:
    if not isinstance(pointer, str):
        return
    way = tokens(pointer)
    for position, token in enumerate(way):
        if token in plan.settings.legacy_resources and way[position - 1] in SECTIONS:
            new = plan.settings.gpu_resource
            named = "".join(
                f"/{escape(new if n == position else each)}" for n, each in enumerate(way)
            )
            message = f"the patch names {token}, which no node offers; write {named}"
            yield Finding(_CODE, at, message, (Set(at, named),))
        elif match := next(find(token, PATTERNS, plan.settings), None):
            yield Finding(match.code, at, match.message)


def _edited(data: Any, edits: Iterable[Edit]) -> Any:
    """The data with these edits, of which none is an append."""
    draft = Draft({"": copied(data)})
    draft.apply(at_place(each, Path(("", *place_of(each)))) for each in edits)
    return draft.object[""]
