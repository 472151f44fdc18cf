"""The mode of each rule in a namespace: off, audit, warn or enforce, from the settings."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.core.rule import Named
    from webhook.core.settings import Override, Policy

    AnyRule = TypeVar("AnyRule", bound=Named)

IGNORE = "gpu-webhook.dev/ignore"  # a label: "true" on a namespace or a pod opts out


def is_opted_out(labels: Mapping[str, Any]) -> bool:
    """Whether these labels of a namespace or a pod opt out of the webhook."""
    return labels.get(IGNORE) == "true"


class Mode(StrEnum):
    """What a rule may do, from nothing to everything."""

    OFF = "off"  # the rule does not run
    AUDIT = "audit"  # counted and logged only
    WARN = "warn"  # the user gets a warning, and nothing changes
    ENFORCE = "enforce"  # repairs, or denies


_STRICTNESS = [*Mode].index


class Modes:
    """The mode of each rule in one namespace."""

    __slots__ = ("_asked", "_default", "_only_off", "_or", "_rules")

    def __init__(
        self,
        default: Mode | None = None,
        rules: Mapping[str, Mode] | None = None,
        *,
        only_off: bool = False,
    ) -> None:
        """With a `default` of None each rule has its usual mode.

        With `only_off`, each rule has it whose mode is not `off`.
        """
        self._default = default
        self._rules = rules or {}
        self._only_off = only_off
        self._or: Sequence[Modes] = ()
        self._asked: dict[tuple[Named, ...], tuple[Any, ...]] = {}

    def only_off(self) -> Modes:
        """The same modes, of which only `off` counts: other rules have their usual mode."""
        return Modes(self._default, self._rules, only_off=True).or_stricter(self._or)

    def or_stricter(self, others: Sequence[Modes]) -> Modes:
        """Of these modes and the others, the strictest one for each rule."""
        made = Modes(self._default, self._rules, only_off=self._only_off)
        made._or = others
        return made

    def asked(self, rules: Iterable[AnyRule]) -> tuple[tuple[AnyRule, Mode], ...]:
        """The rules that are not off, with their modes.

        Computed once: there are few lists of rules, and the modes last as long as the settings.
        """
        key = tuple(rules)
        known = self._asked.get(key)
        if known is None:
            modes = zip(key, map(self.of, key), strict=True)
            known = self._asked[key] = tuple([each for each in modes if each[1] is not Mode.OFF])
        return known

    def of(self, rule: Named) -> Mode:
        """The mode of the rule."""
        return self.of_code(rule.CODE, rule.FACTS.mode)

    def of_code(self, code: str, usual: Mode = Mode.ENFORCE) -> Mode:
        """The mode of the rule with this code, and of this usual mode."""
        mode = self._rules.get(code) or self._default or usual
        if self._or:
            mode = max(mode, *(each.of_code(code, usual) for each in self._or), key=_STRICTNESS)
        return usual if self._only_off and mode is not Mode.OFF else mode


def modes_for(policy: Policy, namespace: str, labels: Mapping[str, str]) -> Modes:
    """The modes in this namespace: the settings for all namespaces, then each matching override.

    Later overrides win, and within one override the mode of a rule wins over its `mode`.
    """
    return _folded(policy, lambda each: each.where.selects(namespace, labels))


def strictest_modes(policy: Policy, namespace: str) -> Modes:
    """The strictest mode that each rule may have in a namespace whose labels are not known yet.

    Of the overrides by label, the last one that holds decides on a rule, so each is tried alone.
    """

    def alone(one: Override) -> Modes:
        return _folded(policy, lambda each: each is one or each.where.selects(namespace, {}))

    may = [each for each in policy.overrides if each.where.may_select(namespace)]
    return modes_for(policy, namespace, {}).or_stricter([alone(each) for each in may])


def _folded(policy: Policy, holds: Callable[[Override], bool]) -> Modes:
    default, rules = policy.mode, dict(policy.rules)
    for override in filter(holds, policy.overrides):
        if override.mode is not None:
            default, rules = override.mode, {}
        rules |= override.rules
    return Modes(default, rules)
