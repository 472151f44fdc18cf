"""The tables of data: each spelling once, and none that a label could not carry."""

from __future__ import annotations

import pytest

from webhook.core import legacy_names
from webhook.kube import labels

TABLES = {
    name: table
    for name, table in vars(legacy_names).items()
    if name.isupper() and not name.startswith("_") and isinstance(table, tuple)
}


@pytest.mark.parametrize("name", [name for name in TABLES if name.endswith(("PRODUCTS", "NAMES"))])
def test_no_value_stands_twice_in_a_table(name: str) -> None:
    assert len(set(TABLES[name])) == len(TABLES[name])


def test_every_product_is_a_label_value() -> None:
    assert all(labels.is_value(value) for value in legacy_names.GFD_PRODUCTS)
    assert len(legacy_names.GFD_PRODUCTS) > 150


def test_deprecated_node_labels_become_others_that_are_not_deprecated() -> None:
    old = list(legacy_names.BETA_NODE_LABELS)
    new = list(legacy_names.BETA_NODE_LABELS.values())
    assert all(labels.is_key(key) for key in (*old, *new))
    assert not set(old) & set(new)
