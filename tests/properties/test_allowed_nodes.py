"""fit.allowed against a port of kube-scheduler's filters that asks each raw node in turn.

The port follows 1.36.3 (the same in 1.32): plugins nodeaffinity (PreFilter and Filter) and
tainttoleration, component-helpers nodeaffinity.go, apimachinery labels/selector.go, api
core/v1/toleration.go. It shares no code with what it judges, and reads what the API server would
refuse as the scheduler's types do.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import event, given
from hypothesis import strategies as st

from webhook.capacity import fit
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import group
from webhook.core.settings import Capacity, Settings
from webhook.inventory import object_facts
from webhook.kube.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Callable

    Raw = dict[str, Any]
    Filter = Callable[[Raw], bool]

HOST, ZONE, RACK, MEMORY, PRODUCT = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "rack",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.product",
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
STARTUP = "example.com/starting"
CAPACITY = Capacity(startup_taints=(STARTUP,))


# ------------------------------------------------------------------- the port


@dataclass(frozen=True)
class Term:
    """nodeSelectorTerm: None where it was left out."""

    labels: list[Filter] | None
    fields: list[Filter] | None

    def matches(self, node: Raw) -> bool:
        labels = node["metadata"].get("labels") or {}
        if self.labels is not None and not all(each(labels) for each in self.labels):
            return False
        name = {"metadata.name": node["metadata"]["name"]}
        return self.fields is None or all(each(name) for each in self.fields)


def node_affinity(pod: Raw) -> Filter:
    """The plugin nodeaffinity: PreFilter, then Filter for the nodes that it left."""
    spec = pod["spec"]
    selector = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(REQUIRED)
    raw_terms = [each or {} for each in (required or {}).get("nodeSelectorTerms") or []]
    names = names_of(raw_terms)
    parsed = [parsed_term(each) for each in raw_terms if requirements(each)]

    def fits(node: Raw) -> bool:
        if names is not None and node["metadata"]["name"] not in names:
            return False
        labels = node["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in selector.items()):
            return False
        return required is None or any(each is not None and each.matches(node) for each in parsed)

    return fits


def names_of(terms: list[Raw]) -> set[str] | None:
    """The nodes that PreFilter leaves; None leaves all."""
    names: set[str] = set()
    for term in terms:
        said = [
            set(each.get("values") or [])
            for each in term.get("matchFields") or []
            if each.get("key") == "metadata.name" and each.get("operator") == "In"
        ]
        if not said:
            return None
        names |= set.intersection(*said)
    return names if terms else None


def requirements(term: Raw) -> list[Raw]:
    return [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]


def parsed_term(term: Raw) -> Term | None:
    """newNodeSelectorTerm: None where any of its requirements cannot be parsed."""
    parsed: dict[str, list[Filter] | None] = {}
    for kind, parse in (("matchExpressions", label_filter), ("matchFields", field_filter)):
        found: list[Filter] = []
        for each in term.get(kind) or []:
            one = parse(each.get("key") or "", each.get("operator") or "", each.get("values") or [])
            if one is None:
                return None
            found.append(one)
        parsed[kind] = found or None
    return Term(parsed["matchExpressions"], parsed["matchFields"])


def label_filter(key: str, operator: str, values: list[str]) -> Filter | None:
    """labels.NewRequirement and Requirement.Matches."""
    if not qualified_name(key) or not all(label_value(value) for value in values):
        return None
    if operator in ("In", "NotIn"):
        if not values:
            return None
        if operator == "In":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: key not in labels or labels[key] not in values
    if operator in ("Exists", "DoesNotExist"):
        if values:
            return None
        return lambda labels: (key in labels) is (operator == "Exists")
    if operator in ("Gt", "Lt"):
        bound = parse_int(values[0]) if len(values) == 1 else None
        if bound is None:
            return None

        def compares(labels: Raw) -> bool:
            number = parse_int(labels[key]) if key in labels else None
            if number is None:
                return False
            return number > bound if operator == "Gt" else number < bound

        return compares
    return None


def field_filter(key: str, operator: str, values: list[str]) -> Filter | None:
    """fields.OneTermEqualSelector and its opposite: a field that is not there is empty."""
    if operator not in ("In", "NotIn") or len(values) != 1:
        return None
    return lambda fields: (fields.get(key, "") == values[0]) is (operator == "In")


def qualified_name(key: str) -> bool:
    """content.IsLabelKey: a DNS subdomain of 253 at most, a slash, and a name of 63 at most."""
    prefix, slash, name = key.rpartition("/")
    if slash:
        part = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
        if len(prefix) > 253 or not re.fullmatch(rf"{part}(\.{part})*", prefix):
            return False
    return len(name) <= 63 and bool(re.fullmatch("[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", name))


def label_value(value: str) -> bool:
    return len(value) <= 63 and bool(
        re.fullmatch("([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?", value)
    )


def parse_int(text: str) -> int | None:
    """strconv.ParseInt(text, 10, 64)."""
    if not re.fullmatch("[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number <= 2**63 - 1 else None


def taint_toleration(pod: Raw, *, comparisons: bool = False) -> Filter:
    """The plugin tainttoleration: the first taint that is not tolerated keeps the pod away."""
    tolerations = pod["spec"].get("tolerations") or []

    def fits(node: Raw) -> bool:
        return all(
            any(tolerates(each, taint, comparisons=comparisons) for each in tolerations)
            for taint in node["spec"].get("taints") or []
            if taint["effect"] in ("NoSchedule", "NoExecute")
        )

    return fits


def tolerates(toleration: Raw, taint: Raw, *, comparisons: bool) -> bool:
    """ToleratesTaint, with the feature of KEP-5471 on or off."""
    for member in ("effect", "key"):
        if toleration.get(member) and toleration[member] != taint[member]:
            return False
    value, there = toleration.get("value") or "", taint.get("value") or ""
    operator = toleration.get("operator") or "Equal"
    if operator in ("Lt", "Gt") and comparisons:
        bound, number = parse_int(value), parse_int(there)
        if bound is None or number is None:
            return False
        return number < bound if operator == "Lt" else number > bound
    return operator == "Exists" or (operator == "Equal" and value == there)


# ------------------------------------------------------------------- clusters and pods


_VALUES = {
    ZONE: ["a", "b", "c", ""],
    RACK: [*map(str, range(50))],
    MEMORY: ["0", "007", "40536", "81920", "1.5", "many", "9223372036854775807", "9" * 19, ""],
    PRODUCT: ["Tesla-K80", "Tesla-A100", "40536"],
}
_TAINTS = [
    {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    {"key": "sku", "value": "gpu", "effect": "NoExecute"},
    {"key": "dedicated", "value": "950", "effect": "NoSchedule"},
    {"key": "soft", "value": "x", "effect": "PreferNoSchedule"},
]
# What comes and goes by itself: to "can it ever run here" it is not there.
_PASSING = [
    {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
    {"key": "karpenter.sh/disrupted", "effect": "NoExecute"},
    {"key": STARTUP, "value": "yes", "effect": "NoSchedule"},
]


@st.composite
def clusters(draw: st.DrawFn) -> list[Raw]:
    """Draw up to 60 raw nodes; those of more than 32 have labels that each has for itself."""
    mix = draw(st.randoms(use_true_random=True))
    nodes: list[Raw] = []
    for number in range(draw(st.integers(1, 8) | st.integers(30, 60))):
        name = f"node-{number}"
        labels = {k: mix.choice(vs) for k, vs in _VALUES.items() if mix.random() < 0.8}
        labels |= {HOST: name if mix.random() < 0.9 else "shared"}
        taints = [each for each in _TAINTS if mix.random() < 0.12]
        taints += [each for each in _PASSING if mix.random() < 0.08]
        nodes.append(
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints} if taints else {},
                "status": {"allocatable": {"nvidia.com/gpu": str(mix.choice([1, 4, 8]))}},
            }
        )
    return nodes


_names = st.integers(0, 9).map("node-{}".format)
_wild = st.sampled_from(["+5", "-1", "a b", "x" * 64, "none", "10", "0x10"])


def _expression(key: str) -> st.SearchStrategy[Raw]:
    values = st.sampled_from(_VALUES[key]) if key in _VALUES else _names
    several = st.lists(values | values | values | _wild, max_size=4)
    one = st.lists(values | values | values | _wild, min_size=1, max_size=1)
    likely: st.SearchStrategy[Any] = st.one_of(
        st.tuples(st.sampled_from(["In", "NotIn", "In", "NotIn"]), several),
        st.tuples(st.sampled_from(["Exists", "DoesNotExist"]), st.sampled_from([[], None])),
        st.tuples(st.sampled_from(["Gt", "Lt"]), one),
        st.tuples(st.sampled_from(["Exists", "Gt", "Lt", "Equals", "", None]), several),
    )
    return likely.map(lambda drawn: {"key": key, "operator": drawn[0], "values": drawn[1]})


_expressions = st.sampled_from(
    [HOST, ZONE, RACK, MEMORY, MEMORY, PRODUCT, "none", "no key"]
).flatmap(_expression)
_fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.name", "metadata.namespace", ""]),
        "operator": st.sampled_from(["In", "In", "NotIn", "Exists"]),
        "values": st.lists(_names, min_size=1, max_size=1)
        | st.lists(_names | st.just(""), max_size=2),
    }
)
_terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(_expressions, max_size=3) | st.none(),
        "matchFields": st.lists(_fields, max_size=2) | st.none(),
    },
)
_one_requirement = _expressions.map(lambda drawn: {"matchExpressions": [drawn]}) | _fields.map(
    lambda drawn: {"matchFields": [drawn]}
)
_affinities: st.SearchStrategy[Any] = st.sampled_from(
    [None, {}, {"nodeAffinity": None}, {"nodeAffinity": {}}]
) | st.lists(_terms | _terms | _terms | st.none(), max_size=4).map(
    lambda terms: {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
)
_selectors = st.none() | st.dictionaries(
    st.sampled_from([*_VALUES]), st.just(0), max_size=2
).flatmap(lambda keys: st.fixed_dictionaries({key: st.sampled_from(_VALUES[key]) for key in keys}))


def _tolerations(*operators: str | None) -> st.SearchStrategy[list[Raw] | None]:
    taints = [*_TAINTS, {"key": "", "value": "1000", "effect": ""}, {"key": "x", "value": None}]
    one = st.builds(
        lambda taint, left_out, operator: {
            **{key: value for key, value in taint.items() if key not in left_out},
            "operator": operator,
        },
        st.sampled_from(taints),
        st.sets(st.sampled_from(["effect", "value", "key"]), max_size=1),
        st.sampled_from(operators),
    )
    return st.none() | st.lists(one, max_size=5)


def _pods(*operators: str | None) -> st.SearchStrategy[Raw]:
    spec = {"nodeSelector": _selectors, "affinity": _affinities}
    return st.fixed_dictionaries(
        {"spec": st.fixed_dictionaries({"tolerations": _tolerations(*operators)}, optional=spec)}
    )


# Of many requirements only few nodes are left, and one that is misread makes no difference.
_plain_pods = _one_requirement.map(
    lambda term: {
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}},
        }
    }
)
_known = ("Exists", "Exists", "Equal", "", None)


def index_of(nodes: list[Raw]) -> NodeIndex:
    """The way from the API server to a worker."""
    index = NodeIndex.of(group(object_facts.node(each, Settings()) for each in nodes))
    return NodeIndex.from_data(json.loads(json.dumps(index.as_data())))


def allowed(pod: Raw, nodes: list[Raw]) -> list[str]:
    """The names of the nodes that the pod allows, by the index."""
    return named(pod, nodes, index_of(nodes))


def named(pod: Raw, nodes: list[Raw], index: NodeIndex) -> list[str]:
    found = fit.allowed(Pod(pod), index, CAPACITY)
    assert not found & ~index.everything
    names = [node["metadata"]["name"] for node in nodes]
    assert index.count(found) == sum(bool(found & index.named(name)) for name in names)
    return [name for name in names if found & index.named(name)]


def that_fit(nodes: list[Raw], *filters: Filter) -> list[str]:
    """The names of the nodes that pass every filter, with nothing on them that will pass by."""
    passing = {each["key"] for each in _PASSING}
    lasting = [
        {
            **node,
            "spec": {
                "taints": [t for t in node["spec"].get("taints", ()) if t["key"] not in passing]
            },
        }
        for node in nodes
    ]
    return [node["metadata"]["name"] for node in lasting if all(each(node) for each in filters)]


@given(clusters(), st.lists(_pods(*_known) | _plain_pods, min_size=8, max_size=12))
def test_a_pod_allows_the_nodes_that_the_schedulers_filters_leave(
    nodes: list[Raw], pods: list[Raw]
) -> None:
    index = index_of(nodes)
    for pod in pods:
        expected = that_fit(nodes, node_affinity(pod), taint_toleration(pod))
        event("none" if not expected else "all" if len(expected) == len(nodes) else "some")
        assert named(pod, nodes, index) == expected


@given(clusters(), _pods("Lt", "Gt", "Near", "Exists", "Equal"))
def test_an_operator_that_a_cluster_may_have_switched_on_never_costs_a_node(
    nodes: list[Raw], pod: Raw
) -> None:
    found = set(allowed(pod, nodes))
    for comparisons in (False, True):
        fits = that_fit(nodes, node_affinity(pod), taint_toleration(pod, comparisons=comparisons))
        assert found >= set(fits)


@given(clusters(), _pods(*_known))
def test_nodes_that_have_a_taint_more_for_now_are_the_same_nodes(
    nodes: list[Raw], pod: Raw
) -> None:
    cordoned = [
        {**node, "spec": {"taints": [*node["spec"].get("taints", []), *_PASSING]}} for node in nodes
    ]
    assert allowed(pod, cordoned) == allowed(pod, nodes)


@given(clusters(), clusters(), _pods(*_known))
def test_more_nodes_never_take_one_away(nodes: list[Raw], more: list[Raw], pod: Raw) -> None:
    others = [{**n, "metadata": {**n["metadata"], "name": f"new-{i}"}} for i, n in enumerate(more)]
    assert [each for each in allowed(pod, [*nodes, *others]) if each.startswith("node-")] == (
        allowed(pod, nodes)
    )


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["In", "Gt", ZONE, "1", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["key", "operator", "values", "nodeSelectorTerms", "matchFields", ZONE]
            ),
            inner,
        )
    ),
    max_leaves=8,
)


@given(clusters(), _pods(*_known), st.data())
def test_what_no_api_server_lets_in_is_judged_without_an_accident(
    nodes: list[Raw], pod: Raw, data: st.DataObject
) -> None:
    pod = deepcopy(pod)  # drawn parts may be those of another pod
    here: Any = pod["spec"]
    while True:
        places = list(here) if isinstance(here, dict) else list(range(len(here)))
        place = data.draw(st.sampled_from(places))
        if not isinstance(here[place], dict | list) or not here[place] or data.draw(st.booleans()):
            break
        here = here[place]
    here[place] = data.draw(_json)
    assert set(allowed(pod, nodes)) <= {node["metadata"]["name"] for node in nodes}
