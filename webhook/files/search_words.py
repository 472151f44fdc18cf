"""Literals for the prefilter: a file that contains none of them cannot have a finding.

A word stands for all names that contain it, so a few words are enough. Words without a slash or a
dot are found in every quoting of such names (~1 in a JSON Patch, a backslash in a jsonpath). The
rules declare their words, and tests compare these with what the rules look for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.rules import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.core.rule import Named
    from webhook.core.settings import Settings


def words(settings: Settings, rules: Iterable[Named] = ALL) -> tuple[bytes, ...]:
    """The words of the rules, and those of these settings."""
    named = {word for rule in rules for word in rule.FACTS.words}
    names = {*settings.legacy_resources, settings.models.legacy_label, settings.gpu_resource}
    names |= {each.rstrip("*") for each in settings.gpu_resources}
    for name in names:
        named |= {name, name.replace("/", "~1"), name.replace(".", "\\.")}
    # A * matches within one segment of a path: the longest text between two of them must be there.
    named |= {max(path.split("*"), key=len) for path in settings.drivers.remove}
    return fewest(named)


def fewest(named: Iterable[str]) -> tuple[bytes, ...]:
    """Leave out words that contain another word: the shorter one finds the same files."""
    kept: list[str] = []
    for name in sorted(sorted(set(named)), key=len):
        if name and not any(map(name.__contains__, kept)):
            kept.append(name)
    return tuple(map(str.encode, kept))
