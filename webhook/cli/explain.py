"""`gpu-webhook explain CODE`: the manual of a rule is its docstring."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webhook.core.did_you_mean import did_you_mean
from webhook.core.errors import InputError
from webhook.rules import ALL

if TYPE_CHECKING:
    from types import ModuleType, SimpleNamespace

    from webhook.core.rule import Named


def run(args: SimpleNamespace) -> int:
    """Print one rule's manual, or the list of rules."""
    if args.code is None:
        for each in sorted(ALL, key=lambda each: each.CODE):
            sys.stdout.write(f"{each.CODE}  {each.NAME:24} {headline(each)}\n")
        return 0
    rule = find(args.code)
    sys.stdout.write(f"{rule.CODE} {rule.NAME}\n\n{manual(rule)}\n")
    return 0


def find(word: str) -> Named:
    """The rule with this code or name; raises InputError with the known codes."""
    for rule in ALL:
        if word.upper() == rule.CODE or word.lower() == rule.NAME:
            return rule
    guess = did_you_mean(word, [name for rule in ALL for name in (rule.CODE, rule.NAME)])
    codes = ", ".join(sorted(rule.CODE for rule in ALL))
    raise InputError(f"there is no rule {word!r}{guess or '; the codes are ' + codes}")


def manual(rule: Named | ModuleType) -> str:
    """The rule's docstring."""
    return (rule.__doc__ or "").strip()


def headline(rule: Named | ModuleType) -> str:
    """Its first line."""
    return manual(rule).partition("\n")[0]
