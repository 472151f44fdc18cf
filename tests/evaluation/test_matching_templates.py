"""Templates in lists keep their name when an update moves them."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.evaluation.matching_templates import MatchingTemplates
from webhook.kube.pointer import Path


def in_list(*items: Any) -> dict[str, Any]:
    return {"spec": {"groups": list(items)}}


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(in_list({"name": "b"}, {"name": "a", "t": {}}), 1, id="at another position"),
        pytest.param(in_list({"groupName": "a", "t": {}}), 0, id="Ray's field for the name"),
        pytest.param(in_list({"name": "a"}), None, id="an item without a template"),
        pytest.param(in_list({"name": "b", "t": {}}), None, id="no item of this name"),
        pytest.param(in_list({"name": "a", "t": {}}, {"name": "a", "t": {}}), None, id="two of it"),
        pytest.param(in_list({"t": {}}), None, id="an item without a name"),
        pytest.param(in_list({"name": {}, "t": {}}), None, id="a name that is no text"),
        pytest.param({"spec": {"groups": {"name": "a"}}}, None, id="no list"),
        pytest.param({"spec": {"groups": [7]}}, None, id="no items"),
        pytest.param({"spec": 7}, None, id="something else"),
        pytest.param(in_list({"name": "a", "t": 7}), None, id="a template that is none"),
    ],
)
def test_an_item_of_a_list_is_found_by_its_name(old: Any, expected: int | None) -> None:
    at = Path(("spec", "groups", 0, "t"))
    place = None if expected is None else Path(("spec", "groups", expected, "t"))
    assert MatchingTemplates(old, in_list({"name": "a", "t": {}})).in_old(at) == place


@pytest.mark.parametrize(
    "item", [{"t": {}}, {"name": {}, "t": {}}], ids=["without a name", "a name that is no text"]
)
def test_an_item_without_a_name_has_no_place(item: Any) -> None:
    assert (
        MatchingTemplates(in_list(item), in_list(item)).in_old(Path(("spec", "groups", 0, "t")))
        is None
    )


def test_two_items_that_change_places() -> None:
    a, b = {"name": "a", "t": {}}, {"name": "b", "t": {}}
    same = MatchingTemplates(in_list(a, b), in_list(b, a))
    first, second = Path(("spec", "groups", 0, "t")), Path(("spec", "groups", 1, "t"))
    assert (same.in_old(first), same.in_old(second)) == (second, first)
