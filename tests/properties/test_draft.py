"""Any edits on any object: the patch makes what the edits made, or nothing has happened."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import jsonpatch
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.pods import places
from webhook.core.draft import Draft
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.errors import EditError
from webhook.kube.pointer import Path

if TYPE_CHECKING:
    from webhook.core.edits import Edit

names = st.sampled_from(["a", "b", "c", "x/y", "~", ""])
scalars = st.sampled_from([None, True, 0, 1, 1.0, "", "text"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(
    names,
    st.lists(st.dictionaries(names, values, max_size=2), max_size=4)
    | st.dictionaries(names, values, max_size=3)
    | values,
    max_size=4,
)


@st.composite
def edits(draw: st.DrawFn, obj: dict[str, Any]) -> list[Edit]:
    """Edits at places of this object or just below them; not all of them fit."""
    there = places(obj) or [("a",)]
    made: list[Edit] = []
    for _ in range(draw(st.integers(1, 4))):
        at = Path(draw(st.sampled_from(there)))
        below = draw(st.sampled_from([at, at, at / draw(names), at / "n" / "m"]))
        match draw(st.integers(0, 5)):
            case 0 | 1:
                made.append(Remove(at))
            case 2:
                made.append(Rename(at, draw(names)))
            case 3:
                made.append(Append(below, draw(values)))
            case _:
                made.append(Set(below, draw(values)))
    return made


def exact(value: object) -> str:
    return json.dumps(value, sort_keys=True)


@given(objects, st.data())
def test_the_patch_makes_what_the_edits_made(obj: dict[str, Any], data: st.DataObject) -> None:
    original = deepcopy(obj)
    draft = Draft(obj)
    for _ in range(data.draw(st.integers(1, 4))):
        made = data.draw(edits(obj))
        carried, before, patch = deepcopy(made), exact(obj), draft.patch()
        try:
            draft.apply(made)
        except EditError:
            event("refused")
            assert exact(obj) == before
            assert draft.patch() == patch
        else:
            event("applied")
        assert made == carried, "an edit's value is not the object's"
        assert exact(jsonpatch.apply_patch(original, draft.patch())) == exact(obj)
        assert bool(draft.patch()) is (exact(original) != exact(obj))
    draft.undo()
    assert json.dumps(obj) == json.dumps(original), "the order of members is back, too"
    assert draft.patch() == []


@given(objects, st.data())
def test_no_place_is_named_twice_and_no_operation_lies_below_another(
    obj: dict[str, Any], data: st.DataObject
) -> None:
    draft = Draft(obj)
    for _ in range(data.draw(st.integers(1, 3))):
        try:
            draft.apply(data.draw(edits(obj)))
        except EditError:
            continue
    paths = [each["path"] for each in draft.patch() if not each["path"].endswith("/-")]
    assert len(paths) == len(set(paths))
    for each in draft.patch():
        assert each["op"] in ("add", "replace", "remove")
        if each["op"] != "add":  # what is replaced or removed whole is not edited as well
            assert not any(path.startswith(f"{each['path']}/") for path in paths)
