"""What was changed at the place of an edit, around it, or in it: the same as a look at each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from webhook.core.changes import Changes
from webhook.core.edits import Append, Remove, Rename, Set, place_of
from webhook.kube.pointer import Path

if TYPE_CHECKING:
    from webhook.core.edits import Edit

TOKENS: Any = st.sampled_from(["a", "b", 0, 1])
PLACES = st.lists(TOKENS, max_size=3).map(Path)
VALUES = st.sampled_from([1, "x", {"a": 1, "b": 2}, {"b": 2, "a": 1}])
EDITS: Any = st.one_of(
    st.builds(Set, PLACES, VALUES),
    st.builds(Append, PLACES, VALUES),
    st.builds(Remove, PLACES),
    st.builds(Rename, PLACES, st.just("c")),
)


def is_about(change: Edit, edit: Edit) -> bool:
    place, was = place_of(change), place_of(edit)
    if isinstance(change, Append) and isinstance(edit, Append) and place == was:
        return bool(change.value == edit.value)
    return was[: len(place)] == place or place[: len(was)] == was


@given(st.lists(EDITS, max_size=8), st.lists(EDITS, max_size=3))
def test_the_same_as_a_look_at_each(changes: list[Edit], edits: list[Edit]) -> None:
    expected = [each for each in changes if any(is_about(each, edit) for edit in edits)]
    found = Changes(changes).about(edits)
    assert list(map(id, found)) == list(map(id, expected))
