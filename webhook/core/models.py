"""Which node labels of today a GPU model of 2017 stands for.

Spelling: blanks, dashes, underscores and case do not count; a leading `NVIDIA` does not, nor a
brand word that only one side has. A real name may go on with words for form factor or memory
(`Tesla P100` is `Tesla-P100-PCIE-16GB`), but with nothing else (`GTX 1080` is not `GTX-1080-Ti`).

A model stands for what nodes carry now, and for what the table of known models says of it: its pool
may be at zero, or GPU Feature Discovery about to write the label anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from webhook.core import labels
from webhook.core.settings import MODEL_PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.core.nodes import Inventory
    from webhook.core.settings import Models

_BRANDS = ("tesla", "geforce", "quadro")
_VARIANT = re.compile(
    r"pcie|sxm[0-9]?|nvl[0-9]*|nvlink|fhhl|oam|hbm[0-9]?e?|gddr[0-9]x?|[0-9]+gb", re.ASCII
)
_ODD = re.compile(r"[^a-z0-9\-_. \t]")
_BETWEEN_WORDS = re.compile(r"[ \t_-]+")
_LONGEST_NAME = 256  # pods may name anything, and many names are remembered
_MIG = re.compile(r"-mig-[0-9]+g\.[0-9]+gb.*?(?=-shared$|$)")


@dataclass(frozen=True, slots=True)
class Match:
    """What a legacy value stands for.

    `values` are today's label values, sorted; empty if nobody knows the model. `why` says why no
    node has it now; it is empty if one has, or if the table knows it and nothing is known of nodes.
    `carried` means that nodes still carry the legacy label with this very value.
    """

    values: tuple[str, ...] = ()
    why: str = ""
    carried: bool = False


def spelling(name: str) -> tuple[str, ...]:
    """The words of a model's name, in one spelling, without the maker; none of no model's name."""
    return _spelling(name) if len(name) <= _LONGEST_NAME else ()


@lru_cache(maxsize=4096)
def _spelling(name: str) -> tuple[str, ...]:
    kept = _ODD.sub("", name.lower())
    words = tuple(word for word in _BETWEEN_WORDS.split(kept) if word)
    return words[1:] if words[:1] == ("nvidia",) else words


def spellings_of(
    real: str, *, shared: bool = False, mig: bool = False
) -> Iterator[tuple[str, ...]]:
    """The spellings of all legacy model names that mean nodes that carry this real value."""
    offered = spelling(_whole_gpu(real, shared=shared, mig=mig))
    yield from _beginnings(offered)
    if offered[:1] and offered[0] in _BRANDS:
        yield from (each for each in _beginnings(offered[1:]) if each[0] not in _BRANDS)
    else:
        yield from ((brand, *each) for each in _beginnings(offered) for brand in _BRANDS)


def _beginnings(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words, and what is left of them without words for form factor or memory at the end."""
    for end in range(len(words), 0, -1):
        yield words[:end]
        if not _VARIANT.fullmatch(words[end - 1]):
            return


def _whole_gpu(real: str, *, shared: bool, mig: bool) -> str:
    """The real value without the ending for a shared or sliced GPU, where that is wanted."""
    name = real.lower()
    if mig:
        name = _MIG.sub("", name)
    return name.removesuffix("-shared") if shared else name


def match(
    legacy: str, models: Models, inventory: Inventory | None, *, parts: bool = False
) -> Match:
    """What this legacy value stands for; with `parts`, shared and sliced GPUs are meant, too."""
    if inventory is None:
        known = _of_table(models, parts)
    elif legacy in inventory.values(models.legacy_label):
        return Match(carried=True)
    else:  # pods may name very many models: what all can stand for is worked out once
        remembered = inventory.remembered
        known = remembered.get((models, parts)) or _of_nodes(models, inventory, parts)
        remembered[models, parts] = known
    return known.matches.get(spelling(legacy), known.other)


@dataclass(frozen=True, slots=True)
class _Meanings:
    """What each spelling stands for, and what all others do not."""

    matches: Mapping[tuple[str, ...], Match]
    other: Match


@lru_cache(maxsize=16)
def _of_table(models: Models, parts: bool) -> _Meanings:  # noqa: FBT001
    why = "the table of known models has no such model"
    known = _by_spelling(models, _table(models.profile, models.shared or parts), parts=parts)
    matches = {name: Match(values, "" if values else why) for name, values in known.items()}
    return _Meanings(matches, Match(why=why))


def _of_nodes(models: Models, inventory: Inventory, parts: bool) -> _Meanings:  # noqa: FBT001
    here = inventory.values(models.key)
    if not (inventory.has_gpus or here):
        # Pools that scale from zero show no GPU node now: such an inventory knows no models.
        return _of_table(models, parts)
    known = _by_spelling(models, _table(models.profile, models.shared or parts), parts=parts)
    found = _by_spelling(models, here, parts=parts)
    alone = _parts_alone(models, here)
    missing = missing_label(models, inventory)
    none = f"no node carries such a model under {models.key}"
    matches = {}
    for name in known | found | alone:
        values = tuple(sorted({*known.get(name, ()), *found.get(name, ())}))
        if any(value in here for value in values):
            matches[name] = Match(values)
        else:
            matches[name] = Match(values, missing or alone.get(name) or none)
    return _Meanings(matches, Match(why=missing or none))


@lru_cache(maxsize=16)
def _table(profile: str, shared: bool) -> tuple[str, ...]:  # noqa: FBT001
    """The shipped values; shared GPUs are marked by GPU Feature Discovery alone."""
    values = MODEL_PROFILES[profile].values
    if shared and profile == "gfd":
        return (*values, *(f"{value}-SHARED" for value in values))
    return values


def _parts_alone(models: Models, here: frozenset[str]) -> dict[tuple[str, ...], str]:
    """Says of which models nodes have shared GPUs or slices, by their spellings."""
    said: dict[tuple[str, ...], str] = {}
    for setting, meant in (
        ("models.shared", replace(models, shared=True)),
        ("models.mig", replace(models, mig=True)),
        ("models.shared and models.mig", replace(models, shared=True, mig=True)),
    ):
        for name, values in _by_spelling(meant, here).items():
            parts = [value for value in values if value in here]
            if parts:
                why = f"nodes have it only as {parts[0]}: set {setting} to true to take that"
                said.setdefault(name, why)
    return said


def missing_label(models: Models, inventory: Inventory | None) -> str:
    """Says that there are GPU nodes, but none with the label of the settings; else empty."""
    if inventory is None or not inventory.has_gpus or models.key in inventory.gpu_labels:
        return ""
    return f"no GPU node carries the label {models.key}{_other_profile(inventory)}"


def _by_spelling(
    models: Models, real: Iterable[str], *, parts: bool = False
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Which of the real values, and of those in the settings, each spelling stands for."""
    shared, mig = models.shared or parts, models.mig or parts
    found: dict[tuple[str, ...], set[str]] = {}
    for value in real:
        for wanted in spellings_of(value, shared=shared, mig=mig):
            found.setdefault(wanted, set()).add(value)
    for name, values in MODEL_PROFILES[models.profile].named:
        for wanted in spellings_of(name):
            found.setdefault(wanted, set()).update(values)
    for name, values in models.values:  # the user's word is the last
        found[spelling(name)] = set(values)
    return {
        wanted: tuple(sorted(value for value in values if value and labels.is_value(value)))
        for wanted, values in found.items()
    }


def _other_profile(inventory: Inventory) -> str:
    for name, profile in MODEL_PROFILES.items():
        if profile.label in inventory.gpu_labels and name != "aks":
            return f"; they carry {profile.label}: set models.profile to {name}"
    if any(label.startswith("kubernetes.azure.com/") for label in inventory.gpu_labels):
        return "; they are AKS nodes: set models.profile to aks"
    return ""
