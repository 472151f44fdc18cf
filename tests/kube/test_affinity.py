"""The affinity annotation: decoded as Go did, judged as the API server does, joined by AND."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.legacy_names import BETA_NODE_LABELS
from webhook.kube import affinity
from webhook.kube.affinity import MOST_TERMS, Section, and_join, decode, mistakes
from webhook.kube.go_json import Mistake
from webhook.kube.pod import PREFERRED, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

NODE, POD, ANTI = affinity.SECTIONS


def text(value: object) -> str:
    return json.dumps(value)


def sections(value: object) -> dict[str, Any]:
    return {name: section.value for name, section in decode(text(value))[0].items()}


def requirement(operator: str = "In", *values: str, key: str = "k") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(requirements)}


A, B, C = (requirement("In", value) for value in "abc")


# --------------------------------------------------------------------------- decode


@pytest.mark.parametrize("nothing", ["", "null", " null\n", "{}"])
def test_no_affinity_at_all(nothing: str) -> None:
    assert decode(nothing) == ({}, [])


UNREADABLE = [
    pytest.param(None, "it is not a string", id="null"),
    pytest.param({"nodeAffinity": {}}, "it is not a string", id="a map"),
    pytest.param("[]", "it is not a JSON object", id="a list"),
    pytest.param('"x"', "it is not a JSON object", id="a text within the text"),
    pytest.param("0", "it is not a JSON object", id="a number"),
    pytest.param("false", "it is not a JSON object", id="a boolean"),
    pytest.param("{", "it is not JSON (Expecting", id="half a map"),
    pytest.param("{}{}", "it is not JSON (Extra data", id="two maps"),
    pytest.param("{'a': 1}", "it is not JSON", id="single quotes"),
    pytest.param('{"a": NaN}', "it is not JSON (NaN is not JSON)", id="NaN"),
    pytest.param('{"a": -Infinity}', "it is not JSON (-Infinity is not JSON)", id="infinity"),
    pytest.param("  ", "it is not JSON", id="blanks"),
    pytest.param("[" * 100_000, "it is not JSON (too deeply nested)", id="very deep"),
    pytest.param('{"a": ' + "9" * 5000 + "}", "it is not JSON", id="a number of 5000 digits"),
    pytest.param(
        '{"nodeAffinity": {}, "NodeAffinity": {}}',
        "nodeAffinity occurs twice",
        id="a section twice in different case",
    ),
    pytest.param('{"a": 1, "a": 1}', "it is not JSON (a member occurs twice)", id="a member twice"),
]


@pytest.mark.parametrize(("raw", "why"), UNREADABLE)
def test_an_unreadable_text_is_a_mistake(raw: object, why: str) -> None:
    with pytest.raises(Mistake) as raised:
        decode(raw)
    assert str(raised.value).startswith(why)


def test_member_names_match_in_any_case_and_come_out_in_todays_spelling() -> None:
    raw = {
        "NODEAFFINITY": {
            REQUIRED.upper(): {
                "NodeSelectorTerms": [{"matchexpressions": [{"KEY": "k", "Operator": "Exists"}]}]
            },
            REQUIRED.lower() + "x": 1,
            PREFERRED.lower(): [{"Weight": 5, "PREFERENCE": {"MatchExpressions": []}}],
        },
        "podaffinity": {
            REQUIRED: [
                {
                    "TOPOLOGYKEY": "t",
                    "NameSpaces": ["a"],
                    "labelselector": {"MATCHLABELS": {"Key": "V"}},
                }
            ]
        },
        "PodAntiAffinity": {PREFERRED: [{"weight": 1, "PodAffinityTerm": {"topologyKey": "t"}}]},
    }
    assert sections(raw) == {
        NODE: {
            REQUIRED: {"nodeSelectorTerms": [term({"key": "k", "operator": "Exists"})]},
            PREFERRED: [{"weight": 5, "preference": term()}],
        },
        POD: {
            REQUIRED: [
                {
                    "topologyKey": "t",
                    "namespaces": ["a"],
                    "labelSelector": {"matchLabels": {"Key": "V"}},
                }
            ]
        },
        ANTI: {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "t"}}]},
    }


NULLS = [
    pytest.param({NODE: None}, {}, id="a section that is null is none"),
    pytest.param({NODE: {REQUIRED: None, PREFERRED: None}}, {NODE: {}}, id="so is a member"),
    pytest.param(
        {NODE: {REQUIRED: {"nodeSelectorTerms": None}}},
        {NODE: {REQUIRED: {}}},
        id="so is a list",
    ),
    pytest.param(
        {NODE: {REQUIRED: {"nodeSelectorTerms": [None]}}},
        {NODE: {REQUIRED: {"nodeSelectorTerms": [{}]}}},
        id="an item that is null is an empty one",
    ),
    pytest.param(
        {NODE: {REQUIRED: {"nodeSelectorTerms": [term({"values": [None, "a"]})]}}},
        {NODE: {REQUIRED: {"nodeSelectorTerms": [term({"values": ["", "a"]})]}}},
        id="a value that is null is the empty text",
    ),
    pytest.param(
        {POD: {REQUIRED: [{"labelSelector": {"matchLabels": {"a": None}}}]}},
        {POD: {REQUIRED: [{"labelSelector": {"matchLabels": {"a": ""}}}]}},
        id="a label that is null has the empty value",
    ),
    pytest.param(
        {POD: {REQUIRED: [{"labelSelector": None}, {"labelSelector": {}}]}},
        {POD: {REQUIRED: [{}, {"labelSelector": {}}]}},
        id="a null selector matches nothing, an empty one everything: they stay apart",
    ),
    pytest.param({POD: {PREFERRED: [None]}}, {POD: {PREFERRED: [{}]}}, id="a null preference"),
]


@pytest.mark.parametrize(("raw", "value"), NULLS)
def test_null_is_passed_over_as_go_does(raw: object, value: object) -> None:
    assert sections(raw) == value


def test_half_a_surrogate_pair_becomes_the_replacement_character_as_in_go() -> None:
    labels = '{"matchLabels": {"\\ud800": "a\\udc00b"}}'
    raw = f'[{{"labelSelector": {labels}, "topologyKey": "\\ud83d\\ude00\\u00e9"}}]'
    (pod_term,) = decode(f'{{"podAffinity": {{"{REQUIRED}": {raw}}}}}')[0][POD].value[REQUIRED]
    assert pod_term == {"labelSelector": {"matchLabels": {"�": "a�b"}}, "topologyKey": "😀é"}


WRONG = [
    pytest.param(NODE, 7, "nodeAffinity must be an object", id="a section that is a number"),
    pytest.param(NODE, [], "nodeAffinity must be an object", id="a section that is a list"),
    pytest.param(
        NODE, {REQUIRED: []}, f"nodeAffinity.{REQUIRED} must be an object", id="a list for a map"
    ),
    pytest.param(
        POD, {REQUIRED: {}}, f"podAffinity.{REQUIRED} must be a list", id="a map for a list"
    ),
    pytest.param(
        POD,
        {REQUIRED: [{"topologyKey": 1}]},
        f"podAffinity.{REQUIRED}.topologyKey must be a text",
        id="a number for a text",
    ),
    pytest.param(
        NODE,
        {PREFERRED: [{"weight": "1"}]},
        f"nodeAffinity.{PREFERRED}.weight must be a whole number (int32)",
        id="a text for a number",
    ),
    pytest.param(
        NODE,
        {PREFERRED: [{"weight": 1.0}]},
        f"nodeAffinity.{PREFERRED}.weight must be a whole number (int32)",
        id="1.0 for a whole number",
    ),
    pytest.param(
        NODE,
        {PREFERRED: [{"weight": True}]},
        f"nodeAffinity.{PREFERRED}.weight must be a whole number (int32)",
        id="true for a whole number",
    ),
    pytest.param(
        NODE,
        {PREFERRED: [{"weight": 2**31}]},
        f"nodeAffinity.{PREFERRED}.weight must be a whole number (int32)",
        id="more than an int32",
    ),
    pytest.param(
        POD,
        {REQUIRED: [{"labelSelector": {"matchLabels": {"a": 1}}}]},
        f"podAffinity.{REQUIRED}.labelSelector.matchLabels must be a text",
        id="a label with a number",
    ),
    pytest.param(
        POD,
        {REQUIRED: [{"labelSelector": {"matchLabels": ["a"]}}]},
        f"podAffinity.{REQUIRED}.labelSelector.matchLabels must be an object",
        id="a list of labels",
    ),
    pytest.param(
        POD,
        {REQUIRED: [{"topologyKey": "a", "TopologyKey": "b"}]},
        f"podAffinity.{REQUIRED}.topologyKey occurs twice",
        id="a member twice in different case",
    ),
    pytest.param(
        POD,
        {REQUIRED: [{"topologyKey": None, "TopologyKey": "b"}]},
        f"podAffinity.{REQUIRED}.topologyKey occurs twice",
        id="twice, once null",
    ),
]


@pytest.mark.parametrize(("name", "raw", "why"), WRONG)
def test_a_value_of_the_wrong_type_spoils_its_section_only(
    name: str, raw: object, why: str
) -> None:
    other = POD if name == NODE else NODE
    found, _ = decode(text({name: raw, other: {}}))
    assert (found[name].why, found[name].value) == (why, {})
    assert (found[other].why, found[other].value) == ("", {})


def test_unknown_members_are_passed_over_and_noted() -> None:
    found, unknown = decode(
        text(
            {
                NODE: {REQUIRED: {"nodeSelectorTerms": [{**term(A), "matchFields": []}]}},
                "extra": 1,
                POD: {"x" * 50: 1},
            }
        )
    )
    assert found[NODE].value == {REQUIRED: {"nodeSelectorTerms": [term(A)]}}
    assert found[NODE].notes == [
        f"'matchFields' in nodeAffinity.{REQUIRED}.nodeSelectorTerms was never read"
    ]
    assert found[POD].notes == [f"{'x' * 40!r} in podAffinity was never read"]
    assert not found[NODE].left
    assert unknown == ["extra"]


@pytest.mark.parametrize("spelling", [affinity.NEVER_SHIPPED, affinity.NEVER_SHIPPED.upper()])
@pytest.mark.parametrize("name", affinity.SECTIONS)
def test_what_was_never_implemented_stays_behind(name: str, spelling: str) -> None:
    section = decode(text({name: {spelling: 1}}))[0][name]
    assert section.left
    assert section.notes == [f"{name}.{affinity.NEVER_SHIPPED} was never implemented"]
    assert (section.value, section.why) == ({}, "")


def test_depth_in_what_is_passed_over_does_no_harm() -> None:
    deep = "[" * 300 + "]" * 300
    section = decode(f'{{"nodeAffinity": {{"extra": {deep}}}}}')[0][NODE]
    assert (section.value, section.why) == ({}, "")


def test_sections_that_no_scheduler_read_are_named() -> None:
    raw = text({"nodeAffinty": {}, "NODEAFFINITY": None, "podAntiAffinity": {}, "x": None})
    assert decode(raw)[1] == ["nodeAffinty", "x"]


# --------------------------------------------------------------------------- today's words


@pytest.mark.parametrize(
    ("namespaces", "meaning", "expected"),
    [
        pytest.param([], "own", {"topologyKey": "t"}, id="an empty list is the own namespace"),
        pytest.param(
            [], "all", {"topologyKey": "t", "namespaceSelector": {}}, id="or all, in 1.3-1.5"
        ),
        pytest.param(
            ["a"], "all", {"topologyKey": "t", "namespaces": ["a"]}, id="names stay as they are"
        ),
        pytest.param(None, "all", {"topologyKey": "t"}, id="none always was the own namespace"),
    ],
)
@pytest.mark.parametrize("place", [REQUIRED, PREFERRED])
def test_empty_namespaces(
    namespaces: list[str] | None, meaning: str, expected: dict[str, Any], place: str
) -> None:
    pod_term: dict[str, Any] = {"topologyKey": "t"}
    if namespaces is not None:
        pod_term["namespaces"] = namespaces
    value = [pod_term] if place == REQUIRED else [{"weight": 1, "podAffinityTerm": pod_term}]
    section = Section({place: value})
    affinity.empty_namespaces(section, meaning)
    assert pod_term == expected
    meant = "all namespaces" if meaning == "all" else "the pod's own namespace"
    assert section.notes == ([f"`namespaces: []` is taken for {meant}"] if namespaces == [] else [])


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        pytest.param({"podAffinityTerm": {}}, "kubernetes.io/hostname", id="missing"),
        pytest.param(
            {"podAffinityTerm": {"topologyKey": ""}}, "kubernetes.io/hostname", id="empty"
        ),
        pytest.param({"podAffinityTerm": {"topologyKey": "zone"}}, "zone", id="given"),
    ],
)
def test_an_empty_topology_key_of_a_preference(preferred: dict[str, Any], expected: str) -> None:
    section = Section({PREFERRED: [deepcopy(preferred)], REQUIRED: [{"topologyKey": ""}]})
    affinity.empty_topology_key(section)
    assert section.value[PREFERRED][0]["podAffinityTerm"]["topologyKey"] == expected
    assert section.value[REQUIRED] == [{"topologyKey": ""}]
    assert section.notes == (
        [] if expected == "zone" else ["an empty topologyKey is taken for kubernetes.io/hostname"]
    )


def test_a_preference_without_a_term_gets_no_topology_key() -> None:
    for value in ({PREFERRED: [{"weight": 1}]}, {}):
        section = Section(deepcopy(value))
        affinity.empty_topology_key(section)
        assert section.value == value


@pytest.mark.parametrize(("old", "new"), BETA_NODE_LABELS.items())
def test_deprecated_node_labels_are_written_as_todays(old: str, new: str) -> None:
    node = Section(
        {
            REQUIRED: {"nodeSelectorTerms": [term(requirement("In", "a", key=old), A), {}]},
            PREFERRED: [
                {"preference": term({"key": old, "operator": "Exists"}, {"operator": "Exists"})},
                {},
            ],
        }
    )
    pods = Section(
        {
            REQUIRED: [{"topologyKey": old}, {"labelSelector": term({"key": old})}],
            PREFERRED: [{"podAffinityTerm": {"topologyKey": old}}, {}],
        }
    )
    for section in (node, pods):
        affinity.rename_labels(section, lambda key, _: BETA_NODE_LABELS.get(key, key))
    assert node.value == {
        REQUIRED: {"nodeSelectorTerms": [term(requirement("In", "a", key=new), A), {}]},
        PREFERRED: [
            {"preference": term({"key": new, "operator": "Exists"}, {"operator": "Exists"})},
            {},
        ],
    }
    assert pods.value == {
        REQUIRED: [{"topologyKey": new}, {"labelSelector": term({"key": old})}],
        PREFERRED: [{"podAffinityTerm": {"topologyKey": new}}, {}],
    }


def test_the_new_label_may_depend_on_the_values_that_are_requested() -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []
    section = Section(
        {
            REQUIRED: {"nodeSelectorTerms": [term(requirement("In", "a", "b"), {"key": "bare"})]},
            PREFERRED: [{"podAffinityTerm": {"topologyKey": "zone"}}],
        }
    )

    def same(key: str, values: Sequence[str]) -> str:
        asked.append((key, (*values,)))
        return key

    affinity.rename_labels(section, same)
    assert asked == [("k", ("a", "b")), ("bare", ()), ("zone", ())]


@pytest.mark.parametrize("value", [{}, {PREFERRED: []}, {PREFERRED: [{"podAffinityTerm": {}}]}])
def test_preferences_with_terms_all_stay(value: dict[str, Any]) -> None:
    section = Section(deepcopy(value))
    affinity.terms_of_no_pods(section)
    assert (section.value, section.left, section.notes) == (value, False, [])


def test_a_preference_without_a_term_is_left_out_and_noted() -> None:
    whole = {"weight": 2, "podAffinityTerm": {"topologyKey": "zone"}}
    section = Section({PREFERRED: [{"weight": 1}, whole, {"weight": 3}], REQUIRED: [{}]})
    affinity.terms_of_no_pods(section)
    assert section.value == {PREFERRED: [whole], REQUIRED: [{}]}
    assert section.left
    assert section.notes == [
        "a preferred term has no podAffinityTerm, so it selected no pod: write one"
    ]


def test_terms_of_a_section_required_ones_first() -> None:
    node = {
        PREFERRED: [{"preference": {"p": 1}}, {}],
        REQUIRED: {"nodeSelectorTerms": [{"r": 1}, {"r": 2}]},
    }
    assert affinity.node_terms(node) == [{"r": 1}, {"r": 2}, {"p": 1}]
    pods = {PREFERRED: [{"podAffinityTerm": {"p": 1}}, {}], REQUIRED: [{"r": 1}]}
    assert affinity.pod_terms(pods) == [{"r": 1}, {"p": 1}]
    assert affinity.node_terms({REQUIRED: {}}) == affinity.node_terms({}) == []
    assert affinity.pod_terms({}) == []
    # Each is asked about the other's section when labels are renamed.
    assert affinity.node_terms({REQUIRED: [{"r": 1}]}) == []
    assert affinity.pod_terms(node) == []


def test_empty_lists_say_nothing_and_go() -> None:
    section = Section({REQUIRED: [], PREFERRED: [{}], "x": {}})
    affinity.drop_empty(section)
    assert section.value == {PREFERRED: [{}], "x": {}}


# --------------------------------------------------------------------------- mistakes


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def preferred(weight: int = 1, **term_of: Any) -> dict[str, Any]:
    return {PREFERRED: [{"weight": weight, **term_of}]}


POD_TERM = {"topologyKey": "kubernetes.io/hostname"}
NODE_CASES = [
    pytest.param({}, [], id="nothing is no mistake"),
    pytest.param(required(term(A)), [], id="one term"),
    pytest.param(
        required(term(A, requirement("NotIn", "a", "b"), requirement("Gt", "5"))), [], id="more"
    ),
    pytest.param(required(), [f"{REQUIRED} has no nodeSelectorTerms"], id="no terms"),
    pytest.param({REQUIRED: {}}, [f"{REQUIRED} has no nodeSelectorTerms"], id="terms missing"),
    pytest.param(required({}), ["a term has no matchExpressions"], id="an empty term"),
    pytest.param(required(term()), ["a term has no matchExpressions"], id="no expressions"),
    pytest.param(
        required(term(A), term(requirement("In"))), ["In cannot have 0 values"], id="In of none"
    ),
    pytest.param(required(term(requirement("NotIn"))), ["NotIn cannot have 0 values"], id="NotIn"),
    pytest.param(
        required(term({"key": "k", "operator": "Exists"})), [], id="Exists without values"
    ),
    pytest.param(required(term(requirement("Exists"))), [], id="Exists with an empty list"),
    pytest.param(
        required(term(requirement("Exists", "a"))), ["Exists cannot have 1 values"], id="Exists of"
    ),
    pytest.param(
        required(term(requirement("DoesNotExist", "a"))),
        ["DoesNotExist cannot have 1 values"],
        id="DoesNotExist of",
    ),
    pytest.param(required(term(requirement("DoesNotExist"))), [], id="DoesNotExist"),
    pytest.param(required(term(requirement("Gt"))), ["Gt cannot have 0 values"], id="Gt of none"),
    pytest.param(
        required(term(requirement("Lt", "1", "2"))), ["Lt cannot have 2 values"], id="Lt of two"
    ),
    pytest.param(required(term(requirement("Lt", "1"))), [], id="Lt of one"),
    pytest.param(
        required(term(requirement("in", "a"))), ["'in' is not an operator"], id="another case"
    ),
    pytest.param(
        required(term({"key": "k", "values": ["a"]})), ["'' is not an operator"], id="no operator"
    ),
    pytest.param(
        required(term(requirement("x" * 50))), [f"{'x' * 40!r} is not an operator"], id="a long one"
    ),
    pytest.param(
        required(term({"operator": "Exists"})), ["'' is not a label key"], id="a missing key"
    ),
    pytest.param(
        required(term(requirement("Exists", key="a b" + "x" * 90))),
        [f"{'a b' + 'x' * 77!r} is not a label key"],
        id="no key",
    ),
    pytest.param(
        required(term(requirement("In", "Tesla K80", "a", "()" + "x" * 90))),
        ["'Tesla K80' is not a label value", f"{'()' + 'x' * 78!r} is not a label value"],
        id="values that are none",
    ),
    pytest.param(preferred(1, preference=term(A)), [], id="a preference of the least weight"),
    pytest.param(preferred(100, preference=term(A)), [], id="a preference of the greatest weight"),
    pytest.param(
        preferred(0, preference=term(A)), ["a weight is not between 1 and 100"], id="too light"
    ),
    pytest.param(
        preferred(101, preference=term(A)), ["a weight is not between 1 and 100"], id="too heavy"
    ),
    pytest.param(
        {PREFERRED: [{"preference": term(A)}]}, ["a weight is not between 1 and 100"], id="none"
    ),
    pytest.param(preferred(1), ["a term has no matchExpressions"], id="a preference of nothing"),
    pytest.param(
        preferred(1, preference=term(requirement("In", "a b"))),
        ["'a b' is not a label value"],
        id="a preferred value that would fail the scheduler",
    ),
]


@pytest.mark.parametrize(("value", "found"), NODE_CASES)
def test_what_the_api_server_refuses_in_node_affinity(
    value: dict[str, Any], found: list[str]
) -> None:
    assert list(mistakes(NODE, value)) == found


def selector(**members: Any) -> dict[str, Any]:
    return {REQUIRED: [{**POD_TERM, "labelSelector": members}]}


POD_CASES = [
    pytest.param({}, [], id="nothing is no mistake"),
    pytest.param({REQUIRED: [POD_TERM]}, [], id="one term"),
    pytest.param({REQUIRED: [{}]}, ["'' is not a topologyKey"], id="no topologyKey"),
    pytest.param(
        {REQUIRED: [{"topologyKey": "a b" + "x" * 90}]},
        [f"{'a b' + 'x' * 77!r} is not a topologyKey"],
        id="a topologyKey that is not a label",
    ),
    pytest.param({REQUIRED: [{**POD_TERM, "namespaces": ["a", "b"]}]}, [], id="namespaces"),
    pytest.param(
        {REQUIRED: [{**POD_TERM, "namespaces": ["a", "B.c" + "x" * 90]}]},
        [f"{'B.c' + 'x' * 77!r} is not a namespace"],
        id="a namespace that is none",
    ),
    pytest.param(selector(matchLabels={"a/b": "c", "d": ""}), [], id="labels"),
    pytest.param(
        selector(matchLabels={"a b": "c"}), ["'a b': 'c' is not a label"], id="a key that is none"
    ),
    pytest.param(
        selector(matchLabels={"x" * 90: "c d" + "y" * 90}),
        [f"{'x' * 80!r}: {'c d' + 'y' * 77!r} is not a label"],
        id="a value that is none",
    ),
    pytest.param(selector(matchExpressions=[A]), [], id="an expression"),
    pytest.param(
        selector(matchExpressions=[requirement("Gt", "1")]), ["'Gt' is not an operator"], id="Gt"
    ),
    pytest.param(
        selector(matchExpressions=[requirement("In", "a b")]),
        ["'a b' is not a label value"],
        id="a value with a blank",
    ),
    pytest.param(selector(), [], id="an empty selector"),
    pytest.param(preferred(1, podAffinityTerm=POD_TERM), [], id="a preference"),
    pytest.param(
        preferred(0, podAffinityTerm={}),
        ["a weight is not between 1 and 100", "'' is not a topologyKey"],
        id="a preference with two mistakes",
    ),
    pytest.param(
        preferred(1), ["a preferred term has no podAffinityTerm"], id="a preference of nothing"
    ),
]


@pytest.mark.parametrize("name", [POD, ANTI])
@pytest.mark.parametrize(("value", "found"), POD_CASES)
def test_what_the_api_server_refuses_in_pod_affinity(
    value: dict[str, Any], found: list[str], name: str
) -> None:
    assert list(mistakes(name, value)) == found


# --------------------------------------------------------------------------- and_join


PIN = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
JOINS = [
    pytest.param([term(A)], [term(B)], [term(A, B)], id="both are required"),
    pytest.param(
        [term(A), term(B)],
        [term(C), term(requirement("In", "d"))],
        [
            term(A, C),
            term(A, requirement("In", "d")),
            term(B, C),
            term(B, requirement("In", "d")),
        ],
        id="each with each",
    ),
    pytest.param([term(A, B)], [term(B, C)], [term(A, B, C)], id="equal expressions stand once"),
    pytest.param([term(A)], [term(A)], [term(A)], id="joining the same again changes nothing"),
    pytest.param(
        [term(A, C), term(B, C)], [term(C)], [term(A, C), term(B, C)], id="nor what is implied"
    ),
    pytest.param(
        [term(A, C), term(B)], [term(C)], [term(A, C), term(B, C)], id="implied by one term only"
    ),
    pytest.param([term(A), term(A, B)], [term(B)], [term(A, B)], id="equal terms stand once"),
    pytest.param(
        [term(A)],
        [term(A, B), term(B), term(C)],
        [term(A, B), term(A, C)],
        id="two terms of the others that come to the same, before a third",
    ),
    pytest.param(
        [PIN], [term(A)], [{**PIN, **term(A)}], id="the pin of a DaemonSet's pod survives"
    ),
    pytest.param(
        [PIN], [term(A), term(B)], [{**PIN, **term(A)}, {**PIN, **term(B)}], id="in every term"
    ),
    pytest.param(
        [PIN, term(A), {**PIN, **term(A)}],
        [term(B)],
        [{**PIN, **term(B)}, term(A, B), {**PIN, **term(A, B)}],
        id="terms that differ in their fields are not the same",
    ),
    pytest.param([{}], [term(A)], [{}], id="a term that matches nothing goes on so"),
    pytest.param([{}, term(A)], [term(B)], [{}, term(A, B)], id="beside another one"),
    pytest.param([{}, {}, term(A)], [term(B)], [{}, term(A, B)], id="equal empty ones stand once"),
    pytest.param(
        [{"matchExpressions": None}], [term(A)], [{"matchExpressions": None}], id="null is empty"
    ),
    pytest.param(
        [{**PIN, "matchExpressions": None}],
        [term(A)],
        [{**PIN, **term(A)}],
        id="a pin with null expressions",
    ),
    pytest.param(
        [term(requirement("In", "a", "b"))],
        [term(requirement("In", "b", "a"))],
        [term(requirement("In", "a", "b"), requirement("In", "b", "a"))],
        id="expressions that only mean the same are both kept",
    ),
]


@pytest.mark.parametrize(("terms", "others", "joined"), JOINS)
def test_required_terms_of_both_sides_are_joined_by_and(
    terms: list[Any], others: list[Any], joined: list[Any]
) -> None:
    before = deepcopy((terms, others))
    assert and_join(terms, others) == (joined, True)
    assert (terms, others) == before
    assert and_join(joined, others) == (joined, True)


def numbered(count: int, letter: str) -> list[dict[str, Any]]:
    return [term(requirement("In", f"{letter}{number}")) for number in range(count)]


@pytest.mark.parametrize(
    ("left", "right", "whole"),
    [
        pytest.param(10, 10, True, id="100 terms are written"),
        pytest.param(MOST_TERMS, 1, True, id="as many on one side"),
        pytest.param(101, 1, False, id="of 101 the first 100"),
        pytest.param(1, 101, False, id="on either side"),
        pytest.param(11, 10, False, id="of a product of 110 the first 100"),
        pytest.param(1000, 1000, False, id="of a million, and at no cost"),
    ],
)
def test_of_a_join_of_over_100_terms_the_first_are_made(
    left: int, right: int, *, whole: bool
) -> None:
    ours, theirs = numbered(left, "a"), numbered(right, "b")
    joined, is_whole = and_join(ours, theirs)
    assert (len(joined), is_whole) == (100, whole)
    ours_said, theirs_said = ([each["matchExpressions"][0] for each in s] for s in (ours, theirs))
    for each in joined:  # a term too many could place the pod where one of the sides forbids it
        first, second = each["matchExpressions"]
        assert first in ours_said
        assert second in theirs_said
    assert and_join(joined, theirs[:100]) == (joined, True)


def test_of_100_terms_of_the_others_all_are_joined() -> None:
    others = numbered(MOST_TERMS, "b")
    joined, is_all = and_join([term(A)], others)
    assert (len(joined), is_all) == (MOST_TERMS, True)


def test_over_100_terms_that_imply_the_others_stay_as_they_are() -> None:
    terms = [term(each, C) for number in range(150) for each in [requirement("In", f"a{number}")]]
    assert and_join(terms, [term(C)]) == (terms, True)


def test_many_terms_that_are_the_others_in_another_order_stay_as_they_are() -> None:
    terms = numbered(1000, "a")
    assert and_join(terms, terms[::-1]) == (terms, True)


def test_the_same_term_many_times_is_joined_once() -> None:
    assert and_join([term(A)] * 1000, [term(B)] * 1000) == ([term(A, B)], True)


def test_many_terms_are_held_against_few_others_one_by_one() -> None:
    terms = [term(each["matchExpressions"][0], C) for each in numbered(3000, "a")]
    assert and_join(terms, [term(C), term(A)]) == (terms, True)
    assert not and_join([*terms, term(B)], [term(C), term(A)])[1]


@pytest.mark.parametrize(
    ("expressions", "terms"),
    [
        pytest.param(199, 10, id="2,000 are written"),
        pytest.param(200, 9, id="of 2,010 nine tenths"),
        pytest.param(3000, 1, id="never none: that would match every node"),
    ],
)
def test_of_a_join_of_over_2000_expressions_the_first_are_made(
    expressions: int, terms: int
) -> None:
    long = term(*(requirement("In", f"a{number}") for number in range(expressions)))
    joined, whole = and_join([long], numbered(10, "b"))
    assert (len(joined), whole) == (terms, terms == 10)
