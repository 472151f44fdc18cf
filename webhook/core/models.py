"""Which node labels of today a GPU model of 2017 stands for.

Spelling: blanks, dashes, underscores and case do not count; a leading `NVIDIA` does not, nor a
brand word that only one side has. A real name may go on with words for form factor or memory
(`Tesla P100` is `Tesla-P100-PCIE-16GB`), but with nothing else (`GTX 1080` is not `GTX-1080-Ti`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from webhook.core import labels
from webhook.core.settings import MODEL_PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.core.nodes import Inventory
    from webhook.core.settings import Models

_BRANDS = ("tesla", "geforce", "quadro")
_VARIANT = re.compile(
    r"pcie|sxm[0-9]?|nvl[0-9]*|nvlink|fhhl|oam|hbm[0-9]?e?|gddr[0-9]x?|[0-9]+gb", re.ASCII
)
_MIG = re.compile(r"-mig-[0-9]+g\.[0-9]+gb.*?(?=-shared$|$)")


@dataclass(frozen=True, slots=True)
class Match:
    """What a legacy value stands for.

    `values` are today's label values, sorted; empty if there are none, and then `why` says why.
    `carried` means that nodes still carry the legacy label with this very value.
    """

    values: tuple[str, ...] = ()
    why: str = ""
    carried: bool = False


@lru_cache(maxsize=4096)
def spelling(name: str) -> tuple[str, ...]:
    """The words of a model's name, in one spelling, without the maker."""
    kept = re.sub(r"[^a-z0-9\-_. \t]", "", name.lower())
    words = tuple(word for word in re.split(r"[ \t_-]+", kept) if word)
    return words[1:] if words[:1] == ("nvidia",) else words


def stands_for(legacy: str, real: str, *, shared: bool = False, mig: bool = False) -> bool:
    """True if the legacy model name means nodes that carry this real value."""
    wanted, offered = spelling(legacy), spelling(_whole_gpu(real, shared=shared, mig=mig))
    if not wanted or not offered:
        return False
    wanted_brand, offered_brand = wanted[0] in _BRANDS, offered[0] in _BRANDS
    if wanted_brand and not offered_brand:
        wanted = wanted[1:]
    elif offered_brand and not wanted_brand:
        offered = offered[1:]
    if not wanted or offered[: len(wanted)] != wanted:
        return False
    return all(_VARIANT.fullmatch(word) for word in offered[len(wanted) :])


def _whole_gpu(real: str, *, shared: bool, mig: bool) -> str:
    """The real value without the ending for a shared or sliced GPU, where that is wanted."""
    name = real.lower()
    if mig:
        name = _MIG.sub("", name)
    return name.removesuffix("-shared") if shared else name


def match(legacy: str, models: Models, inventory: Inventory | None) -> Match:
    """What this legacy value stands for on this cluster, or by the table if none is known."""
    if inventory is not None and legacy in inventory.values(models.legacy_label):
        return Match(carried=True)
    if inventory is None or not (inventory.has_gpus or inventory.values(models.key)):
        # Pools that scale from zero show no GPU node now: such an inventory knows no models.
        values = _by_name(legacy, models, MODEL_PROFILES[models.profile].values)
        return Match(values, "" if values else "the table of known models has no such model")
    missing = missing_label(models, inventory)
    if missing:
        return Match(why=missing)
    known = inventory.models.get((models, legacy))
    if known is None:
        real = inventory.values(models.key)
        known = tuple(v for v in _by_name(legacy, models, real) if v in real)
        if len(inventory.models) < _REMEMBERED:
            inventory.models[models, legacy] = known
    return Match(known, "" if known else f"no node carries such a model under {models.key}")


def missing_label(models: Models, inventory: Inventory | None) -> str:
    """Says that there are GPU nodes, but none with the label of the settings; else empty."""
    if inventory is None or not inventory.has_gpus or models.key in inventory.gpu_labels:
        return ""
    return f"no GPU node carries the label {models.key}{_other_profile(inventory)}"


_REMEMBERED = 1000  # legacy values come from the pods' authors: remember a bounded number


def _by_name(legacy: str, models: Models, real: Iterable[str]) -> tuple[str, ...]:
    wanted = spelling(legacy)
    found = {v for v in real if stands_for(legacy, v, shared=models.shared, mig=models.mig)}
    for name, values in MODEL_PROFILES[models.profile].named:
        if stands_for(legacy, name):
            found.update(values)
    for name, values in models.values:
        if spelling(name) == wanted:  # the user's word is the last
            found = set(values)
    return tuple(sorted(value for value in found if value and labels.is_value(value)))


def _other_profile(inventory: Inventory) -> str:
    for name, profile in MODEL_PROFILES.items():
        if profile.label in inventory.gpu_labels and name != "aks":
            return f"; they carry {profile.label}: set models.profile to {name}"
    if any(label.startswith("kubernetes.azure.com/") for label in inventory.gpu_labels):
        return "; they are AKS nodes: set models.profile to aks"
    return ""
