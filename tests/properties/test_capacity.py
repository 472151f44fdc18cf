"""P10: more GPUs, or more free ones, never turn a pod that may run into one that may not.

Of a cluster that offers GPUs already: what is denied of one GPU node is not denied of none, since
a cluster without any GPU is one of which too little is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.engine import run
from webhook.capacity.nodes import Inventory, Node, group
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import Taint
from webhook.kube.pod import REQUIRED
from webhook.rules import POLICY

pytestmark = pytest.mark.programs

Raw = dict[str, Any]

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
_names = st.sampled_from([GPU, SLICE])
_amounts = st.dictionaries(_names, st.integers(0, 6), max_size=2)
_offers = st.fixed_dictionaries({GPU: st.integers(2, 8)}, optional={SLICE: st.integers(0, 4)})
_labels = st.fixed_dictionaries({}, optional={"zone": st.sampled_from("ab")})
_taints = st.sampled_from([(), (), (Taint("gpu"),), (Taint("team", "x", "NoExecute"),)])


@dataclass(frozen=True)
class Growth:
    """What becomes of one node: more of it, and less of that held by pods."""

    node: int
    name: str
    more: int
    given_back: int


_nodes = st.lists(
    st.builds(Node, st.just(""), _labels, _taints, _offers.map(dict), _amounts.map(dict)),
    min_size=1,
    max_size=4,
)
_growth = st.lists(
    st.builds(Growth, st.integers(0, 5), _names, st.integers(0, 6), st.integers(0, 4)),
    min_size=1,
    max_size=3,
)
_asks = st.fixed_dictionaries({GPU: st.integers(1, 4)}, optional={SLICE: st.just(1)})
_containers = st.lists(
    st.builds(lambda amounts: {"resources": {"limits": amounts}}, _asks), min_size=1, max_size=2
)
_terms = st.lists(
    st.fixed_dictionaries(
        {"key": st.just("zone"), "operator": st.sampled_from(["In", "NotIn"])}
        | {"values": st.just(["a"])}
    ),
    min_size=1,
    max_size=2,
).map(lambda found: [{"matchExpressions": [each]} for each in found])
_specs = st.fixed_dictionaries(
    {"containers": _containers},
    optional={
        "nodeSelector": st.fixed_dictionaries({"zone": st.sampled_from("ab")}),
        "tolerations": st.just([{"key": "gpu", "operator": "Exists"}]),
        "affinity": _terms.map(
            lambda terms: {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
        ),
    },
)


def grown(nodes: list[Node], growth: list[Growth]) -> list[Node]:
    """The cluster with more GPUs on some nodes, or on a new one."""
    after = list(nodes)
    for each in growth:
        if each.node >= len(after):
            after.append(Node("new", {}, (), {each.name: each.more}))
            continue
        node = after[each.node]
        gpus = {**node.gpus, each.name: node.gpus.get(each.name, 0) + each.more}
        held = {**node.held, each.name: max(0, node.held.get(each.name, 0) - each.given_back)}
        after[each.node] = replace(node, gpus=gpus, held=held)
    return after


def said(spec: Raw, nodes: list[Node]) -> tuple[bool, set[str]]:
    """Whether the pod is denied, and the codes of all that is said of it."""
    named = [replace(node, name=f"n{position}") for position, node in enumerate(nodes)]
    cx = Context(inventory=Inventory(group(named)), modes=Modes(Mode.ENFORCE))
    verdict = run(POLICY, {"metadata": {}, "spec": spec}, cx)
    assert verdict.failed == ()
    found = verdict.findings
    return any(each.action == "denied" for each in found), {each.code for each in found}


@given(_specs, _nodes, _growth)
def test_more_gpus_never_turn_allow_into_deny(
    spec: Raw, nodes: list[Node], growth: list[Growth]
) -> None:
    denied, codes = said(spec, nodes)
    denied_after, codes_after = said(spec, grown(nodes, growth))
    event(f"{'denied' if denied else 'allowed'}, then {'denied' if denied_after else 'allowed'}")
    event(f"{sorted(codes)}, then {sorted(codes_after)}")

    assert denied or not denied_after
    if not codes:
        assert not codes_after, "what has room keeps it"
