"""Selects namespaces: takes an entry of the settings, and answers for a namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALL = 100


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects namespaces; all given conditions must hold, so an empty selection selects all."""

    namespaces: tuple[str, ...] = ()  # name patterns: * stands for any text
    labels: tuple[tuple[str, str], ...] = ()  # of the namespace
    percent: int = _ALL  # of all namespaces, always the same ones; a higher number only adds some

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether this namespace is selected. An unknown namespace has no labels."""
        return (
            (not self.namespaces or matches(self.namespaces, namespace))
            and all(labels.get(key) == value for key, value in self.labels)
            and (self.percent >= _ALL or share(namespace) < self.percent)
        )

    def may_select(self, namespace: str) -> bool:
        """Whether this namespace is selected if it has the right labels."""
        return replace(self, labels=()).selects(namespace, {})


EVERYWHERE = Selection()


def share(namespace: str) -> int:
    """A number from 0 to 99 that depends only on the name: its position in a roll-out."""
    return crc32(namespace.encode("utf-8", "replace")) % _ALL


def matches(patterns: tuple[str, ...], name: str) -> bool:
    """True if the whole name matches one of the patterns."""
    return _expression(patterns).fullmatch(name) is not None


@lru_cache(maxsize=256)
def _expression(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translated, patterns)), re.DOTALL)


def translated(pattern: str, any_of: str = ".") -> str:
    """The pattern as a regular expression; each * matches as little as possible, so none is slow.

    `any_of` are the characters that a * stands for.
    """
    first, *rest = map(re.escape, pattern.split("*"))
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>{any_of}*?{each})" for each in middle) + f"{any_of}*{last}"
