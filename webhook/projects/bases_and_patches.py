"""Bases and patches of a kustomization: pods are migrated in all of these files, or in none.

A patch, a replacement or a variable finds an amount, a label or an annotation by its name. If only
one of the two is renamed, the build fails, or the pod gets both. A finding that needs manual work
in a patch is about the pods of its base: the webhook repairs it only while the amounts of these
pods are legacy, too (legacy_pods.py).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.errors import InputError
from webhook.core.rule import Trait
from webhook.files import search_words
from webhook.files.reading import stamp_of, text_of
from webhook.files.results import FileResult, Plan, Status
from webhook.files.source import Source
from webhook.files.walk import Wanted, which_is_met
from webhook.formats import kustomization, kustomize, legacy_pods
from webhook.kube.pod import SECTIONS
from webhook.kube.walk import walk
from webhook.projects import named_places, patch_places, patched_amounts
from webhook.projects.patch_places import Builds
from webhook.rules import (
    ALL,
    affinity_annotation,
    changed_default,
    codes,
    driver_paths,
    legacy_resource,
    missing_selector,
    model_label,
    tolerations_annotation,
)
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.core.settings import Settings

    Migrate = Callable[[str, Source, Plan], FileResult]
    _Bases = list[tuple["_File", list[named_places.Changed]]]

_BINDING = (*kustomization.PATCHES, "replacements", "transformers")
_NAMING = (*_BINDING, "vars", "commonAnnotations", "commonLabels", "labels")
# They write lists (tolerations, terms of affinity), and a list in a patch replaces the base's.
_OF_LISTS = (affinity_annotation.CODE, tolerations_annotation.CODE)
_LISTS = ("affinity", "tolerations")


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that must be migrated together, and those of them that name fields of the others."""

    files: frozenset[str]
    naming: frozenset[str]
    builds: Builds


@dataclass(frozen=True, slots=True)
class _Request:
    """The files of a group as they are now, and the options of the run."""

    group: _Group
    changed: tuple[tuple[int, int], ...]
    options: tuple[object, ...]
    plan: Plan = field(compare=False)
    migrate: Migrate = field(compare=False)


class Held(NamedTuple):
    """Why edits are not made in the files of a group, by their codes."""

    why: Mapping[str, str] = {}
    untolerated: frozenset[str] = frozenset()  # files whose patches give GPUs to such pods


# A patch may name any field of a pod. The volumes of the driver have their own reasons.
ALL_OF_PODS = frozenset(
    {rule.CODE for rule in ALL} - codes(Trait.OBJECT) - codes(Trait.VERSION) - {driver_paths.CODE}
)
# The API version of an object, and the fields that it needs: all of these edits, or none.
OF_VERSIONS = frozenset({*codes(Trait.VERSION), missing_selector.CODE, changed_default.CODE})


def why_held(path: str, root: str, plan: Plan, migrate: Migrate) -> Held:
    """Why some edits of this file are not made; empty if all may be made."""
    group = _index(root, search_words.words(plan.settings)).get(os.path.realpath(path))
    if group is None:
        return Held()
    options = (plan.codes, plan.ignored, plan.named, plan.excluded, plan.below)
    return _why(_Request(group, tuple(map(stamp_of, sorted(group.files))), options, plan, migrate))


@lru_cache(maxsize=256)
def _why(request: _Request) -> Held:
    group, plan = request.group, request.plan
    is_met = which_is_met(Wanted(plan.named, plan.below, plan.excluded))
    given = {file for file in group.files if not plan.named or is_met(file)}
    looks = [_File.of(file, group, request, file in given) for file in sorted(group.files)]
    by_file = {each.file: each for each in looks}
    patches = [
        replace(patch, builds=group.builds)
        for each in looks
        if each.file in group.naming
        for patch in each.patches(by_file)
    ]
    bases = [(look, named_places.changed(look.before, look.after, plan.settings)) for look in looks]
    held = dict.fromkeys(OF_VERSIONS, why) if (why := _of_versions(bases, patches)) else {}
    if why := _waiting(looks, group, plan):
        return Held({**held, **dict.fromkeys(legacy_pods.OF_PODS, why)})
    if why := _disagreement(looks, bases, patches, plan.settings):
        return Held({**held, **dict.fromkeys(ALL_OF_PODS, why)})
    return Held(held, _untolerated(looks, patches, plan.settings))


def _waiting(looks: list[_File], group: _Group, plan: Plan) -> str:
    """What stays in one of the files, and may be about the pods of the others."""
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
    return ""


def _untolerated(
    looks: list[_File], patches: list[patch_places.Patch], settings: Settings
) -> frozenset[str]:
    """The files whose patches give GPUs to pods of which no file tolerates GPU nodes."""
    lists = (value for each in looks for at, value in walk(each.after) if at[-1:] == _TOLERATIONS)
    if any(patched_amounts.tolerates(each, settings) for each in lists) or any(
        patched_amounts.brings_toleration(each, settings) for each in patches
    ):
        return frozenset()
    return frozenset(each.file for each in patches if patched_amounts.adds_gpus(each, settings))


_TOLERATIONS = ("tolerations",)


def _of_versions(bases: _Bases, patches: list[patch_places.Patch]) -> str:
    """Why a patch and the new version of what it patches do not fit together."""
    for patch in patches:
        for base in (each for look, found in bases if look.file != patch.file for each in found):
            if why := named_places.version_conflict(base, patch):
                return f"{os.path.relpath(patch.file)} {why}; change both by hand"
    return ""


def _disagreement(
    looks: list[_File], bases: _Bases, patches: list[patch_places.Patch], settings: Settings
) -> str:
    """Why a patch and the edits of what it patches do not fit together."""
    objects = [each for look in looks if not look.is_patch for each in look.after]
    file, why = patched_amounts.lacking(objects, patches, settings)
    if not why:
        was = [each for look in looks if not look.is_patch for each in look.before]
        file, why = patched_amounts.overriding(was, patches, settings)
    if why:
        return f"the patch {os.path.relpath(file)} {why}; {_BY_HAND}"
    for patch in patches:
        for base in (each for look, found in bases if look.file != patch.file for each in found):
            if why := named_places.conflict(base, patch, patches, settings):
                return f"the patch {os.path.relpath(patch.file)} {why}; {_BY_HAND}"
    return ""


_BY_HAND = "the pods would be others than now, so change both by hand"


def _stays(look: _File, finder: _File | None) -> str:
    given, file = os.path.relpath(finder.file if finder else look.file), os.path.relpath(look.file)
    if look is finder and look.is_given:
        return f"{given} finds it by this name, in a text that stays: change that by hand first"
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
        words = search_words.words(request.plan.settings)
        if is_given and _holds(text, words):  # the run does not read other files
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

    def patches(self, looks: dict[str, _File]) -> Iterator[patch_places.Patch]:
        """The patches that it has or names."""

        def read(name: str) -> tuple[str, list[Any], list[Any]]:
            file = os.path.realpath(Path(self.file).parent / name)
            if (look := looks.get(file)) is not None:
                return file, look.before, look.after
            data = _data(text_of(file))
            return file, data, data

        return patch_places.patches(self.before, self.after, read, self.file)

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
        for holder in patch_places.holders(data)
        for section in kustomization.PATCHES
        for _, value in walk(holder.get(section))
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
            _bind(files, partial(_naming, files[0]), words, index)
    for file, folder in kustomization.applied(root):
        _bind([file, *kustomization.manifests(folder)], partial(list, [file]), words, index)
    return index


def _bind(
    files: list[str],
    naming_of: Callable[[], Iterable[str]],
    words: tuple[bytes, ...],
    index: dict[str, _Group],
) -> None:
    legacy = {os.path.realpath(each) for each in files if _holds(text_of(each), words)}
    naming = frozenset(map(os.path.realpath, naming_of())) if legacy else frozenset()
    if not naming:
        return
    bound = naming.intersection(map(os.path.realpath, files)) | legacy
    kustomizations = {each for each in files if Path(each).name in kustomization.NAMES}
    groups = {index[each] for each in bound if each in index}
    joined = _Group(
        bound.union(*(each.files for each in groups)),
        naming.union(*(each.naming for each in groups)),
        _builds(bound, naming | kustomizations, (each.builds for each in groups)),
    )
    index.update(dict.fromkeys(joined.files, joined))


def _builds(bound: frozenset[str], said: frozenset[str], known: Iterable[Builds]) -> Builds:
    """The known kustomizations and one more; `said` are the files that describe it."""
    texts = [text_of(each) for each in sorted(said)]
    added = (any(map(each.search, texts)) for each in (_ADDS_NAMES, _ADDS_LABELS, _ADDS_NAMESPACE))
    one = Builds(frozenset({bound}), *added)
    return reduce(lambda a, b: Builds(a.files | b.files, *map(or_, a[1:], b[1:])), known, one)


# kustomize reads its fields in any case.
_ADDS_NAMES = re.compile(r"(?i)namePrefix|nameSuffix|fixTransformer")
_ADDS_LABELS = re.compile(r"(?i)labels(?!elector)|labelTransformer")
_ADDS_NAMESPACE = re.compile(
    r"(?im)^[\"']?namespace|\A\s*\{|namespaceTransformer|fluxcd\.io|argoproj\.io"
)


def _holds(text: str, words: tuple[bytes, ...]) -> bool:
    content = text.encode(errors="surrogatepass")
    return any(map(content.__contains__, words))


def _naming(file: str) -> Iterator[str]:
    """The files that name fields of others: the kustomization, its components, their patches."""
    for each, said in kustomization.with_components(file).items():
        if any(said.get(section) for section in _NAMING):
            yield os.path.realpath(each)
        for name, _ in kustomization.patches(said, _BINDING):
            path = os.path.realpath(Path(each).parent / name)
            if name and Path(path).is_dir():  # transformers have a kustomization of their own
                with suppress(InputError):  # reported as missing
                    yield from map(os.path.realpath, kustomization.parts(path).files)
            elif name:
                yield path
