"""Translates node selector requirements on labels that nodes no longer have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, Any

from webhook.capacity import models, node_labels, node_selection, whole_gpus
from webhook.kube import labels
from webhook.kube.affinity import MOST_EXPRESSIONS, MOST_TERMS
from webhook.kube.pod import Pod, Raw, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.capacity.node_sets import NodeSet
    from webhook.capacity.nodes import Inventory
    from webhook.capacity.whole_gpus import Part
    from webhook.core.rule import Context


class Fate(Enum):
    """What happens to a requirement, or to a whole term."""

    KEEP = "it stays as it is"
    CHANGE = "it is written in today's words"
    NEVER = "no node can have it, so a preference for it goes"


@dataclass(frozen=True, slots=True)
class Change:
    """The translation of a requirement on the legacy model label, or on another beta label."""

    fate: Fate
    key: str = ""
    values: tuple[str, ...] | None = None  # None: unchanged
    unmapped: tuple[str, ...] = ()  # legacy values without a current value
    why: str = ""  # why the first of them has none
    waits: bool = False  # no node can match, so the pod waits
    absent: tuple[str, ...] = ()  # legacy values that no node has now, if there is no other
    absent_why: str = ""
    was: str = ""  # the label, if it is not the model label
    beside: tuple[Part, ...] = ()  # nodes with shares of GPUs, which the term excludes
    taken: str = ""  # the label of such nodes that the pod itself selects
    old: Raw | None = None  # the requirement on the old label, which some nodes may still have
    is_of_settings: bool = False  # other settings may fix what is absent
    is_named: bool = False  # values without a current value are excluded by their own names

    @property
    def is_either(self) -> bool:
        """Whether a node needs only one of the two: the old label or the current label."""
        return self.old is not None and self.old["operator"] in ("In", "Exists")


@dataclass(frozen=True, slots=True)
class TermChange:
    """A node selector term: the changes of its requirements by position, and what happens to it.

    The `further` terms match nodes that still have the old label; `cut`: some of them are left out.
    """

    fate: Fate
    requirements: Mapping[int, Change]
    further: tuple[Raw, ...] = ()
    cut: bool = False

    @property
    def is_choice(self) -> bool:
        """Whether its author should choose, because the new words do not have the same meaning."""
        return self.cut or any(
            each.unmapped or each.is_of_settings for each in self.requirements.values()
        )

    @property
    def added(self) -> list[Raw]:
        """The requirements that are added to the term."""
        found: list[Raw] = []
        for each in self.requirements.values():
            found += [each.old] if each.old is not None and not each.is_either else []
            found += [part.excluded for part in each.beside]
        return found


@dataclass(frozen=True, slots=True)
class Chosen:
    """The node selection of a pod that requests whole GPUs, without the model."""

    nodes: NodeSet
    parts: frozenset[str]  # the settings of the shares of GPUs that it requests

    def __and__(self, other: Chosen) -> Chosen:
        return Chosen(self.nodes & other.nodes, self.parts | other.parts)


_KEEP = Change(Fate.KEEP)
_MOST_EITHER = 2  # requirements of a term that two labels can fulfil: 4 terms


def chosen(pod: Pod, cx: Context) -> Chosen | None:
    """The node selection of its nodeSelector; None without whole GPUs, or without known nodes."""
    if cx.inventory is None or cx.settings.gpu_resource not in pod.gpus(cx.settings):
        return None
    labels = pod.node_selector.items()
    asked = [{"key": key, "operator": "In", "values": [str(value)]} for key, value in labels]
    return _chosen({"matchExpressions": asked}, cx.inventory, cx)


def chosen_by_terms(terms: Iterable[Raw], cx: Context) -> Chosen | None:
    """The node selection of one of these terms; None without terms, or without known nodes."""
    if cx.inventory is None:
        return None
    each = [_chosen(term, cx.inventory, cx) for term in terms]
    if not each:
        return None
    nodes = 0
    for one in each:
        nodes |= one.nodes
    return Chosen(nodes, frozenset().union(*(one.parts for one in each)))


def _chosen(term: Raw, inventory: Inventory, cx: Context) -> Chosen:
    listed = [item for _, item in as_items(term.get("matchExpressions"))]
    others = [each for each in listed if each.get("key") != cx.settings.models.legacy_label]
    index, fields = inventory.index, as_items(term.get("matchFields"))
    rest = {**term, "matchExpressions": others}
    nodes = node_selection.matching(rest, index) if others or fields else index.everything
    asked = (
        whole_gpus.asked_for(
            str(each.get("key")), str(each.get("operator")), node_selection.values_of(each)
        )
        for each in others
    )
    return Chosen(nodes, frozenset(filter(None, asked)))


@dataclass(frozen=True, slots=True)
class Apart:
    """What a term excludes by the current label, next to a requirement on the old label."""

    values: frozenset[str]
    any_value: bool

    @classmethod
    def of(cls, term: Raw, key: str) -> Apart:
        listed = [each for _, each in as_items(term.get("matchExpressions"))]
        asked = [each for each in listed if each.get("key") == key]
        excluded = [each for each in asked if each.get("operator") == "NotIn"]
        return cls(
            frozenset(value for each in excluded for value in node_selection.values_of(each)),
            any(each.get("operator") == "DoesNotExist" for each in asked),
        )


def change(
    requirement: Mapping[str, Any],
    cx: Context,
    *,
    preferred: bool,
    whole: Chosen | None = None,
    apart: Apart | None = None,
) -> Change:
    """The translation of one requirement; `whole` is that of a pod that requests whole GPUs.

    `apart` is what its term excludes by the current label.
    """
    operator = requirement.get("operator")
    listed = requirement.get("values")
    values = [value for value in listed or () if isinstance(value, str)]
    legacy, key = cx.settings.models.legacy_label, cx.settings.models.key
    if requirement.get("key") != legacy:
        return _KEEP if preferred else _of_another_label(requirement.get("key"), values, cx)
    # Without values the API server rejects it as it is.
    if operator not in ("In", "NotIn") or not values:
        if not all(map(labels.is_value, values)):
            return _KEEP  # the API server rejects it with its own message, or it never matches
        return _presence(operator, cx, apart, preferred=preferred)
    excluded = operator == "NotIn"  # a shared or sliced GPU is one of that model, too
    lasts = excluded and cx.may_constrain  # a template stays, and its nodes get the current label
    matches = {
        value: models.match(value, cx.settings.models, cx.inventory, parts=excluded, lasting=lasts)
        for value in values
    }
    unmapped = tuple(v for v, match in matches.items() if not (match.values or match.carried))
    why = matches[unmapped[0]].why if unmapped else ""
    carried = [value for value, match in matches.items() if match.carried]
    if excluded and _is_under_both(cx):
        carried = [value for value in matches if labels.is_value(value)]
    already_excluded = apart.values if apart is not None else frozenset()
    named = (v for v, match in matches.items() if not match.values and (lasts or not match.carried))
    beside, by_name = (matches, tuple(named)) if excluded else (carried, ())
    today = _today(matches, beside, already_excluded, by_name)
    if (carried or excluded) and (not today or key == legacy):
        return _stays(values, today, matches)
    old = {"key": legacy, "operator": operator, "values": carried} if carried else None
    if today:
        is_named = excluded and bool(unmapped)
        made = Change(Fate.CHANGE, key, today, unmapped, why, old=old, is_named=is_named)
        if excluded or preferred:
            return made
        made = _with_absent(made, matches) if old is None else made
        return _of_whole(made, cx, tuple(v for v in matches if v not in carried), whole)
    if preferred:
        return Change(Fate.NEVER, key, None, unmapped, why)
    waiting = tuple(dict.fromkeys(labels.sanitised(value) for value in values))
    return Change(Fate.CHANGE, key, waiting, unmapped, why, waits=True)


def _is_under_both(cx: Context) -> bool:
    """Whether what a pod excludes is excluded under both labels, whatever the nodes carry now.

    A template stays as it is while its nodes get and lose either label, and an exclusion of what no
    node has excludes nothing. A manifest is for current nodes.
    """
    return not cx.in_manifest and (cx.may_constrain or cx.inventory is None)


def _today(
    matches: Mapping[str, models.Match],
    beside: Collection[str],
    apart: frozenset[str],
    by_name: Collection[str],
) -> tuple[str, ...]:
    """The current values, without those that the term itself excludes next to the old label.

    So it is for these `beside`. A name without a known model is excluded `by_name`.
    """
    names = {v: (v if labels.is_value(v) else labels.sanitised(v),) for v in by_name}
    values = (
        real
        for value, match in matches.items()
        for real in (match.values or names.get(value, ()))
        if not (value in beside and real in apart)
    )
    return tuple(dict.fromkeys(values))


def _with_absent(made: Change, matches: Mapping[str, models.Match]) -> Change:
    """The same, with known models that no node has, if there is no other."""
    known = {value: match for value, match in matches.items() if match.values}
    if not all(match.why for match in known.values()):
        return made
    first = next(iter(known.values()))
    return replace(
        made, absent=tuple(known), absent_why=first.why, is_of_settings=first.is_of_settings
    )


def _of_whole(made: Change, cx: Context, legacy: tuple[str, ...], whole: Chosen | None) -> Change:
    """The same without nodes of these models that offer shares of GPUs, unless the pod names them.

    `legacy` are the models under their legacy names, without those that nodes still carry so.
    """
    parts, values = whole_gpus.parts(cx.settings, cx.inventory), made.values or ()
    if whole is None or cx.inventory is None or not parts or any(map(whole_gpus.is_part, values)):
        return made
    index = cx.inventory.index
    offering = index.at_least(cx.settings.gpu_resource, 1)
    nodes = index.label(made.key).having_any(values) & offering
    own = nodes & whole.nodes
    found = tuple(p for p in whole_gpus.among(nodes, parts) if p.setting not in whole.parts)
    selects = bool(whole.parts or offering & ~whole.nodes)  # among the nodes with GPUs
    if selects and whole_gpus.only(own, found):
        found = ()
    taken = [part for part in whole_gpus.among(own, parts) if part not in found]
    made = replace(made, beside=found, taken=taken[0].words if taken else "")
    absent = made.absent or legacy
    if not absent or not whole_gpus.only(nodes, found):
        return made
    settings = " and ".join(sorted({f"models.{each.setting}" for each in found}, reverse=True))
    why = f"nodes have it only with {found[0].words}: set {settings} to true to take that"
    return replace(made, absent=absent, absent_why=why, is_of_settings=True)


def _of_another_label(key: object, values: list[str], cx: Context) -> Change:
    """Zone, region and others: a pod that cannot run gets the current label where nodes have it."""
    if not isinstance(key, str) or not cx.may_constrain:
        return _KEEP
    today = node_labels.replacement(key, values, cx.inventory)
    return Change(Fate.CHANGE, today, was=key) if today else _KEEP


def _presence(operator: object, cx: Context, apart: Apart | None, *, preferred: bool) -> Change:
    """Exists or DoesNotExist: any model, or none."""
    wanted, inventory = cx.settings.models, cx.inventory
    none, excluded = apart is not None and apart.any_value, operator == "DoesNotExist"
    if excluded and (none or wanted.key == wanted.legacy_label):
        return _KEEP
    old = {"key": wanted.legacy_label, "operator": operator}
    if excluded and _is_under_both(cx):
        return Change(Fate.CHANGE, wanted.key, old=old)
    carrying = models.carry(wanted, inventory) if inventory is not None else 0
    if inventory is not None and carrying:
        index = inventory.index
        others = index.label(wanted.key).present & index.with_gpus & ~carrying
        lasts = excluded and cx.may_constrain
        if not (others or lasts) or operator not in ("Exists", "DoesNotExist") or none:
            return _KEEP
        return Change(Fate.CHANGE, wanted.key, old=old)
    why = models.missing_label(wanted, inventory)
    waits = operator == "Exists" and not preferred and bool(why)
    return Change(Fate.CHANGE, wanted.key, None, ("any model",) if waits else (), why, waits=waits)


def _stays(
    values: list[str], today: tuple[str, ...], matches: Mapping[str, models.Match]
) -> Change:
    """Nodes still have the legacy label: it stays, without values that no label can have.

    There are current values if the settings use that same label.
    """
    legal = tuple(value for value in dict.fromkeys((*values, *today)) if labels.is_value(value))
    if set(legal) == set(values):
        return _KEEP
    unmapped = tuple(v for v in values if not (labels.is_value(v) or matches[v].values))
    return Change(Fate.CHANGE, "", legal, unmapped, "it can be no label value")


def term_change(
    term: Raw, cx: Context, *, preferred: bool, whole: Chosen | None = None
) -> TermChange:
    """The translation of one node selector term."""
    requirements = as_items(term.get("matchExpressions"))
    legacy = cx.settings.models.legacy_label
    of_models = any(each.get("key") == legacy for _, each in requirements)
    if not of_models:
        whole = None
    if whole is not None and cx.inventory is not None:
        whole &= _chosen(term, cx.inventory, cx)
    apart = Apart.of(term, cx.settings.models.key) if of_models else None
    changes = {
        position: made
        for position, requirement in requirements
        if (made := change(requirement, cx, preferred=preferred, whole=whole, apart=apart)).fate
        is not Fate.KEEP
    }
    fates = [made.fate for made in changes.values()]
    if Fate.NEVER in fates:
        return TermChange(Fate.NEVER, changes)
    here = TermChange(Fate.CHANGE if changes else Fate.KEEP, changes)
    either = [position for position, each in changes.items() if each.is_either]
    if not either:
        return here
    ways = [*product((False, True), repeat=min(len(either), _MOST_EITHER))][1:]
    if len(requirements) * len(ways) > MOST_EXPRESSIONS:
        return replace(here, cut=True)
    further = (
        rewritten(term, here, {at for at, old in zip(either, each, strict=False) if old})
        for each in ways
    )
    return replace(here, further=tuple(further), cut=len(either) > _MOST_EITHER)


def within(changes: Iterable[TermChange], terms: int) -> Iterator[TermChange]:
    """The same, with no more further terms than a pod with so many terms should have."""
    room, expressions = max(MOST_TERMS - terms, 0), MOST_EXPRESSIONS
    for each in changes:
        if not each.further:
            yield each
            continue
        further = each.further[:room]
        expressions -= sum(len(term["matchExpressions"]) for term in further)
        further = further if expressions >= 0 else ()
        room -= len(further)
        yield replace(each, further=further, cut=each.cut or len(further) < len(each.further))


def rewritten(term: Raw, made: TermChange, old: Collection[int] = ()) -> Raw:
    """The term with its changes; for terms that are kept or changed.

    At the positions `old`, the requirement is on the old label, and excludes the current label, so
    that no node matches twice.
    """
    expressions = []
    for position, requirement in as_items(term.get("matchExpressions")):
        each = made.requirements.get(position, _KEEP)
        if position in old:
            expressions += [dict(each.old or {}), _not_of_today(each)]
            continue
        new = dict(requirement)
        if each.key:
            new["key"] = each.key
        if each.values is not None:
            new["values"] = list(each.values)
        expressions.append(new)
    if old:
        of_today = {at: each for at, each in made.requirements.items() if at not in old}
        made = replace(made, requirements=of_today)
    expressions += made.added
    return {**as_map(term), "matchExpressions": expressions}


def _not_of_today(made: Change) -> Raw:
    if made.values is None:
        return {"key": made.key, "operator": "DoesNotExist"}
    return {"key": made.key, "operator": "NotIn", "values": list(made.values)}
