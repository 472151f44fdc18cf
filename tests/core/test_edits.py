"""Edits are values: equal by content, and never changed after they are made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING

import pytest

from webhook.core.edits import Append, Remove, Rename, Set
from webhook.kube.pointer import Path

if TYPE_CHECKING:
    from webhook.core.edits import Edit

AT = Path(("spec", "a"))


@pytest.mark.parametrize(
    ("edit", "same", "other"),
    [
        pytest.param(Set(AT, 1), Set(AT, 1), Set(AT, 2), id="Set"),
        pytest.param(Remove(AT), Remove(AT), Remove(AT / "b"), id="Remove"),
        pytest.param(Rename(AT, "b"), Rename(AT, "b"), Rename(AT, "c"), id="Rename"),
        pytest.param(Append(AT, {}), Append(AT, {}), Append(AT, []), id="Append"),
    ],
)
def test_edits_are_equal_by_content(edit: Edit, same: Edit, other: Edit) -> None:
    assert edit == same
    assert edit != other


def test_an_edit_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Remove(AT).at = AT / "b"  # type: ignore[misc]
