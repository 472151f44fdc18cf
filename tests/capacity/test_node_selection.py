"""Which nodes a pod allows itself: tables, and a node-by-node port of what the scheduler does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.capacity import fit
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Node, group
from webhook.core.settings import Capacity, Taint
from webhook.kube.labels import is_key, is_value
from webhook.kube.pod import REQUIRED, Pod

Raw = dict[str, Any]

NODES = (
    Node("a", {"zone": "one", "memory": "16", "kubernetes.io/hostname": "a"}),
    Node("b", {"zone": "two", "memory": "40", "kubernetes.io/hostname": "b", "disk": ""}),
    Node("c", {"memory": "many", "kubernetes.io/hostname": "c"}),
)
INDEX = NodeIndex.of(group(NODES))


def allowed(spec: Raw, nodes: tuple[Node, ...] = NODES, capacity: Capacity | None = None) -> str:
    """The names of the nodes that the pod allows, side by side."""
    index = NodeIndex.of(group(nodes))
    found = fit.allowed(Pod({"spec": spec}), index, capacity or Capacity())
    return "".join(node.name for node in nodes if found & index.named(node.name))


def required(*terms: Any) -> Raw:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def term(key: str, operator: str, *values: Any, kind: str = "matchExpressions") -> Raw:
    return {kind: [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "abc", id="nothing is said: every node"),
        pytest.param({"nodeSelector": {"zone": "one"}}, "a", id="a label"),
        pytest.param({"nodeSelector": {"disk": ""}}, "b", id="an empty value is a value"),
        pytest.param(
            {"nodeSelector": {"zone": "one", "memory": "40"}}, "", id="all labels must be there"
        ),
        pytest.param(
            {"nodeSelector": {"kubernetes.io/hostname": "c"}}, "c", id="a label of one node"
        ),
        pytest.param({"nodeSelector": {"nowhere": "x"}}, "", id="a label of no node"),
        pytest.param(
            {"nodeSelector": {"zone": 1}}, "abc", id="no text: the API server refuses the pod"
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {REQUIRED: None}}}, "abc", id="null is no affinity"
        ),
        pytest.param({"affinity": {"nodeAffinity": {REQUIRED: {}}}}, "", id="no term: no node"),
        pytest.param(required({}), "", id="an empty term: no node"),
        pytest.param(required({}, term("zone", "Exists")), "ab", id="terms are alternatives"),
        pytest.param(
            required(term("zone", "In", "one"), term("memory", "In", "many")),
            "ac",
            id="two terms: either",
        ),
        pytest.param(
            required(
                {
                    **term("zone", "Exists"),
                    **term("metadata.name", "In", "b", kind="matchFields"),
                }
            ),
            "b",
            id="labels and fields of one term: both",
        ),
        pytest.param(
            required(
                {
                    "matchExpressions": [
                        *term("zone", "Exists")["matchExpressions"],
                        *term("memory", "Gt", "16")["matchExpressions"],
                    ]
                }
            ),
            "b",
            id="requirements of one term: all",
        ),
        pytest.param(
            {"nodeSelector": {"zone": "one"}, **required(term("zone", "In", "two"))},
            "",
            id="nodeSelector and node affinity: both",
        ),
        pytest.param(required(term("zone", "In", "one", "two")), "ab", id="In: any of the values"),
        pytest.param(
            required(term("zone", "NotIn", "one")), "bc", id="NotIn: also without the key"
        ),
        pytest.param(required(term("disk", "Exists")), "b", id="Exists"),
        pytest.param(required(term("zone", "DoesNotExist")), "c", id="DoesNotExist"),
        pytest.param(required(term("memory", "Gt", "15")), "ab", id="Gt: where it is a number"),
        pytest.param(required(term("memory", "Lt", "40")), "a", id="Lt"),
        pytest.param(required(term("memory", "Lt", "0040")), "a", id="Lt: zeros in front"),
        pytest.param(required(term("nowhere", "Gt", "1")), "", id="Gt: not without the key"),
        pytest.param(
            required(term("memory", "Lt", "9223372036854775808")), "", id="Lt: no int64, no term"
        ),
        pytest.param(required(term("memory", "Gt", "1.5")), "", id="Gt: no number, no term"),
        pytest.param(required(term("memory", "Gt", "-1")), "", id="Gt: no label value, no term"),
        pytest.param(required(term("memory", "Gt", "1", "2")), "", id="Gt: one value or no term"),
        pytest.param(required(term("zone", "In")), "", id="In: a value or no term"),
        pytest.param(required(term("zone", "Exists", "one")), "", id="Exists: no value or no term"),
        pytest.param(
            required(term("zone", "DoesNotExist", "one")), "", id="DoesNotExist: the same"
        ),
        pytest.param(required(term("zone", "NotIn", "a b")), "", id="no label value: no term"),
        pytest.param(required(term("a b", "DoesNotExist")), "", id="no label key: no term"),
        pytest.param(required(term("zone", "Near", "one")), "", id="no operator: no term"),
        pytest.param(
            required(term("zone", "Near", "one"), term("zone", "In", "one")),
            "a",
            id="a refused term leaves the others",
        ),
        pytest.param(
            required({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}),
            "ab",
            id="values may be left out",
        ),
        pytest.param(
            required(term("metadata.name", "In", "c", kind="matchFields")), "c", id="a name"
        ),
        pytest.param(
            required(term("metadata.name", "NotIn", "c", kind="matchFields")),
            "ab",
            id="any name but one",
        ),
        pytest.param(
            required(term("metadata.name", "In", "nobody", kind="matchFields")),
            "",
            id="a name that no node has",
        ),
        pytest.param(
            required(term("metadata.name", "In", "a", "b", kind="matchFields")),
            "",
            id="a field has one value, or no term",
        ),
        pytest.param(
            required(term("metadata.name", "Exists", kind="matchFields")),
            "",
            id="a field is In or NotIn, or no term",
        ),
        pytest.param(
            required(term("spec.unschedulable", "NotIn", "x", kind="matchFields")),
            "abc",
            id="a field that nodes do not have is empty",
        ),
        pytest.param(
            required(term("spec.unschedulable", "In", "", kind="matchFields")),
            "abc",
            id="and equal to an empty text",
        ),
        pytest.param(
            required(term("spec.unschedulable", "In", "x", kind="matchFields")),
            "",
            id="and to no other",
        ),
    ],
)
def test_labels_and_names(spec: Raw, expected: str) -> None:
    assert allowed(spec) == expected


TAINTED = (
    Node("a", {}, (Taint("gpu", "yes"),)),
    Node("b", {}, (Taint("gpu", "yes"), Taint("team", "ml", "NoExecute"))),
    Node("c", {}, (Taint("team", "x", "PreferNoSchedule"),)),
    Node("d", {}, (Taint("node.kubernetes.io/unreachable", "", "NoExecute"),)),
    Node("e", {}, (Taint("driver.example/installing"),)),
)
STARTS = Capacity(startup_taints=("driver.example/*",))
GPU_YES = {"key": "gpu", "value": "yes"}


@pytest.mark.parametrize(
    ("tolerations", "capacity", "expected"),
    [
        pytest.param([], Capacity(), "cd", id="a preference, and what passes, keep nobody away"),
        pytest.param([], STARTS, "cde", id="a listed start-up taint passes, too"),
        pytest.param([GPU_YES], Capacity(), "acd", id="each taint must be tolerated"),
        pytest.param([GPU_YES, {"key": "team", "operator": "Exists"}], STARTS, "abcde", id="both"),
        pytest.param([{"operator": "Exists"}], Capacity(), "abcde", id="everything is tolerated"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            Capacity(),
            "acde",
            id="everything with one effect",
        ),
        pytest.param(
            [{"key": "gpu", "operator": "Exists"}, {"key": "gpu", "value": "no"}],
            Capacity(),
            "acd",
            id="any value, and one beside it",
        ),
    ],
)
def test_taints(tolerations: list[Raw], capacity: Capacity, expected: str) -> None:
    assert allowed({"tolerations": tolerations}, TAINTED, capacity) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"key": "a", "operator": "Equal", "value": "b"}, True, id="the very taint"),
        pytest.param({"key": "a", "value": "b"}, True, id="no operator is Equal"),
        pytest.param({"key": "a", "operator": "Equal", "value": "c"}, False, id="another value"),
        pytest.param({"key": "a"}, False, id="no value is an empty one"),
        pytest.param({"key": "a", "operator": "Exists"}, True, id="any value"),
        pytest.param({"key": "b", "operator": "Exists"}, False, id="another key"),
        pytest.param({"key": "", "operator": "Exists"}, True, id="any key"),
        pytest.param({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, True, id="effect"),
        pytest.param({"key": "a", "operator": "Exists", "effect": "NoExecute"}, False, id="other"),
        pytest.param({"key": "a", "operator": "Gt", "value": "5"}, True, id="a new operator: kind"),
        pytest.param({"key": "z", "operator": "Lt", "value": "5"}, False, id="but for its own key"),
        pytest.param({"key": [], "operator": "Exists"}, False, id="no text is no key"),
    ],
)
def test_toleration(toleration: Raw, expected: bool) -> None:  # noqa: FBT001
    nodes = (Node("n", {}, (Taint("a", "b"),)),)
    assert allowed({"tolerations": [toleration]}, nodes) == ("n" if expected else "")


_KEYS = ("zone", "memory", "disk", "bad key")
_LABELS = ("", "1", "2", "007", "x", "9223372036854775807", "9223372036854775808")
_drawn_nodes = st.lists(
    st.dictionaries(st.sampled_from(_KEYS[:3]), st.sampled_from(_LABELS)), min_size=1, max_size=6
)
_drawn_requirement = st.fixed_dictionaries(
    {
        "key": st.sampled_from(_KEYS),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]),
        "values": st.lists(st.sampled_from([*_LABELS, "a b"]), max_size=2),
    }
)
_drawn_field = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn", "Exists"]),
        "values": st.lists(st.sampled_from(["n0", "n1", "n9"]), min_size=1, max_size=2),
    }
)
_drawn_term = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(_drawn_requirement, max_size=3),
        "matchFields": st.lists(_drawn_field, max_size=2),
    },
)


@given(
    _drawn_nodes,
    st.dictionaries(st.sampled_from(_KEYS[:3]), st.sampled_from(_LABELS), max_size=2),
    st.none() | st.lists(_drawn_term, max_size=3),
)
def test_it_is_what_the_scheduler_says_of_each_node(
    labels: list[dict[str, str]], selector: dict[str, str], terms: list[Raw] | None
) -> None:
    nodes = [Node(f"n{position}", each) for position, each in enumerate(labels)]
    spec = {"nodeSelector": selector} | (required(*terms) if terms is not None else {})
    index = NodeIndex.of(group(nodes))
    found = fit.allowed(Pod({"spec": spec}), index, Capacity())

    assert {each.name for each in nodes if found & index.named(each.name)} == {
        each.name for each in nodes if _matches(each, selector, terms)
    }


def _matches(node: Node, selector: dict[str, str], terms: list[Raw] | None) -> bool:
    """RequiredNodeAffinity.Match of component-helpers, for one node."""
    if any(node.labels.get(key) != value for key, value in selector.items()):
        return False
    return terms is None or any(_term_matches(node, each) for each in terms)


def _term_matches(node: Node, drawn: Raw) -> bool:
    expressions, fields = drawn.get("matchExpressions", []), drawn.get("matchFields", [])
    if not expressions and not fields:
        return False
    if any(_is_refused(each) for each in expressions):
        return False
    if any(each["operator"] == "Exists" or len(each["values"]) != 1 for each in fields):
        return False
    return all(_requirement_matches(node, each) for each in expressions) and all(
        (node.name == each["values"][0]) == (each["operator"] == "In") for each in fields
    )


def _is_refused(drawn: Raw) -> bool:
    """labels.NewRequirement."""
    values: list[str] = drawn["values"]
    match drawn["operator"]:
        case "In" | "NotIn":
            wrong = not values
        case "Exists" | "DoesNotExist":
            wrong = bool(values)
        case "Gt" | "Lt":
            wrong = len(values) != 1 or _parse_int(values[0]) is None
        case _:
            wrong = True
    return wrong or not is_key(drawn["key"]) or not all(map(is_value, values))


def _requirement_matches(node: Node, drawn: Raw) -> bool:
    """labels.Requirement.Matches."""
    value, values = node.labels.get(drawn["key"]), drawn["values"]
    match drawn["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number, bound = _parse_int(value or ""), _parse_int(values[0])
    if number is None or bound is None:
        return False
    return number > bound if drawn["operator"] == "Gt" else number < bound


def _parse_int(text: str) -> int | None:
    """strconv.ParseInt(text, 10, 64)."""
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None
