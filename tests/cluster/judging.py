"""A file down road 2, and what became of it: the outcome that the table counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.cluster.accepting import pods_of, pods_with_resources_of
from tests.cluster.never_valid import NEVER_VALID
from tests.cluster.rendering import NotRenderedError, rendered
from webhook.capacity.requests import gpu_requests
from webhook.evaluation.workloads import is_built_in, objects, templates_of
from webhook.files.results import Status
from webhook.files.source import Source
from webhook.formats.fences import fences
from webhook.formats.migrate import migrate_text
from webhook.kube.pod import Pod
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.cluster.accepting import Cluster
    from tests.cluster.client import Json
    from webhook.files.results import FileResult, Plan

_HERE = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n(.*?)\n[ \t]*\2[ \t]*(?=\n|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class File:
    """A file to judge; `group` is the class of the shared corpus' index, or where it is from."""

    path: Path
    group: str
    kind: str = ""  # as the index calls it; else what the program says
    plan: Plan | None = None


@dataclass(slots=True)
class Part:
    """Objects that stand together, and on which lines of the text as it was."""

    objects: list[Json]
    lines: range


@dataclass(slots=True)
class Judged:
    """What the program did, and what the cluster said of that."""

    file: File
    kind: str
    result: FileResult
    after: FileResult  # of a second run
    accepted: int = 0
    placed: int = 0
    refused: list[str] = field(default_factory=list)  # with a finding for a person
    missed: list[str] = field(default_factory=list)  # with none
    foreign: int = 0  # objects of add-ons, without anything that makes pods
    never_valid: list[str] = field(default_factory=list)  # before, too
    excused: set[tuple[str, str]] = field(default_factory=set)
    not_rendered: str = ""

    @property
    def name(self) -> str:
        path = self.file.path
        return f"{path.parent.name}/{path.name}" if self.file.group == "own cases" else path.name

    @property
    def text(self) -> str:
        """The text after."""
        return self.result.text if self.result.new_text is None else self.result.new_text

    @property
    def persons(self) -> bool:
        """Whether something in the text after is left to a person."""
        return any(each.status is Status.MANUAL for each in self.after.located)

    @property
    def outcome(self) -> str:
        if self.missed:
            return "missed"
        if self.result.new_text is not None:
            return "partly" if self.persons or self.refused else "migrated"
        return "manual" if self.persons else "skipped"


def judged(file: File, cluster: Cluster, folder: Path, given: Mapping[str, Any]) -> Judged:
    """Migrate the file, and send all that it holds to the cluster."""
    assert file.plan is not None
    source = Source.of(file.path.name, file.path.read_bytes())
    result = migrate_text(source, file.plan)
    assert result.error == "", file.path.name
    new = Source.of_text(source.path, source.text if result.new_text is None else result.new_text)
    after = migrate_text(new, file.plan)
    assert after.new_text is None, f"{file.path.name}: a second run changes it again"
    verdict = Judged(file, file.kind or result.kind, result, after)
    try:
        parts = list(_parts(result, verdict.text, folder, given))
    except NotRenderedError as error:
        verdict.not_rendered = str(error)
        if _renders(result, folder, given):
            verdict.missed.append(f"is broken: {error}")
        return verdict
    for part in parts:
        for obj in part.objects:
            _judge(obj, part.lines, verdict, cluster)
    return verdict


def _renders(result: FileResult, folder: Path, given: Mapping[str, Any]) -> bool:
    """Whether the text as it was can be rendered."""
    try:
        rendered(result.text, folder, given)
    except NotRenderedError:
        return False
    return True


def _judge(obj: Json, lines: range, verdict: Judged, cluster: Cluster) -> None:
    plan = verdict.file.plan
    assert plan is not None
    places = templates_of(obj, plan.settings)
    name = f"{obj['kind']}/{(obj.get('metadata') or {}).get('name', '')}"
    said = []
    pods = list(pods_of(obj, places)) if places else []
    if not places and not cluster.serves(obj) and not is_built_in(obj):
        pods = list(pods_with_resources_of(obj))  # as its operator would make them
        if not pods and cluster.is_foreign(obj):
            verdict.foreign += 1
            return
    if cluster.serves(obj) or is_built_in(obj) or not pods:
        words = cluster.refusal(obj)
        said += [f"{name}: {words}"] if words else []
    else:
        said += [f"{name}: as a Pod: {words}" for pod in pods if (words := cluster.refusal(pod))]
    if not said:
        verdict.accepted += 1
        for pod in pods:
            if gpu_requests(Pod(pod), plan.settings):
                words = cluster.unplaced(pod)
                verdict.placed += not words
                said += [f"{name}: not placed: {words}"] if words else []
    is_known = any(
        each.status is Status.MANUAL and each.place.line in lines for each in verdict.result.located
    )
    if said and (verdict.name, name) in NEVER_VALID:
        verdict.excused.add((verdict.name, name))
        verdict.never_valid.append(f"{said[0]} ({NEVER_VALID[verdict.name, name]})")
    else:
        (verdict.refused if is_known else verdict.missed).extend(said)


def _parts(result: FileResult, text: str, folder: Path, given: Mapping[str, Any]) -> Iterator[Part]:
    everywhere = range(1, result.text.count("\n") + 2)
    match result.kind:
        case "yaml" | "json":
            yield from _of_streams(result.text, text, json=result.kind == "json")
        case "helm" | "jinja":
            yield Part(list(nested(rendered(text, folder, given))), everywhere)
        case "markdown":
            yield from _of_fences(result.text, text)


def _of_streams(old: str, new: str, *, json: bool) -> Iterator[Part]:
    before, after = documents.read(old, json=json), documents.read(new, json=json)
    for was, now in zip(before.documents, after.documents, strict=True):
        lines = range(_line(old, was.root.start), _line(old, was.root.end) + 1)
        yield Part(_objects(now.data), lines)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _objects(data: Any) -> list[Json]:
    """The objects that a person could send to an API server."""
    return [
        obj
        for _, obj in objects(data)
        if isinstance(obj.get("kind"), str) and isinstance(obj.get("apiVersion"), str)
    ]


def nested(text: str) -> Iterator[Json]:
    """The objects in a text, or in the texts in it: a cloud-config that writes files."""
    for document in documents.read(text).documents:
        found = _objects(document.data)
        yield from found
        if not found:
            for inner in _texts(document.data):
                if re.search(r"^\s*kind:", inner, re.MULTILINE):
                    yield from nested(inner)


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
        yield from (found[3] for found in _HERE.finditer(data))
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _texts(each)


def _of_fences(old: str, new: str) -> Iterator[Part]:
    for was, now in zip(fences(old), fences(new), strict=True):
        body = new[now.start : now.end]
        lines = range(_line(old, was.start), _line(old, was.end) + 1)
        bodies = [found[3] for found in _HERE.finditer(body)] or [body]
        yield Part(
            [
                obj
                for each in bodies
                for document in documents.read(each).documents
                for obj in _objects(document.data)
            ],
            lines,
        )
