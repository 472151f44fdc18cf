"""The index of nodes against a plain reading of the very nodes, for clusters of any shape."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from webhook.capacity import node_sets
from webhook.capacity.node_index import NodeIndex
from webhook.capacity.node_numbers import Total
from webhook.capacity.node_sets import as_int64
from webhook.capacity.nodes import Inventory, Node, NodeClass, group
from webhook.core.settings import Taint

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from webhook.capacity.node_sets import Table

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
HOST, PRODUCT = "kubernetes.io/hostname", "nvidia.com/gpu.product"
SERIAL, RACK, MEMORY, FEW = "example.com/serial", "rack", "nvidia.com/gpu.memory", "zone"
KEYS = (HOST, PRODUCT, SERIAL, RACK, MEMORY, FEW)
TAINTS = (Taint("nvidia.com/gpu"), Taint("sku", "gpu", "NoExecute"), Taint("x", "y"))


@dataclass(frozen=True)
class Unit:
    """What has a number in the index: a node, a node without a name, or a declared pool."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    gpus: Mapping[str, int]
    held: Mapping[str, int] = field(default_factory=dict)
    count: int = 1

    def free(self, resource: str) -> int:
        return self.gpus.get(resource, 0) - self.held.get(resource, 0)


@dataclass(frozen=True)
class Cluster:
    """Real nodes, and classes that no node stands behind."""

    nodes: tuple[Node, ...]
    others: tuple[NodeClass, ...]

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        return (*group(self.nodes), *self.others)

    @property
    def units(self) -> list[Unit]:
        """In the order of their numbers: class by class, the nodes of one by name."""
        nodes = {node.name: node for node in self.nodes}
        real = [nodes[name] for each in group(self.nodes) for name in each.nodes]
        assert sorted(node.name for node in real) == sorted(nodes)
        return [
            *(Unit(n.name, n.labels, n.taints, n.gpus, n.held) for n in real),
            *(Unit("", c.labels, c.taints, c.gpus, count=_count(c)) for c in self.others),
        ]


def _count(each: NodeClass) -> int:
    """What may be added in any number is not there yet."""
    return 0 if each.grows else each.declared or 1


_amounts = st.dictionaries(st.sampled_from([GPU, MIG]), st.sampled_from([0, 1, 2, 4, 8, 8, 64]))
_taints = st.lists(st.sampled_from(TAINTS), unique=True, max_size=2).map(tuple)
_shapes = st.tuples(_taints, _amounts, _amounts)  # taints, allocatable, held (also more than that)
_labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["a", "b", "7", "+40", ""]))
_others = st.builds(
    NodeClass,
    _labels,
    _taints,
    _amounts,
    declared=st.sampled_from([0, 0, 1, 3, 1000]),
    grows=st.sampled_from([False, False, True]),
)
# How the value of a label depends on the node: None leaves it out.
_spreads: st.SearchStrategy[Callable[[int], str | None]] = st.sampled_from(
    [
        lambda _: None,
        lambda _: "same",
        lambda n: str(n % 3 * 40536),
        lambda n: f"v{n}",
        str,
        lambda n: f"+{n}" if n % 2 else None,
        lambda n: f"pair-{n // 2}",
        lambda n: f"late-{n}" if n > 40 else "early",
    ]
)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw up to 80 nodes of a few shapes; some labels have a value for each node."""
    size = draw(st.integers(0, 80))
    spreads = {key: draw(_spreads) for key in draw(st.sets(st.sampled_from(KEYS)).map(sorted))}
    shapes = draw(st.lists(_shapes, min_size=1, max_size=5))
    mix = draw(st.randoms(use_true_random=True))
    nodes = []
    for number in range(size):
        taints, gpus, held = mix.choice(shapes)
        values = {key: spread(number) for key, spread in spreads.items()}
        labels = {key: value for key, value in values.items() if value is not None}
        nodes.append(Node(f"node-{number}", labels, taints, gpus, held if number % 3 else {}))
    mix.shuffle(nodes)
    return Cluster(tuple(nodes), tuple(draw(st.lists(_others, max_size=2))))


def where(fits: Iterable[bool]) -> int:
    """The numbers of those that fit, as the index writes sets."""
    return node_sets.of(number for number, fit in enumerate(fits) if fit)


def agrees(index: NodeIndex, units: list[Unit]) -> None:
    """Every question to the index has the answer that a walk over the units gives."""
    assert index.size == len(units)
    assert index.everything == where(True for _ in units)
    assert index.count(index.everything) == len(units)
    for number, unit in enumerate(units):
        assert not unit.name or index.named(unit.name) == 1 << number
    assert index.named("never") == index.named("") == 0
    names = {number: unit.name for number, unit in enumerate(units) if unit.name}
    assert index.all_names() == names
    for key in (*KEYS, "never"):
        label_agrees(index.label(key), [unit.labels.get(key) for unit in units])
    assert len(dict(index.taint_sets)) == len(index.taint_sets)
    assert dict(index.taint_sets) == {
        taints: where(unit.taints == taints for unit in units)
        for taints in {unit.taints for unit in units}
    }
    for resource in (GPU, MIG, "never"):
        amounts_agree(index, resource, units)
    assert index.with_gpus == where(any(unit.gpus.values()) for unit in units)
    assert index.gpu_labels == {key for u in units if any(u.gpus.values()) for key in u.labels}
    assert index.totals == totals(units)


def label_agrees(table: Table, values: list[str | None]) -> None:
    numbers = [None if value is None else as_int64(value) for value in values]
    assert table.present == where(value is not None for value in values)
    found: dict[str, int] = {}
    for number, value in enumerate(values):
        if value is not None:
            found[value] = found.get(value, 0) | 1 << number
    assert {value: table.having(value) for value in table} == found
    assert table.having("never") == 0
    for bound in (-1, 0, 7, 40, 40536):
        assert table.above(bound) == where(n is not None and n > bound for n in numbers)
        assert table.below(bound) == where(n is not None and n < bound for n in numbers)


def amounts_agree(index: NodeIndex, resource: str, units: list[Unit]) -> None:
    for amount in (-1, 0):
        assert index.at_least(resource, amount) == index.everything
        assert index.free_at_least(resource, amount) == index.everything
    for amount in (*range(1, 10), 63, 64, 65, 10**20):
        most = where(unit.gpus.get(resource, 0) >= amount for unit in units)
        assert index.at_least(resource, amount) == most
        free = where(unit.free(resource) >= amount for unit in units)
        assert index.free_at_least(resource, amount) == free


def totals(units: list[Unit]) -> dict[str, Total]:
    found = {}
    for resource in (GPU, MIG):
        offer = [unit for unit in units if unit.gpus.get(resource, 0) > 0]
        if offer:
            found[resource] = Total(
                sum(unit.count for unit in offer),
                sum(unit.count * unit.gpus[resource] for unit in offer),
                max(unit.gpus[resource] for unit in offer),
                sum(unit.held.get(resource, 0) for unit in offer),
            )
    return found


def sent(index: NodeIndex) -> NodeIndex:
    """The index as another process reads it."""
    return NodeIndex.from_data(json.loads(json.dumps(index.as_data())))


@given(clusters())
def test_the_index_says_what_a_walk_over_the_nodes_says_here_and_where_it_is_sent(
    cluster: Cluster,
) -> None:
    event(f"{len(group(cluster.nodes)) // 20 * 20} classes or more")
    index = NodeIndex.of(cluster.classes)
    arrived = sent(index)
    assert arrived == index
    assert arrived.as_data() == index.as_data()
    agrees(index, cluster.units)
    agrees(arrived, cluster.units)


@given(clusters(), st.randoms(use_true_random=True))
def test_classes_do_not_depend_on_the_order_in_which_nodes_come(
    cluster: Cluster, mix: random.Random
) -> None:
    again = list(cluster.nodes)
    mix.shuffle(again)
    assert group(again) == group(cluster.nodes)
    assert group(iter(again)) == group(cluster.nodes)
    assert json.dumps(NodeIndex.of(group(again)).as_data()) == json.dumps(
        NodeIndex.of(group(cluster.nodes)).as_data()
    )


@given(clusters())
def test_a_class_holds_nodes_that_are_alike_and_loses_nothing_of_them(cluster: Cluster) -> None:
    kept = []
    classes = group(cluster.nodes)
    for each in classes:
        held = each.held or ({},) * len(each.nodes)
        for name, unique, holds in zip(each.nodes, each.unique, held, strict=True):
            assert not unique.keys() & each.labels.keys()
            kept.append(Node(name, {**each.labels, **unique}, each.taints, each.gpus, holds))
    by_name = {node.name: node for node in cluster.nodes}
    assert {node.name: node for node in kept} == by_name
    assert len(kept) == len(by_name)
    # What is told apart only by a label that nearly each node has for itself is one class.
    alike = {(tuple(c.labels.items()), c.taints, tuple(c.gpus.items())) for c in classes}
    assert len(alike) == len(classes)


@given(clusters(), st.sampled_from([GPU, MIG]), st.integers(1, 70), st.data())
def test_more_gpus_never_take_a_node_away(
    cluster: Cluster, resource: str, amount: int, data: st.DataObject
) -> None:
    """P10: what frees GPUs, adds some or adds a node never turns `fits` into `does not fit`."""
    index = NodeIndex.of(cluster.classes)
    assert not index.at_least(resource, amount + 1) & ~index.at_least(resource, amount)
    assert not index.free_at_least(resource, amount) & ~index.at_least(resource, amount)
    if not cluster.nodes:
        return
    which = data.draw(st.integers(0, len(cluster.nodes) - 1))
    node = cluster.nodes[which]
    more = {**node.gpus, resource: node.gpus.get(resource, 0) + data.draw(st.integers(0, 9))}
    for better in (replace(node, gpus=more), replace(node, held={}), replace(node, name="new")):
        richer = Cluster((*cluster.nodes[:which], better, *cluster.nodes[which + 1 :]), ())
        if better.name == "new":
            richer = Cluster((*cluster.nodes, better), ())
        after = NodeIndex.of(richer.classes)
        for name in (each.name for each in cluster.nodes):
            for now, then in (
                (index.at_least, after.at_least),
                (index.free_at_least, after.free_at_least),
            ):
                assert not now(resource, amount) & index.named(name) or (
                    then(resource, amount) & after.named(name)
                )


def test_what_a_node_names_is_offered_whatever_the_amount() -> None:
    nodes = [
        Node("a", {}, gpus={"nvidia.com/gpu": 0}, others=("aliyun.com/gpu-mem",)),
        Node("b", {}, others=("aliyun.com/gpu-mem",)),
        Node("c", {}),
    ]
    index = NodeIndex.of(group(nodes))
    for each in (index, NodeIndex.from_data(index.as_data())):
        assert each.offers("aliyun.com/gpu-mem") == each.named("a") | each.named("b")
        assert each.offers("nvidia.com/gpu") == each.named("a")
        assert each.offers("nvidia.com/hostdev") == 0
        assert each.totals == {}, "no GPUs to place"


def test_an_index_of_nothing_answers_nothing() -> None:
    for index in (NodeIndex(), NodeIndex.of(()), sent(NodeIndex())):
        agrees(index, [])
    assert NodeIndex.of(()) == NodeIndex()


def test_a_label_that_nobody_asks_for_is_never_read() -> None:
    read: list[str] = []

    def loads(text: str) -> object:
        read.append(text)
        return json.loads(text)

    nodes = [Node(f"n{i}", {HOST: f"n{i}", FEW: "a"}, (), {GPU: i}) for i in range(3)]
    index = NodeIndex.from_data(NodeIndex.of(group(nodes)).as_data(), loads)
    assert index.with_gpus == 0b110
    assert not read
    for _ in range(2):
        assert index.label(FEW).having("a") == 0b111
        assert index.label("none").present == 0
        assert index.named("n1") == 0b010
    assert read == ['{"a": "0-2"}', index.names]


@pytest.mark.parametrize(
    ("classes", "total"),
    [
        pytest.param((NodeClass({}, (), {GPU: 4}),), Total(1, 4, 4, 0), id="a node without a name"),
        pytest.param(
            (NodeClass({}, (), {GPU: 4}, ("a", "b"), ({GPU: 1}, {})),),
            Total(2, 8, 4, 1),
            id="two nodes, one of them in use",
        ),
        pytest.param(
            (NodeClass({}, (), {GPU: 8}, declared=5), NodeClass({}, (), {GPU: 4}, ("a",))),
            Total(6, 44, 8, 0),
            id="a pool counts with all its nodes, though none may be there",
        ),
        pytest.param(
            (NodeClass({}, (), {GPU: 1}, ("a",), ({GPU: 3},)),),
            Total(1, 1, 1, 3),
            id="pods that still hold GPUs which the node has lost",
        ),
    ],
)
def test_totals(classes: tuple[NodeClass, ...], total: Total) -> None:
    assert NodeIndex.of(classes).totals == {GPU: total}
    assert Inventory((), published=sent(NodeIndex.of(classes))).index.totals == {GPU: total}


def test_a_pool_is_one_more_number_however_many_nodes_it_may_have() -> None:
    pool = NodeClass({PRODUCT: "H100"}, (TAINTS[0],), {GPU: 8}, declared=1000)
    index = NodeIndex.of((NodeClass({}, (), {}, ("a",)), pool))
    assert index.size == 2
    assert index.label(PRODUCT).having("H100") == 0b10
    assert index.at_least(GPU, 8) == index.free_at_least(GPU, 8) == index.with_gpus == 0b10
    assert index.named("a") == 0b01


def test_what_a_group_that_may_grow_is_known_for_is_not_open() -> None:
    """The name stands there with 0: no new node of the group has more of it than those it has."""
    hint = NodeClass({}, (), {GPU: 0}, open_labels=True, open_gpus=True, hint="group g")
    joins = NodeClass({}, (), {GPU: 0}, ("n",), open_labels=True, open_gpus=True)
    index = NodeIndex.of((joins, hint))
    assert node_sets.of([0]) == index.at_least(GPU, 1), "what joins may yet show any amount"
    assert node_sets.of([0, 1]) == index.at_least(MIG, 1)


def test_what_may_be_added_beyond_the_nodes_that_are_counted() -> None:
    classes = (
        NodeClass({}, (), {GPU: 8}, ("there",)),
        NodeClass({}, (), {GPU: 8}, declared=3),
        NodeClass({}, (), {GPU: 4}, grows=True),
        NodeClass({}, (), {GPU: 0}, open_gpus=True, hint="a group of nodes like those there"),
        NodeClass({}, (), {GPU: 2}, open_gpus=True, hint="a NodePool of small nodes"),
        NodeClass({}, (), {}, open_gpus=True, hint="anything"),
        NodeClass({}, (), {}, ("joins",), open_gpus=True),
        NodeClass({}, (), {GPU: 8}, ("joins-with-gpus",), open_gpus=True),
    )
    index = NodeIndex.of(classes)
    added = {amount: sorted(node_sets.numbers(index.may_add(GPU, amount))) for amount in (1, 4, 8)}
    assert added == {1: [2, 3, 4, 5, 6], 4: [2, 3, 5, 6], 8: [3, 5, 6]}
    assert sorted(node_sets.numbers(index.may_add(MIG, 1))) == [3, 4, 5, 6, 7]
    assert (index.totals[GPU].nodes, index.totals[GPU].total) == (5, 40)
