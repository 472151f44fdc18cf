"""What the webhook does where: an installation in, the rules in force and the namespaces out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.modes import Mode, is_opted_out
from webhook.doctor import guarding
from webhook.doctor.guarding import GUARD, REFUSE, labelled, selector
from webhook.doctor.leftovers import OURS
from webhook.doctor.lines import few
from webhook.kube.selectors import selects
from webhook.rules import above_limit, leak_guard, never_fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from webhook.core.rule import Rule
    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

_GUARDS = {GUARD: "hides GPUs from", REFUSE: "refuses GPUs to"}  # by their shipped names


def in_force(facts: Facts, namespaces: Iterable[Raw]) -> Iterator[tuple[str, str]]:
    """The rules that protect something, with what they protect."""
    guards = {name: [*guarding.entries(facts, name)] for name in _GUARDS}
    found = [entry for entries in guards.values() for entry in entries]
    guarded = (e for e in namespaces if not guarding.why_not(facts, e, found))
    if names := sorted(each["metadata"]["name"] for each in guarded):
        does = " and ".join(_GUARDS[name] for name, entries in guards.items() if entries)
        yield leak_guard.CODE, f"the guard {does} pods that requested none, in {few(names)}"
    if _is_enforced_anywhere(facts, never_fits):  # the other rules on capacity deny nothing
        yield never_fits.CODE, "pods that no node can run are denied; they would be Pending"
    if facts.settings.capacity.limits and _is_enforced_anywhere(facts, above_limit):
        yield above_limit.CODE, "capacity.limits says how many GPUs a pod may request"


def _is_enforced_anywhere(facts: Facts, rule: Rule) -> bool:
    policy, code = facts.settings.policy, rule.CODE
    usual = policy.rules.get(code) or policy.mode or rule.FACTS.mode
    return Mode.ENFORCE in [usual, *(e.rules.get(code) or e.mode for e in policy.overrides)]


def reaches(facts: Facts, namespace: Raw) -> bool:
    """Whether the API server sends what is created in this namespace to an entry that repairs.

    Of an installation without entries that is not known.
    """
    changing = [name for name in facts.configurations if name.startswith("mutating/")]
    selectors, labels = _selectors(facts, *changing), labelled(namespace)
    is_selected = not selectors or any(selects(each, labels) for each in selectors)
    return is_selected and not is_opted_out(labels)


def _selectors(facts: Facts, *configurations: str) -> list[Raw]:
    """The selectors of namespaces in our entries there."""
    return [
        selector(entry)
        for _, entry in facts.entries(*configurations)
        if str(entry.get("name")).endswith(OURS)
    ]
