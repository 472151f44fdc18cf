"""What becomes of node selector requirements on the legacy model label."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from webhook.core import labels, models
from webhook.core.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.rule import Context

    Raw = dict[str, Any]


class Fate(Enum):
    """What is to be done with a requirement, or with a whole term."""

    KEEP = "it stays as it is"
    CHANGE = "it is written in today's words"
    DROP = "it says nothing today and goes"
    NEVER = "no node can have it, so a preference for it goes"


@dataclass(frozen=True, slots=True)
class Change:
    """A requirement on the legacy label, in today's words."""

    fate: Fate
    key: str = ""
    values: tuple[str, ...] | None = None  # None: as they are
    unmapped: tuple[str, ...] = ()  # legacy values without a value of today
    why: str = ""  # why the first of them has none
    waits: bool = False  # no node can have what is asked for, so the pod waits


@dataclass(frozen=True, slots=True)
class TermChange:
    """A node selector term: the changes of its requirements by position, and its own fate.

    DROP is a term that is left without a requirement, and so is true of every node.
    """

    fate: Fate
    requirements: Mapping[int, Change]


_KEEP = Change(Fate.KEEP)


def change(requirement: Mapping[str, Any], cx: Context, *, preferred: bool) -> Change:
    """What becomes of one requirement."""
    if requirement.get("key") != cx.settings.models.legacy_label:
        return _KEEP
    key = cx.settings.models.key
    operator = requirement.get("operator")
    listed = requirement.get("values")
    values = [value for value in listed or () if isinstance(value, str)]
    if operator not in ("In", "NotIn") or not values:  # without values it is refused as it is
        return _presence(operator, cx, preferred=preferred)
    matches = {value: models.match(value, cx.settings.models, cx.inventory) for value in values}
    if any(match.carried for match in matches.values()):
        return _carried(values)
    today = tuple(dict.fromkeys(real for match in matches.values() for real in match.values))
    unmapped = tuple(value for value, match in matches.items() if not match.values)
    why = matches[unmapped[0]].why if unmapped else ""
    if today:
        return Change(Fate.CHANGE, key, today, unmapped, why)
    if operator == "NotIn":
        return Change(Fate.DROP, key, None, unmapped, why)
    if preferred:
        return Change(Fate.NEVER, key, None, unmapped, why)
    waiting = tuple(dict.fromkeys(labels.sanitised(value) for value in values))
    return Change(Fate.CHANGE, key, waiting, unmapped, why, waits=True)


def _presence(operator: object, cx: Context, *, preferred: bool) -> Change:
    """Exists or DoesNotExist: any model, or none."""
    wanted, inventory = cx.settings.models, cx.inventory
    if inventory is not None and inventory.values(wanted.legacy_label):
        return _KEEP
    why = models.missing_label(wanted, inventory)
    waits = operator == "Exists" and not preferred and bool(why)
    return Change(Fate.CHANGE, wanted.key, None, ("any model",) if waits else (), why, waits=waits)


def _carried(values: list[str]) -> Change:
    """Nodes still carry the legacy label: it stays, without what cannot be a label value."""
    legal = tuple(value for value in values if labels.is_value(value))
    if len(legal) == len(values):
        return _KEEP
    unmapped = tuple(value for value in values if not labels.is_value(value))
    return Change(Fate.CHANGE, "", legal, unmapped, "it can be no label value")


def term_change(term: Mapping[str, Any], cx: Context, *, preferred: bool) -> TermChange:
    """What becomes of one node selector term."""
    requirements = as_items(term.get("matchExpressions"))
    changes = {
        position: made
        for position, requirement in requirements
        if (made := change(requirement, cx, preferred=preferred)).fate is not Fate.KEEP
    }
    fates = [made.fate for made in changes.values()]
    if Fate.NEVER in fates:
        return TermChange(Fate.NEVER, changes)
    if fates.count(Fate.DROP) == len(requirements) > 0 and not term.get("matchFields"):
        return TermChange(Fate.DROP, changes)
    return TermChange(Fate.CHANGE if changes else Fate.KEEP, changes)


def rewritten(term: Raw, made: TermChange) -> Raw:
    """The term with its changes applied; for terms that are kept or changed."""
    expressions = []
    for position, requirement in as_items(term.get("matchExpressions")):
        each = made.requirements.get(position, _KEEP)
        if each.fate is Fate.DROP:
            continue
        new = dict(requirement)
        if each.key:
            new["key"] = each.key
        if each.values is not None:
            new["values"] = list(each.values)
        expressions.append(new)
    return {**as_map(term), "matchExpressions": expressions}


def describe(made: Change) -> str:
    """One clause on values that stand for nothing today, and the cure; empty if all do."""
    if not made.unmapped:
        return ""
    names = repr(made.unmapped[0][:40])
    if len(made.unmapped) > 1:
        names += f" (and {len(made.unmapped) - 1} more)"
    if made.waits:
        return f"{names} stands for no GPU here, so the pod waits: {made.why}; {_CURE}"
    if made.fate is Fate.CHANGE and not made.key:
        return f"{names} is dropped: {made.why}; delete it"
    return f"{names} stands for no GPU here and is dropped: {made.why}; {_CURE}"


_CURE = "name the model as the nodes do"
