"""What a stand-in writes at a place that counts as unread changes no repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import cases
from webhook.core.draft import copied
from webhook.files.results import Plan
from webhook.kube.pointer import ROOT, value_at
from webhook.kube.walk import walk
from webhook.verifying import unread_places
from webhook.verifying.admitted import admitted
from webhook.verifying.valid_texts import are_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases import Case
    from webhook.kube.pointer import Path

CASES = [each for each in cases() if not each.is_for_guard]
SIGN = unread_places.sign(0)
OUTPUTS: tuple[Any, ...] = (
    None,
    "",
    "word",
    3,
    {"nodeAffinity": {}},
    [{"key": "word"}],
    "first second",
)


def unread(obj: Any) -> Iterator[Path]:
    """The places of values in it that an action may write wholly."""
    for at, value in walk(obj):
        way = ["*" if isinstance(token, int) else token for token in at]
        if not isinstance(value, dict | list) and unread_places._is_unread(way, SIGN):
            yield at


def with_value(obj: Any, at: Path, value: Any) -> Any:
    made = copied(obj)
    value_at(made, at.parent)[at[-1]] = value
    return made


def meant(obj: Any, at: Path, value: Any) -> Any:
    """What the webhook makes of the object with this value; None if it is not valid."""
    changed = with_value(obj, at, value)
    made = admitted(changed, Plan())
    return made.object if are_texts(changed) and not made.is_open else None


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_no_stand_in_changes_a_repair(case: Case) -> None:
    obj = case.object()
    for at in unread(obj):
        signed = admitted(with_value(obj, at, SIGN), Plan()).object
        stays = next((there for there, value in walk(signed) if value == SIGN), ROOT)
        made = [meant(obj, at, value) for value in (SIGN, *OUTPUTS)] if stays else []
        alike = [with_value(each, stays, "") for each in made if each is not None]
        assert all(each == alike[0] for each in alike), at.dotted


def test_the_cases_have_such_places() -> None:
    tried = {at[-1] for case in CASES for at in unread(case.object())}
    assert {"image", "value", "mountPath", "path"} <= tried
