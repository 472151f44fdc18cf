"""Reads patches of kustomizations: documents in, the places that each patch names out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.evaluation.workloads import tokens
from webhook.formats import kustomization
from webhook.kube.pod import SECTIONS, as_items, as_map
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Raw = dict[str, Any]
    Place = tuple[str, ...]

ANY = "*"
SELECTOR = ("spec", "selector")
IN_SECTIONS = {(each,) for each in SECTIONS}  # as the end of a place
LABELS = ("spec", "template", "metadata", "labels")
# Lists in which a strategic merge patch finds the items by their names; it replaces all others.
_BY_NAME = frozenset({"containers", "initContainers", "env", "ports", "volumeMounts", "volumes"})
_IN_PATH = re.compile(r"\[([^\]]*)\]|((?:\\.|[^.\[\\])+)")


class Named(NamedTuple):
    """A place that a patch names, and what it does there."""

    at: Place
    needs: Place | None = None  # the place that must be there
    reads: bool = False
    writes: bool = True
    value: Any = None


class Builds(NamedTuple):
    """The kustomizations of a group: their files, and what they add to objects."""

    files: frozenset[frozenset[str]] = frozenset()  # those of each, as far as they matter
    names: bool = False  # prefixes or suffixes
    labels: bool = False
    namespace: bool = False


@dataclass(frozen=True, slots=True)
class Patch:
    """The places that one patch names, before this run and after it."""

    file: str
    target: Raw
    before: list[Named] = field(default_factory=list)
    after: list[Named] = field(default_factory=list)
    target_after: Raw = field(default_factory=dict)
    builds: Builds = field(default_factory=Builds, kw_only=True)  # of its group


def patches(
    before: list[Any],
    after: list[Any],
    read: Callable[[str], tuple[str, list[Any], list[Any]]],
    file: str,
) -> Iterator[Patch]:
    """The patches of a kustomization; `read` gives a file that it names, and its documents."""
    for old, new in zip(before, after, strict=False):
        pairs: Iterator[tuple[Raw, Raw]] = zip_longest(_entries(old), _entries(new), fillvalue={})
        for one, other in pairs:
            name = _file_in(one)
            place, *both = read(name) if name else (file, _written(one), _written(other))
            for each, then in zip_longest(*both, fillvalue={}):
                if is_of_fields(each):
                    yield from _fields(place, each, then)
                    continue
                pair = ((one, each), (other, then))
                target, becomes = (as_map(e.get("target")) or _target(data) for e, data in pair)
                yield Patch(place, target, list(_named(each)), list(_named(then)), becomes)
        labels = list(_labels(old))
        if labels:
            yield Patch(file, {}, labels, labels)


def is_of_fields(data: Any) -> bool:
    """Whether it is a replacement, a list of them, or a variable."""
    first = data[0] if isinstance(data, list) and data else data
    return not {"targets", "objref"}.isdisjoint(as_map(first))


def _entries(data: Any) -> Iterator[Raw]:
    """The patches, replacements and variables of a kustomization, of Flux, or of Argo CD."""
    for said in holders(data):
        for section in (*kustomization.PATCHES, "transformers", "replacements", "vars"):
            listed = said.get(section)
            for each in listed if isinstance(listed, list) else ():
                if section == "transformers" and "\n" in str(each):
                    for document in documents.read(str(each)).documents:
                        yield from _of_transformer(document.data)
                else:
                    yield each if isinstance(each, dict) else {"path": each}
    yield from _of_transformer(data)


def _of_transformer(data: Any) -> Iterator[Raw]:
    transformer = as_map(data)
    if str(transformer.get("kind", "")).endswith("Transformer"):
        yield transformer
        paths = transformer.get("paths")
        yield from ({"path": each} for each in (paths if isinstance(paths, list) else ()))


def holders(data: Any) -> tuple[Raw, ...]:
    """Maps that may have patches: a kustomization, or the parts of an object that stand for one."""
    spec = as_map(as_map(data).get("spec"))
    sources = kustomization.sources(data)
    return as_map(data), spec, *(as_map(each.get("kustomize")) for each in sources)


def _labels(data: Any) -> Iterator[Named]:
    """The labels that a kustomization gives to templates, and to selectors, which it creates."""
    for said in holders(data):
        given = [({"includeSelectors": True}, said.get("commonLabels"))]
        given += [(each, each.get("pairs")) for _, each in as_items(said.get("labels"))]
        for options, pairs in given:
            for name in as_map(pairs):
                if options.get("includeSelectors"):
                    yield Named((*SELECTOR, "matchLabels", str(name)))
                elif options.get("includeTemplates"):
                    yield Named((*LABELS, str(name)))


def _file_in(entry: Raw) -> str:
    name = entry.get("path")
    return name if isinstance(name, str) and "\n" not in name else ""


def _written(entry: Raw) -> list[Any]:
    if "targets" in entry or "objref" in entry:
        return [entry]
    listed = entry.get("replacements")
    if isinstance(listed, list):
        return listed
    for name in ("patch", "jsonOp", "patches", "path"):
        if isinstance(text := entry.get(name), list):  # of operations, in older objects of Flux
            return [text]
        if isinstance(text, str):
            return [each.data for each in documents.read(text).documents]
    return []


def _target(data: Any) -> Raw:
    obj = as_map(data)
    named = {each: obj.get(each) for each in ("apiVersion", "kind")}
    return {**named, "name": as_map(obj.get("metadata")).get("name")}


def _fields(file: str, data: Any, then: Any) -> Iterator[Patch]:
    """Replacements and variables."""
    pair = (each if isinstance(each, list) else [each] for each in (data, then))
    for old, new in zip(*pair, strict=False):
        if "objref" in as_map(old):
            was, now = (
                _field(as_map(each.get("fieldref")).get("fieldpath")) for each in (old, new)
            )
            yield Patch(file, as_map(old["objref"]), was, now, as_map(new.get("objref")))
            continue
        source, then_of = (as_map(as_map(each).get("source")) for each in (old, new))
        was, now = (_field(each.get("fieldPath")) for each in (source, then_of))
        yield Patch(file, source, was, now, then_of)
        targets = (as_items(as_map(each).get("targets")) for each in (old, new))
        for (_, one), (_, other) in zip(*targets, strict=False):
            select, becomes = (as_map(each.get("select")) for each in (one, other))
            yield Patch(file, select, _written_to(one), _written_to(other), becomes)


def _written_to(target: Raw) -> list[Named]:
    creates, paths = as_map(target.get("options")).get("create"), target.get("fieldPaths")
    places = [each.at for path in paths or () for each in _field(path)]
    return [Named(at, None if creates else at) for at in places]


def _field(path: Any) -> list[Named]:
    """What a path of fields reads; without one, it is the name of the object."""
    found = []
    for inside, plain in _IN_PATH.findall(str(path or "metadata.name")):
        token = plain.replace("\\.", ".") if plain else inside
        found.append(ANY if inside and "=" in inside else token)
    at = tuple(found)
    return [Named(at, at, reads=True, writes=False)]


def _named(data: Any) -> Iterator[Named]:
    """The places in a patch of either kind."""
    if not isinstance(data, list):
        for member, value in as_map(data).items():
            if member not in {"apiVersion", "kind"}:
                yield from _merged(value, (member,))
        return
    for _, operation in as_items(data):
        verb = operation.get("op")
        at, start = (_pointer(operation.get(each)) for each in ("path", "from"))
        if verb in {"move", "copy"}:
            yield Named(start, start, reads=True, writes=verb == "move")
        if verb in {"remove", "replace", "test"}:
            yield Named(at, at, verb == "test", verb != "test", operation.get("value"))
        elif at:
            is_item = at[-1] == "-" or at[-1].isdigit()
            yield Named(at, at[:-1], writes=not is_item, value=operation.get("value"))


def _pointer(text: Any) -> Place:
    return tuple(tokens(text)) if isinstance(text, str) else ()


def _merged(data: Any, at: Place) -> Iterator[Named]:
    """What a strategic merge patch writes."""
    if isinstance(data, dict) and data.get("$patch") not in {"replace", "delete"}:
        for name, value in data.items():
            if not str(name).startswith("$"):
                yield from _merged(value, (*at, str(name)))
    elif isinstance(data, list) and at[-1] in _BY_NAME:
        for _, item in as_items(data):
            whole = item == {"$patch": "replace"}
            yield from [Named(at)] if whole else _merged(item, (*at, ANY))
    else:
        yield Named(at, value=data)


def is_of(obj: Any, patch: Patch) -> bool:
    """Whether the patch may be of this object; names get prefixes, and targets are patterns."""
    target, builds = patch.target, patch.builds
    given = as_map(as_map(obj).get("metadata"))
    kind, namespace, own = target.get("kind"), given.get("namespace"), str(given.get("name"))
    if isinstance(kind, str) and kind.isalnum() and kind != as_map(obj).get("kind"):
        return False
    if _is_plain(name := target.get("name")) and name != own:
        return builds.names and own in str(name)
    wanted = target.get("namespace")
    if not builds.namespace and namespace and _is_plain(wanted) and wanted != namespace:
        return False
    labels, selector = as_map(given.get("labels")), str(target.get("labelSelector") or "")
    parts = filter(None, map(_LABEL.fullmatch, selector.split(",")))
    return builds.labels or all(labels.get(each["key"]) == each["value"] for each in parts)


_LABEL = re.compile(r"\s*(?P<key>[-\w./]+)\s*==?\s*(?P<value>[-\w.]*)\s*")


def _is_plain(name: Any) -> bool:
    """Whether it is a name, and not a pattern."""
    return isinstance(name, str) and re.fullmatch(r"[-\w]+", name) is not None


def values(obj: Any, at: Place) -> Iterator[Any]:
    here = [obj]
    for token in at:
        below = [dict(enumerate(each)) if isinstance(each, list) else each for each in here]
        maps = [each for each in below if isinstance(each, dict)]
        keys = (token, number(token))
        here = [v for each in maps for k, v in each.items() if token == ANY or k in keys]
    yield from here


def in_other_section(at: Place) -> Place:
    """The place of the same amount in requests, if it is in limits, or the reverse."""
    return (*at[:-2], "requests" if at[-2] == "limits" else "limits", at[-1])


def number(token: str) -> int:
    return int(token) if token.isdecimal() else -1


def begins(at: Place, whole: Place) -> bool:
    return len(at) <= len(whole) and meets(at, whole)


def meets(one: Place, other: Place) -> bool:
    return all(a == b or ANY in (a, b) for a, b in zip(one, other, strict=False))


def shown(at: Place) -> str:
    return ".".join(at)


def are_together(patch: Patch, other: Patch) -> bool:
    """Whether every kustomization with the patch has the other, too."""
    return all(other.file in each for each in patch.builds.files if patch.file in each)
