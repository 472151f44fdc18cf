"""Places of a base that a patch names: an edit there is made in both, or in none.

kustomize fails if an operation names a place that an edit has removed. An edit with several parts
(an old label becomes a term of the affinity) is right only if a patch replaces all of it or
nothing: an overlay that replaces the nodeSelector has dropped the model of its base, and must not
get it back as an affinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.evaluation.workloads import objects
from webhook.kube.pod import as_map
from webhook.projects.patch_places import (
    ANY,
    IN_SECTIONS,
    LABELS,
    SELECTOR,
    Named,
    Patch,
    are_together,
    begins,
    in_other_section,
    is_of,
    meets,
    number,
    shown,
    values,
)
from webhook.projects.patched_amounts import tolerates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings

    Raw = dict[str, Any]
    Place = tuple[str, ...]

_MISSING: Any = object()
_OF_DRIVER = frozenset({"env", "volumeMounts", "volumes"})  # overlays.py


class _Change(NamedTuple):
    at: Place
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Changed:
    """An object of a file as it is and as it would be, and what changes in it."""

    before: Any
    after: Any
    changes: list[_Change]  # without amounts that only get the current name: patches get it, too
    amounts: frozenset[Place]  # which change, in limits and in requests
    is_of_pods: bool  # whether anything of its pods changes
    of_version: tuple[Place, ...]  # what its API version or kind needs, and changes


def changed(before: list[Any], after: list[Any], settings: Settings) -> list[Changed]:
    """The objects in the documents of a file that change."""
    found = []
    for old, new in zip(before, after, strict=False):
        for (_, obj), (_, made) in zip(objects(old), objects(new), strict=False):
            changes, of_version = list(_changes(obj, made)), tuple(_of_version(obj, made))
            if changes or of_version:
                rest = list(_without_renames(changes, settings))
                amounts = frozenset(
                    each.at for each in changes if each.at[-1] == settings.gpu_resource
                )
                found.append(Changed(obj, made, rest, amounts, bool(changes), of_version))
    return found


def _of_version(before: Any, after: Any) -> Iterator[Place]:
    for at in sorted(_OF_VERSION):
        old, new = (list(values(each, at)) for each in (before, after))
        if old != new and new:
            yield at


_STRATEGIES = (("spec", "strategy"), ("spec", "updateStrategy"))
_OF_VERSION = frozenset({("apiVersion",), ("kind",), SELECTOR, *_STRATEGIES})


def version_conflict(base: Changed, patch: Patch) -> str:
    """What the new API version of this object, and what it needs, do to the patch; or empty."""
    if not base.of_version or not is_of(base.before, patch):
        return ""
    if _finds(patch.target, base.before) and not _finds(patch.target_after, base.after):
        obj = as_map(base.before)
        named = f"{obj.get('kind')} of {obj.get('apiVersion')}"
        return f"is for a {named}, and would no longer find it"
    for old, new in zip(patch.before, patch.after, strict=False):
        if old.needs is not None and "template" not in old.at:
            if _is_lost(base, old, new):
                return f"names {shown(old.at)}, which would no longer be there"
            if old.reads and any(meets(old.at, at) for at in base.of_version):
                return f"reads {shown(old.at)}, which would change"
    for each in (each for each in patch.after if each.writes):
        if SELECTOR in base.of_version and (meets(each.at, SELECTOR) or meets(each.at, LABELS)):
            return (
                f"writes {shown(each.at)}, so the selector that its base would get selects by "
                "other labels than now, and the API server refuses to change a selector"
            )
        if any(at in base.of_version and meets(each.at, at) for at in _STRATEGIES) and not (
            _fits_strategy(each)
        ):
            return (
                f"writes {shown(each.at)}, which does not fit the strategy that its base would "
                "get: the default of the old version"
            )
    return ""


def _finds(target: Raw, obj: Any) -> bool:
    """Whether group, version and kind of a target, as far as it has them, are of this object."""
    group, _, version = str(as_map(obj).get("apiVersion")).rpartition("/")
    own = {"group": group, "version": version, "kind": as_map(obj).get("kind")}
    wanted = dict(target)
    if isinstance(said := target.get("apiVersion"), str):
        wanted["group"], _, wanted["version"] = said.rpartition("/")
    return all(wanted.get(each) in {None, "", value} for each, value in own.items())


def _fits_strategy(named: Named) -> bool:
    """Whether a patch may write it beside the strategy that was the default."""
    if named.at[2:] == ("type",):
        return isinstance(named.value, str) and named.value != "Recreate"
    return len(named.at) > len(("spec", "strategy", "rollingUpdate")) and named.value is not None


def conflict(base: Changed, patch: Patch, patches: list[Patch], settings: Settings) -> str:
    """What the edits of this object and the patch do not agree on; empty if they do."""
    if not base.is_of_pods or not is_of(base.before, patch):
        return ""
    for old, new in zip(patch.before, patch.after, strict=False):
        is_needed = old.needs is not None and _OF_DRIVER.isdisjoint(old.at)
        if is_needed and _is_lost(base, old, new):
            return f"names {shown(old.at)}, which would no longer be there"
        if old.reads and any(meets(old.at, each.at) for each in base.changes):
            return f"reads {shown(old.at)}, which would change"
    return _half_replaced(base.changes, patch, settings) or _unequal(base, patch, patches)


def _half_replaced(changes: list[_Change], patch: Patch, settings: Settings) -> str:
    rest: list[tuple[_Change, Named | None]] = []
    for change in changes:
        writers = patch.after if change.before is _MISSING else patch.before
        by = next((each for each in writers if each.writes and begins(each.at, change.at)), None)
        if not _is_gpu_toleration(change, settings):
            rest.append((change, by))
        elif by is not None and not tolerates(by.value, settings):
            return (
                f"replaces {shown(change.at)}: add a toleration of nvidia.com/gpu:NoSchedule there"
            )
    replaced = [by for _, by in rest if by is not None]
    if replaced and len(replaced) < len(rest):
        return f"replaces {shown(replaced[0].at)}, which is only a part of what would change"
    return ""


def _unequal(base: Changed, patch: Patch, patches: list[Patch]) -> str:
    """An amount of the base in limits and requests of which only one is replaced."""
    for at in base.amounts:
        other = in_other_section(at)
        if other not in base.amounts or not _writes(patch, at):
            continue
        if not any(
            _writes(each, other) and are_together(patch, each) and is_of(base.before, each)
            for each in patches
        ):
            return f"replaces the GPUs in {at[-2]} alone, and the base has them in {other[-2]}, too"
    return ""


def _writes(patch: Patch, at: Place) -> bool:
    return any(each.writes and begins(each.at, at) for each in patch.after)


def _changes(before: Any, after: Any, at: Place = ()) -> Iterator[_Change]:
    """The values and lists that differ, also those in a map that only one of the two has."""
    if at in _OF_VERSION or at[-1:] in _DRIVER_LISTS:
        return
    if isinstance(before, dict) or isinstance(after, dict):
        if not all(isinstance(each, dict) or each is _MISSING for each in (before, after)):
            yield _Change(at, before, after)
            return
        old, new = as_map(before), as_map(after)
        for name in {**old, **new}:
            place = (*at, str(name))
            yield from _changes(old.get(name, _MISSING), new.get(name, _MISSING), place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for position, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(one, other, (*at, str(position)))
    elif before != after:
        yield _Change(at, before, after)


_DRIVER_LISTS = {(each,) for each in _OF_DRIVER}


def _without_renames(changes: list[_Change], settings: Settings) -> Iterator[_Change]:
    """Without amounts that only get the current name: patches get it, too."""
    legacy, today = settings.legacy_resources, settings.gpu_resource
    amounts = {each.at: each for each in changes if each.at[-2:-1] in IN_SECTIONS}
    renamed = set()
    for at, change in amounts.items():
        new = amounts.get((*at[:-1], today))
        if at[-1] in legacy and new is not None and new.after == change.before:
            renamed |= {at, new.at}
    yield from (each for each in changes if each.at not in renamed)


def _is_gpu_toleration(change: _Change, settings: Settings) -> bool:
    before = [] if change.before is _MISSING else change.before
    if change.at[-1] != "tolerations" or not isinstance(change.after, list):
        return False
    added = change.after[len(before) :]
    return change.after[: len(before)] == before and all(
        settings.is_gpu(str(as_map(each).get("key"))) for each in added
    )


def _is_lost(base: Changed, old: Named, new: Named) -> bool:
    """Whether the place that a patch needs is in the object now, and would not be."""
    return _is_there(base.before, old.needs) and not _is_there(base.after, new.needs)


def _is_there(obj: Any, at: Place | None) -> bool:
    here = obj
    for token in at or ():
        if isinstance(here, list):
            here = dict(enumerate(here))
            found = here.get(0 if token == ANY else number(token), _MISSING)
        else:
            found = as_map(here).get(token, _MISSING)
        if found is _MISSING:
            return False
        here = found
    return True
