"""Volumes that patches of a kustomization name: they stay in the patched manifests.

A patch may mount a volume of its base, in another container and from another folder. Without the
volume, kustomize builds a pod that the API server rejects.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.core.errors import InputError
from webhook.evaluation.workloads import tokens
from webhook.files.reading import text_of
from webhook.files.results import FileResult, Located, Plan, Status, in_order
from webhook.formats import kustomization, kustomize
from webhook.kube.pod import as_items
from webhook.kube.walk import walk
from webhook.projects import bases_and_patches
from webhook.projects.chart import migrated as migrate_in_chart
from webhook.rules import driver_paths, legacy_resource, missing_toleration
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.files.source import Source

_ANY = "*"  # not a valid name of a volume
_PATCHES = (*kustomization.PATCHES, "transformers")
_HELD_TOGETHER = bases_and_patches.ALL_OF_PODS | bases_and_patches.OF_VERSIONS
_LISTS = ("volumes", "volumeMounts", "env")  # which lose items together with a volume
# What an operation needs of such a list, before its name: the position of its items, or the list.
_COUNTED, _APPENDED = "#", "-"


def migrated(path: str, source: Source, plan: Plan) -> FileResult:
    """The result for a file; parts that the rest of its kustomizations needs stay as they are."""
    asked, plan = plan, kustomize.planned(path, plan)
    result = _with_volumes(path, source, plan)
    done = any(
        each.code in _HELD_TOGETHER and each.status is Status.FIXABLE for each in result.located
    )
    if not done:
        return result
    why, untolerated = bases_and_patches.why_held(path, _root(path), asked, _with_volumes)
    if not why:
        is_told = os.path.realpath(path) in untolerated and asked.asks(missing_toleration.CODE)
        return replace(result, located=_untolerated(result)) if is_told else result
    again = _with_volumes(path, source, replace(plan, ignored=(*plan.ignored, *sorted(why))))
    held = [
        each.undone(why[each.code]) if each.status is Status.FIXABLE else each
        for each in result.located
        if each.code in why
    ]
    return replace(again, located=in_order((*again.located, *held)))


def _untolerated(result: FileResult) -> tuple[Located, ...]:
    """The findings with a notice at the first amount; the pod may have the toleration elsewhere."""
    first = [each for each in result.located if each.code == legacy_resource.CODE][:1]
    code = missing_toleration.CODE
    more = [replace(e, code=code, message=_TOLERATE, status=Status.NOTICE, fix=()) for e in first]
    return in_order((*result.located, *more))


_TOLERATE = (
    "GPU nodes are usually tainted, and no file of this kustomization with GPUs tolerates them: "
    "add a toleration of nvidia.com/gpu:NoSchedule to the pod that gets these resources"
)


def _with_volumes(path: str, source: Source, plan: Plan) -> FileResult:
    """The same, with the driver volumes that a patch names."""
    result = migrate_in_chart(path, source, plan)
    code = driver_paths.CODE
    done = any(each.code == code and each.status is Status.FIXABLE for each in result.located)
    if result.new_text is None or not done:
        return result
    gone = Counter(_volumes(source.text)) - Counter(_volumes(result.new_text))
    gone += Counter(_items(source.text)) - Counter(_items(result.new_text))
    by = _index(_root(path)).get(os.path.realpath(path), {})  # patches, by the volumes they name
    patch = next((by[name] for name in (_ANY, *sorted(gone)) if name in by), "")
    if not patch:
        return result
    why = f"the patch {os.path.relpath(patch)} may mount it, too"
    if os.path.realpath(path) == patch:
        why = "this is a patch, and its base may mount it, too"
    return migrate_in_chart(path, source, replace(plan, held={code: why}))


def _volumes(text: str) -> Iterator[str]:
    for document in documents.read(text).documents:
        yield from _named(document.data, mounts=False)


def _items(text: str) -> Iterator[str]:
    """The lists in which patches count, and their items, each with its possible users."""
    for document in documents.read(text).documents:
        for at, _ in walk(document.data):
            if at and at[-1] in _LISTS:
                yield f"{_APPENDED}{at[-1]}"
            elif len(at) > 1 and at[-2] in _LISTS:
                yield f"{_COUNTED}{at[-2]}"


def _named(data: Any, *, mounts: bool = True) -> Iterator[str]:
    """The names of the volumes, and of mounts, in any data."""
    if isinstance(data, list):
        for item in data:
            yield from _named(item, mounts=mounts)
    if not isinstance(data, dict):
        return
    if mounts and "mountPath" in data:
        yield str(data.get("name", _ANY))
    for _, volume in as_items(data.get("volumes")):
        yield str(volume.get("name", _ANY))
    for value in data.values():
        yield from _named(value, mounts=mounts)


def _root(path: str) -> str:
    """The folder below which kustomizations may be that use the file."""
    above = Path(os.path.realpath(path)).parents
    root = next((each for each in above if os.path.lexists(each / ".git")), None)
    if root is None:  # no repository: overlays are usually beside the folder of their base
        here = Path(os.path.realpath(os.curdir))
        root = here if here in above else above[min(1, len(above) - 1)]
    return str(root)


@lru_cache(maxsize=4)
def _index(root: str) -> dict[str, dict[str, str]]:
    index: dict[str, dict[str, str]] = {}
    for folder in kustomization.folders(root):
        with suppress(InputError):  # reported with the kustomization itself
            _note(folder, index)
    return index


def _note(folder: str, index: dict[str, dict[str, str]]) -> None:
    """Record which files of this kustomization are patched, and by which patches."""
    files = kustomization.parts(folder).files
    by: dict[str, str] = {}
    for file in (each for each in files if Path(each).name in kustomization.NAMES):
        for place, text in _patches(file):
            if place != file:
                index.setdefault(place, {})[_ANY] = place
            for document in documents.read(text).documents:
                for name in (*_named(document.data), *_by_operations(document.data)):
                    by.setdefault(name, place)
    for file in files if by else ():
        known = index.setdefault(os.path.realpath(file), {})
        for name, place in by.items():
            known.setdefault(name, place)


def _patches(file: str) -> Iterator[tuple[str, str]]:
    """The patches of one kustomization, with their files."""
    for name, written in kustomization.patches(kustomization.read(file), _PATCHES):
        if not name:
            yield file, written
            continue
        place = os.path.realpath(Path(file).parent / name)
        if text := text_of(place):
            yield place, text


def _by_operations(data: Any) -> Iterator[str]:
    """The volumes that a JSON 6902 patch names: by a position, it may be any of them."""
    for _, operation in as_items(data):
        for member in ("path", "from"):
            yield from _counted(tokens(str(operation.get(member, ""))), operation)
        if "volumes" in tokens(str(operation.get("path", ""))):
            values = operation.get("value")
            for _, volume in as_items(values if isinstance(values, list) else [values]):
                yield str(volume.get("name", _ANY))


def _counted(way: tuple[str, ...], operation: dict[str, Any]) -> Iterator[str]:
    """The lists that must keep their length, or stay, so that this path keeps its meaning."""
    for name in (each for each in _LISTS if each in way):
        if way[-1] == "-":
            yield _APPENDED + name
        elif way[-1] != name:
            yield _COUNTED + name
        elif operation.get("op") != "add":
            yield _APPENDED + name
