"""Modes: what a rule may do in a namespace, from the default to the last override that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.modes import Mode, Modes, is_opted_out, modes_for, strictest_modes
from webhook.core.namespace_selection import Selection
from webhook.core.settings import Override, Policy
from webhook.rules import ALL

if TYPE_CHECKING:
    from webhook.core.rule import Named

OFF, AUDIT, WARN, ENFORCE = Mode
CODES = ("GPU101", "GPU203", "GPU301", "GPU303")


def find(code: str) -> Named:
    return next(rule for rule in ALL if code == rule.CODE)


RULES = [find(code) for code in CODES]
ML, LIVE, NONE_YET = (
    Selection(("ml-*",)),
    Selection(labels=(("stage", "live"),)),
    Selection((), (), 0),
)


@pytest.mark.parametrize(
    ("code", "mode"),
    [
        pytest.param("GPU101", ENFORCE, id="a repair is made"),
        pytest.param("GPU111", ENFORCE, id="a template's finding too"),
        pytest.param("GPU203", ENFORCE, id="a driver's too"),
        pytest.param("GPU301", WARN, id="never fits only warns: an inventory may be behind"),
        pytest.param("GPU302", WARN, id="full now only warns"),
        pytest.param("GPU303", AUDIT, id="the guard only counts: its pods ask for no GPU"),
        pytest.param("GPU304", WARN, id="a limit only warns"),
        pytest.param("GPU305", WARN, id="a workload only warns"),
    ],
)
def test_a_rule_that_nothing_is_said_of_has_its_usual_mode(code: str, mode: Mode) -> None:
    rule = find(code)
    assert rule.FACTS.mode is mode
    assert Modes().of(rule) is mode
    assert modes_for(Policy(), "any", {}).of(rule) is mode


POLICIES = [
    pytest.param(Policy(AUDIT), "AAAA", id="a mode for all, the guard included"),
    pytest.param(Policy(rules={"GPU301": ENFORCE}), "EEEA", id="a rule, and the others as usual"),
    pytest.param(Policy(WARN, {"GPU303": OFF}), "WWWO", id="a rule wins over the mode for all"),
    pytest.param(
        Policy(WARN, overrides=(Override(ML, AUDIT),)), "AAAA", id="an override wins over the mode"
    ),
    pytest.param(
        Policy(WARN, {"GPU101": ENFORCE}, (Override(ML, AUDIT),)),
        "AAAA",
        id="its mode is for all rules there, also those named before",
    ),
    pytest.param(
        Policy(WARN, {"GPU101": ENFORCE}, (Override(ML, rules={"GPU203": OFF}),)),
        "EOWW",
        id="without a mode it says nothing of the rules that it does not name",
    ),
    pytest.param(
        Policy(overrides=(Override(ML, AUDIT, {"GPU301": ENFORCE}),)),
        "AAEA",
        id="within an override a rule wins over its mode",
    ),
    pytest.param(
        Policy(overrides=(Override(ML, rules={"GPU301": OFF}), Override(LIVE, ENFORCE))),
        "EEEE",
        id="a later override wins over an earlier one's rule",
    ),
    pytest.param(
        Policy(overrides=(Override(LIVE, ENFORCE), Override(ML, rules={"GPU301": OFF}))),
        "EEOE",
        id="a later override's rule wins over an earlier one's mode",
    ),
    pytest.param(
        Policy(overrides=(Override(ML, rules={"GPU101": OFF}), Override(rules={"GPU203": OFF}))),
        "OOWA",
        id="rules of several overrides add up",
    ),
    pytest.param(
        Policy(overrides=(Override(Selection(("web",)), OFF), Override(NONE_YET, OFF))),
        "EEWA",
        id="an override for other namespaces says nothing",
    ),
    pytest.param(Policy(overrides=(Override(mode=OFF),)), "OOOO", id="an override for all"),
    pytest.param(Policy(overrides=(Override(ML),)), "EEWA", id="an override that says nothing"),
]


@pytest.mark.parametrize(("policy", "modes"), POLICIES)
def test_what_is_said_later_and_closer_wins(policy: Policy, modes: str) -> None:
    settled = modes_for(policy, "ml-train", {"stage": "live"})
    assert "".join(settled.of(rule)[0].upper() for rule in RULES) == modes


def test_the_rules_that_are_asked_are_those_that_are_not_off() -> None:
    settled = modes_for(Policy(WARN, {"GPU203": OFF}), "web", {})
    asked = tuple((rule, WARN) for rule in RULES if rule.CODE != "GPU203")
    for rules in (RULES, tuple(RULES), RULES):  # the second time it is known
        assert settled.asked(rules) == asked
    assert settled.asked(RULES[:1]) == asked[:1]


def test_a_policy_is_not_changed_by_asking_for_a_namespace() -> None:
    driver = find("GPU203")
    policy = Policy(rules={"GPU101": OFF}, overrides=(Override(ML, rules={"GPU203": OFF}),))
    assert modes_for(policy, "ml-train", {}).of(driver) is OFF
    assert modes_for(policy, "web", {}).of(driver) is ENFORCE
    assert policy.rules == {"GPU101": OFF}


_modes = st.sampled_from(Mode)
_rules = st.dictionaries(st.sampled_from(CODES), _modes, max_size=2)
_where = st.builds(
    Selection,
    st.lists(st.sampled_from(["ml-*", "*", "web"]), max_size=2).map(tuple),
    st.sampled_from([(), (("stage", "live"),)]),
    st.sampled_from([0, 50, 100]),
)
_policies = st.builds(
    Policy,
    st.none() | _modes,
    _rules,
    st.lists(st.builds(Override, _where, st.none() | _modes, _rules), max_size=5).map(tuple),
)


@given(_policies, st.sampled_from(["", "ml-train", "web", "x"]), st.booleans())
def test_the_mode_is_the_first_one_found_on_the_way_back(
    policy: Policy,
    namespace: str,
    live: bool,  # noqa: FBT001
) -> None:
    labels = {"stage": "live"} if live else {}
    layers = [
        (each.rules, each.mode)
        for each in reversed(policy.overrides)
        if each.where.selects(namespace, labels)
    ]
    for rule in RULES:
        said = [
            mode
            for rules, default in (*layers, (policy.rules, policy.mode))
            for mode in (rules.get(rule.CODE), default)
            if mode is not None
        ]
        assert modes_for(policy, namespace, labels).of(rule) is [*said, rule.FACTS.mode][0]


TEST = Selection(labels=(("stage", "test"),))


@pytest.mark.parametrize(
    ("policy", "modes"),
    [
        pytest.param(Policy(overrides=(Override(LIVE, ENFORCE),)), "EEEE", id="a stricter label"),
        pytest.param(Policy(overrides=(Override(LIVE, OFF),)), "EEWA", id="a label that permits"),
        pytest.param(
            Policy(overrides=(Override(LIVE, ENFORCE), Override(Selection(("ml-*",)), WARN))),
            "WWWW",
            id="what stands later for this name decides",
        ),
        pytest.param(
            Policy(overrides=(Override(Selection(("ml-*",)), WARN), Override(LIVE, ENFORCE))),
            "EEEE",
            id="a later label may be stricter",
        ),
        pytest.param(
            Policy(
                OFF,
                overrides=(
                    Override(LIVE, rules={"GPU301": ENFORCE}),
                    Override(TEST, rules={"GPU301": WARN, "GPU303": AUDIT}),
                ),
            ),
            "OOEA",
            id="of two labels, each may be the one that it has",
        ),
        pytest.param(
            Policy(overrides=(Override(Selection(("web",), LIVE.labels), ENFORCE),)),
            "EEWA",
            id="an override for another name is not for this one, whatever its labels",
        ),
    ],
)
def test_in_a_namespace_with_unknown_labels_the_strictest_mode_counts(
    policy: Policy, modes: str
) -> None:
    settled = strictest_modes(policy, "ml-train")
    assert "".join(settled.of(rule)[0].upper() for rule in RULES) == modes


@given(_policies, st.sampled_from(["", "ml-train", "web", "x"]), st.booleans())
def test_no_label_makes_a_rule_stricter_than_unknown_labels_do(
    policy: Policy,
    namespace: str,
    only_off: bool,  # noqa: FBT001
) -> None:
    order = [*Mode]
    unknown = strictest_modes(policy, namespace)
    known = [modes_for(policy, namespace, labels) for labels in ({}, {"stage": "live"})]
    if only_off:
        unknown, *known = (each.only_off() for each in (unknown, *known))
    for rule in RULES:
        modes = [order.index(each.of(rule)) for each in known]
        assert order.index(unknown.of(rule)) >= (min(modes) if only_off else max(modes))


@pytest.mark.parametrize(
    ("labels", "out"),
    [
        pytest.param({}, False, id="no label"),
        pytest.param({"gpu-webhook.dev/ignore": "false"}, False, id="another value"),
        pytest.param({"gpu-webhook.dev/ignore": "true"}, True, id="the label says true"),
    ],
)
def test_opting_out(labels: dict[str, str], out: bool) -> None:  # noqa: FBT001
    assert is_opted_out(labels) is out


def test_in_files_only_off_counts() -> None:
    modes = Modes(OFF, {"GPU101": AUDIT, "GPU301": ENFORCE}).only_off()
    assert [modes.of(rule) for rule in RULES] == [ENFORCE, OFF, WARN, OFF]
    modes = Modes(AUDIT, {"GPU303": OFF}).only_off()
    assert [modes.of(rule) for rule in RULES] == [ENFORCE, ENFORCE, WARN, OFF]
