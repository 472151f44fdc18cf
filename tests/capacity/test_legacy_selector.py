from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.pods import GPU, LABEL, PRODUCT, gpu_nodes, modern_pod
from webhook.capacity.fit import chosen
from webhook.capacity.legacy_selector import translated
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.modes import IGNORE, Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import Settings, Workloads
from webhook.kube.pod import REQUIRED, Pod

if TYPE_CHECKING:
    Raw = dict[str, Any]

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
PCIE, SXM2 = "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB"
NODES = gpu_nodes(
    {PRODUCT: "Tesla-K80", ZONE: "a"}, {PRODUCT: PCIE, ZONE: "a"}, {PRODUCT: SXM2, ZONE: "b"}
)
K80, P100_PCIE, P100_SXM2 = 1, 2, 4  # as bits
OLD = Inventory((*NODES.classes, NodeClass({LABEL: "P100"}, (), {GPU: 4})))
MANY = [
    {"matchExpressions": [{"key": "z", "operator": "In", "values": [str(n)]}]} for n in range(101)
]


def in_zone(*zones: str) -> list[Raw]:
    return [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in zones
    ]


@pytest.mark.parametrize(
    ("selector", "terms", "inventory", "nodes"),
    [
        pytest.param({LABEL: "K80"}, [], NODES, K80, id="one value"),
        pytest.param({LABEL: "P100"}, [], NODES, P100_PCIE | P100_SXM2, id="several values"),
        pytest.param({LABEL: "P100"}, in_zone("b"), NODES, P100_SXM2, id="beside a term"),
        pytest.param({LABEL: "P100", OLD_ZONE: "a"}, [], NODES, P100_PCIE, id="a zone of then"),
        pytest.param({OLD_ZONE: "a", ZONE: "a"}, [], NODES, K80 | P100_PCIE, id="a zone twice"),
        pytest.param({OLD_ZONE: "a", ZONE: "b"}, [], NODES, 0, id="two zones"),
        pytest.param({LABEL: "P100"}, MANY, NODES, 0, id="too many terms: it stays"),
        pytest.param({LABEL: "P100"}, [], OLD, 8, id="nodes carry it"),
        pytest.param({LABEL: "odd"}, [], NODES, 0, id="nobody knows it"),
    ],
)
def test_the_pods_of_a_template_will_choose_these_nodes(
    selector: Raw, terms: list[Raw], inventory: Inventory, nodes: int
) -> None:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}} if terms else {}
    pod = Pod(modern_pod(nodeSelector=selector, affinity=affinity))
    settings = Settings(workloads=Workloads(repair=True))
    cx = Context(settings, inventory, template=True)
    assert chosen(translated(pod, cx), inventory.index) == nodes
    if inventory is OLD:  # a legacy pod gets both
        both = chosen(translated(pod, Context(inventory=OLD, stuck=True)), OLD.index)
        assert both == P100_PCIE | P100_SXM2 | nodes


@pytest.mark.parametrize(
    "cx",
    [
        pytest.param(Context(inventory=NODES, template=True), id="of today"),
        pytest.param(
            Context(inventory=NODES, stuck=True, modes=Modes(rules={"GPU105": Mode.WARN})),
            id="the rule is not in force",
        ),
    ],
)
def test_where_nothing_is_translated_the_pod_stays(cx: Context) -> None:
    pod = Pod(modern_pod(nodeSelector={LABEL: "K80"}))
    assert translated(pod, cx) is pod


def test_a_pod_that_opted_out_keeps_its_label() -> None:
    raw = modern_pod(nodeSelector={LABEL: "K80"})
    cx = Context(inventory=NODES, stuck=True)
    assert translated(Pod(raw), cx).node_selector != {LABEL: "K80"}
    assert translated(Pod(raw), replace(cx, pods_opted_out=True)).node_selector == {LABEL: "K80"}
    raw["metadata"]["labels"] = {IGNORE: "true"}
    assert translated(Pod(raw), cx).node_selector == {LABEL: "K80"}
