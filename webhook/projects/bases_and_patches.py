"""Bases and patches of a kustomization: pods are migrated in all of these files, or in none.

A patch, a replacement or a variable finds an amount, a label or an annotation by its name. If only
one of the two is renamed, the build fails, or the pod gets both. A finding that needs manual work
in a patch is about the pods of its base: the webhook repairs it only while the amounts of these
pods are legacy, too (legacy_pods.py).
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.core.errors import InputError
from webhook.files import search_words
from webhook.files.reading import stamp_of, text_of
from webhook.files.results import FileResult, Plan, Status
from webhook.files.source import Source
from webhook.files.walk import Wanted, which_is_met
from webhook.formats import kustomization, kustomize, legacy_pods
from webhook.kube.pod import SECTIONS
from webhook.kube.walk import walk
from webhook.rules import affinity_annotation, legacy_resource, model_label, tolerations_annotation
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Migrate = Callable[[str, Source, Plan], FileResult]

_BINDING = (*kustomization.PATCHES, "replacements", "transformers")
_NAMING = (*_BINDING, "vars", "commonAnnotations")
# They write lists (tolerations, terms of affinity), and a list in a patch replaces the base's.
_OF_LISTS = (affinity_annotation.CODE, tolerations_annotation.CODE)
_LISTS = ("affinity", "tolerations")
_OF_NODES = (model_label.CODE, affinity_annotation.CODE)


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that must be migrated together, and those of them that name fields of the others."""

    files: frozenset[str]
    naming: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Request:
    """The files of a group as they are now, and the options of the run."""

    group: _Group
    changed: tuple[tuple[int, int], ...]
    options: tuple[object, ...]
    plan: Plan = field(compare=False)
    migrate: Migrate = field(compare=False)


def why_held(path: str, root: str, plan: Plan, migrate: Migrate) -> str:
    """Why no pod in this file is changed; empty if pods may be changed."""
    group = _index(root, search_words.words(plan.settings)).get(os.path.realpath(path))
    if group is None:
        return ""
    options = (plan.codes, plan.ignored, plan.named, plan.excluded, plan.below)
    return _why(_Request(group, tuple(map(stamp_of, sorted(group.files))), options, plan, migrate))


@lru_cache(maxsize=256)
def _why(request: _Request) -> str:
    group, plan = request.group, request.plan
    is_met = which_is_met(Wanted(plan.named, plan.below, plan.excluded))
    given = {file for file in group.files if not plan.named or is_met(file)}
    looks = [_File.of(file, group, request, file in given) for file in sorted(group.files)]
    for look in (each for each in looks if each.file in group.naming):
        if code := next(look.left(plan), ""):
            return legacy_pods.elsewhere(code, f"the patch {os.path.relpath(look.file)}")
    finder = next((each for each in looks if each.file in group.naming and each.finds(plan)), None)
    for look in looks if finder is not None else ():
        if any(True for _ in _amounts(look.after, plan)):
            return _stays(look, finder)
    for look in looks if finder is not None else ():
        if code := next(look.left(plan), ""):
            return legacy_pods.elsewhere(code, os.path.relpath(look.file))
    for look in looks:
        others = (each for each in looks if each is not look and each.file in group.naming)
        if (changed := look.changed_lists()) and any(
            changed & set(_named_lists(each.before, plan)) for each in others
        ):
            where = f"the patch of {os.path.relpath(look.file)}"
            return legacy_pods.elsewhere(model_label.CODE, where)
    return ""


def _stays(look: _File, finder: _File | None) -> str:
    given, file = os.path.relpath(finder.file if finder else look.file), os.path.relpath(look.file)
    if look.is_given:
        return f"{given} finds it by this name, and {file} needs manual work first"
    return (
        f"{given} finds it by this name, and {file} is not among the files of this run: name all "
        "files of that kustomization, as -k does"
    )


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is, and as it would be after this run."""

    file: str
    before: list[Any]
    after: list[Any]
    done: frozenset[str]  # codes of the edits
    is_given: bool
    is_patch: bool

    @classmethod
    def of(cls, file: str, group: _Group, request: _Request, is_given: bool) -> _File:  # noqa: FBT001
        text = text_of(file)
        made = FileResult(file)
        if is_given:
            name = os.path.relpath(file)
            plan = kustomize.planned(name, request.plan)
            made = request.migrate(name, Source.of_text(name, text), plan)
        done = {each.code for each in made.located if each.status is Status.FIXABLE}
        after = text if made.new_text is None else made.new_text
        is_patch = file in group.naming and Path(file).name not in kustomization.NAMES
        return cls(file, _data(text), _data(after), frozenset(done), is_given, is_patch)

    def left(self, plan: Plan) -> Iterator[str]:
        """Codes of findings about pods in a patch that remain after this run."""
        for text in _texts(self.after):
            yield from (code for code, _, _ in legacy_pods.words(text, plan))
        if self.is_patch:
            yield from (code for code in _OF_LISTS if code in self.done)
            if _how_many(self.after, plan) < _how_many(self.before, plan):
                yield legacy_resource.CODE  # 0 or null removes the base's amount
            if "affinity" in self.changed_lists() and model_label.CODE in self.done:
                yield model_label.CODE

    def finds(self, plan: Plan) -> bool:
        """Whether it names amounts."""
        return any(True for _ in _amounts(self.before, plan))

    def changed_lists(self) -> set[str]:
        """The lists of a pod whose items change because an annotation is converted into them."""
        if self.done.isdisjoint({*_OF_LISTS, model_label.CODE}):
            return set()
        return {
            name
            for name in (_LISTS if tolerations_annotation.CODE in self.done else _LISTS[:1])
            if Counter(map(repr, _lists(self.before, name)))
            != Counter(map(repr, _lists(self.after, name)))
        }


def _lists(data: Any, name: str) -> Iterator[Any]:
    return (value for at, value in walk(data) if at[-1:] == (name,))


def _named_lists(data: Any, plan: Plan) -> Iterator[str]:
    """The lists that a patch writes, or would have to write."""
    for text in _texts(data):
        yield from ("affinity" for code, *_ in legacy_pods.words(text, plan) if code in _OF_NODES)
        yield from (each for each in _LISTS if each in text.split("/"))


def _amounts(data: Any, plan: Plan) -> Iterator[str]:
    """The GPU amounts under a legacy name: by a field, or by a path to one."""
    for at, value in walk(data):
        holder = at[-2] if len(at) > 1 else ""
        if holder in (*SECTIONS, "value") and at[-1] in plan.settings.legacy_resources:
            yield str(at[-1])
        if isinstance(value, str) and kustomize.names_legacy(value, plan.settings):
            yield value


def _how_many(data: Any, plan: Plan) -> int:
    """The number of GPU amounts, under any name, including 0 and null."""
    names = {*plan.settings.legacy_resources, plan.settings.gpu_resource}
    return sum(at[-2] in SECTIONS and at[-1] in names for at, _ in walk(data) if len(at) > 1)


def _texts(data: Any) -> Iterator[str]:
    """Every name and text, without the escapes of paths."""
    for at, value in walk(data):
        for each in (at[-1] if at else "", value):
            if isinstance(each, str):
                yield each.replace("~1", "/").replace("\\.", ".")


def _data(text: str) -> list[Any]:
    """The data of the documents, and of the inline patches in them."""
    found = [each.data for each in documents.read(text).documents]
    written = [
        value
        for data in found
        for section in kustomization.PATCHES
        for _, value in walk(data.get(section) if isinstance(data, dict) else None)
        if isinstance(value, str) and (":" in value)
    ]
    return [*found, *(each.data for text in written for each in documents.read(text).documents)]


@lru_cache(maxsize=4)
def _index(root: str, words: tuple[bytes, ...]) -> dict[str, _Group]:
    """The group of each file: kustomizations that share a file are one group."""
    index: dict[str, _Group] = {}
    for folder in kustomization.folders(root):
        with suppress(InputError):  # reported with the kustomization itself
            files = kustomization.parts(folder).files
            legacy = {os.path.realpath(each) for each in files if _holds(text_of(each), words)}
            naming = frozenset(_naming(files[0])) if legacy else frozenset()
            if not naming:
                continue
            bound = naming.intersection(map(os.path.realpath, files)) | legacy
            groups = {index[each] for each in bound if each in index}
            joined = _Group(
                bound.union(*(each.files for each in groups)),
                naming.union(*(each.naming for each in groups)),
            )
            index.update(dict.fromkeys(joined.files, joined))
    return index


def _holds(text: str, words: tuple[bytes, ...]) -> bool:
    content = text.encode(errors="surrogatepass")
    return any(each in content for each in words)


def _naming(file: str) -> Iterator[str]:
    """The files that name fields of others: the kustomization, its components, their patches."""
    for each, said in kustomization.with_components(file).items():
        if any(said.get(section) for section in _NAMING):
            yield os.path.realpath(each)
        for name, _ in kustomization.patches(said, _BINDING):
            if name:
                yield os.path.realpath(Path(each).parent / name)
