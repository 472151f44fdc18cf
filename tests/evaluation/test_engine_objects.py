"""Rules on whole objects: one draft, one patch, and a rule that raises stops nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.cases import MadeRule
from tests.engine import run_on_object
from webhook.core.draft import Draft
from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Safety
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context, Facts, Stage
from webhook.core.settings import Settings
from webhook.evaluation import engine
from webhook.kube.pointer import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.core.rule import ObjectRule


def rule(code: str, check: Callable[[dict[str, Any], Context], Iterator[Finding]]) -> ObjectRule:
    return cast(
        "ObjectRule",
        MadeRule(NAME=code, CODE=code, FACTS=Facts(Stage.MANIFEST), check=check),
    )


def renames(obj: dict[str, Any], _: Context) -> Iterator[Finding]:
    if obj.get("apiVersion") == "old":
        yield Finding("A", ROOT / "apiVersion", "new", (Set(ROOT / "apiVersion", "new"),))


def raises(_: dict[str, Any], __: Context) -> Iterator[Finding]:
    raise KeyError("k")
    yield


def sees(obj: dict[str, Any], _: Context) -> Iterator[Finding]:
    yield Finding("C", ROOT, str(obj["apiVersion"]))


def test_rules_act_in_order_and_one_that_raises_stops_nobody() -> None:
    obj = {"apiVersion": "old"}
    draft = Draft(obj)
    rules = rule("A", renames), rule("B", raises), rule("C", sees)
    verdict = engine.run_on_object(rules, draft, Context())
    assert [each.message for each in verdict.findings] == ["new", "new"]
    assert [code for code, _ in verdict.failed] == ["B"]
    assert draft.changes() == [Set(ROOT / "apiVersion", "new")]


def test_modes_hold() -> None:
    obj = {"apiVersion": "old"}
    modes = Modes(rules={"A": Mode.WARN, "C": Mode.OFF})
    verdict = run_on_object((rule("A", renames), rule("C", sees)), obj, Context(modes=modes))
    assert [each.action for each in verdict.findings] == ["would repair"]
    assert obj == {"apiVersion": "old"}


def test_several_runs_share_a_draft() -> None:
    obj: dict[str, Any] = {"apiVersion": "old", "x": 1}
    draft = Draft(obj)
    draft.apply([Remove(ROOT / "x")])
    engine.run_on_object((rule("A", renames),), draft, Context())
    assert sorted(draft.changes(), key=repr) == [
        Remove(ROOT / "x"),
        Set(ROOT / "apiVersion", "new"),
    ]


def risky(_: dict[str, Any], __: Context) -> Iterator[Finding]:
    yield Finding("D", ROOT, "a", (Set(ROOT / "a", 1),), safety=Safety.UNSAFE)


@pytest.mark.parametrize(
    ("cx", "left"),
    [
        pytest.param(Context(), {}, id="edits that are not safe are only told"),
        pytest.param(Context(unsafe=True), {"a": 1}, id="who asked for them has them"),
        pytest.param(
            Context(Settings(unsafe=("D",)), in_manifest=True),
            {"a": 1},
            id="the settings name it",
        ),
        pytest.param(
            Context(Settings(unsafe=("E",)), in_manifest=True), {}, id="the settings name another"
        ),
        pytest.param(
            Context(Settings(unsafe=("D",))), {}, id="in admission the settings do not count"
        ),
    ],
)
def test_edits_that_are_not_safe(cx: Context, left: dict[str, Any]) -> None:
    obj: dict[str, Any] = {}
    run_on_object((rule("D", risky),), obj, cx)
    assert obj == left
