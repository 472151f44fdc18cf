"""Node labels that were beta and are stable now: zone, region, arch, os, instance type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.legacy_names import BETA_NODE_LABELS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.capacity.nodes import Inventory


def current_label(key: str, values: Collection[str], inventory: Inventory | None) -> str:
    """The current label, unless the nodes have only the old one; other labels are unchanged.

    `values` are the requested values: some nodes may have the old label.
    """
    today = BETA_NODE_LABELS.get(key, key)
    if inventory is None or today == key:
        return today
    old, new = inventory.values(key), inventory.values(today)
    if not old.isdisjoint(values) and new.isdisjoint(values):
        return key
    return key if old and not new else today


def replacement(key: str, values: Collection[str], inventory: Inventory | None) -> str:
    """The current label if no node has the requested values under the old label.

    Otherwise empty.
    """
    today = BETA_NODE_LABELS.get(key)
    if today is None or inventory is None:
        return ""
    old, new = inventory.values(key), inventory.values(today)
    if values:
        return today if old.isdisjoint(values) and not new.isdisjoint(values) else ""
    return today if new and not old else ""


def replaced_in(
    selector: Mapping[str, Any], inventory: Inventory | None
) -> Iterator[tuple[str, str, bool]]:
    """Such labels of a nodeSelector, each with the current label, and whether values are equal."""
    for key, value in selector.items():
        if value is not None and (today := replacement(key, (str(value),), inventory)):
            yield key, today, selector.get(today) in (None, value)
