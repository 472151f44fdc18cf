"""What becomes of requirements and terms on the legacy model label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from webhook.capacity.model_terms import (
    Change,
    Fate,
    change,
    rewritten,
    term_change,
    within,
)
from webhook.capacity.model_words import describe, notes
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.legacy_names import LEGACY_MODEL_LABEL as LABEL
from webhook.core.rule import Context
from webhook.core.settings import Models, Settings

PRODUCT = "nvidia.com/gpu.product"
P100S = ("Tesla-P100-PCIE-12GB", "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB")
NODES = Inventory(
    tuple(NodeClass({PRODUCT: each}, gpus={"g": 1}) for each in (*P100S[1:], "Tesla-K80"))
)
CX = Context(inventory=NODES)
CURE = "name the model as the nodes do"
NAMED = "stands for no GPU here and is excluded by this name"
WHY = f"no node carries such a model under {PRODUCT}"


def on(operator: str, *values: object, key: str = LABEL) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


ZONE = on("In", "a", key="zone")
CHANGES = [
    pytest.param(on("In", "x", key="zone"), False, Change(Fate.KEEP), id="another label stays"),
    pytest.param({}, False, Change(Fate.KEEP), id="so does a requirement without a key"),
    pytest.param(
        on("In", "Tesla P100"), False, Change(Fate.CHANGE, PRODUCT, P100S), id="In: every variant"
    ),
    pytest.param(
        on("NotIn", "Tesla P100"),
        False,
        Change(
            Fate.CHANGE, PRODUCT, tuple(sorted((*P100S, *(f"{each}-SHARED" for each in P100S))))
        ),
        id="NotIn: the same, and the shared ones",
    ),
    pytest.param(
        on("In", "Tesla P100", "Tesla-P100", "K80"),
        False,
        Change(Fate.CHANGE, PRODUCT, (*P100S, "Tesla-K80")),
        id="In: several models, each value once",
    ),
    pytest.param(
        on("In", "Tesla K80", "M41", "M61"),
        False,
        Change(Fate.CHANGE, PRODUCT, ("Tesla-K80",), ("M41", "M61"), WHY),
        id="In: an unmapped value beside a mapped one is dropped",
    ),
    pytest.param(
        on("In", "Tesla M41", "Tesla_M41"),
        False,
        Change(
            Fate.CHANGE,
            PRODUCT,
            ("Tesla-M41", "Tesla_M41"),
            ("Tesla M41", "Tesla_M41"),
            WHY,
            waits=True,
        ),
        id="In: if nothing is mapped the sanitised forms make the pod wait",
    ),
    pytest.param(
        on("In", "Tesla M60", "Voodoo", "Tesla M4"),
        False,
        Change(
            Fate.CHANGE,
            PRODUCT,
            ("Tesla-M60", "Tesla-M4"),
            ("Voodoo",),
            WHY,
            absent=("Tesla M60", "Tesla M4"),
            absent_why=WHY,
        ),
        id="In: the pod waits for models that are known, though no node has them",
    ),
    pytest.param(
        on("In", "Tesla M60", "Tesla K80"),
        False,
        Change(Fate.CHANGE, PRODUCT, ("Tesla-M60", "Tesla-K80")),
        id="In: one of the models is there",
    ),
    pytest.param(
        on("In", "Tesla M60"),
        True,
        Change(Fate.CHANGE, PRODUCT, ("Tesla-M60",)),
        id="a preference for a model that a pool may have",
    ),
    pytest.param(
        on("In", "é", "()"),
        False,
        Change(Fate.CHANGE, PRODUCT, ("unknown",), ("é", "()"), WHY, waits=True),
        id="In: nothing is left of the values",
    ),
    pytest.param(
        on("In", "M41"),
        True,
        Change(Fate.NEVER, PRODUCT, None, ("M41",), WHY),
        id="a preference for what no node has goes",
    ),
    pytest.param(
        on("NotIn", "M 41"),
        False,
        Change(Fate.CHANGE, PRODUCT, ("M-41",), ("M 41",), WHY, is_named=True),
        id="NotIn: what nobody knows is excluded by its name",
    ),
    pytest.param(
        on("NotIn", "M41", "K80"),
        True,
        Change(
            Fate.CHANGE,
            PRODUCT,
            ("M41", "Tesla-K80", "Tesla-K80-SHARED"),
            ("M41",),
            WHY,
            is_named=True,
        ),
        id="NotIn: also in a preference",
    ),
    pytest.param(
        {"key": LABEL, "operator": "Exists"},
        False,
        Change(Fate.CHANGE, PRODUCT),
        id="Exists: another key",
    ),
    pytest.param(on("Gt", "5"), False, Change(Fate.CHANGE, PRODUCT), id="Gt: another key"),
    pytest.param(
        {"key": LABEL}, False, Change(Fate.CHANGE, PRODUCT), id="no operator: another key"
    ),
    pytest.param(
        {"key": LABEL, "operator": "In", "values": None},
        False,
        Change(Fate.CHANGE, PRODUCT),
        id="In without values: still without, for the API server to refuse",
    ),
    pytest.param(
        on("In", 7, "Tesla K80"),
        False,
        Change(Fate.CHANGE, PRODUCT, ("Tesla-K80",)),
        id="what is no text is left out",
    ),
]


@pytest.mark.parametrize(("requirement", "preferred", "expected"), CHANGES)
def test_what_becomes_of_a_requirement(
    requirement: dict[str, Any], expected: Change, *, preferred: bool
) -> None:
    assert change(requirement, CX, preferred=preferred) == expected


CARRIED = Context(
    inventory=Inventory((NodeClass({LABEL: "Tesla-K80", PRODUCT: "Tesla-K80"}, gpus={"g": 1}),))
)
SHARED = tuple(f"{each}-SHARED" for each in P100S)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param(on("In", "Tesla-K80", "M41"), Change(Fate.KEEP), id="it stays as it is"),
        pytest.param(on("NotIn", "Tesla-K80"), Change(Fate.KEEP), id="NotIn too"),
        pytest.param(
            on("In", "Tesla-K80", "M 41"),
            Change(Fate.CHANGE, "", ("Tesla-K80",), ("M 41",), "it can be no label value"),
            id="without what the API server would refuse",
        ),
        pytest.param(
            on("In", "Tesla P100", "Tesla-K80", "M41"),
            Change(Fate.CHANGE, PRODUCT, P100S, ("M41",), WHY, old=on("In", "Tesla-K80")),
            id="the old label for what nodes carry, today's for the rest",
        ),
        pytest.param(
            on("NotIn", "Tesla P100", "Tesla-K80"),
            Change(
                Fate.CHANGE, PRODUCT, tuple(sorted(P100S + SHARED)), old=on("NotIn", "Tesla-K80")
            ),
            id="NotIn: both",
        ),
    ],
)
def test_a_requirement_that_nodes_still_fulfil(
    requirement: dict[str, Any], expected: Change
) -> None:
    assert change(requirement, CARRIED, preferred=False) == expected


@pytest.mark.parametrize(
    ("asked", "beside"),
    [
        pytest.param(
            on("NotIn", "Tesla-K80"),
            [on("NotIn", "Tesla-K80", "Tesla-K80-SHARED", key=PRODUCT)],
            id="all values of the model",
        ),
        pytest.param(
            on("NotIn", "Own"), [on("NotIn", "Own", key=PRODUCT)], id="one that nobody knows"
        ),
        pytest.param(on("NotIn", ""), [on("NotIn", "", key=PRODUCT)], id="none"),
        pytest.param(
            {"key": LABEL, "operator": "DoesNotExist"},
            [{"key": PRODUCT, "operator": "DoesNotExist"}],
            id="any model",
        ),
        pytest.param(on("In", "Tesla-K80"), [], id="what is selected is found as it is"),
        pytest.param({"key": LABEL, "operator": "Exists"}, [], id="so is any model"),
    ],
)
@pytest.mark.parametrize("preferred", [False, True])
def test_what_is_excluded_stays_so_when_nodes_get_the_label_of_today(
    asked: dict[str, Any], beside: list[Any], *, preferred: bool
) -> None:
    classes = tuple(NodeClass({LABEL: each}, gpus={"g": 1}) for each in ("Tesla-K80", "Own", ""))
    cx, term = Context(inventory=Inventory(classes), stuck=True), {"matchExpressions": [asked]}
    new = rewritten(term, term_change(term, cx, preferred=preferred))
    assert new == {"matchExpressions": [*beside, asked]}
    assert term_change(new, cx, preferred=preferred).fate is Fate.KEEP
    assert term_change(term, replace(cx, stuck=False), preferred=preferred).fate is Fate.KEEP


def test_an_empty_value_that_is_excluded_by_name_stays_empty() -> None:
    assert change(on("NotIn", ""), CX, preferred=False).values == ("",)


SOME = Context(
    inventory=Inventory(
        (
            NodeClass({LABEL: "Tesla-K80", PRODUCT: "Tesla-K80"}, gpus={"g": 1}),
            NodeClass({PRODUCT: "Tesla-K80"}, gpus={"g": 1}),
            NodeClass({PRODUCT: "Tesla-P100-PCIE-16GB"}, gpus={"g": 1}),
        )
    )
)
NO_K80 = on("NotIn", "Tesla-K80", "Tesla-K80-SHARED", key=PRODUCT)


@pytest.mark.parametrize(
    ("term", "rest", "further"),
    [
        pytest.param(
            [ZONE, on("In", "Tesla-K80")],
            [ZONE, on("In", "Tesla-K80", key=PRODUCT)],
            [[ZONE, on("In", "Tesla-K80"), on("NotIn", "Tesla-K80", key=PRODUCT)]],
            id="In: two terms, and no node is in both",
        ),
        pytest.param(
            [on("In", "Tesla-K80", "K80", "Tesla P100")],
            [on("In", "Tesla-K80", *P100S, key=PRODUCT)],
            [[on("In", "Tesla-K80"), on("NotIn", "Tesla-K80", *P100S, key=PRODUCT)]],
            id="In: the values of all models under today's label",
        ),
        pytest.param(
            [on("NotIn", "Tesla-K80"), ZONE],
            [NO_K80, ZONE, on("NotIn", "Tesla-K80")],
            [],
            id="NotIn: both in the term",
        ),
        pytest.param(
            [{"key": LABEL, "operator": "Exists"}],
            [{"key": PRODUCT, "operator": "Exists"}],
            [
                [
                    {"key": LABEL, "operator": "Exists"},
                    {"key": PRODUCT, "operator": "DoesNotExist"},
                ]
            ],
            id="Exists: either",
        ),
        pytest.param(
            [{"key": LABEL, "operator": "DoesNotExist"}],
            [
                {"key": PRODUCT, "operator": "DoesNotExist"},
                {"key": LABEL, "operator": "DoesNotExist"},
            ],
            [],
            id="DoesNotExist: neither",
        ),
        pytest.param(
            [on("In", "Tesla-K80"), {"key": LABEL, "operator": "Exists"}],
            [on("In", "Tesla-K80", key=PRODUCT), {"key": PRODUCT, "operator": "Exists"}],
            [
                [
                    on("In", "Tesla-K80", key=PRODUCT),
                    {"key": LABEL, "operator": "Exists"},
                    {"key": PRODUCT, "operator": "DoesNotExist"},
                ],
                [
                    on("In", "Tesla-K80"),
                    on("NotIn", "Tesla-K80", key=PRODUCT),
                    {"key": PRODUCT, "operator": "Exists"},
                ],
                [
                    on("In", "Tesla-K80"),
                    on("NotIn", "Tesla-K80", key=PRODUCT),
                    {"key": LABEL, "operator": "Exists"},
                    {"key": PRODUCT, "operator": "DoesNotExist"},
                ],
            ],
            id="two requirements: each way of both",
        ),
    ],
)
@pytest.mark.parametrize("preferred", [False, True])
def test_a_label_that_some_nodes_still_carry(
    term: list[Any], rest: list[Any], further: list[list[Any]], *, preferred: bool
) -> None:
    made = term_change({"matchExpressions": term}, SOME, preferred=preferred)
    first = rewritten({"matchExpressions": term}, made)
    assert first == {"matchExpressions": rest}
    assert list(made.further) == [{"matchExpressions": each} for each in further]
    assert not made.cut
    for each in (first, *made.further):  # the same once more
        assert term_change(each, SOME, preferred=preferred).fate is Fate.KEEP


def test_ways_to_fulfil_a_term_are_no_more_than_four() -> None:
    term = {"matchExpressions": [on("In", "Tesla-K80")] * 40}
    made = term_change(term, SOME, preferred=False)
    assert len(made.further) == 3
    assert made.cut
    (note,) = notes(made)
    assert note.startswith("node affinity would have over 100 terms")


def test_requirements_that_are_equal_are_said_once() -> None:
    term = {"matchExpressions": [on("In", "Tesla-K80", "no-such-gpu")] * 2}
    (note,) = notes(term_change(term, SOME, preferred=False))
    assert "'no-such-gpu'" in note


def test_further_terms_are_no_more_than_there_is_room_for() -> None:
    made = term_change({"matchExpressions": [on("In", "Tesla-K80")]}, SOME, preferred=False)
    few = list(within([made] * 60, 60))
    assert [len(each.further) for each in few] == [1] * 40 + [0] * 20
    assert [each.cut for each in few] == [False] * 40 + [True] * 20
    assert not any(each.further for each in within([made] * 200, 200))


@pytest.mark.parametrize(("others", "copies"), [(1_999, 1), (2_000, 0)])
def test_a_long_term_is_not_copied(others: int, copies: int) -> None:
    term = {"matchExpressions": [on("In", "Tesla-K80"), *[ZONE] * others]}
    made = term_change(term, SOME, preferred=False)
    assert (len(made.further), made.cut) == (copies, not copies)
    assert not any(each.further for each in within([made], 1))


def test_no_more_expressions_are_written_than_joined_terms_may_have() -> None:
    term = {"matchExpressions": [on("In", "Tesla-K80"), *[ZONE] * 900]}
    made = term_change(term, SOME, preferred=False)
    assert [len(each.further) for each in within([made] * 4, 4)] == [1, 1, 0, 0]


def test_the_legacy_label_may_be_the_one_of_the_settings() -> None:
    cx = replace(CARRIED, settings=Settings(models=Models(label=LABEL)))
    assert change(on("In", "Tesla-K80", "M41"), cx, preferred=False) == Change(Fate.KEEP)
    made = change(on("In", "Tesla-K80", "Tesla P100"), cx, preferred=False)
    assert (made.key, made.values, made.unmapped) == ("", ("Tesla-K80", *P100S), ())


def test_the_labels_of_the_settings_are_heeded() -> None:
    models = Models(legacy_label="old/model", label="new/model")
    made = change(
        on("In", "Tesla K80", key="old/model"), Context(Settings(models=models)), preferred=False
    )
    assert made == Change(Fate.CHANGE, "new/model", ("Tesla-K80",))


TERMS = [
    pytest.param({"matchExpressions": [ZONE]}, False, Fate.KEEP, [], id="none of ours: it stays"),
    pytest.param({}, False, Fate.KEEP, [], id="an empty term stays"),
    pytest.param({"matchExpressions": "x"}, False, Fate.KEEP, [], id="no list: it stays"),
    pytest.param(
        {"matchExpressions": [ZONE, on("In", "K80")]}, False, Fate.CHANGE, [1], id="one changes"
    ),
    pytest.param(
        {"matchExpressions": [on("NotIn", "M41")]},
        False,
        Fate.CHANGE,
        [0],
        id="an exclusion alone",
    ),
    pytest.param(
        {"matchExpressions": [on("NotIn", "M41"), ZONE]},
        False,
        Fate.CHANGE,
        [0],
        id="another requirement is left",
    ),
    pytest.param(
        {"matchExpressions": [on("NotIn", "M41")], "matchFields": [{"key": "metadata.name"}]},
        False,
        Fate.CHANGE,
        [0],
        id="matchFields are left: a DaemonSet's pin",
    ),
    pytest.param(
        {"matchExpressions": [ZONE, on("In", "M41"), on("NotIn", "M61")]},
        True,
        Fate.NEVER,
        [1, 2],
        id="one requirement that no node can fulfil undoes the preference",
    ),
]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            on("NotIn", "GTX"),
            [on("NotIn", "GTX", key=PRODUCT), on("NotIn", "GTX")],
            id="a model that nobody knows",
        ),
        pytest.param(
            on("NotIn", "MyCard 7"),
            [on("NotIn", "MyCard-7", key=PRODUCT)],
            id="one that no label can have",
        ),
        pytest.param(
            on("NotIn", "Tesla-T4", "My Card"),
            [
                on("NotIn", "Tesla-T4", "Tesla-T4-SHARED", "My-Card", key=PRODUCT),
                on("NotIn", "Tesla-T4"),
            ],
            id="beside one of the table",
        ),
        pytest.param(
            {"key": LABEL, "operator": "DoesNotExist"},
            [
                {"key": PRODUCT, "operator": "DoesNotExist"},
                {"key": LABEL, "operator": "DoesNotExist"},
            ],
            id="any model",
        ),
    ],
)
@pytest.mark.parametrize("preferred", [False, True])
def test_what_is_excluded_stays_so_where_nothing_is_known_of_the_nodes(
    asked: dict[str, Any], expected: list[dict[str, Any]], *, preferred: bool
) -> None:
    term, cx = {"matchExpressions": [asked]}, Context()
    new = rewritten(term, term_change(term, cx, preferred=preferred))
    assert new == {"matchExpressions": expected}
    assert term_change(new, cx, preferred=preferred).fate is Fate.KEEP


@pytest.mark.parametrize(("term", "preferred", "fate", "changed"), TERMS)
def test_what_becomes_of_a_term(
    term: dict[str, Any], fate: Fate, changed: list[int], *, preferred: bool
) -> None:
    made = term_change(term, CX, preferred=preferred)
    assert (made.fate, list(made.requirements)) == (fate, changed)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(
            {"matchExpressions": [ZONE, on("In", "K80")]},
            {"matchExpressions": [ZONE, on("In", "Tesla-K80", key=PRODUCT)]},
            id="values and key change, the rest stays",
        ),
        pytest.param(
            {"matchExpressions": [on("NotIn", "M41"), ZONE], "matchFields": [1]},
            {
                "matchExpressions": [on("NotIn", "M41", key=PRODUCT), ZONE],
                "matchFields": [1],
            },
            id="an exclusion stays one",
        ),
        pytest.param(
            {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]},
            {"matchExpressions": [{"key": PRODUCT, "operator": "Exists"}]},
            id="Exists gets no values",
        ),
    ],
)
def test_a_term_in_todays_words(term: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(term)
    made = term_change(term, CX, preferred=False)
    assert rewritten(term, made) == expected
    assert repr(term) == before


def test_a_carried_term_keeps_its_key() -> None:
    term = {"matchExpressions": [on("In", "Tesla-K80", "a b")]}
    made = term_change(term, CARRIED, preferred=False)
    assert rewritten(term, made) == {"matchExpressions": [on("In", "Tesla-K80")]}


NO_LABEL = Context(inventory=Inventory((NodeClass({"zone": "a"}, gpus={"g": 1}),)))
MISSING = f"no GPU node carries the label {PRODUCT}"


@pytest.mark.parametrize(
    ("operator", "cx", "preferred", "expected"),
    [
        pytest.param("Exists", CX, False, Change(Fate.CHANGE, PRODUCT), id="nodes have the label"),
        pytest.param(
            "Exists", Context(), False, Change(Fate.CHANGE, PRODUCT), id="nothing is known of nodes"
        ),
        pytest.param("Exists", CARRIED, False, Change(Fate.KEEP), id="nodes have the old label"),
        pytest.param(
            "DoesNotExist",
            Context(),
            False,
            Change(Fate.CHANGE, PRODUCT, old={"key": LABEL, "operator": "DoesNotExist"}),
            id="nodes that nothing is known of may have the old label, and are not to",
        ),
        pytest.param(
            "DoesNotExist",
            Context(in_manifest=True),
            False,
            Change(Fate.CHANGE, PRODUCT),
            id="a manifest is for nodes of today",
        ),
        pytest.param("DoesNotExist", CARRIED, False, Change(Fate.KEEP), id="or are not to have it"),
        pytest.param(
            "Exists",
            NO_LABEL,
            False,
            Change(Fate.CHANGE, PRODUCT, None, ("any model",), MISSING, waits=True),
            id="no GPU node has the label: the pod waits",
        ),
        pytest.param(
            "Exists",
            NO_LABEL,
            True,
            Change(Fate.CHANGE, PRODUCT, None, (), MISSING),
            id="as a preference it does not",
        ),
        pytest.param(
            "DoesNotExist",
            NO_LABEL,
            False,
            Change(Fate.CHANGE, PRODUCT, None, (), MISSING),
            id="nor if the label is not to be there",
        ),
    ],
)
def test_whether_a_node_has_any_model(
    operator: str, cx: Context, expected: Change, *, preferred: bool
) -> None:
    made = change({"key": LABEL, "operator": operator}, cx, preferred=preferred)
    assert made == expected


@pytest.mark.parametrize("operator", ["Exists", "DoesNotExist", "Gt", "Lt"])
def test_values_that_no_label_has_do_not_get_another_key(operator: str) -> None:
    asked = {"key": LABEL, "operator": operator, "values": ["Tesla K80"]}
    assert change(asked, CX, preferred=True) == Change(Fate.KEEP)


@pytest.mark.parametrize(
    ("made", "texts"),
    [
        pytest.param(Change(Fate.CHANGE, PRODUCT, ("a",)), [], id="all is mapped: nothing"),
        pytest.param(
            Change(Fate.CHANGE, PRODUCT, ("a",), absent=("M60", "M4"), absent_why="why"),
            ["there is no node of the model 'M60' (and 1 more) now: why"],
            id="what no node has now",
        ),
        pytest.param(
            Change(Fate.CHANGE, PRODUCT, ("a",), ("M41",), "why"),
            ["'M41' stands for no GPU here and is dropped: why; name the model as the nodes do"],
            id="a value beside others is dropped",
        ),
        pytest.param(
            Change(Fate.CHANGE, PRODUCT, ("M-41",), ("M 41",), "why", waits=True),
            [f"'M 41' stands for no GPU here, so no node fits: why; {CURE}"],
            id="the only value makes the pod wait",
        ),
        pytest.param(
            Change(Fate.CHANGE, "", ("a",), ("a b",), "why"),
            ["'a b' is dropped: why; delete it"],
            id="what can be no value is dropped",
        ),
        pytest.param(
            Change(Fate.CHANGE, PRODUCT, ("a",), ("a", "b", "c", "d"), "why", is_named=True),
            [f"'a' (and 3 more) {NAMED}: why; {CURE}"],
            id="the first of many is named",
        ),
        pytest.param(
            Change(Fate.NEVER, PRODUCT, None, ("x" * 50,), "why"),
            [
                f"{'x' * 40!r} stands for no GPU here and is dropped: why; {CURE}",
            ],
            id="a long one is cut",
        ),
        pytest.param(
            Change(Fate.NEVER, PRODUCT, None, ("a\nb",), "why"),
            ["'a\\nb' stands for no GPU here and is dropped: why; name the model as the nodes do"],
            id="a line end is shown as such",
        ),
    ],
)
def test_what_a_person_is_told(made: Change, texts: list[str]) -> None:
    assert list(describe(made)) == texts


BETA_ZONE, ZONE_OF_TODAY = (
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
)
OF_TODAY = Inventory((NodeClass({ZONE_OF_TODAY: "a"}),))


@pytest.mark.parametrize(
    ("requirement", "inventory", "today"),
    [
        pytest.param(on("In", "a", key=BETA_ZONE), OF_TODAY, True, id="nodes have today's alone"),
        pytest.param(on("In", "b", key=BETA_ZONE), OF_TODAY, False, id="no node has the value"),
        pytest.param(
            {"key": BETA_ZONE, "operator": "Exists"}, OF_TODAY, True, id="any value will do"
        ),
        pytest.param(
            {"key": BETA_ZONE, "operator": "Exists"}, Inventory(), False, id="nodes have neither"
        ),
        pytest.param(
            on("In", "a", key=BETA_ZONE),
            Inventory((NodeClass({ZONE_OF_TODAY: "a", BETA_ZONE: "a"}),)),
            False,
            id="nodes have both: it can run",
        ),
        pytest.param(on("In", "a", key=BETA_ZONE), None, False, id="nothing is known of nodes"),
        pytest.param(on("In", "a", key=ZONE_OF_TODAY), OF_TODAY, False, id="today's label"),
        pytest.param({"key": 7, "operator": "Exists"}, OF_TODAY, False, id="no label at all"),
    ],
)
def test_a_label_that_was_beta_once(
    requirement: dict[str, Any], inventory: Inventory | None, *, today: bool
) -> None:
    renamed = Change(Fate.CHANGE, ZONE_OF_TODAY, was=BETA_ZONE)
    cx = Context(inventory=inventory, stuck=True)
    made = change(requirement, cx, preferred=False)
    assert made == (renamed if today else Change(Fate.KEEP))
    assert change(requirement, cx, preferred=True) == Change(Fate.KEEP)
    can_run = Context(inventory=inventory)
    assert change(requirement, can_run, preferred=False) == Change(Fate.KEEP)


def test_what_its_author_is_to_choose_is_said_of_a_file_that_stays_as_it_is() -> None:
    waits = Change(Fate.CHANGE, PRODUCT, ("M-41",), ("M 41",), "why", waits=True)
    message = "'M 41' stands for no GPU known here, so nothing is changed: why; write "
    message += f"{PRODUCT} with the names that the nodes carry there"
    assert list(describe(waits, stays=True)) == [message]
    illegal = Change(Fate.CHANGE, "", ("a",), ("a b",), "why")
    assert list(describe(illegal, stays=True)) == ["'a b' is no model: why; delete it"]
