"""Node labels that were beta once and are stable now: zone, region, arch, os, instance type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.legacy_names import BETA_NODE_LABELS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    from webhook.capacity.nodes import Inventory

_TODAY = dict(BETA_NODE_LABELS)


def today_of(key: str, values: Collection[str], inventory: Inventory | None) -> str:
    """The label of today, unless the nodes carry the old one alone; other labels as they are.

    `values` are those that are asked for, if any are: a part of the nodes may carry the old one.
    """
    today = _TODAY.get(key, key)
    if inventory is None or today == key:
        return today
    old, new = inventory.values(key), inventory.values(today)
    if not old.isdisjoint(values) and new.isdisjoint(values):
        return key
    return key if old and not new else today


def gone(key: str, values: Collection[str], inventory: Inventory | None) -> str:
    """The label of today where no node carries what is asked for of the old one; else empty."""
    today = _TODAY.get(key)
    if today is None or inventory is None:
        return ""
    old, new = inventory.values(key), inventory.values(today)
    if values:
        return today if old.isdisjoint(values) and not new.isdisjoint(values) else ""
    return today if new and not old else ""


def gone_of(
    selector: Mapping[str, Any], inventory: Inventory | None
) -> Iterator[tuple[str, str, bool]]:
    """Such labels of a nodeSelector, each with today's, and whether that asks for nothing else."""
    for key, value in selector.items():
        if value is not None and (today := gone(key, (str(value),), inventory)):
            yield key, today, selector.get(today) in (None, value)
