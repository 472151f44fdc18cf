"""Decides which of the GPU amounts in a container counts.

An amount that the author wrote counts under any name; an amount that LimitRanger added does not. Of
two amounts of whole GPUs the larger counts, so that a pod never gets less than was requested;
amounts under several names are never added up. An amount of 0 counts only if its author wrote no
other: then no amount of LimitRanger counts, either.

In the second round of a request, the current name has the amount that the webhook wrote in the
first round. It counts like the author's amount, next to an amount that another webhook has written
in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from webhook.core.limit_ranger import Origins, Place
from webhook.kube import quantity
from webhook.kube.pod import SECTIONS, Container, Pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount of GPUs that a container requests under one name."""

    name: str
    raw: object  # as it is written
    value: Fraction
    authored: bool  # LimitRanger did not set it


@dataclass(frozen=True, slots=True)
class Asked:
    """The amounts of GPUs that a container requests, under all names."""

    legacy: tuple[str, ...]  # its names of 1.3-1.10
    counts: Amount | None  # above 0, or None
    defaults: frozenset[Place]  # set by LimitRanger
    is_none: bool = False  # the author wrote 0, and no other amount
    # The webhook wrote the amount under the current name in the first round.
    is_second_round: bool = False


def counted(pod: Pod, settings: Settings) -> Iterator[tuple[Container, Amount]]:
    """The containers in which an amount under a legacy name counts."""
    for container, asked in asking(pod, settings):
        if asked.counts is not None and asked.counts.name in asked.legacy:
            yield container, asked.counts


def asking(pod: Pod, settings: Settings) -> tuple[tuple[Container, Asked], ...]:
    """The containers with a name of 1.3-1.10, and the amount that counts in each."""
    return pod.once(_asking, settings)


def _asking(pod: Pod, settings: Settings) -> tuple[tuple[Container, Asked], ...]:
    if not (with_one := [each for each in pod.containers if _legacy_names(each, settings)]):
        return ()
    origins = Origins.of(pod)
    return tuple([(each, _asked_by(each, settings, origins)) for each in with_one])


def _legacy_names(container: Container, settings: Settings) -> tuple[str, ...]:
    limits, requests = container.limits, container.requests
    return tuple([name for name in settings.legacy_resources if name in limits or name in requests])


def _asked_by(container: Container, settings: Settings, origins: Origins) -> Asked:
    """The amount of this container that counts."""
    legacy = _legacy_names(container, settings)
    today = sorted(
        name
        for name in {**container.limits, **container.requests}
        if name not in settings.legacy_resources
        and (settings.is_gpu(name) or name == settings.gpu_resource)
    )
    defaults = frozenset(
        place
        for place in origins.defaults(container, {*legacy, *today})
        if not (origins.is_second_round and place[1] == settings.gpu_resource)
    )
    old = [_amount(container, name, defaults) for name in legacy if is_amount(container, name)]
    new = [_amount(container, name, defaults) for name in today]
    amounts = [each for each in (*old, *new) if each.value.numerator > 0]
    authored = [each for each in amounts if each.authored]
    # Without the word of LimitRanger, another webhook may have written what the author did not.
    has_zero = bool(origins.claimed) and _has_zero(container, {*legacy, *today}, defaults)
    is_none = has_zero and not authored
    winner = None if is_none else _winner(authored or amounts, legacy, settings.gpu_resource)
    return Asked(legacy, winner, defaults, is_none, origins.is_second_round)


def _has_zero(container: Container, names: set[str], defaults: frozenset[Place]) -> bool:
    """Whether the author wrote 0 under one of these names."""
    return any(
        (section, name) not in defaults and _value(raw) == 0
        for section in SECTIONS
        for name, raw in container.sections[section].items()
        if name in names
    )


def is_amount(container: Container, name: str) -> bool:
    """Whether all values under this name can be amounts of GPUs."""
    return all(
        _value(container.sections[section][name]) is not _UNREADABLE
        for section in SECTIONS
        if name in container.sections[section]
    )


_UNREADABLE = Fraction(2**63)  # for example a placeholder in a chart: it may stand for any amount


def _value(raw: object) -> Fraction:
    value = quantity.parse(raw)
    return _UNREADABLE if value is None or value.numerator < 0 else value


def _amount(container: Container, name: str, defaults: frozenset[Place]) -> Amount:
    """The larger of limit and request; the author's amount comes before one of LimitRanger."""
    written = [
        Amount(name, raw, _value(raw), (section, name) not in defaults)
        for section in SECTIONS
        if name in container.sections[section]
        for raw in [container.sections[section][name]]
    ]
    if len(written) == 1:
        return written[0]
    return max(written, key=lambda each: (each.value.numerator > 0, each.authored, each.value))


def _winner(amounts: list[Amount], legacy: Sequence[str], target: str) -> Amount | None:
    """The current name, unless it has fewer whole GPUs; of legacy names, the larger amount."""
    old = [each for each in amounts if each.name in legacy]
    whole = [each for each in amounts if each.name == target and target not in legacy]
    of_today = whole or [each for each in amounts if each.name not in legacy]
    largest = max(old, key=lambda each: each.value, default=None)
    if largest is None or not of_today:
        return largest or next(iter(of_today), None)
    return largest if whole and largest.value > whole[0].value else of_today[0]
