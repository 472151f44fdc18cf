"""Maps a GPU model name of 2017 to the current node labels.

Spelling: blanks, dashes, underscores and case are ignored; so is a leading `NVIDIA`, and a brand
word that only one side has. A name may end with the form factor and the memory. A real name may
have more of these details (`Tesla P100` is `Tesla-P100-PCIE-16GB`), but no other words (`GTX 1080`
is not `GTX-1080-Ti`). It may have fewer only if no real name has as many: `Tesla-P100-PCIE-16GB`,
the full name from nvidia-smi, is `nvidia-tesla-p100` on GKE, but `Tesla-M40-24GB` is not
`Tesla-M40` next to a real `Tesla-M40-24GB`. Details that both have must be equal.

A model stands for the values on nodes now, and for the values in the table of known models: its
pool may be at zero, or GPU Feature Discovery may write the label again soon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, product, repeat
from typing import TYPE_CHECKING, NamedTuple

from webhook.core.settings import MODEL_PROFILES, Models
from webhook.kube import labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from webhook.capacity.node_sets import NodeSet
    from webhook.capacity.nodes import Inventory

_BRANDS = ("tesla", "geforce", "quadro")
_DETAIL = re.compile(
    r"(pcie|sxm[0-9]?|nvl[0-9]*|nvlink|fhhl|oam|dgxs)|([0-9]+gb)|(hbm[0-9]?e?|gddr[0-9]x?)",
    re.ASCII,
)
_ODD = re.compile(r"[^a-z0-9\-_. \t]")
_BETWEEN_WORDS = re.compile(r"[ \t_-]+")
_LONGEST_NAME = 256  # pods may name anything, and many names are remembered
_MIG = re.compile(r"-mig-[0-9]+g\.[0-9]+gb.*?(?=-shared$|$)")


@dataclass(frozen=True, slots=True)
class Match:
    """What a legacy value stands for.

    `values` are current label values, sorted; empty for an unknown model. `why` is the reason why
    no node has it now; empty if one has it, or if the table has it and nothing is known about
    nodes. `carried`: nodes with GPUs still have the legacy label with this value. Then `values` are
    empty if all nodes with one of these have that label as well, unless the answer must be lasting.
    """

    values: tuple[str, ...] = ()
    why: str = ""
    carried: bool = False
    is_of_settings: bool = False  # other settings may fix that


def spelling(name: str) -> tuple[str, ...]:
    """The words of a model's name, in one spelling, without the maker.

    Empty if it is not such a name.
    """
    return _spelling(name) if len(name) <= _LONGEST_NAME else ()


def model_of(value: str) -> tuple[str, ...]:
    """The model in the value of a label, without form factor and memory."""
    return _name(spelling(value)).model or (value,)


@lru_cache(maxsize=4096)
def _spelling(name: str) -> tuple[str, ...]:
    kept = _ODD.sub("", name.lower())
    words = tuple(filter(None, _BETWEEN_WORDS.split(kept)))
    return words[1:] if words[:1] == ("nvidia",) else words


class _Name(NamedTuple):
    """A model's name; the details are form factor, memory and its kind, empty if it has none."""

    brand: str
    model: tuple[str, ...]
    details: tuple[str, ...]


_UNKNOWN = _Name("", (), ())
_Key = tuple[str, tuple[str, ...], tuple[str | None, ...]]  # as in _Name; None for any detail
_FEWER_DETAILS = sorted(product((True, False), repeat=3), key=sum, reverse=True)


@dataclass(frozen=True, slots=True)
class _Index:
    """Values of labels, indexed by all names that match the real names in them."""

    values: dict[_Key, set[str]]
    said: set[tuple[tuple[str, ...], str]]  # the details in the names of a model, and ""


@lru_cache(maxsize=4096)
def _name(words: tuple[str, ...]) -> _Name:
    brand = words[0] if len(words) > 1 and words[0] in _BRANDS else ""
    model = words[1:] if brand else words
    details = ["", "", ""]
    while len(model) > 1 and (found := _DETAIL.fullmatch(model[-1])):
        details[(found.lastindex or 1) - 1] = model[-1]
        model = model[:-1]
    return _Name(brand, model, tuple(details))


def _indexed(real: Iterable[tuple[str, Iterable[str]]]) -> _Index:
    """The index of these real names, each with its values, which are legal ones."""
    index = _Index({}, set())
    for known, values in real:
        words = _spelling(known)
        if not words:
            continue
        name = _name(words)
        index.said.update(product([name.model], ("", *name.details)))
        brands = ("", name.brand) if name.brand else ("", *_BRANDS)
        asked = product(*zip(name.details, repeat(None)))
        for brand, details in product(brands, asked):
            index.values.setdefault((brand, name.model, details), set()).update(values)
    return index


def _meant(name: _Name, *indexes: _Index) -> set[str]:
    """The values whose real names have all details of this name, and maybe more."""
    details = tuple(detail or None for detail in name.details)
    return _at((name.brand, name.model, details), indexes)


def _less_said(name: _Name, *indexes: _Index, every: bool) -> set[str]:
    """The values whose real names have fewer details; one of `every`, or the nearest."""
    found: set[str] = set()
    for kept in _FEWER_DETAILS:
        details = tuple(
            [
                (detail if keep else "") if detail else None
                for detail, keep in zip(name.details, kept, strict=True)
            ]
        )
        found |= _at((name.brand, name.model, details), indexes)
        if found and not every:
            break
    return found


def _at(key: _Key, indexes: Iterable[_Index]) -> set[str]:
    return set().union(*[index.values.get(key, ()) for index in indexes])


def _whole_gpu(real: str, *, shared: bool, mig: bool) -> str:
    """The real value without the suffix of a shared or sliced GPU, if that is accepted."""
    name = real.lower()
    if mig:
        name = _MIG.sub("", name)
    return name.removesuffix("-shared") if shared else name


def match(
    legacy: str,
    models: Models,
    inventory: Inventory | None,
    *,
    parts: bool = False,
    lasting: bool = False,
) -> Match:
    """The meaning of this legacy value; with `parts`, shared and sliced GPUs count, too.

    If it must be `lasting`, it has values even while all these nodes have the legacy label.
    """
    if inventory is None:
        return _of_table(models, parts).of(legacy)
    # Pods may name very many models, so the result for each is computed once.
    remembered = inventory.remembered
    known = remembered.get((models, parts))
    if known is None:
        known = remembered[models, parts] = _of_nodes(models, inventory, parts)
    made = known.of(legacy)
    carrying = carry(models, inventory, legacy)
    if not carrying:
        return made
    if models.key == models.legacy_label:
        return Match((legacy,), carried=True)
    without = inventory.index.label(models.key).having_any(made.values) & ~carrying
    return Match(made.values if lasting or without else (), carried=True)


def carry(models: Models, inventory: Inventory, legacy: str | None = None) -> NodeSet:
    """The nodes with GPUs that still have the legacy label, with this value or any."""
    index = inventory.index
    table = index.label(models.legacy_label)
    nodes = table.present if legacy is None else table.having(legacy)
    return nodes and nodes & (index.with_gpus | index.open_gpus)


@dataclass(frozen=True, slots=True)
class _Meanings:
    """The meanings of all names, from the settings, the table and the nodes."""

    own: Mapping[tuple[str, ...], frozenset[str]]  # the values in the settings, by spelling
    own_index: _Index
    known: tuple[_Index, ...]  # the table, and the labels of nodes with its models
    others: _Index  # other labels of nodes
    parts: tuple[tuple[str, _Index], ...]  # shared and sliced GPUs of nodes, by setting
    here: frozenset[str] | None  # all values on nodes; None if that shows nothing
    why: str  # the reason for a model that no node has
    said: frozenset[tuple[tuple[str, ...], str]]  # of all indexes
    every: bool  # all possible meanings, not only the nearest
    is_unlabelled: bool  # no node with GPUs has the label
    remembered: dict[_Name, Match] = field(default_factory=dict)

    def of(self, legacy: str) -> Match:
        words = spelling(legacy)
        name = self._asked(words)
        if words in self.own:  # the settings of the user win
            return self._match(self.own[words], name)
        if not name.model:
            return Match(why=self.why)
        found = self.remembered.get(name)
        if found is None:
            found = self.remembered[name] = self._match(self._values(name), name)
        return found

    def _asked(self, words: tuple[str, ...]) -> _Name:
        """The name without words that no real name has: this bounds the number of lookups."""
        name = _name(words)
        if (name.model, "") not in self.said:
            return _UNKNOWN
        details = (each if (name.model, each) in self.said else "other" for each in name.details)
        return name._replace(details=tuple(details))

    def _match(self, found: AbstractSet[str], name: _Name) -> Match:
        values = tuple(sorted(found))
        if self.here is None:
            return Match(values, "" if values else self.why)
        if not self.here.isdisjoint(values):
            return Match(values)
        part = self._part_alone(name)
        return Match(values, part or self.why, is_of_settings=bool(part) or self.is_unlabelled)

    def _values(self, name: _Name) -> AbstractSet[str]:
        found = [(_meant(name, *indexes), indexes) for indexes in (self.known, (self.others,))]
        if not any(values for values, _ in found):
            own = _less_said(name, self.own_index, every=self.every)
            if own:
                return own
        return set().union(
            *(values or _less_said(name, *indexes, every=self.every) for values, indexes in found)
        )

    def _part_alone(self, name: _Name) -> str:
        """The reason if nodes have only shared or sliced GPUs of this model, and no whole ones."""
        for setting, index in self.parts:
            found = _meant(name, index)
            if found:
                return f"nodes have it only as {min(found)}: set {setting} to true to take that"
        return ""


@lru_cache(maxsize=16)
def _of_table(models: Models, parts: bool) -> _Meanings:  # noqa: FBT001
    why = "the table of known models has no such model"
    return _meanings(models, None, (), parts=parts, why=why)


def _of_nodes(models: Models, inventory: Inventory, parts: bool) -> _Meanings:  # noqa: FBT001
    here = _legal(inventory.values(models.key))
    if not (inventory.has_gpus or here):
        # Pools that scale from zero have no GPU node now: such an inventory has no models.
        return _of_table(models, parts)
    missing = missing_label(models, inventory)
    none = f"no node carries such a model under {models.key}"
    alone = () if missing else tuple(_parts(here))
    made = _meanings(models, here, alone, parts=parts, why=missing or none)
    return replace(made, is_unlabelled=bool(missing))


def _meanings(
    models: Models,
    here: frozenset[str] | None,
    alone: tuple[tuple[str, _Index], ...],
    *,
    parts: bool,
    why: str,
) -> _Meanings:
    shared, mig = models.shared or parts, models.mig or parts
    table = _table(models.profile, shared)
    shipped = frozenset().union(*table.values.values())
    alike: list[tuple[str, tuple[str]]] = []
    others: list[tuple[str, tuple[str]]] = []
    for value in (here or frozenset()) - shipped:
        whole = _whole_gpu(value, shared=shared, mig=mig)
        listed = alike if _lists(table, whole) else others
        listed.append((whole, (value,)))
    named = [(name, _legal(values)) for name, values in models.values]
    own, known = _indexed(named), (table, _indexed(alike))
    rest = _indexed(others)
    return _Meanings(
        {spelling(name): values for name, values in named},
        own,
        known,
        rest,
        alone,
        here,
        why,
        said=frozenset().union(
            *(index.said for index in (own, *known, rest, *(index for _, index in alone)))
        ),
        every=parts,
        is_unlabelled=False,
    )


def _legal(values: Iterable[str]) -> frozenset[str]:
    return frozenset(filter(labels.is_value, values)) - {""}


@lru_cache(maxsize=16)
def _table(profile: str, shared: bool) -> _Index:  # noqa: FBT001
    """The shipped values; only GPU Feature Discovery marks shared GPUs."""
    shipped = MODEL_PROFILES[profile]
    marks = ("", "-SHARED") if shared and profile == "gfd" else ("",)
    listed = [(value, tuple(map(value.__add__, marks))) for value in shipped.values]
    return _indexed(chain(listed, shipped.named))


def _lists(index: _Index, real: str) -> bool:
    """Whether a name in the index has the same model and details, of any brand."""
    name = _name(spelling(real))
    return ("", name.model, name.details) in index.values


def _parts(here: frozenset[str]) -> Iterator[tuple[str, _Index]]:
    """The values on nodes if shared GPUs, slices, or both were accepted as whole ones."""
    for setting, shared, mig in (
        ("models.shared", True, False),
        ("models.mig", False, True),
        ("models.shared and models.mig", True, True),
    ):
        real = ((_whole_gpu(value, shared=shared, mig=mig), (value,)) for value in here)
        yield setting, _indexed(real)


def missing_label(models: Models, inventory: Inventory | None) -> str:
    """A message if GPU nodes exist but none has the label of the settings; otherwise empty."""
    if inventory is None or not inventory.has_gpus or models.key in inventory.gpu_labels:
        return ""
    return f"no GPU node carries the label {models.key}{_other_profile(inventory)}"


def _other_profile(inventory: Inventory) -> str:
    for name, profile in MODEL_PROFILES.items():
        if profile.label in inventory.gpu_labels and name != "aks":
            return f"; they carry {profile.label}: set models.profile to {name}"
    if any(label.startswith("kubernetes.azure.com/") for label in inventory.gpu_labels):
        return "; they are AKS nodes: set models.profile to aks"
    return ""
