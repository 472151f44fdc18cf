"""Builds a kustomization as far as pods need it: its folder in, the objects with their files out.

Fields that are not listed here, generators, charts and files that are not on this machine have an
unknown effect, and are reported with the objects.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.errors import InputError
from webhook.evaluation.workloads import objects
from webhook.formats import kustomization
from webhook.kube.pod import as_items, as_map
from webhook.projects.added_labels import label, rename
from webhook.projects.harmless_places import is_harmless, replaces_harmlessly
from webhook.projects.inflated_charts import charts_of
from webhook.projects.patching import UnsureError, patched
from webhook.projects.written_words import data_of
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.projects.inflated_charts import Chart

    Raw = dict[str, Any]

# They write nothing that a repair changes, reads or depends on.
_HARMLESS = frozenset(
    {
        *("apiversion", "buildmetadata", "configmapgenerator", "generatoroptions", "helmglobals"),
        *("images", "kind", "metadata", "replicas", "secretgenerator", "sortoptions"),
    }
)
_LISTED = ("resources", "bases")
_DONE = frozenset(
    {
        *(*_LISTED, "components", "helmcharts", "helmchartinflationgenerator", "generators"),
        *("patchesstrategicmerge", "patches", "patchesjson6902", "replacements", "vars"),
        *("namespace", "nameprefix", "namesuffix", "commonlabels", "labels", "commonannotations"),
    }
)
_MOST = 5_000  # objects


@dataclass(slots=True)
class BuiltObject:
    """An object of a build."""

    data: Raw
    names: set[str]
    namespaces: set[str]
    files: set[str]  # which say what it is: its own and those of its patches
    inputs: tuple[Any, ...] = ()  # what they say
    by: tuple[str, ...] = ()  # the files that change more than its name
    unsure: str = ""  # why it is not known what becomes of it


class Loose(NamedTuple):
    """A patch that may be of objects which no file shows."""

    file: str
    data: Any
    is_harmless: bool
    charts: frozenset[str]  # files of charts that may have the object
    why: str


@dataclass(slots=True)
class Build:
    """What a kustomization makes; `unknown` says what else may make objects."""

    made: list[BuiltObject] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    loose: dict[tuple[str, int], Loose] = field(default_factory=dict)

    def copy(self) -> Build:
        """The same for another kustomization, which changes it."""
        made = [
            replace(e, names={*e.names}, namespaces={*e.namespaces}, files={*e.files})
            for e in self.made
        ]
        return Build(made, [*self.unknown], [*self.charts], {**self.loose})


@dataclass(slots=True)
class Builder:
    """Builds folders from the texts that `text_of` returns."""

    text_of: Callable[[str], str]
    _known: dict[str, Build] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def folder(self, folder: str, *, plain: bool = False) -> Build:
        """What the kustomization in a folder makes; `plain`: a folder may also have none."""
        folder = os.path.realpath(folder)
        if folder not in self._known:
            build = Build()
            try:
                self._apply(kustomization.file_of(folder), build)
            except InputError as error:
                if not plain:
                    build.unknown.append(str(error))
                for file in kustomization.manifests(folder) if plain else ():
                    self._add(file, build)
            self._known[folder] = build
        return self._known[folder].copy()

    def applied(self, given: kustomization.Applied) -> Build:
        """What an object of Flux or Argo CD makes of a folder."""
        build = self.folder(given.folder, plain=True)
        self._transform(given.file, Path(given.folder), _lowered(json.loads(given.fields)), build)
        return build

    def _apply(self, file: str, build: Build) -> None:
        if file in self._open:
            raise InputError(f"{file} includes itself")
        stream = documents.read(self.text_of(file))
        if stream.unread or not stream.documents:
            raise InputError(f"{file}: is not YAML")
        self._open.append(file)
        try:
            self._do(file, _lowered(as_map(stream.documents[0].data)), build)
        finally:
            self._open.pop()

    def _do(self, file: str, fields: Raw, build: Build) -> None:
        folder = Path(file).parent
        for each in (name for member in _LISTED for name in _texts(fields.get(member))):
            self._include(os.path.normpath(folder / each), each, build)
        self._transform(file, folder, fields, build)

    def _transform(self, file: str, folder: Path, fields: Raw, build: Build) -> None:
        for each in _texts(fields.get("components")):
            with suppress(InputError):
                component = kustomization.file_of(os.path.realpath(folder / each))
                self._apply(component, build)
                continue
            build.unknown.append(f"{each}, a component")
        for chart in charts_of(file, fields, self.text_of):
            build.charts.append(chart)
            build.unknown.append(f"{chart.name}, a chart")
        self._other_fields(file, fields, build)
        for section in ("patchesstrategicmerge", "patches"):
            self._patch(file, fields, section, build)
        rename(build.made, fields, file)
        label(build.made, fields, file)
        self._patch(file, fields, "patchesjson6902", build)

    def _other_fields(self, file: str, fields: Raw, build: Build) -> None:
        """What may change any object; a replacement or variable, if it names such a place."""
        unknown = sorted(fields.keys() - _HARMLESS - _DONE)
        others: list[tuple[str, Any, str]] = [
            (place, self.text_of(place), each)
            for each in unknown
            for place in sorted(kustomization.reached(str(Path(file).parent), fields[each]))
            or [file]
        ]
        others += [
            (place, data, "a replacement or variable")
            for place, data in self._replacements(file, fields)
            if not replaces_harmlessly(data)
        ]
        for number, (place, data, what) in enumerate(others):
            why = f"has {what}, which may change or read it"
            loose = Loose(place, data, is_harmless=False, charts=_files_of(build), why=why)
            build.loose[f"{file} others", number] = loose
            for made in build.made:
                made.unsure = made.unsure or f"{os.path.relpath(place)} {why}"
                made.files.add(place)
                made.inputs += (data,)

    def _replacements(self, file: str, fields: Raw) -> Iterator[tuple[str, Any]]:
        listed = (*as_items(fields.get("replacements")), *as_items(fields.get("vars")))
        for _, entry in listed:
            if not isinstance(name := entry.get("path"), str):
                yield file, entry
                continue
            place = os.path.realpath(Path(file).parent / name)
            for document in documents.read(self.text_of(place)).documents:
                found = document.data if isinstance(document.data, list) else [document.data]
                yield from ((place, each) for each in found)

    def _include(self, path: str, name: str, build: Build) -> None:
        if kustomization.is_remote(name) or not Path(path).exists():
            build.unknown.append(name)
        elif Path(path).is_file():
            self._add(path, build)
        else:
            below = self.folder(path)
            if len(build.made) + len(below.made) > _MOST:
                build.unknown.append(f"{name}, which has too many objects")
                return
            build.made += below.made
            build.unknown += below.unknown
            build.charts += below.charts
            build.loose |= below.loose

    def _add(self, file: str, build: Build) -> None:
        text = self.text_of(file)
        stream = documents.read(text, json=file.endswith(".json"))
        if stream.unread or not text:
            build.unknown.append(os.path.relpath(file))
        real = os.path.realpath(file)
        for document in stream.documents:
            for _, obj in objects(data_of(document)):
                metadata = as_map(obj.get("metadata"))
                names, spaces = ({str(metadata.get(e) or "")} for e in ("name", "namespace"))
                build.made.append(BuiltObject(obj, names, spaces, {real}, (obj,)))

    def _patch(self, file: str, fields: Raw, section: str, build: Build) -> None:
        for number, (place, target, data) in enumerate(self._patches(file, fields.get(section))):
            found, why = _found(build, target, data)
            if why or (build.unknown and target is not None) or not found:
                loose = Loose(
                    place, (target, data), is_harmless(data), _files_of(build), _elsewhere(build)
                )
                build.loose[f"{file} {section}", number] = loose
            for made in found:
                made.files.add(place)
                made.by += (place,)
                made.inputs += (data,)
                made.unsure = made.unsure or why
                try:
                    made.data = patched(made.data, data)
                except UnsureError:
                    made.unsure = made.unsure or "the result of the patch is not known"

    def _patches(self, file: str, entries: Any) -> Iterator[tuple[str, Raw | None, Any]]:
        """The file of each patch, its target and its data."""
        for _, entry in as_items([_entry(each) for each in entries or ()]):
            name, text = entry.get("path"), entry.get("patch")
            place = file
            if isinstance(name, str):
                place = os.path.realpath(Path(file).parent / name)
                text = self.text_of(place)
            target = as_map(entry["target"]) if entry.get("target") else None
            if not isinstance(text, str):  # a list of operations or an object, of Flux
                yield place, target, text if text is not None else entry
                continue
            for document in documents.read(text).documents:
                data = data_of(document)
                yield place, target, {"$options": 1} if entry.get("options") else data


def _files_of(build: Build) -> frozenset[str]:
    return frozenset(each for chart in build.charts for each in chart.files)


def _elsewhere(build: Build) -> str:
    """Why it is not known what a patch is of."""
    if build.unknown:
        return f"may be of {build.unknown[0]}, and its objects are not among the files of this run"
    return "is of no object in the files of this run"


def _lowered(written: Raw) -> Raw:
    """The fields that are not empty; kustomize reads them in any case."""
    return {name.lower(): value for name, value in written.items() if value}


def _entry(each: Any) -> Any:
    if isinstance(each, str):
        return {"patch": each} if "\n" in each or ":" in each else {"path": each}
    return each


def _texts(value: Any) -> list[str]:
    return [each for each in (value if isinstance(value, list) else ()) if isinstance(each, str)]


def _found(build: Build, target: Raw | None, data: Any) -> tuple[list[BuiltObject], str]:
    """The objects that a patch is of; and why that is not sure."""
    alive = [each for each in build.made if each.data]
    if target is None and isinstance(data, list):  # which kustomize refuses
        target = {}
    if target is not None:
        sure = [(each, _selects(target, each)) for each in alive]
        unsure = any(is_of is None for _, is_of in sure)
        return [e for e, is_of in sure if is_of is not False], (
            "it is not known what its target selects" if unsure else ""
        )
    obj = as_map(data)
    metadata = as_map(obj.get("metadata"))
    found = [
        each
        for each in alive
        if all(obj.get(e) == each.data.get(e) for e in ("apiVersion", "kind"))
        and metadata.get("name") in each.names
    ]
    if len(found) > 1:
        space = str(metadata.get("namespace") or "")
        found = [each for each in found if space in each.namespaces] or found
    return found, "several objects have this name" if len(found) > 1 else ""


def _selects(target: Raw, made: BuiltObject) -> bool | None:
    """Whether a target selects an object; None if that is not known."""
    group, _, version = str(made.data.get("apiVersion")).rpartition("/")
    own = {
        "group": {group},
        "version": {version},
        "kind": {str(made.data.get("kind"))},
        "name": made.names,
        "namespace": {each or "default" for each in made.namespaces},
    }
    for member, values in own.items():
        wanted = target.get(member)
        try:
            if wanted and not any(re.fullmatch(str(wanted), value) for value in values):
                return False
        except re.error:
            return None
    metadata = as_map(made.data.get("metadata"))
    sure: bool | None = True
    for member, holder in (("labelSelector", "labels"), ("annotationSelector", "annotations")):
        given = as_map(metadata.get(holder))
        for part in filter(None, str(target.get(member) or "").split(",")):
            found = _LABEL.fullmatch(part)
            if found is None:
                sure = None
            elif given.get(found["key"]) != found["value"]:
                return False
    return None if target.keys() - own.keys() - _SELECTORS else sure


_LABEL = re.compile(r"\s*(?P<key>[-\w./]+)\s*==?\s*(?P<value>[-\w.]*)\s*")
_SELECTORS = {"labelSelector", "annotationSelector"}
