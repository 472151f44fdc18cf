"""What is not known of a node never keeps a pod away that the node as it will be can run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from webhook.capacity import fit
from webhook.capacity.node_index import ANY, NodeIndex
from webhook.capacity.nodes import Node, NodeClass, group
from webhook.core.settings import Capacity
from webhook.kube.pod import REQUIRED, Pod

Raw = dict[str, Any]

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
HOST = "kubernetes.io/hostname"
VALUES = {"zone": ["a", "b"], "nvidia.com/gpu.memory": ["7", "40"], HOST: ["n", "other"]}

_labels = st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in VALUES.items()})
_gpus = st.dictionaries(st.sampled_from([GPU, MIG]), st.sampled_from([1, 4, 8]))
_keys = st.sampled_from([*VALUES, "nowhere"])


@st.composite
def _expressions(draw: st.DrawFn) -> Raw:
    key = draw(_keys)
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    pool = VALUES.get(key, ["x"])
    values = {
        "In": draw(st.lists(st.sampled_from(pool), min_size=1, unique=True)),
        "NotIn": draw(st.lists(st.sampled_from(pool), min_size=1, unique=True)),
        "Gt": ["10"],
        "Lt": ["10"],
    }.get(operator, [])
    return {"key": key, "operator": operator, "values": values}


_names = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["n", "other", "new"]),
)
_terms = st.fixed_dictionaries(
    {"matchExpressions": st.lists(_expressions(), min_size=1, max_size=3)},
    optional={"matchFields": st.lists(_names, min_size=1, max_size=1)},
)


def _pod(selector: dict[str, str], terms: list[Raw]) -> Pod:
    required = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}} if terms else {}
    return Pod({"spec": {"nodeSelector": selector, "affinity": required}})


_pods = st.builds(_pod, _labels, st.lists(_terms, max_size=2))
_asked = st.dictionaries(st.sampled_from([GPU, MIG]), st.sampled_from([1, 4, 8, 9]), max_size=2)
PLAIN = Node("other", {HOST: "other", "zone": "a"})


def fits(pod: Pod, asked: dict[str, int], *classes: NodeClass) -> bool:
    """Whether any of the nodes does, in this process or in another one."""
    index = NodeIndex.of(classes)
    sent = NodeIndex.from_data(json.loads(json.dumps(index.as_data())))
    here, there = (
        bool(fit.enough(asked, each) & fit.allowed(pod, each, Capacity())) for each in (index, sent)
    )
    assert here is there
    return here


def _part(data: st.DataObject, whole: dict[str, Any]) -> dict[str, Any]:
    kept = data.draw(st.sets(st.sampled_from(sorted(whole)))) if whole else set()
    return {key: value for key, value in whole.items() if key in kept}


@given(_labels, _gpus, _pods, _asked, st.data())
def test_a_node_that_joins_may_get_whatever_it_lacks(
    labels: dict[str, str], gpus: dict[str, int], pod: Pod, asked: dict[str, int], data: Any
) -> None:
    labels = {**labels, HOST: "n"}
    whole = Node("n", labels, (), gpus)
    assume(fits(pod, asked, *group([PLAIN, whole])))
    now = Node("n", _part(data, labels), (), _part(data, gpus), joining=True)
    assert fits(pod, asked, *group([PLAIN, now]))


@given(_labels, _labels, _gpus, _gpus, _pods, _asked)
def test_a_node_that_lost_something_may_get_it_back(
    before: dict[str, str],
    after: dict[str, str],
    had: dict[str, int],
    has: dict[str, int],
    pod: Pod,
    asked: dict[str, int],
) -> None:
    assume("other" not in (before.get(HOST), after.get(HOST)))  # the name of another node
    whole = Node("n", {**after, **before}, (), had)
    assume(fits(pod, asked, *group([PLAIN, whole])))
    lost = {key: (value,) for key, value in before.items() if after.get(key) != value}
    most = {name: amount for name, amount in had.items() if amount > has.get(name, 0)}
    added = any(key not in before for key in after)
    event(f"lost {len(lost)} labels and {len(most)} amounts, added some: {added}")
    now = Node("n", after, (), has, most=most, former=lost)
    assert fits(pod, asked, *group([PLAIN, now]))


@given(_labels, _gpus, _pods, _asked, st.data())
def test_a_pool_that_names_some_labels_may_have_any_others(
    labels: dict[str, str], gpus: dict[str, int], pod: Pod, asked: dict[str, int], data: Any
) -> None:
    assume(labels.get(HOST) != "other")  # the name of a node that is there
    whole = Node("new", {HOST: "new", **labels}, (), gpus)
    assume(fits(pod, asked, *group([PLAIN, whole])))
    pool = NodeClass(_part(data, labels), (), gpus, declared=2, open_labels=True)
    assert fits(pod, asked, *group([PLAIN]), pool)
    own = ({HOST: (ANY,)},)
    shape = NodeClass(
        {k: v for k, v in labels.items() if k != HOST}, (), gpus, removed=1, former=own
    )
    assert fits(pod, asked, *group([PLAIN]), shape)
    if _asks_only(asked, gpus):
        hint = replace(pool, declared=0, hint="NodePool x", gpus={}, open_gpus=True)
        assert fits(pod, asked, *group([PLAIN]), hint)


def _asks_only(asked: dict[str, int], gpus: dict[str, int]) -> bool:
    return all(gpus.get(name, 0) >= amount for name, amount in asked.items())
