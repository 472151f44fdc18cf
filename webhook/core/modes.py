"""The mode of each rule in a namespace: off, audit, warn or enforce, from the settings."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.rule import Named
    from webhook.core.settings import Policy

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


class Modes:
    """The mode of each rule in one namespace."""

    __slots__ = ("_asked", "_default", "_only_off", "_rules")

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
        self._asked: dict[tuple[Named, ...], tuple[Any, ...]] = {}

    def only_off(self) -> Modes:
        """The same modes, of which only `off` counts: other rules have their usual mode."""
        return Modes(self._default, self._rules, only_off=True)

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
        return usual if self._only_off and mode is not Mode.OFF else mode


def modes_for(policy: Policy, namespace: str, labels: Mapping[str, str]) -> Modes:
    """The modes in this namespace: the settings for all namespaces, then each matching override.

    Later overrides win, and within one override the mode of a rule wins over its `mode`.
    """
    default, rules = policy.mode, dict(policy.rules)
    for override in policy.overrides:
        if override.where.selects(namespace, labels):
            if override.mode is not None:
                default, rules = override.mode, {}
            rules |= override.rules
    return Modes(default, rules)
