"""What a rule is told, and when it may constrain a pod."""

from __future__ import annotations

import pytest

from webhook.core.rule import Context
from webhook.core.settings import Settings


@pytest.mark.parametrize(
    ("cx", "may"),
    [
        pytest.param(Context(), False, id="a pod that can run is only warned"),
        pytest.param(Context(stuck=True), True, id="a pod that can never run is repaired"),
        pytest.param(
            Context(Settings(scope="all-legacy")), True, id="the other road repairs every manifest"
        ),
    ],
)
def test_a_rule_may_constrain(cx: Context, *, may: bool) -> None:
    assert cx.may_constrain is may


def test_nothing_is_known_unless_it_is_told() -> None:
    cx = Context()
    assert (cx.settings, cx.inventory, cx.namespace) == (Settings(), None, "")
