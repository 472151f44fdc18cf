"""Lists the files of a kustomization, as `kubectl apply -k` would read them."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from webhook.core.errors import InputError
from webhook.core.modes import is_opted_out
from webhook.evaluation.workloads import objects
from webhook.files.reading import text_of
from webhook.files.results import OptedOut
from webhook.formats.opt_outs import namespaces_left_alone
from webhook.kube.pod import as_items, as_map
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
    found = []
    for number, (folder, inner, files) in enumerate(os.walk(root)):
        if number >= _MOST_FOLDERS:
            break
        inner[:] = sorted(set(inner).difference(_NOT_ENTERED))
        if not set(files).isdisjoint(NAMES):
            found.append(folder)
    return tuple(found)


@lru_cache(maxsize=4)
def applied(root: str) -> tuple[tuple[str, str], ...]:
    """Files with patches in objects of Flux or Argo CD, and the folders that these build."""
    found = []
    for number, (folder, inner, files) in enumerate(os.walk(root)):
        if number >= _MOST_FOLDERS:
            break
        inner[:] = sorted(each for each in inner if each not in _NOT_ENTERED)
        for name in sorted(each for each in files if each.endswith((".yaml", ".yml"))):
            file = os.path.join(folder, name)  # noqa: PTH118  # of many files
            text = text_of(file)
            if "patches" in text and any(group in text for group in _APPLYING):
                found += [(file, built) for built in _built(file, text, root)]
    return tuple(found)


_APPLYING = ("kustomize.toolkit.fluxcd.io/", "argoproj.io/")


def _built(file: str, text: str, root: str) -> Iterator[str]:
    """The folders: their paths begin where the repository does, which may be below the root."""
    for document in documents.read(text).documents:
        for _, obj in objects(document.data):
            for each in (as_map(obj.get("spec")), *sources(obj)):
                name = each.get("path")
                starts = (Path(root), *Path(file).parents) if isinstance(name, str) else ()
                below = (os.path.realpath(start / str(name).lstrip("/")) for start in starts)
                yield from islice(filter(os.path.isdir, below), 1)


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
    return _opted_out(read(_file_of(folder)), parts(folder).files)


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
        with suppress(OSError), Path(file).open("rb") as opened:
            text = opened.read(_LARGEST).decode(errors="replace")
            namespaces |= namespaces_left_alone(text, label=objects)
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
    file = _file_of(folder)
    found.files.append(file)
    for name in _named(read(file)):
        if _REMOTE.match(name):
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


def _file_of(folder: str) -> str:
    for name in NAMES:
        path = Path(folder, name)
        if path.is_file():
            return str(path)
    raise InputError(f"{folder}: holds no kustomization.yaml")


def with_components(file: str) -> dict[str, dict[str, Any]]:
    """The content of a kustomization, and of the components that it applies."""
    found = {file: read(file)}
    waiting = [file]
    for each in waiting:  # the list grows: a component may include others
        listed = found[each].get("components")
        for name in listed if isinstance(listed, list) else ():
            with suppress(InputError):  # reported as missing
                other = _file_of(os.path.realpath(Path(each).parent / str(name)))
                if other not in found:
                    found[other] = read(other)
                    waiting.append(other)
    return found


def read(file: str) -> dict[str, Any]:
    """The content of a file of a kustomization."""
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(_LARGEST + 1)
        return as_map(yaml.load(text, Loader=_LOADER)) if len(text) <= _LARGEST else {}  # noqa: S506
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        problem = str(error).partition("\n")[0]
        raise InputError(f"{file}: is not YAML: {problem}") from error


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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


def patches(
    kustomization: dict[str, Any], sections: Iterable[str] = PATCHES
) -> Iterator[tuple[str, str]]:
    """Each patch: its file, or an empty name and the inline text."""
    for section in sections:
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
