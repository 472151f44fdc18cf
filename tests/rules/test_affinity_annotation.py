from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import run
from tests.rules.pods import (
    ANNOTATIONS,
    LABEL,
    PRODUCT,
    SPEC,
    found,
    gpu_nodes,
    legacy_pod,
    modern_pod,
)
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.edits import Append, Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import Affinity, Settings
from webhook.kube.pointer import Path
from webhook.rules import affinity_annotation as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit

KEY = "scheduler.alpha.kubernetes.io/affinity"
AT = ANNOTATIONS / KEY
NODE = SPEC / "affinity" / "nodeAffinity"
ANTI = SPEC / "affinity" / "podAntiAffinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NEVER = "requiredDuringSchedulingRequiredDuringExecution"
HOST = "kubernetes.io/hostname"

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.MANUAL)


def moved(*edits: Edit, stays: bool = False) -> Finding:
    message = (
        "the affinity annotation has had no effect since Kubernetes 1.8; it is spec.affinity now: "
        "move it there"
    )
    return repaired(AT, message, edits if stays else (*edits, Remove(AT)))


def noted(note: str) -> Finding:
    message = f"affinity annotation: {note}; check that spec.affinity is correct"
    return repaired(AT, message)


def left(section: str, why: str) -> Finding:
    message = (
        f"{section} of the affinity annotation is not converted: {why}; write it as spec.affinity"
    )
    return reported(AT, message)


def unread(why: str) -> Finding:
    message = f"the affinity annotation is not converted: {why}"
    return reported(AT, f"{message}; write spec.affinity, or delete the annotation")


NOTHING = repaired(
    AT, "the affinity annotation adds nothing to spec.affinity: delete it", (Remove(AT),)
)
IDLE = reported(
    AT,
    "the affinity annotation has had no effect since Kubernetes 1.8 and is left as it is: "
    "this pod runs without it; move it to spec.affinity or delete it",
)


def said(annotation: object, **spec: Any) -> dict[str, Any]:
    text = annotation if isinstance(annotation, str) else json.dumps(annotation)
    return legacy_pod({KEY: text}, **spec)


def terms(*listed: Any) -> dict[str, Any]:
    return {"nodeSelectorTerms": list(listed)}


def term(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def node(*required: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: terms(*required)}}


def weighted(preference: Any, weight: int = 5) -> dict[str, Any]:
    return {"weight": weight, "preference": preference}


def both(*terms: Any) -> dict[str, Any]:
    return {"matchExpressions": [each for term in terms for each in term["matchExpressions"]]}


ZONE = term("zone", "a")
RACK = term("rack", "r1")
NEAR = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOST}
PIN = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(legacy_pod(), [], id="no annotation: untouched"),
        pytest.param(legacy_pod({"scheduler.example/affinity": "{}"}), [], id="another annotation"),
        pytest.param(
            modern_pod({KEY: json.dumps(node(ZONE))}),
            [IDLE],
            id="a pod that runs: reviving it could make the pod wait for ever, so only a warning",
        ),
        pytest.param(modern_pod({KEY: "x"}), [IDLE], id="a pod that runs, bad JSON: the same"),
        pytest.param(said(""), [NOTHING], id="empty"),
        pytest.param(legacy_pod({KEY: None}), [NOTHING], id="null on purpose (pattern 7)"),
        pytest.param(said("null"), [NOTHING], id="the JSON null"),
        pytest.param(said({}), [NOTHING], id="an empty object"),
        pytest.param(said({"nodeAffinity": None}), [NOTHING], id="a null section"),
        pytest.param(said({"podAffinity": {}}), [NOTHING], id="an empty section"),
        pytest.param(
            said(node(ZONE)), [moved(Set(NODE, node(ZONE)["nodeAffinity"]))], id="taken over"
        ),
        pytest.param(
            said(
                '{"NodeAffinity": {"REQUIREDDuringSchedulingIgnoredDuringExecution": '
                '{"nodeselectorterms":'
                '[{"matchexpressions": [{"Key": "zone", "Operator": "In", "Values": ["a"]}]}]}}}'
            ),
            [moved(Set(NODE, node(ZONE)["nodeAffinity"]))],
            id="member names in any case, as Go reads them",
        ),
        pytest.param(
            said({"podAffinity": {REQUIRED: [NEAR]}, "podAntiAffinity": {REQUIRED: [NEAR]}}),
            [
                moved(
                    Set(SPEC / "affinity" / "podAffinity", {REQUIRED: [NEAR]}),
                    Set(ANTI, {REQUIRED: [NEAR]}),
                )
            ],
            id="pod affinity and anti-affinity",
        ),
        pytest.param(
            said({"podAntiAffinity": {REQUIRED: [{"labelSelector": {}, "topologyKey": HOST}]}}),
            [moved(Set(ANTI, {REQUIRED: [{"labelSelector": {}, "topologyKey": HOST}]}))],
            id="a selector {} is everything and stays so",
        ),
        pytest.param(
            said({"podAntiAffinity": {REQUIRED: [{"labelSelector": None, "topologyKey": HOST}]}}),
            [moved(Set(ANTI, {REQUIRED: [{"topologyKey": HOST}]}))],
            id="a null selector is nothing and stays so",
        ),
    ],
)
def test_what_is_taken_over(obj: Any, expected: list[Finding]) -> None:
    assert found(rule, obj) == expected


def test_scope_all_legacy_takes_over_what_is_dead_on_a_pod_that_runs() -> None:
    cx = Context(Settings(scope="all-legacy"))
    obj = modern_pod({KEY: json.dumps(node(ZONE))})
    assert found(rule, obj, cx) == [moved(Set(NODE, node(ZONE)["nodeAffinity"]))]


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        pytest.param(
            "x", "it is not JSON (Expecting value: line 1 column 1 (char 0))", id="no JSON"
        ),
        pytest.param(
            '{"nodeAffinity": {{ toJson .Values.affinity }}}',
            "it is not JSON (Expecting property name enclosed in double quotes: "
            "line 1 column 19 (char 18))",
            id="a template (pattern 9)",
        ),
        pytest.param("[]", "it is not a JSON object", id="a list"),
        pytest.param(
            '{"nodeAffinity": NaN}', "it is not JSON (NaN is not JSON)", id="not a number"
        ),
        pytest.param(
            "[" * 100_000, "it is not JSON (too deeply nested)", id="a hundred thousand deep"
        ),
    ],
)
def test_what_is_no_json_stays(annotation: str, why: str) -> None:
    assert found(rule, said(annotation)) == [unread(why)]


def test_a_map_is_no_text() -> None:
    obj = legacy_pod({KEY: {"nodeAffinity": {}}})
    assert found(rule, obj) == [unread("it is not a string")]


@pytest.mark.parametrize(
    ("section", "value", "why"),
    [
        pytest.param(
            "podAffinity",
            {PREFERRED: [{"weight": 100, **NEAR}]},
            "a preferred term has no podAffinityTerm",
            id="weight and selector on one level",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: [{"labelSelector": ZONE, "topologyKey": HOST}]},
            f"nodeAffinity.{REQUIRED} must be an object",
            id="a list of label selectors (pattern 15)",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms()},
            f"{REQUIRED} has no nodeSelectorTerms",
            id="no terms at all",
        ),
        pytest.param(
            "nodeAffinity", {REQUIRED: terms({})}, "a term has no matchExpressions", id="{}"
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms(PIN)},
            "a term has no matchExpressions",
            id="matchFields",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms(term("zone"))},
            "In cannot have 0 values",
            id="In nothing",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms(term("zone", "a", operator="Exists"))},
            "Exists cannot have 1 values",
            id="Exists with a value",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms(term("cores", "4", "8", operator="Gt"))},
            "Gt cannot have 2 values",
            id="Gt with two values",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms(term("zone", "a", operator="Is"))},
            "'Is' is not an operator",
            id="an operator that there never was",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms(term("a b", "c"))},
            "'a b' is not a label key",
            id="a bad key",
        ),
        pytest.param(
            "nodeAffinity",
            {REQUIRED: terms(term("zone", "a b"))},
            "'a b' is not a label value",
            id="a bad value in a required term, which 1.33 refuses",
        ),
        pytest.param(
            "nodeAffinity",
            {PREFERRED: [weighted(term("zone", "a b"))]},
            "'a b' is not a label value",
            id="a bad value in a preferred term, on which the scheduler fails the pod",
        ),
        pytest.param(
            "nodeAffinity",
            {PREFERRED: [weighted(ZONE, 0)]},
            "a weight is not between 1 and 100",
            id="a weight of 0",
        ),
        pytest.param(
            "nodeAffinity",
            {PREFERRED: [weighted(ZONE, 101)]},
            "a weight is not between 1 and 100",
            id="a weight of 101",
        ),
        pytest.param(
            "nodeAffinity",
            {
                REQUIRED: terms(
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": [1]}]}
                )
            },
            f"nodeAffinity.{REQUIRED}.nodeSelectorTerms.matchExpressions.values must be a text",
            id="a number where a text must be",
        ),
        pytest.param(
            "podAffinity",
            {REQUIRED: [{"labelSelector": {}}]},
            "'' is not a topologyKey",
            id="no topologyKey in a required term",
        ),
        pytest.param(
            "podAffinity",
            {
                PREFERRED: [
                    {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": ""}}
                ]
            },
            "'' is not a topologyKey",
            id="an empty topologyKey in preferred affinity (not anti-affinity)",
        ),
        pytest.param(
            "podAffinity",
            {REQUIRED: [{**NEAR, "namespaces": ["A"]}]},
            "'A' is not a namespace",
            id="a bad namespace",
        ),
        pytest.param(
            "podAffinity",
            {REQUIRED: [{"labelSelector": {"matchLabels": {"a": "b c"}}, "topologyKey": HOST}]},
            "'a': 'b c' is not a label",
            id="a bad label of a selector",
        ),
    ],
)
def test_what_the_api_server_would_refuse_stays(section: str, value: Any, why: str) -> None:
    obj = said({section: value})
    assert found(rule, obj) == [left(section, why)]


def test_only_the_bad_section_stays() -> None:
    obj = said({"podAffinity": {REQUIRED: [{}]}, **node(ZONE)})
    assert found(rule, obj) == [
        left("podAffinity", "'' is not a topologyKey"),
        moved(Set(NODE, node(ZONE)["nodeAffinity"]), stays=True),
    ]
    assert KEY in obj["metadata"]["annotations"]


def test_a_field_that_never_shipped_stays_behind_and_the_rest_is_taken_over() -> None:
    """Pattern 13: it was never enforced, so it is not made a requirement now."""
    never = f"podAntiAffinity.{NEVER} was never implemented"
    note = reported(AT, noted(never).message)
    assert found(rule, said({"podAntiAffinity": {NEVER: [NEAR]}})) == [note]
    both = {"podAntiAffinity": {NEVER: [NEAR], REQUIRED: [NEAR]}}
    assert found(rule, said(both)) == [note, moved(Set(ANTI, {REQUIRED: [NEAR]}), stays=True)]


def test_a_field_that_never_shipped_goes_where_the_user_wants_what_is_unsafe() -> None:
    never = f"podAntiAffinity.{NEVER} was never implemented"
    cx = Context(Settings(scope="all-legacy"), unsafe=True)
    both = {"podAntiAffinity": {NEVER: [NEAR], REQUIRED: [NEAR]}}
    assert found(rule, said(both), cx) == [noted(never), moved(Set(ANTI, {REQUIRED: [NEAR]}))]


def test_a_preferred_term_about_no_pod_stays_behind_or_goes_with_what_is_unsafe() -> None:
    """Pattern 14: weight and selector on one level. The scheduler saw an empty term there."""
    flat, term = {"weight": 100, **NEAR}, {"weight": 1, "podAffinityTerm": NEAR}
    notes = [f"{member!r} in podAntiAffinity.{PREFERRED} was never read" for member in NEAR] + [
        "a preferred term has no podAffinityTerm, so it selected no pod: write one"
    ]
    assert found(rule, said({"podAntiAffinity": {PREFERRED: [flat]}})) == [
        reported(AT, noted(note).message) for note in notes
    ]
    both = said({"podAntiAffinity": {PREFERRED: [flat, term]}})
    cx = Context(Settings(scope="all-legacy"), unsafe=True)
    assert found(rule, both, cx) == [*map(noted, notes), moved(Set(ANTI, {PREFERRED: [term]}))]


def test_members_that_no_scheduler_read_are_dropped_and_named() -> None:
    value = node(ZONE | {"matchFields": PIN["matchFields"]}) | {"nodeAfinity": {}}
    assert found(rule, said(value)) == [
        repaired(AT, "no scheduler read 'nodeAfinity' of the affinity annotation: delete it"),
        noted(f"'matchFields' in nodeAffinity.{REQUIRED}.nodeSelectorTerms was never read"),
        moved(Set(NODE, {REQUIRED: terms(ZONE)})),
    ]


def test_of_very_many_members_the_first_few_are_named() -> None:
    value: dict[str, Any] = {f"unknown{number}": {} for number in range(5000)}
    messages = [each.message for each in found(rule, said(value))]
    assert len(messages) == 12
    assert messages[9] == "no scheduler read 'unknown9' of the affinity annotation: delete it"
    assert messages[10] == (
        "no scheduler read 4990 more members like this of the affinity annotation: delete it"
    )


def test_of_very_many_models_that_stand_for_nothing_the_first_few_are_named() -> None:
    made = [
        {"matchExpressions": [{"key": LABEL, "operator": "In", "values": [f"none{number}"]}]}
        for number in range(50)
    ]
    messages = [each.message for each in found(rule, said(node(*made)))]
    assert len(messages) == 12
    assert messages[10] == "40 more values of the affinity annotation like this"


@pytest.mark.parametrize(
    ("there", "annotation", "edits"),
    [
        pytest.param(
            {REQUIRED: terms(PIN)},
            {REQUIRED: terms(ZONE)},
            [Set(NODE / REQUIRED / "nodeSelectorTerms", [PIN | ZONE])],
            id="a DaemonSet pod stays pinned to its node",
        ),
        pytest.param(
            {REQUIRED: terms(PIN)},
            {REQUIRED: terms(ZONE, RACK)},
            [Set(NODE / REQUIRED / "nodeSelectorTerms", [PIN | ZONE, PIN | RACK])],
            id="the pin in each of several terms",
        ),
        pytest.param(
            {REQUIRED: terms(ZONE, RACK)},
            {REQUIRED: terms(term("a", "1"), term("b", "2"))},
            [
                Set(
                    NODE / REQUIRED / "nodeSelectorTerms",
                    [
                        {"matchExpressions": [*one["matchExpressions"], *two["matchExpressions"]]}
                        for one in (ZONE, RACK)
                        for two in (term("a", "1"), term("b", "2"))
                    ],
                )
            ],
            id="terms are OR-ed, so AND is their cross product",
        ),
        pytest.param(
            {REQUIRED: terms(ZONE)},
            {
                REQUIRED: terms(
                    {"matchExpressions": [*RACK["matchExpressions"], *ZONE["matchExpressions"]]}
                )
            },
            [
                Set(
                    NODE / REQUIRED / "nodeSelectorTerms",
                    [{"matchExpressions": [*ZONE["matchExpressions"], *RACK["matchExpressions"]]}],
                )
            ],
            id="equal expressions once",
        ),
        pytest.param(
            {REQUIRED: terms(ZONE)}, {REQUIRED: terms(ZONE)}, None, id="what is there already"
        ),
        pytest.param(
            {REQUIRED: terms({})},
            {REQUIRED: terms(ZONE)},
            None,
            id="an empty term matches nothing and goes on doing so",
        ),
        pytest.param(
            {PREFERRED: [weighted(ZONE)]},
            {REQUIRED: terms(RACK)},
            [Set(NODE / REQUIRED, terms(RACK))],
            id="required beside preferred",
        ),
        pytest.param(
            {REQUIRED: terms(RACK)},
            {PREFERRED: [weighted(ZONE)]},
            [Append(NODE / PREFERRED, weighted(ZONE))],
            id="preferred beside required",
        ),
        pytest.param(
            {PREFERRED: [weighted(ZONE)]},
            {PREFERRED: [weighted(ZONE), weighted(ZONE, 9), weighted(RACK)]},
            [Append(NODE / PREFERRED, weighted(ZONE, 9)), Append(NODE / PREFERRED, weighted(RACK))],
            id="preferred terms are added unless an equal one is there",
        ),
        pytest.param(
            {REQUIRED: None, PREFERRED: None},
            {REQUIRED: terms(RACK), PREFERRED: [weighted(ZONE)]},
            [Set(NODE / REQUIRED, terms(RACK)), Append(NODE / PREFERRED, weighted(ZONE))],
            id="beside nulls",
        ),
    ],
)
def test_node_affinity_of_both_sides_is_joined(
    there: Any, annotation: Any, edits: list[Edit] | None
) -> None:
    obj = said({"nodeAffinity": annotation}, affinity={"nodeAffinity": there})
    assert found(rule, obj) == [NOTHING if edits is None else moved(*edits)]


@pytest.mark.parametrize(
    ("ours", "theirs", "made"),
    [
        pytest.param(10, 10, 100, id="100 terms are written"),
        pytest.param(11, 10, 100, id="of 110 the first 100"),
        pytest.param(1, 150, 100, id="of 150 in the annotation the first 100"),
        pytest.param(150, 1, 100, id="of 150 in spec.affinity the first 100"),
    ],
)
def test_of_a_product_of_over_a_hundred_terms_the_first_are_written(
    ours: int, theirs: int, made: int
) -> None:
    """The resource is renamed: without any of them the pod could run on another model."""
    zones = [term("zone", f"z{number}") for number in range(ours)]
    racks = [term("rack", f"r{number}") for number in range(theirs)]
    obj = said(node(*racks), affinity=node(*zones))
    findings = found(rule, obj)
    written = obj["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert len(written) == made
    keys = [[each["key"] for each in one["matchExpressions"]] for one in written]
    assert keys == [["zone", "rack"]] * made
    told = [each for each in findings if "may wait although a node would fit" in each.message]
    assert len(told) == (ours * theirs > made)
    assert found(rule, obj) == [], "a second round finds nothing"


@pytest.mark.parametrize("section", ["podAffinity", "podAntiAffinity"])
def test_pod_affinity_of_the_spec_wins(section: str) -> None:
    """ReconcileAffinity of 1.6: each sub-field comes from the spec if it is set there at all."""
    other = {REQUIRED: [{**NEAR, "topologyKey": "zone"}]}
    wins = noted(f"spec.affinity.{section} is there already and wins")
    assert found(rule, said({section: {REQUIRED: [NEAR]}}, affinity={section: other})) == [
        wins,
        NOTHING,
    ]
    assert found(rule, said({section: {REQUIRED: [NEAR]}}, affinity={section: {}})) == [
        wins,
        NOTHING,
    ]


def test_an_empty_topology_key_of_preferred_anti_affinity_is_the_hostname() -> None:
    preferred = {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": ""}}
    today = {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": HOST}}
    missing = {"weight": 1, "podAffinityTerm": {"labelSelector": {}}}
    note = noted(f"an empty topologyKey is taken for {HOST}")
    for said_so in (preferred, missing):
        assert found(rule, said({"podAntiAffinity": {PREFERRED: [said_so]}})) == [
            note,
            moved(Set(ANTI, {PREFERRED: [today]})),
        ]


@pytest.mark.parametrize(
    ("meaning", "note", "more"),
    [
        pytest.param("own", "the pod's own namespace", {}, id="as 1.6 read it"),
        pytest.param("all", "all namespaces", {"namespaceSelector": {}}, id="as 1.3-1.5 read it"),
    ],
)
def test_an_empty_list_of_namespaces(meaning: Any, note: str, more: Any) -> None:
    cx = Context(Settings(affinity=Affinity(empty_namespaces=meaning)))
    listed = {**NEAR, "namespaces": []}
    named = {**NEAR, "namespaces": ["db"]}
    absent = {**NEAR, "namespaces": None}
    obj = said({"podAntiAffinity": {REQUIRED: [listed, named, absent]}})
    assert found(rule, obj, cx) == [
        noted(f"`namespaces: []` is taken for {note}"),
        moved(Set(ANTI, {REQUIRED: [{**NEAR, **more}, named, NEAR]})),
    ]


def test_two_sections_with_one_note_have_it_once() -> None:
    listed = {"weight": 1, "podAffinityTerm": {**NEAR, "namespaces": []}}
    sections = {key: {PREFERRED: [listed]} for key in ("podAffinity", "podAntiAffinity")}
    notes = [each for each in found(rule, said(sections)) if not each.edits]
    assert notes == [noted("`namespaces: []` is taken for the pod's own namespace")]


BETA_ZONE, ZONE_OF_TODAY = (
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
)
MASTER = "node-role.kubernetes.io/master"


def carrying(*labels: dict[str, str]) -> Context:
    return Context(inventory=Inventory(tuple(NodeClass(each) for each in labels)))


@pytest.mark.parametrize(
    ("cx", "requirement", "key"),
    [
        pytest.param(Context(), (BETA_ZONE, "a"), ZONE_OF_TODAY, id="nothing is known of nodes"),
        pytest.param(
            carrying({ZONE_OF_TODAY: "a"}), (BETA_ZONE, "a"), ZONE_OF_TODAY, id="today's alone"
        ),
        pytest.param(
            carrying({ZONE_OF_TODAY: "a", BETA_ZONE: "a"}),
            (BETA_ZONE, "a"),
            ZONE_OF_TODAY,
            id="both",
        ),
        pytest.param(carrying({}), (BETA_ZONE, "a"), ZONE_OF_TODAY, id="neither"),
        pytest.param(
            carrying({BETA_ZONE: "a"}), (BETA_ZONE, "a"), BETA_ZONE, id="the old one alone"
        ),
        pytest.param(
            carrying({BETA_ZONE: "a"}),
            (BETA_ZONE, "b"),
            BETA_ZONE,
            id="the old one alone, with another value",
        ),
        pytest.param(
            carrying({BETA_ZONE: "a"}, {ZONE_OF_TODAY: "b"}),
            (BETA_ZONE, "a"),
            BETA_ZONE,
            id="the old one alone where it has that value",
        ),
        pytest.param(Context(), ("beta.kubernetes.io/os", "linux"), "kubernetes.io/os", id="os"),
        pytest.param(Context(), (MASTER, "a"), MASTER, id="a role is no such label"),
    ],
)
def test_labels_that_were_beta_become_todays(
    cx: Context, requirement: tuple[str, str], key: str
) -> None:
    old, new = node(term(*requirement)), node(term(key, requirement[1]))
    assert found(rule, said(old), cx) == [moved(Set(NODE, new["nodeAffinity"]))]


@pytest.mark.parametrize(
    ("cx", "key"),
    [
        pytest.param(Context(), ZONE_OF_TODAY, id="nothing is known of nodes"),
        pytest.param(carrying({BETA_ZONE: "a"}), BETA_ZONE, id="nodes carry the old one alone"),
    ],
)
def test_a_topology_key_that_was_beta(cx: Context, key: str) -> None:
    obj = said({"podAntiAffinity": {REQUIRED: [{**NEAR, "topologyKey": BETA_ZONE}]}})
    expected = moved(Set(ANTI, {REQUIRED: [{**NEAR, "topologyKey": key}]}))
    assert found(rule, obj, cx) == [expected]


def models(*values: str, operator: str = "In") -> dict[str, Any]:
    return term(LABEL, *values, operator=operator)


P100S = ("Tesla-P100-PCIE-12GB", "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB")
INVENTORY = gpu_nodes({PRODUCT: "Tesla-K80"}, {PRODUCT: "Tesla-P100-PCIE-16GB"})
ABSENT = f"no node carries such a model under {PRODUCT}; name the model as the nodes do"
WAITS = reported(AT, f"'GTX' stands for no GPU here, so no node fits: {ABSENT}")
DROPPED = reported(AT, f"'GTX' stands for no GPU here and is dropped: {ABSENT}")
EXCLUDED = reported(AT, f"'GTX' stands for no GPU here and is excluded by this name: {ABSENT}")
NO_GTX = both(term(PRODUCT, "GTX", operator="NotIn"), models("GTX", operator="NotIn"))


@pytest.mark.parametrize(
    ("annotation", "converted", "notes"),
    [
        pytest.param(
            {REQUIRED: terms(models("Tesla K80", "Tesla P100"))},
            {REQUIRED: terms(term(PRODUCT, "Tesla-K80", *P100S))},
            [],
            id="the guide's models, as the nodes name them",
        ),
        pytest.param(
            {REQUIRED: terms(models("Tesla K80", "Tesla-K80", "tesla_k80"))},
            {REQUIRED: terms(term(PRODUCT, "Tesla-K80"))},
            [],
            id="several spellings of one model (pattern 18)",
        ),
        pytest.param(
            {REQUIRED: terms(models("Tesla M60"))},
            {REQUIRED: terms(term(PRODUCT, "Tesla-M60"))},
            [
                reported(
                    AT,
                    "there is no node of the model 'Tesla M60' now: no node carries such a "
                    f"model under {PRODUCT}",
                )
            ],
            id="a model that no node has now: the table's values",
        ),
        pytest.param(
            {REQUIRED: terms(models("GTX"))},
            {REQUIRED: terms(term(PRODUCT, "GTX"))},
            [WAITS],
            id="an unknown model alone: the pod waits",
        ),
        pytest.param(
            {REQUIRED: terms(models("GTX", "Tesla K80"))},
            {REQUIRED: terms(term(PRODUCT, "Tesla-K80"))},
            [DROPPED],
            id="an unknown model beside a known one: dropped",
        ),
        pytest.param(
            {
                REQUIRED: terms(ZONE, models("Tesla K80")),
                PREFERRED: [weighted(models("Tesla K80")), weighted(ZONE)],
            },
            {
                REQUIRED: terms(ZONE, term(PRODUCT, "Tesla-K80")),
                PREFERRED: [weighted(term(PRODUCT, "Tesla-K80")), weighted(ZONE)],
            },
            [],
            id="other terms stay as they are",
        ),
        pytest.param(
            {REQUIRED: terms(ZONE), PREFERRED: [weighted(models("GTX"))]},
            {REQUIRED: terms(ZONE)},
            [DROPPED],
            id="a preference for an unknown model: dropped",
        ),
        pytest.param(
            {REQUIRED: terms(models("GTX", operator="NotIn") | {}), PREFERRED: [weighted(ZONE)]},
            {REQUIRED: terms(NO_GTX), PREFERRED: [weighted(ZONE)]},
            [EXCLUDED],
            id="NotIn an unknown model: excluded by its name",
        ),
        pytest.param(
            {
                REQUIRED: terms(
                    {
                        "matchExpressions": [
                            *ZONE["matchExpressions"],
                            *models("GTX", operator="NotIn")["matchExpressions"],
                        ]
                    }
                )
            },
            {
                REQUIRED: terms(
                    {"matchExpressions": [*ZONE["matchExpressions"], *NO_GTX["matchExpressions"]]}
                )
            },
            [EXCLUDED],
            id="NotIn an unknown model beside another requirement",
        ),
    ],
)
def test_models_become_what_the_nodes_carry(
    annotation: Any, converted: Any, notes: list[Finding]
) -> None:
    obj = said({"nodeAffinity": annotation})
    assert found(rule, obj, Context(inventory=INVENTORY)) == [*notes, moved(Set(NODE, converted))]


def test_the_model_meets_its_double_in_the_spec() -> None:
    """Kept for downgrades (pattern 12): equal once it is read; the rule before wrote the spec."""
    obj = said(node(models("Tesla K80")), affinity=node(term(PRODUCT, "Tesla-K80")))
    assert found(rule, obj, Context(inventory=INVENTORY)) == [NOTHING]


def test_the_annotation_of_a_controller_is_none_of_its_pods() -> None:
    """Pattern 16: it had no effect on pods, and moving it would newly constrain them."""
    annotations = {KEY: json.dumps(node(ZONE))}
    deployment = {"metadata": {"annotations": annotations}, "spec": {"template": legacy_pod()}}
    verdict = run((rule,), deployment, Context(), Path(("spec", "template")))
    assert verdict.findings == ()
    assert verdict.failed == ()


OLD_M40 = gpu_nodes({LABEL: "Tesla-M40"}, {PRODUCT: "Tesla-K80"}, {PRODUCT: "Tesla-T4"})


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param(
            terms(term(LABEL, "Tesla-K80", "Tesla-M40"), ZONE),
            terms(
                term(PRODUCT, "Tesla-K80"),
                ZONE,
                both(term(LABEL, "Tesla-M40"), term(PRODUCT, "Tesla-K80", operator="NotIn")),
            ),
            id="required",
        ),
        pytest.param(
            [weighted(term(LABEL, "Tesla-K80", "Tesla-M40")), weighted(ZONE, 1)],
            [
                weighted(term(PRODUCT, "Tesla-K80")),
                weighted(
                    both(term(LABEL, "Tesla-M40"), term(PRODUCT, "Tesla-K80", operator="NotIn"))
                ),
                weighted(ZONE, 1),
            ],
            id="preferred",
        ),
    ],
)
def test_a_label_that_some_nodes_still_carry(section: Any, expected: Any) -> None:
    kind = REQUIRED if isinstance(section, dict) else PREFERRED
    obj = said({"nodeAffinity": {kind: section}})
    findings = found(rule, obj, Context(inventory=OLD_M40))
    assert obj["spec"]["affinity"] == {"nodeAffinity": {kind: expected}}
    assert [each.severity for each in findings] == [Severity.REPAIR]
