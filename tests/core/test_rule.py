"""What a rule is told, and when it may constrain a pod."""

from __future__ import annotations

from inspect import signature

import pytest

from webhook.core.modes import Mode
from webhook.core.rule import Context, Stage, Trait
from webhook.core.settings import Settings
from webhook.rules import ALL, GUARD, MANIFEST, POLICY, RULES, codes

MODES = {
    Stage.MANIFEST: Mode.ENFORCE,
    Stage.REPAIR: Mode.ENFORCE,
    Stage.POLICY: Mode.WARN,
    Stage.GUARD: Mode.AUDIT,
}


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


@pytest.mark.parametrize("stage", Stage)
def test_each_stage_has_rules_which_are_asked_of_what_it_says(stage: Stage) -> None:
    of_stage = [rule for rule in ALL if rule.FACTS.stage is stage]
    looked_at = "obj" if stage is Stage.MANIFEST else "pod"
    assert of_stage
    assert {next(iter(signature(rule.check).parameters)) for rule in of_stage} == {looked_at}
    assert {rule.FACTS.mode for rule in of_stage} == {MODES[stage]}


def test_the_stages_are_all_rules_in_their_order() -> None:
    assert (*MANIFEST, *RULES, *POLICY, *GUARD) == ALL


@pytest.mark.parametrize("trait", Trait)
def test_a_trait_is_that_of_some_rules(trait: Trait) -> None:
    assert set() < codes(trait) < {rule.CODE for rule in ALL}
