"""The draft: what edits do to the object, and the RFC 6902 operations that they come to."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest

from webhook.core.draft import Draft
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.errors import EditError
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from webhook.core.edits import Edit


def at(*tokens: str | int) -> Path:
    return Path(tokens)


def add(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: object) -> dict[str, object]:
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> dict[str, object]:
    return {"op": "remove", "path": path}


CASES = [
    pytest.param({"a": 1}, [[]], [], id="no edits, no operations"),
    # --- maps
    pytest.param({"a": 1}, [[Set(at("b"), 2)]], [add("/b", 2)], id="a new member is added"),
    pytest.param({"a": 1}, [[Set(at("a"), 2)]], [replace("/a", 2)], id="a member is replaced"),
    pytest.param({"a": 1}, [[Set(at("a"), 1)]], [], id="the same value again is no change"),
    pytest.param({"a": None}, [[Set(at("a"), 1)]], [replace("/a", 1)], id="null is replaced"),
    pytest.param(
        {"a": 1}, [[Set(at("a"), True)]], [replace("/a", True)], id="true is not the number 1"
    ),
    pytest.param(
        {"a": 1}, [[Set(at("a"), 1.0)]], [replace("/a", 1.0)], id="1.0 is not written like 1"
    ),
    pytest.param(
        {"a": {"b": {"c": 1}}}, [[Set(at("a", "b"), {"c": 1})]], [], id="an equal map is no change"
    ),
    pytest.param({"a": 1, "b": 2}, [[Remove(at("b"))]], [remove("/b")], id="a member leaves"),
    pytest.param(
        {"m": {"a": 1, "z": 0}},
        [[Rename(at("m", "a"), "b")]],
        [remove("/m/a"), add("/m/b", 1)],
        id="a rename is one removal and one addition",
    ),
    pytest.param(
        {"m": {"a": "500m", "z": 0}},
        [[Rename(at("m", "a"), "b")], [Set(at("m", "b"), "1")]],
        [remove("/m/a"), add("/m/b", "1")],
        id="a rename and a rounding are still one removal and one addition",
    ),
    pytest.param(
        {"m": {"a": 1}},
        [[Rename(at("m", "a"), "b")], [Rename(at("m", "b"), "a")]],
        [],
        id="there and back is no change",
    ),
    pytest.param({"a": 1}, [[Set(at("b"), 2)], [Remove(at("b"))]], [], id="in and out again"),
    pytest.param(
        {"a": 1, "z": 0},
        [[Remove(at("a"))], [Set(at("a"), 1)]],
        [],
        id="out and in again as it was",
    ),
    pytest.param(
        {"a": 1},
        [[Set(at("a"), 2)], [Set(at("a"), 3)]],
        [replace("/a", 3)],
        id="the last of two values counts",
    ),
    pytest.param(
        {"l": {"x/y~z": 1, "k": 0}},
        [[Remove(at("l", "x/y~z"))]],
        [remove("/l/x~1y~0z")],
        id="names are escaped",
    ),
    # --- parents
    pytest.param(
        {}, [[Set(at("a", "b", "c"), 1)]], [add("/a", {"b": {"c": 1}})], id="parents come along"
    ),
    pytest.param(
        {},
        [[Set(at("a", "b"), 1), Set(at("a", "c"), 2)]],
        [add("/a", {"b": 1, "c": 2})],
        id="parents are made once",
    ),
    pytest.param(
        {},
        [[Set(at("a", "b"), 1)], [Set(at("a", "c"), 2)]],
        [add("/a", {"b": 1, "c": 2})],
        id="also over two rounds",
    ),
    pytest.param(
        {"a": None},
        [[Set(at("a", "b"), 1)]],
        [replace("/a", {"b": 1})],
        id="a null parent is replaced, since its path is there",
    ),
    pytest.param(
        {"a": {"b": None}},
        [[Set(at("a", "b", "c", "d"), 1)]],
        [replace("/a/b", {"c": {"d": 1}})],
        id="a null parent half way down",
    ),
    pytest.param({"a": {}}, [[Set(at("a", "b"), 1)]], [add("/a/b", 1)], id="an empty parent stays"),
    pytest.param(
        {"c": [{"r": None}]},
        [[Set(at("c", 0, "r", "limits"), {"g": 1})]],
        [replace("/c/0/r", {"limits": {"g": 1}})],
        id="a null parent within a list item",
    ),
    # --- lists
    pytest.param({"l": [1]}, [[Append(at("l"), 2)]], [add("/l/-", 2)], id="an item is appended"),
    pytest.param(
        {"l": []}, [[Append(at("l"), 2)]], [add("/l/-", 2)], id="to an empty list that is there"
    ),
    pytest.param(
        {}, [[Append(at("l"), 2)]], [add("/l", [2])], id="a missing list is made, without a dash"
    ),
    pytest.param(
        {"l": None}, [[Append(at("l"), 2)]], [replace("/l", [2])], id="a null list is replaced"
    ),
    pytest.param(
        {},
        [[Append(at("a", "l"), 1), Append(at("a", "l"), 2)], [Append(at("a", "l"), 3)]],
        [add("/a", {"l": [1, 2, 3]})],
        id="a list and its parent are made once for three items",
    ),
    pytest.param(
        {"l": [1, 2, 3]},
        [[Remove(at("l", 0)), Remove(at("l", 2))]],
        [remove("/l/2"), remove("/l/0")],
        id="items leave from the end",
    ),
    pytest.param(
        {"l": [1, 2, 3]},
        [[Remove(at("l", 1)), Remove(at("l", 1))]],
        [remove("/l/1")],
        id="an item that two findings remove leaves once",
    ),
    pytest.param(
        {"l": [1, 2]}, [[Set(at("l", 1), 9)]], [replace("/l/1", 9)], id="an item is replaced"
    ),
    pytest.param({"l": [1, 2]}, [[Set(at("l", 1), 2)]], [], id="an item is replaced by its equal"),
    pytest.param(
        {"l": [{"v": 1}, {"v": 2}, {"v": 3}]},
        [[Remove(at("l", 0)), Set(at("l", 2, "v"), 9)]],
        [replace("/l/2/v", 9), remove("/l/0")],
        id="positions are those before the removal, in edits and in the patch",
    ),
    pytest.param(
        {"l": [{"v": 1}, {"v": 2}, {"v": 3}]},
        [[Remove(at("l", 0))], [Set(at("l", 1, "v"), 9)]],
        [replace("/l/2/v", 9), remove("/l/0")],
        id="a later round names positions as they are then",
    ),
    pytest.param(
        {"l": [1, 2, 3]},
        [[Remove(at("l", 1)), Set(at("l", 2), 9), Append(at("l"), 4)]],
        [replace("/l/2", 9), remove("/l/1"), add("/l/-", 4)],
        id="remove, set and append in one list",
    ),
    pytest.param(
        {"l": [1, 2]},
        [[Append(at("l"), 3)], [Remove(at("l", 2))]],
        [],
        id="an item that came and left again",
    ),
    pytest.param(
        {"l": [1, 2]},
        [[Append(at("l"), {"v": 3})], [Set(at("l", 2, "v"), 4)], [Remove(at("l", 0))]],
        [remove("/l/0"), add("/l/-", {"v": 4})],
        id="an appended item is edited and another leaves",
    ),
    pytest.param(
        {"l": [{"v": 1}, {"v": 2}]},
        [[Set(at("l", 1, "v"), 9), Remove(at("l", 1))]],
        [remove("/l/1")],
        id="what is edited and removed is only removed",
    ),
    pytest.param(
        {"l": [{"m": [1, 2], "n": 0}, {"v": 2}]},
        [[Remove(at("l", 0, "m", 0)), Remove(at("l", 0))]],
        [remove("/l/0")],
        id="a removal within a removed item says nothing",
    ),
    pytest.param(
        {"l": [{"m": [1, 2]}, {"m": [3, 4]}, {"m": [5, 6]}]},
        [[Remove(at("l", 1)), Remove(at("l", 2, "m", 0)), Remove(at("l", 0, "m", 1))]],
        [remove("/l/0/m/1"), remove("/l/2/m/0"), remove("/l/1")],
        id="the deepest removals come first, so that every position holds",
    ),
    pytest.param(
        {"a": 1},
        [[Append(at("l"), 1), Append(at("l"), 2)], [Remove(at("l", 0))]],
        [add("/l", [2])],
        id="an item leaves a list that an edit made",
    ),
    pytest.param(
        {"l": [1, 2], "m": {"a": 1, "b": 2}},
        [[Remove(at("m", "a")), Remove(at("l", 0)), Remove(at("m", "b")), Remove(at("l", 1))]],
        [remove("/l"), remove("/m")],
        id="members and items leave in one round",
    ),
    pytest.param(
        {"l": [{"v": [1]}]},
        [[Set(at("l", 0), {"v": [1]})]],
        [],
        id="an item is replaced by an equal map",
    ),
    # --- what a removal leaves empty
    pytest.param(
        {"l": [1], "z": 0},
        [[Remove(at("l", 0))]],
        [remove("/l")],
        id="the last item takes the list",
    ),
    pytest.param(
        {"m": {"a": 1}, "z": 0},
        [[Remove(at("m", "a"))]],
        [remove("/m")],
        id="the last member takes the map",
    ),
    pytest.param(
        {"o": {"m": {"a": 1}}, "z": 0},
        [[Remove(at("o", "m", "a"))]],
        [remove("/o/m")],
        id="but not the map above it",
    ),
    pytest.param(
        {"l": [[1], 2]}, [[Remove(at("l", 0, 0))]], [remove("/l/0/0")], id="an empty item stays"
    ),
    pytest.param(
        {"m": {"a": 1}, "z": 0},
        [[Remove(at("m", "a")), Set(at("m", "b"), 2)]],
        [remove("/m/a"), add("/m/b", 2)],
        id="a map that another edit fills is not empty",
    ),
    pytest.param({"a": 1}, [[Remove(at("a"))]], [remove("/a")], id="the object itself stays"),
    pytest.param(
        {"m": {"a": 1}, "z": 0},
        [[Remove(at("m", "a")), Remove(at("m"))]],
        [remove("/m")],
        id="what went with its last member may be removed as well",
    ),
    pytest.param(
        {"m": {"a": {"b": 1}}, "z": 0},
        [[Remove(at("m")), Remove(at("m", "a", "b"))]],
        [remove("/m")],
        id="in any order",
    ),
    # --- moved, replaced and edited
    pytest.param(
        {"m": {"v": 1}},
        [[Set(at("m", "v"), 2)], [Set(at("m"), {"v": 2})]],
        [replace("/m", {"v": 2})],
        id="an edit below a value that is replaced by its equal afterwards is not lost",
    ),
    pytest.param(
        {"m": {"v": 1, "w": [1]}},
        [[Set(at("m", "v"), 2), Append(at("m", "w"), 2)], [Set(at("m"), {"v": 1, "w": [1]})]],
        [],
        id="a value put back as it was before the first edit is no change",
    ),
    pytest.param(
        {"m": [1, 2]},
        [[Append(at("m"), 3)], [Set(at("m"), [1, 2])]],
        [],
        id="a list put back as it was is no change either",
    ),
    pytest.param(
        {"m": [1, 2]},
        [[Append(at("m"), 3)], [Set(at("m"), [1, 3])]],
        [replace("/m", [1, 3])],
        id="a list put back otherwise is replaced",
    ),
    pytest.param(
        {"m": [1, 2]}, [[Set(at("m"), {"0": 1})]], [replace("/m", {"0": 1})], id="a list turns map"
    ),
    pytest.param(
        {"m": {"a": 1}},
        [[Set(at("m"), {"b": 1})]],
        [replace("/m", {"b": 1})],
        id="a map with another member",
    ),
    pytest.param(
        {"a": {"v": 1}, "z": 0},
        [[Set(at("a", "v"), 2)], [Rename(at("a"), "b")]],
        [remove("/a"), add("/b", {"v": 2})],
        id="an edit below a member that is renamed afterwards goes with it",
    ),
    pytest.param(
        {"a": {"v": 1}, "z": 0},
        [[Rename(at("a"), "b")], [Set(at("b", "v"), 2)]],
        [remove("/a"), add("/b", {"v": 2})],
        id="an edit below a renamed member",
    ),
    pytest.param(
        {"a": {"v": 1}, "z": 0},
        [[Rename(at("a"), "b")], [Set(at("b", "v"), 2)], [Rename(at("b"), "a")]],
        [replace("/a/v", 2)],
        id="an edit below a member that was called otherwise for a while",
    ),
    pytest.param(
        {"l": [{"v": 1}]},
        [[Set(at("l", 0, "v"), 2)], [Set(at("l", 0), {"w": 1})]],
        [replace("/l/0", {"w": 1})],
        id="an edit below an item that is replaced afterwards",
    ),
    pytest.param(
        {"l": [{"v": 1}]},
        [[Set(at("l", 0), {"v": 5})], [Set(at("l", 0, "v"), 6)]],
        [replace("/l/0", {"v": 6})],
        id="an edit below an item that was replaced",
    ),
    pytest.param(
        {"a": {"l": [1]}, "z": 0},
        [[Append(at("a", "l"), 2)], [Remove(at("a"))]],
        [remove("/a")],
        id="an edit below a member that leaves afterwards",
    ),
    pytest.param(
        {"l": [{"m": {"v": 1}}, {"m": {"v": 2}}]},
        [[Set(at("l", 0, "m", "v"), 8), Set(at("l", 1, "m", "v"), 9)], [Remove(at("l", 0))]],
        [replace("/l/1/m/v", 9), remove("/l/0")],
        id="of two edited items one leaves",
    ),
]


@pytest.mark.parametrize(("obj", "rounds", "operations"), CASES)
def test_edits_come_to_the_fewest_operations(
    obj: dict[str, Any], rounds: list[list[Edit]], operations: list[dict[str, Any]]
) -> None:
    original, obj = obj, deepcopy(obj)
    draft = Draft(obj)
    for edits in rounds:
        draft.apply(edits)
    patch = draft.patch()
    assert patch == operations
    assert [type(each.get("value")) for each in patch] == [
        type(each.get("value")) for each in operations
    ]
    assert draft.object is obj
    assert jsonpatch.apply_patch(original, patch) == obj


MISFITS = [
    pytest.param({"a": 1}, Remove(at("b")), id="Remove: the member does not exist"),
    pytest.param({"a": None}, Remove(at("a", "b")), id="Remove: its map is null"),
    pytest.param({"l": [1]}, Remove(at("l", 1)), id="Remove: the position is past the end"),
    pytest.param({"l": [1]}, Remove(at("l", -1)), id="Remove: the position is negative"),
    pytest.param({"l": [1]}, Remove(at("l", "0")), id="Remove: a name in a list"),
    pytest.param({"m": {"0": 1}}, Remove(at("m", 0)), id="Remove: a position in a map"),
    pytest.param({"a": 1}, Remove(ROOT), id="Remove: the object itself"),
    pytest.param({"a": 1}, Rename(at("b"), "c"), id="Rename: the member does not exist"),
    pytest.param({"a": 1, "b": 2}, Rename(at("a"), "b"), id="Rename: the name is taken"),
    pytest.param({"l": [1]}, Rename(at("l", 0), "b"), id="Rename: an item has no name"),
    pytest.param({"l": [1]}, Set(at("l", 1), 2), id="Set: the position is past the end"),
    pytest.param({"l": [1]}, Set(at("l", "a"), 2), id="Set: a name in a list"),
    pytest.param({"a": 1}, Set(at("a", "b"), 2), id="Set: below a number"),
    pytest.param({"a": "x"}, Set(at("a", 0), 2), id="Set: below a text"),
    pytest.param({"a": 1}, Set(ROOT, {}), id="Set: the object itself"),
    pytest.param({"a": {}}, Append(at("a"), 1), id="Append: to a map"),
    pytest.param({"a": 0}, Append(at("a"), 1), id="Append: to a number"),
    pytest.param({"l": [None]}, Append(at("l", 0), 1), id="Append: to an item that is null"),
    pytest.param({"l": [1]}, Append(at("l", 0, "a"), 1), id="Append: below a number"),
]


@pytest.mark.parametrize(("obj", "misfit"), MISFITS)
def test_one_edit_that_does_not_fit_and_none_is_applied(obj: dict[str, Any], misfit: Edit) -> None:
    original = deepcopy(obj)
    draft = Draft(obj)
    with pytest.raises(EditError) as raised:
        draft.apply([Set(at("new"), 1), misfit])
    assert str(misfit) in str(raised.value)
    assert "together" not in str(raised.value), "seen before anything was tried"
    assert obj == original
    assert draft.patch() == []


@pytest.mark.parametrize(
    ("misfit", "why"),
    [
        pytest.param(Remove(at("l", "0")), "there is no place '0' in a list", id="a name"),
        pytest.param(Remove(at("m", 0)), "there is no place 0 in a dict", id="a position"),
        pytest.param(Set(at("n", "a"), 1), "there is no place 'a' in a int", id="a number"),
        pytest.param(Remove(at("m", "x/y")), "/m/x~1y does not exist", id="a missing member"),
        pytest.param(Append(at("m"), 1), "/m is no list", id="a map for a list"),
        pytest.param(Rename(at("n"), "m"), "/n cannot be called m", id="a name that is taken"),
        pytest.param(Remove(ROOT), "an edit needs a place below the root", id="the root"),
    ],
)
def test_a_misfit_says_what_does_not_fit(misfit: Edit, why: str) -> None:
    with pytest.raises(EditError) as raised:
        Draft({"m": {}, "l": [], "n": 1}).apply([misfit])
    assert str(raised.value) == f"{why} ({misfit})"


CLASHES = [
    pytest.param([Rename(at("m"), "n"), Remove(at("m", "a"))], id="a removal below a renamed map"),
    pytest.param([Rename(at("m"), "n"), Rename(at("m"), "o")], id="two names for one member"),
    pytest.param([Set(at("m"), 1), Set(at("m", "a"), 2)], id="a value below a number just set"),
    pytest.param([Set(at("l"), "x"), Append(at("l"), 2)], id="an item for a text just set"),
    pytest.param(
        [Append(at("l"), 9), Set(at("l"), []), Remove(at("l", 0))], id="an item just gone"
    ),
]


@pytest.mark.parametrize("clash", CLASHES)
def test_edits_that_fit_alone_but_not_together_change_nothing(clash: list[Edit]) -> None:
    obj: dict[str, Any] = {"m": {"a": 1}, "l": [{"v": 1}, 2], "z": {"k": 1}}
    draft = Draft(obj)
    draft.apply([Remove(at("l", 1)), Set(at("l", 0, "v"), 2)])
    before, patch = deepcopy(obj), draft.patch()
    with pytest.raises(EditError, match="do not fit together"):
        draft.apply([Set(at("z", "k"), 2), Append(at("l"), 7), Set(at("n1", "n2"), 1), *clash])
    assert obj == before
    assert list(obj) == list(before)
    assert draft.patch() == patch
    draft.apply([Set(at("z", "k"), 5), Set(at("l", 0, "v"), 6), Set(at("m", "a"), 7)])
    original = {"m": {"a": 1}, "l": [{"v": 1}, 2], "z": {"k": 1}}
    assert jsonpatch.apply_patch(original, draft.patch()) == obj
    assert obj == {"m": {"a": 7}, "l": [{"v": 6}], "z": {"k": 5}}


@pytest.mark.parametrize(
    ("edit", "below"),
    [
        pytest.param(Set(at("new"), {"v": [1]}), at("new", "v"), id="the value of a Set"),
        pytest.param(Append(at("l"), {"v": [1]}), at("l", 0, "v"), id="the value of an Append"),
    ],
)
def test_later_edits_do_not_change_the_value_that_a_finding_carries(
    edit: Set | Append, below: Path
) -> None:
    draft = Draft({})
    draft.apply([edit])
    draft.apply([Append(below, 2)])
    assert edit.value == {"v": [1]}
    assert draft.patch()[0]["value"] in ({"v": [1, 2]}, [{"v": [1, 2]}])


def test_a_clash_names_its_edits_and_its_cause() -> None:
    clash = (Set(at("l"), {}), Set(at("l", 0), 2))
    with pytest.raises(EditError) as raised:
        Draft({"l": [1]}).apply(clash)
    assert str(raised.value) == f"these edits do not fit together ({clash})"
    assert str(raised.value.__cause__) == "0 is no place in a dict"


def test_a_tuple_in_an_edit_becomes_a_list() -> None:
    draft = Draft({})
    draft.apply([Set(at("v"), ("a", {"b": ("c",)}))])
    assert draft.object == {"v": ["a", {"b": ["c"]}]}


def test_the_patch_may_be_asked_for_at_any_time() -> None:
    draft = Draft({"a": 1})
    draft.apply([Set(at("a"), 2)])
    assert draft.patch() == [replace("/a", 2)]
    draft.apply([Set(at("b"), 3)])
    assert draft.patch() == [replace("/a", 2), add("/b", 3)]
    assert draft.patch() == draft.patch()


def test_edits_may_come_from_an_iterator() -> None:
    draft = Draft({})
    draft.apply(iter([Set(at("a"), 1)]))
    assert draft.object == {"a": 1}


def test_all_edits_can_be_undone_and_others_made() -> None:
    obj = {"m": {"a": 1, "b": {"c": [1, {"d": 2}]}}, "gone": {"x": 1}}
    draft = Draft(obj)
    draft.apply([Rename(at("m", "a"), "z"), Set(at("m", "b", "c", 1, "d"), 3), Set(at("n"), {})])
    draft.apply([Remove(at("gone", "x")), Append(at("m", "b", "c"), 4), Set(at("n", "o"), 5)])
    draft.undo()
    assert json.dumps(obj) == '{"m": {"a": 1, "b": {"c": [1, {"d": 2}]}}, "gone": {"x": 1}}'
    assert draft.patch() == []
    draft.apply([Set(at("m", "b", "c", 1, "d"), 6)])
    assert draft.patch() == [replace("/m/b/c/1/d", 6)]


@pytest.mark.parametrize(
    ("held", "edit", "stays"),
    [
        pytest.param([["x"]], Append(at("a"), 1), True, id="to a text in brackets"),
        pytest.param("x", Set(at("a"), {}), True, id="a map over a text"),
        pytest.param([["x"]], Set(at("a"), {}), True, id="a map over a text in brackets"),
        pytest.param("x", Set(at("a"), "y"), False, id="a text over a text"),
        pytest.param([["x"]], Set(at("a"), ["y"]), False, id="a list over a list"),
        pytest.param([1], Append(at("a"), {}), False, id="to a list"),
    ],
)
def test_a_text_may_stand_for_a_field(held: Any, edit: Edit, *, stays: bool) -> None:
    obj = {"a": deepcopy(held)}
    Draft(deepcopy(obj)).apply([edit])
    if stays:
        with pytest.raises(EditError, match="/a is a text"):
            Draft(obj).apply([edit], texts_stay=True)
        assert obj == {"a": held}
    else:
        Draft(obj).apply([edit], texts_stay=True)
        assert obj != {"a": held}
