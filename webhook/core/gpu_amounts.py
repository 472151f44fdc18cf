"""Decides which of the GPU amounts in a container counts.

An amount that the author wrote counts under any name; an amount that LimitRanger added does not. Of
two amounts of whole GPUs the larger counts, so that a pod never gets less than was requested;
amounts under several names are never added up. An amount of 0 counts only if its author wrote no
other: then no amount of LimitRanger counts, either.

In files, text may be inserted into an amount later. Such an amount is at least 0 and equals the
same text. Beside any other amount it is unclear which one is larger, and none of them counts.

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
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.core.rule import Context
    from webhook.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount of GPUs that a container requests under one name."""

    name: str
    raw: object  # as it is written
    value: Fraction
    authored: bool  # LimitRanger did not set it


@dataclass(frozen=True, slots=True)
class Amounts:
    """The amounts of GPUs that a container requests, under all names."""

    legacy: tuple[str, ...]  # its names of 1.3-1.10
    counts: Amount | None  # above 0, or None
    defaults: frozenset[Place]  # set by LimitRanger
    is_none: bool = False  # the author wrote 0, and no other amount
    # The webhook wrote the amount under the current name in the first round.
    is_second_round: bool = False
    # The names with an amount, if it is unclear which amount is the largest.
    unclear: tuple[str, ...] = ()


def counted(pod: Pod, cx: Context) -> Iterator[tuple[Container, Amount]]:
    """The containers in which an amount under a legacy name counts."""
    for container, asked in asking(pod, cx):
        if asked.counts is not None and asked.counts.name in asked.legacy:
            yield container, asked.counts


def asking(pod: Pod, cx: Context) -> tuple[tuple[Container, Amounts], ...]:
    """The containers with a name of 1.3-1.10, and the amount that counts in each."""
    return pod.once(_asking, cx.settings, cx.inserted)


def _asking(
    pod: Pod, settings: Settings, inserted: frozenset[int]
) -> tuple[tuple[Container, Amounts], ...]:
    every = [(each, _legacy_names(each, settings)) for each in pod.containers]
    with_one = [(each, legacy) for each, legacy in every if legacy]
    if not with_one:
        return ()
    origins = Origins.of(pod)
    return tuple([(c, _asked_by(c, legacy, settings, origins, inserted)) for c, legacy in with_one])


def _legacy_names(container: Container, settings: Settings) -> tuple[str, ...]:
    limits, requests = container.limits, container.requests
    return tuple([name for name in settings.legacy_resources if name in limits or name in requests])


def _asked_by(
    container: Container,
    legacy: tuple[str, ...],
    settings: Settings,
    origins: Origins,
    inserted: frozenset[int],
) -> Amounts:
    """The amount of this container that counts, of those under the legacy and current names."""
    today = sorted(
        name
        for name in container.requested()
        if name not in settings.legacy_resources
        and (settings.is_gpu(name) or name == settings.gpu_resource)
    )
    defaults = frozenset(
        place
        for place in origins.defaults(container, {*legacy, *today})
        if not (origins.is_second_round and place[1] == settings.gpu_resource)
    )
    written = {name: _written(container, name, defaults) for name in (*legacy, *today)}
    given = {name: each for name, each in written.items() if any(one.value for one in each)}
    if _is_unclear(given, legacy, inserted):
        return Amounts(legacy, None, defaults, unclear=tuple(given))
    amounts = [_largest(each) for each in given.values()]
    authored = [each for each in amounts if each.authored]
    # Without the word of LimitRanger, another webhook may have written what the author did not.
    has_zero = bool(origins.claimed) and any(
        one.authored and not one.value for each in written.values() for one in each
    )
    is_none = has_zero and not authored
    winner = None if is_none else _winner(authored or amounts, legacy, settings.gpu_resource)
    return Amounts(legacy, winner, defaults, is_none, origins.is_second_round)


def _is_unclear(
    given: Mapping[str, list[Amount]], legacy: Sequence[str], inserted: frozenset[int]
) -> bool:
    """Whether it is unclear which of these amounts is the largest, or a legacy one is none."""
    amounts = [one for each in given.values() for one in each]
    if given.keys().isdisjoint(legacy):
        return False
    if any(one.value is _UNREADABLE for one in amounts):
        return True
    every = {one.value for one in amounts if one.value} if inserted else set()
    return len(every) > 1 and not every.isdisjoint(inserted)


def value_of(raw: object) -> Fraction | None:
    """The amount of GPUs as a number; None if it can be no amount of GPUs."""
    value = quantity.parse(raw)
    return None if value is None or value.numerator < 0 else value


# It may be inserted later, as in a custom resource. Only legacy amounts of 0 are beside it.
_UNREADABLE = Fraction(2**63)


def _written(container: Container, name: str, defaults: frozenset[Place]) -> list[Amount]:
    """The amounts under this name, of the limits and of the requests."""
    found = []
    for section in SECTIONS:
        there = container.sections[section]
        if name in there:
            value = value_of(there[name])
            value = _UNREADABLE if value is None else value
            found.append(Amount(name, there[name], value, (section, name) not in defaults))
    return found


def _largest(written: list[Amount]) -> Amount:
    """The larger of limit and request; the author's amount comes before one of LimitRanger."""
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
