"""Lists the files of a kustomization, as `kubectl apply -k` would read them."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.errors import InputError
from webhook.core.modes import is_opted_out
from webhook.evaluation.workloads import objects
from webhook.files.reading import UnreadableError, read_regular, text_of
from webhook.files.results import OptedOut
from webhook.files.source import Source
from webhook.formats.opt_outs import namespaces_left_alone
from webhook.kube.pod import as_items, as_map
from webhook.kube.walk import walk
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")  # in the order of kustomize
_FOLDERS = ("resources", "bases", "components")  # files or folders; bases were used before 2.1
PATCHES = ("patches", "patchesJson6902", "patchesStrategicMerge")
_FILES = ("patchesStrategicMerge", "crds", "configurations", "generators", "transformers")
_WITH_PATH = ("patches", "patchesJson6902", "replacements")
# A URL, user@host:path, or host/path?ref=: not on this machine.
_REMOTE = re.compile(
    r"[a-z][a-z0-9+.-]*:(//|:)|[^/@]+@[^/:]+:|github\.com[/:]|.*[?&]ref=", re.IGNORECASE
)
_MOST_FOLDERS = 20_000  # that are searched for kustomizations
_NOT_ENTERED = (".git", "node_modules")
_LARGEST = 4 << 20  # bytes


@dataclass(slots=True)
class Parts:
    """The files, each once and in order, and the names that cannot be read, with the reason."""

    files: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)


def parts(folder: str) -> Parts:
    """The files of the kustomization in this folder, and of all its bases and components.

    Raises InputError if there is no kustomization, or if it cannot be read.
    """
    found = Parts()
    _visit(folder, found, set())
    found.files = list(dict.fromkeys(found.files))
    return found


@lru_cache(maxsize=4)
def folders(root: str) -> tuple[str, ...]:
    """The folders below this one with a kustomization."""
    return tuple(folder for folder, files in _walked(root) if not set(files).isdisjoint(NAMES))


def _walked(root: str) -> Iterator[tuple[str, list[str]]]:
    """The folders below this one, with their files."""
    for folder, inner, files in islice(os.walk(root), _MOST_FOLDERS):
        inner[:] = sorted(set(inner).difference(_NOT_ENTERED))
        yield folder, files


class Applied(NamedTuple):
    """An object of Flux or Argo CD that changes what it builds of a folder."""

    file: str
    folder: str
    fields: str  # the fields of a kustomization that it stands for, as JSON


@lru_cache(maxsize=4)
def applied(root: str) -> tuple[Applied, ...]:
    """The objects of Flux and Argo CD below this folder that build folders below it."""
    found: list[Applied] = []
    for folder, files in _walked(root):
        for name in sorted(each for each in files if each.endswith((".yaml", ".yml"))):
            file = os.path.join(folder, name)  # noqa: PTH118  # of many files
            text = text_of(file)
            if "path" in text and (_FLUX in text or _ARGO in text):
                found += _applied(file, text, root)
    return tuple(found)


_FLUX, _ARGO = "kustomize.toolkit.fluxcd.io/", "argoproj.io/"
_OF_FLUX = (
    *("components", "namePrefix", "nameSuffix", "patches"),
    *("patchesJson6902", "patchesStrategicMerge"),
)
# They write nothing that `labels` and `commonAnnotations` do not write.
_OF_ARGO = frozenset(
    {
        *("apiVersions", "commonAnnotationsEnvsubst", "commonLabels", "forceCommonAnnotations"),
        *("forceCommonLabels", "ignoreMissingComponents", "kubeVersion", "labelIncludeTemplates"),
        *("labelWithoutSelector", "version"),
    }
)


def _applied(file: str, text: str, root: str) -> Iterator[Applied]:
    """Paths begin where the repository does, which may be below the root."""
    for document in documents.read(text).documents:
        for _, obj in objects(document.data):
            if str(obj.get("apiVersion")).startswith(_FLUX):
                given = [(as_map(obj.get("spec")), _fields_of_flux(as_map(obj.get("spec"))))]
            else:
                given = [(e, _fields_of_argo(as_map(e.get("kustomize")))) for e in sources(obj)]
            for source, said in given:
                name = source.get("path")
                starts = (Path(root), *Path(file).parents) if said and name else ()
                below = (os.path.realpath(start / str(name).lstrip("/")) for start in starts)
                for folder in islice(filter(os.path.isdir, below), 1):
                    yield Applied(file, folder, json.dumps(said, default=str))


def _fields_of_flux(spec: dict[str, Any]) -> dict[str, Any]:
    said = {each: spec[each] for each in _OF_FLUX if spec.get(each)}
    if namespace := spec.get("targetNamespace"):
        said["namespace"] = namespace
    if pairs := as_map(spec.get("commonMetadata")).get("labels"):
        said["labels"] = [{"pairs": pairs}]
    return said


def _fields_of_argo(given: dict[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in given.items() if name not in _OF_ARGO}
    if pairs := given.get("commonLabels"):
        options = {
            "includeSelectors": not given.get("labelWithoutSelector"),
            "includeTemplates": bool(given.get("labelIncludeTemplates")),
        }
        said["labels"] = [{"pairs": pairs, **options}]
    return said


def sources(data: Any) -> list[dict[str, Any]]:
    """The sources of an Application of Argo CD, or of those that an ApplicationSet makes."""
    spec = as_map(as_map(data).get("spec"))
    made = as_map(as_map(spec.get("template")).get("spec"))
    return [
        source
        for each in (spec, made)
        for source in (
            as_map(each.get("source")),
            *(one for _, one in as_items(each.get("sources"))),
        )
    ]


def manifests(folder: str) -> list[str]:
    """The files that Flux and Argo CD build of a folder, which needs no kustomization."""
    with suppress(InputError):
        return parts(folder).files
    return [str(each) for each in sorted(Path(folder).rglob("*.y*ml"))]


def known_of(file: str) -> tuple[OptedOut, bool]:
    """The opt-outs that the kustomization of this file sets, and whether the file is a patch of it.

    The kustomization is in the file's folder or above.
    """
    here = os.path.abspath(file)  # noqa: PTH100  # a link keeps its own name
    for above in Path(here).parents:
        name = next((each for each in NAMES if Path(above, each).is_file()), "")
        if name:
            said = _known(str(above / name))
            if here in said.names:
                return said.opted_out, here in said.patches
            break
        if Path(above, ".git").exists():
            break
    return OptedOut(), False


@dataclass(frozen=True, slots=True)
class _Known:
    """What a kustomization sets for the files that it names, itself included."""

    names: frozenset[str] = frozenset()
    patches: frozenset[str] = frozenset()
    opted_out: OptedOut = field(default_factory=OptedOut)


@lru_cache(maxsize=256)
def _known(file: str) -> _Known:
    """Cached, because it opens all files of the kustomization."""
    try:
        said = read(file)
    except InputError:  # reported with the kustomization itself
        return _Known()
    folder, name = os.path.split(file)
    names = {os.path.normpath(Path(folder, each)) for each in (name, *_named(said))}
    return _Known(
        frozenset(names),
        frozenset(os.path.normpath(Path(folder, each)) for each, _ in patches(said) if each),
        _opted_out(said, filter(os.path.isfile, sorted(names))),
    )


def opted_out_by(folder: str) -> OptedOut:
    """The opt-outs that the kustomization in this folder sets for everything that it builds."""
    return _opted_out(read(file_of(folder)), parts(folder).files)


def _opted_out(kustomization: dict[str, Any], files: Iterable[str]) -> OptedOut:
    """By the labels that it adds to objects, and by the namespace that it sets."""
    everywhere = is_opted_out(as_map(kustomization.get("commonLabels")))
    objects = templates = everywhere
    for _, given in as_items(kustomization.get("labels")):
        if is_opted_out(as_map(given.get("pairs"))):
            objects = True
            templates |= any(given.get(each) for each in ("includeSelectors", "includeTemplates"))
    namespaces: set[str] = set()
    for file in files:
        namespaces |= namespaces_left_alone(text_of(file), label=objects)
    namespace = kustomization.get("namespace")
    given_to_all = namespace if isinstance(namespace, str) else ""
    if namespaces and given_to_all:  # the label also applies to the namespace itself
        namespaces.add(given_to_all)
    return OptedOut(frozenset(namespaces), given_to_all, pods=objects, templates=templates)


def _visit(folder: str, found: Parts, seen: set[str]) -> None:
    real = os.path.realpath(folder)
    if real in seen:  # two overlays of one base, or a cycle, which kustomize reports itself
        return
    seen.add(real)
    file = file_of(folder)
    found.files.append(file)
    for name in _named(read(file)):
        if is_remote(name):
            found.missing.append((file, f"{name} is not on this machine"))
            continue
        path = Path(os.path.normpath(Path(folder, name)))
        if path.is_file():
            found.files.append(str(path))
        elif not path.is_dir():
            found.missing.append((file, f"{name} does not exist"))
        else:
            try:
                _visit(str(path), found, seen)
            except InputError as error:
                found.missing.append((file, str(error)))


def file_of(folder: str) -> str:
    """The kustomization in a folder. Raises InputError if there is none."""
    for name in NAMES:
        path = Path(folder, name)
        if path.is_file():
            return str(path)
    raise InputError(f"{folder}: holds no kustomization.yaml")


def reached(folder: str, value: Any, found: set[str] | None = None) -> set[str]:
    """The files that a value in a kustomization names, and those that these name."""
    found = set() if found is None else found
    for _, name in walk(value):
        place = os.path.realpath(Path(folder, name)) if _is_path(name) else ""
        if place and place not in found and Path(place).is_file():
            found.add(place)
            for document in documents.read(text_of(place)).documents:
                reached(folder, document.data, found)
        elif place and Path(place).is_dir():
            found |= {os.path.realpath(each) for each in manifests(place)}
    return found


def _is_path(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) < _LONGEST and name.isprintable()


_LONGEST = 255  # of a path


def is_remote(name: str) -> bool:
    """Whether a resource is not on this machine."""
    return _REMOTE.match(name) is not None


def is_component(folder: str) -> bool:
    """Whether a folder has a component: only the kustomizations that include it build something."""
    with suppress(InputError):  # reported with the kustomization itself
        return read(file_of(folder)).get("kind") == "Component"
    return False


def read(file: str) -> dict[str, Any]:
    """The content of a file of a kustomization. Raises InputError."""
    try:
        source = Source.of(file, read_regular(file, _LARGEST)[0])
    except UnreadableError as error:
        raise InputError(f"{file}: {error}") from error
    stream = documents.read(source.text)
    for each in stream.unread:
        raise InputError(f"{file}: {each.reason}")
    return as_map(stream.documents[0].data) if stream.documents else {}


def _named(kustomization: dict[str, Any]) -> Iterator[str]:
    """The paths in it; patches may also be inline."""
    for member in (*_FOLDERS, *_FILES):
        listed = kustomization.get(member)
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, str) and "\n" not in each:
                yield each
    for member in _WITH_PATH:
        for _, each in as_items(kustomization.get(member)):
            yield from _texts(each.get("path"))
    yield from _texts(as_map(kustomization.get("openapi")).get("path"))
    for _, chart in as_items(kustomization.get("helmCharts")):
        yield from _texts(chart.get("valuesFile"), *(chart.get("additionalValuesFiles") or ()))


def patches(kustomization: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each patch: its file, or an empty name and the inline text."""
    for section in PATCHES:
        listed = kustomization.get(section)
        for each in listed if isinstance(listed, list) else ():
            written, name = as_map(each).get("patch"), as_map(each).get("path", each)
            if isinstance(written, str):
                yield "", written
            elif isinstance(name, str):
                yield ("", name) if "\n" in name else (name, "")


def _texts(*values: object) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value:
            yield value
