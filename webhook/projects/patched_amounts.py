"""Amounts of GPUs that patches give to the objects of their bases, and what is wrong with them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from webhook.evaluation.workloads import objects
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS
from webhook.kube.pointer import Path
from webhook.kube.walk import walk
from webhook.projects.patch_places import (
    IN_SECTIONS,
    Patch,
    are_together,
    in_other_section,
    is_of,
    meets,
    shown,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.core.settings import Settings

    Raw = dict[str, Any]
    Place = tuple[str, ...]


def lacking(bases: list[Any], patches: list[Patch], settings: Settings) -> tuple[str, str]:
    """A patch whose amount the API server would refuse under the current name, and why."""
    today = settings.gpu_resource
    given = [(patch, at, value) for patch in patches for at, value in _given(patch, today)]
    for patch, at, value in given:
        amount = _amount(value)
        if isinstance(amount, Fraction) and not quantity.is_whole(amount):
            return patch.file, f"gives {value} {today}, which must be whole"
        other = in_other_section(at)
        found = list(_objects_of(bases, patch))
        together = [
            (place, _amount(also))
            for one, place, also in given
            if are_together(patch, one) and all(is_of(each, one) for each in found)
        ]
        here, there = (
            {also for place, also in together if len(place) == len(way) and meets(way, place)}
            for way in (at, other)
        )
        if here & there:  # of several patches, the last may make them equal
            continue
        if there:
            why = f"gives {value} {today} in {at[-2]}, and another amount in {other[-2]}"
            return patch.file, why
        amounts = [[_amount(v) for v in values(each, other)] for each in found]
        is_alone = at[-2] == "requests" and not (amounts and all(amounts))
        if is_alone or any(each != amount for known in amounts for each in known):
            return (
                patch.file,
                f"gives {value} {today} in {at[-2]} alone: give it in {other[-2]}, too",
            )
    return "", ""


def overriding(bases: list[Any], patches: list[Patch], settings: Settings) -> tuple[str, str]:
    """A patch whose amount would replace a larger one, which now has another name, and why.

    Two names are next to each other, and the pod runs with the larger amount.
    """
    today = settings.gpu_resource
    for patch in patches:
        for old, new in zip(patch.before, patch.after, strict=False):
            if not (old.writes and new.at[-1:] == (today,) and new.at[-2:-1] in IN_SECTIONS):
                continue
            is_renamed = old.at[-1:] != new.at[-1:]
            for name in (today,) if is_renamed else settings.legacy_resources:
                found = _beside(bases, patches, patch, (*new.at[:-1], name))
                larger = next((each for each in found if _is_larger(each, old.value)), None)
                if larger is not None:
                    why = f"names {shown(old.at)}, and the pod already has {larger} {name}"
                    return patch.file, why
    return "", ""


def _beside(bases: list[Any], patches: list[Patch], patch: Patch, place: Place) -> Iterator[Any]:
    """The values at this place in what the patch is of, and in the patches of the same build."""
    yield from (value for obj in _objects_of(bases, patch) for value in values(obj, place))
    for other in patches:
        if any({patch.file, other.file} <= build for build in patch.builds.files):
            for each in (each for each in other.before if each.writes):
                for at, value in walk(each.value, Path(each.at)):
                    if len(at) == len(place) and meets(tuple(map(str, at)), place):
                        yield value


def _amount(value: Any) -> Fraction | str:
    """The amount, or a text that is inserted later: it equals the same text alone."""
    amount = quantity.parse(value)
    return str(value) if amount is None else amount


def _is_larger(value: Any, given: Any) -> bool:
    """Whether it is not known that the value is no larger than the given one."""
    amount, other = quantity.parse(value), quantity.parse(given)
    if value is None or amount == 0:
        return False
    return amount is None or other is None or amount > other


def _objects_of(data: Iterable[Any], patch: Patch) -> Iterator[Any]:
    for each in data:
        yield from (obj for _, obj in objects(each) if is_of(obj, patch))


def _given(patch: Patch, name: str) -> Iterator[tuple[Place, Any]]:
    """The amounts, but for 0, that the patch gives to containers under this name; their places."""
    for each in patch.after:
        for at, value in walk(each.value, Path(each.at)) if each.writes else ():
            if at[-1:] == (name,) and at[-2] in SECTIONS and _amount(value) != 0:
                yield tuple(map(str, at)), value


def adds_gpus(patch: Patch, settings: Settings) -> bool:
    """Whether the patch gives an amount of GPUs to a container."""
    return any(_given(patch, settings.gpu_resource))


def brings_toleration(patch: Patch, settings: Settings) -> bool:
    """Whether the patch brings a toleration of GPU nodes."""
    return any(
        tolerates(each.value if each.at[-1] == "tolerations" else [each.value], settings)
        for each in patch.after
        if "tolerations" in each.at
    )


def tolerates(value: Any, settings: Settings) -> bool:
    """Whether a list of tolerations has one of GPU nodes."""
    listed: Sequence[Any] = value if isinstance(value, list) else ()
    return any(
        isinstance(each, dict) and ("key" not in each or settings.is_gpu(str(each["key"])))
        for each in listed
    )
