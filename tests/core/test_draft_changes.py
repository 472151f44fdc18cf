"""The draft's changes as symbolic edits: all at places of the object as it came."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.core.test_draft import CASES, at
from webhook.core.draft import Draft
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.errors import EditError
from webhook.kube.pointer import Path

if TYPE_CHECKING:
    from webhook.core.edits import Edit


def by_edits(before: Any, edits: list[Edit]) -> Any:
    """The object with edits whose places are all those of the object as it came."""
    if not isinstance(before, dict | list):
        return before
    here = [each for each in edits if len(_place_of(each)) == 1 and not isinstance(each, Append)]
    made: Any = {} if isinstance(before, dict) else []
    pairs = list(before.items()) if isinstance(before, dict) else list(enumerate(before))
    for key, was in pairs:
        mine = [each for each in here if _place_of(each)[0] == key]
        if any(isinstance(each, Remove) for each in mine):
            continue
        name = next((each.name for each in mine if isinstance(each, Rename)), key)
        below = [_below(each) for each in edits if _place_of(each)[0] == key and _is_below(each)]
        value = by_edits(was, below)
        value = next((each.value for each in mine if isinstance(each, Set)), value)
        if isinstance(made, dict):
            made[name] = value
        else:
            made.append(value)
    for each in edits:
        if isinstance(each, Set) and len(each.at) == 1 and each.at[0] not in dict(pairs):
            made[each.at[0]] = each.value
        if isinstance(each, Append) and not each.to:
            made.append(each.value)
    return made


def _place_of(edit: Edit) -> Path:
    return Path((*edit.to, "-")) if isinstance(edit, Append) else edit.at


def _is_below(edit: Edit) -> bool:
    return len(_place_of(edit)) > 1


def _below(edit: Edit) -> Edit:
    if isinstance(edit, Append):
        return replace(edit, to=Path(edit.to[1:]))
    return replace(edit, at=Path(edit.at[1:]))


@pytest.mark.parametrize(
    ("rounds", "changes"),
    [
        pytest.param([[Rename(at("a"), "c")]], [Rename(at("a"), "c")], id="another name"),
        pytest.param(
            [[Rename(at("a"), "c")], [Set(at("c"), 9)]],
            [Rename(at("a"), "c"), Set(at("a"), 9)],
            id="another name, then another value",
        ),
        pytest.param(
            [[Rename(at("a"), "c")], [Rename(at("c"), "d")]],
            [Rename(at("a"), "d")],
            id="two other names are one",
        ),
        pytest.param([[Rename(at("a"), "c")], [Rename(at("c"), "a")]], [], id="and back again"),
        pytest.param(
            [[Rename(at("a"), "c")], [Remove(at("c"))]],
            [Remove(at("a"))],
            id="another name, then gone",
        ),
        pytest.param(
            [[Rename(at("a"), "c")], [Set(at("a"), 5)]],
            [Set(at("a"), 5), Set(at("c"), 1)],
            id="the old name again: two members",
        ),
        pytest.param(
            [[Set(at("c"), 7)], [Rename(at("c"), "d")]],
            [Set(at("d"), 7)],
            id="a new member with another name",
        ),
        pytest.param(
            [[Remove(at("a"))], [Set(at("a"), 7)], [Rename(at("a"), "d")]],
            [Rename(at("a"), "d"), Set(at("a"), 7)],
            id="gone, back with another value, and another name",
        ),
        pytest.param(
            [[Remove(at("b"))], [Set(at("c"), 7)], [Rename(at("c"), "b")]],
            [Set(at("b"), 7)],
            id="a new member in the place of another",
        ),
        pytest.param(
            [[Remove(at("b"))], [Rename(at("a"), "b")]],
            [Rename(at("a"), "b"), Remove(at("b"))],
            id="in the place of another",
        ),
        pytest.param(
            [[Append(at("l"), 4)], [Remove(at("l", 0))]],
            [Append(at("l"), 4), Remove(at("l", 0))],
            id="a list: places as they were",
        ),
    ],
)
def test_changes_are_edits_of_the_object_as_it_came(
    rounds: list[list[Edit]], changes: list[Edit]
) -> None:
    before: dict[str, Any] = {"a": 1, "b": 2, "l": [1, 2, 3]}
    obj = deepcopy(before)
    draft = Draft(obj)
    for edits in rounds:
        draft.apply(edits)
    assert sorted(draft.changes(), key=repr) == sorted(changes, key=repr)
    assert by_edits(before, changes) == obj


@pytest.mark.parametrize(("before", "rounds", "operations"), CASES)
def test_changes_say_what_the_patch_says(
    before: Any,
    rounds: list[list[Edit]],
    operations: list[dict[str, Any]],  # noqa: ARG001  # the table's
) -> None:
    obj = deepcopy(before)
    draft = Draft(obj)
    for edits in rounds:
        draft.apply(edits)
    assert by_edits(before, draft.changes()) == obj


def test_what_edits_brought_in_is_one_change_whatever_happens_to_it() -> None:
    obj: dict[str, Any] = {}
    draft = Draft(obj)
    draft.apply([Set(at("m"), {"a": 1, "b": 2, "c": 3})])
    draft.apply([Rename(at("m", "a"), "z"), Remove(at("m", "b"))])
    assert draft.changes() == [Set(at("m"), {"z": 1, "c": 3})]


@pytest.mark.parametrize(
    ("edits", "changes"),
    [
        pytest.param(
            [Set(at("m", "n", "a"), 2), Set(at("m", "b"), 3)],
            [Set(at("m", "b"), 3), Set(at("m", "n", "a"), 2)],
            id="a map and one inside it: neither is written whole",
        ),
        pytest.param(
            [Set(at("l", 0, "a"), 2), Append(at("l"), 3)],
            [Append(at("l"), 3), Set(at("l", 0, "a"), 2)],
            id="a list and a map inside it",
        ),
        pytest.param([Set(at("m", "n"), {"a": 1})], [], id="an equal map in the place of one"),
        pytest.param([Set(at("l", 0), {"a": 1})], [], id="and in a list"),
        pytest.param(
            [Set(at("l", 0), {"a": 2})], [Set(at("l", 0), {"a": 2})], id="another map in a list"
        ),
    ],
)
def test_only_what_differs_is_a_change(edits: list[Edit], changes: list[Edit]) -> None:
    draft = Draft({"m": {"n": {"a": 1}, "b": 1}, "l": [{"a": 1}, 2]})
    draft.apply(edits)
    assert sorted(draft.changes(), key=repr) == sorted(changes, key=repr)


def test_a_member_keeps_its_new_name_if_later_edits_do_not_fit() -> None:
    draft = Draft({"m": {"a": 1}})
    draft.apply([Rename(at("m", "a"), "b")])
    with pytest.raises(EditError):
        draft.apply([Rename(at("m", "b"), "c"), Rename(at("m", "b"), "d")])
    assert draft.changes() == [Rename(at("m", "a"), "b")]


@pytest.mark.parametrize(
    ("now", "was"),
    [
        pytest.param(at(), at(), id="the object"),
        pytest.param(at("same", "x"), at("same", "x"), id="what no edit has touched"),
        pytest.param(at("new"), at("old"), id="another name"),
        pytest.param(at("new", "in"), at("old", "within"), id="and one inside it"),
        pytest.param(at("new", "in", "x"), at("old", "within", "x"), id="what is inside both"),
        pytest.param(at("l", 0, "c"), at("l", 1, "b"), id="another position and name"),
        pytest.param(at("l", 1), at("l", 1), id="an item that was added"),
        pytest.param(at("l", 2), at("l", 2), id="a position behind the list"),
        pytest.param(at("l", "x"), at("l", "x"), id="a name in a list"),
        pytest.param(at("none", 7, "x"), at("none", 7, "x"), id="a place without a value"),
    ],
)
def test_a_place_was_somewhere_in_the_object_as_it_came(now: Path, was: Path) -> None:
    draft = Draft({"same": {"x": 1}, "old": {"within": {"x": 1}}, "l": [{"a": 1}, {"b": 2}]})
    draft.apply([Remove(at("l", 0))])
    draft.apply([Rename(at("l", 0, "b"), "c"), Append(at("l"), {"d": 3})])
    draft.apply([Rename(at("old", "within"), "in")])
    draft.apply([Rename(at("old"), "new")])
    assert draft.origin(now) == was
