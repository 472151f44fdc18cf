"""What only the webhook forbids or prevents: an installation in, what would end with it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.modes import Mode, is_opted_out, modes_for
from webhook.doctor.lines import few
from webhook.doctor.registration import GUARD, REFUSE
from webhook.kube.pod import as_map
from webhook.rules import above_limit, leak_guard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.doctor.facts import Facts

_GUARDS = {GUARD: "hides GPUs from", REFUSE: "refuses GPUs to"}


def in_force(facts: Facts) -> Iterator[tuple[str, str]]:
    """The rules that protect something, with what they protect."""
    does = [text for name, text in _GUARDS.items() if name in facts.configurations]
    if does and (names := sorted(_guarded(facts))):
        text = f"the guard {' and '.join(does)} pods that requested none, in {few(names)}"
        yield leak_guard.CODE, text
    if facts.settings.capacity.limits and _is_enforced_anywhere(facts):
        yield above_limit.CODE, "capacity.limits says how many GPUs a pod may request"


def _guarded(facts: Facts) -> Iterator[str]:
    for each in facts.guarded:
        name, labels = each["metadata"]["name"], as_map(each["metadata"].get("labels"))
        mode = modes_for(facts.settings.policy, name, labels).of(leak_guard)
        if mode is Mode.ENFORCE and not is_opted_out(labels):
            yield name


def _is_enforced_anywhere(facts: Facts) -> bool:
    policy, code = facts.settings.policy, above_limit.CODE
    usual = policy.rules.get(code) or policy.mode or above_limit.FACTS.mode
    return Mode.ENFORCE in [usual, *(e.rules.get(code) or e.mode for e in policy.overrides)]
