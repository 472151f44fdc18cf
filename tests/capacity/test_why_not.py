"""Why a pod can never run: what is said first, the numbers, and the cure."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.capacity.node_index import NodeIndex
from webhook.capacity.nodes import Node, NodeClass, group
from webhook.capacity.why_not import LONGEST, counted, in_words, short, why_never
from webhook.core.settings import Capacity, Settings, Taint
from webhook.kube.pod import REQUIRED, Pod

Raw = dict[str, Any]

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
MODEL = "nvidia.com/gpu.product"
ML = Taint("dedicated", "ml")
LEGACY = "alpha.kubernetes.io/nvidia-gpu-name"
WEB = Taint("dedicated", "web", "NoExecute")
BIG = (
    Node("big-1", {MODEL: "Tesla-A100", "pool": "big", "zone": "a", "slots": "2"}, (), {GPU: 8}),
    Node("big-2", {MODEL: "Tesla-A100", "pool": "big", "zone": "b", "slots": "1"}, (), {GPU: 8}),
)
SMALL = (
    Node("small-1", {MODEL: "Tesla-T4", "pool": "small", "zone": "a"}, (), {GPU: 4}),
    Node("small-2", {"pool": "tiny", "zone": "a"}, (), {GPU: 2, SLICE: 7}),
)
PLAIN = (Node("plain", {"pool": "web", "zone": "c"}),)
CLUSTER = (*BIG, *SMALL, *PLAIN)


def why(amounts: dict[str, int], spec: Raw, nodes: tuple[Node, ...] = CLUSTER) -> str:
    settings = Settings(capacity=Capacity(startup_taints=("starting",)))
    return why_never(Pod({"spec": spec}), amounts, NodeIndex.of(group(nodes)), settings)


def required(*terms: Raw) -> Raw:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def needs(key: str, operator: str, *values: str) -> Raw:
    return {"key": key, "operator": operator, "values": list(values)}


def tainted(*taints: tuple[Taint, ...]) -> tuple[Node, ...]:
    return tuple(Node(f"t-{i}", {"zone": f"z{i}"}, each, {GPU: 8}) for i, each in enumerate(taints))


@pytest.mark.parametrize(
    ("amounts", "nodes", "expected"),
    [
        pytest.param(
            {GPU: 1},
            PLAIN,
            "requests 1 nvidia.com/gpu, and no node here offers a GPU (1 node). Does the device "
            "plugin run? `kubectl describe nodes` shows what nodes offer.",
            id="nobody offers a GPU",
        ),
        pytest.param(
            {"nvidia.com/gpu.shared": 1},
            CLUSTER,
            "requests 1 nvidia.com/gpu.shared, which no node here offers; the cluster has "
            "nvidia.com/gpu and nvidia.com/mig-1g.5gb. Ask for what it has.",
            id="nobody offers that name",
        ),
        pytest.param(
            {GPU: 23},
            CLUSTER,
            "requests 23 nvidia.com/gpu on one node; the whole cluster has 22 on 4 nodes, the "
            "largest (Tesla-A100) 8. Ask for 8 or split the work.",
            id="more than the whole cluster has",
        ),
        pytest.param(
            {GPU: 9},
            CLUSTER,
            "requests 9 nvidia.com/gpu on one node; the largest of 4 GPU nodes (Tesla-A100) has 8. "
            "Ask for 8 or split the work.",
            id="more than any one node has",
        ),
        pytest.param(
            {GPU: 99},
            BIG[:1],
            "requests 99 nvidia.com/gpu on one node; the only GPU node (Tesla-A100) has 8. Ask for "
            "8 or split the work.",
            id="the whole cluster is one node",
        ),
        pytest.param(
            {SLICE: 8},
            CLUSTER,
            "requests 8 nvidia.com/mig-1g.5gb on one node; the only GPU node has 7. Ask for 7 or "
            "split the work.",
            id="the largest node names no model",
        ),
        pytest.param(
            {GPU: 9},
            (*BIG, Node("x", {MODEL: "Tesla-V100"}, (), {GPU: 8})),
            "requests 9 nvidia.com/gpu on one node; the largest of 3 GPU nodes has 8. Ask for 8 or "
            "split the work.",
            id="the largest nodes are of several models",
        ),
        pytest.param(
            {GPU: 9, SLICE: 99},
            (*CLUSTER, Node("slices", {}, (), {SLICE: 1})),
            "requests 99 nvidia.com/mig-1g.5gb on one node; the whole cluster has 8 on 2 nodes, "
            "the largest 7. Ask for 7 or split the work.",
            id="the whole cluster comes first, whatever the name",
        ),
        pytest.param(
            {GPU: 8, SLICE: 1},
            CLUSTER,
            "requests 8 nvidia.com/gpu and 1 nvidia.com/mig-1g.5gb on one node; none has both. Use "
            "a pod for each.",
            id="no node has both names",
        ),
        pytest.param(
            {GPU: 4, SLICE: 1, "x/gpu": 1},
            (*CLUSTER, Node("x", {}, (), {"x/gpu": 1})),
            "requests 4 nvidia.com/gpu, 1 nvidia.com/mig-1g.5gb and 1 more on one node; none has "
            "all of them. Use a pod for each.",
            id="no node has all three",
        ),
    ],
)
def test_too_much(amounts: dict[str, int], nodes: tuple[Node, ...], expected: str) -> None:
    assert why(amounts, {"nodeSelector": {"pool": "nowhere"}}, nodes) == expected


@pytest.mark.parametrize(
    ("amounts", "spec", "expected"),
    [
        pytest.param(
            {GPU: 8},
            {"nodeSelector": {"zone": "a", "pool": "huge"}},
            "requests 8 nvidia.com/gpu, but no node matches nodeSelector pool=huge. Write big: 2 "
            "nodes have enough GPUs.",
            id="a value that no node has",
        ),
        pytest.param(
            {GPU: 1},
            {"nodeSelector": {"gpu": "yes"}},
            "requests 1 nvidia.com/gpu, but no node matches nodeSelector gpu=yes. Remove it: 4 "
            "nodes have enough GPUs, without that label.",
            id="a label that no node has",
        ),
        pytest.param(
            {GPU: 8},
            {"nodeSelector": {LEGACY: "Tesla-A100"}},
            f"requests 8 nvidia.com/gpu, but no node matches nodeSelector {LEGACY}=Tesla-A100. "
            "Write nvidia.com/gpu.product: Tesla-A100. Then 2 nodes have enough GPUs.",
            id="a legacy label whose model nodes have under today's",
        ),
        pytest.param(
            {GPU: 4},
            required({"matchExpressions": [needs(LEGACY, "In", "Tesla T4", "Tesla-A100")]}),
            f"requests 4 nvidia.com/gpu, but no node matches node affinity {LEGACY} In [Tesla T4, "
            "Tesla-A100]. Write nvidia.com/gpu.product: Tesla-A100 or Tesla-T4. Then 3 nodes have "
            "enough GPUs.",
            id="two such models, one in another spelling",
        ),
        pytest.param(
            {GPU: 8},
            {"nodeSelector": {LEGACY: "Tesla-T4"}},
            f"requests 8 nvidia.com/gpu, but no node matches nodeSelector {LEGACY}=Tesla-T4. "
            "Remove it: 2 nodes have enough GPUs, without that label.",
            id="a legacy label whose model has too few",
        ),
        pytest.param(
            {GPU: 8},
            {"nodeSelector": {"pool": "small"}},
            "requests 8 nvidia.com/gpu; nodeSelector pool=small allows 1 node, with at most 4 of "
            "nvidia.com/gpu. Write big: 2 nodes have enough GPUs.",
            id="nodes that have fewer",
        ),
        pytest.param(
            {GPU: 2},
            {"nodeSelector": {"pool": "web"}},
            "requests 2 nvidia.com/gpu; nodeSelector pool=web allows 1 node, with none of "
            "nvidia.com/gpu. Write big, small or 1 more: 4 nodes have enough GPUs.",
            id="nodes that have none",
        ),
        pytest.param(
            {GPU: 1, SLICE: 1},
            {"nodeSelector": {"pool": "big"}},
            "requests 1 nvidia.com/gpu and 1 nvidia.com/mig-1g.5gb; nodeSelector pool=big allows 2 "
            "nodes, with none of nvidia.com/mig-1g.5gb. Write tiny: 1 node has enough GPUs.",
            id="nodes that lack one of two names",
        ),
        pytest.param(
            {GPU: 8},
            required({"matchExpressions": [needs("pool", "In", "small", "web")]}),
            "requests 8 nvidia.com/gpu; node affinity pool In [small, web] allows 2 nodes, with at "
            "most 4 of nvidia.com/gpu. Write big: 2 nodes have enough GPUs.",
            id="a requirement of the only term",
        ),
        pytest.param(
            {GPU: 8},
            required({"matchExpressions": [needs("slots", "Gt", "2")]}),
            "requests 8 nvidia.com/gpu, but no node matches node affinity slots Gt [2]. Change it: "
            "2 nodes have enough GPUs.",
            id="a requirement without a value to write",
        ),
        pytest.param(
            {GPU: 8},
            required({"matchFields": [needs("metadata.name", "In", "small-1")]}),
            "requests 8 nvidia.com/gpu; node affinity metadata.name In [small-1] allows 1 node, "
            "with at most 4 of nvidia.com/gpu. Change it: 2 nodes have enough GPUs.",
            id="the name of a node",
        ),
        pytest.param(
            {GPU: 8},
            required(
                {"matchExpressions": [needs("pool", "In", "small")]},
                {"matchExpressions": [needs("pool", "In", "web")]},
            ),
            "requests 8 nvidia.com/gpu; of 2 nodes with enough, the required node affinity allows "
            "none. Change it.",
            id="several terms: none alone is to blame",
        ),
        pytest.param(
            {GPU: 8},
            {"nodeSelector": {"zone": "a", "slots": "1"}},
            "requests 8 nvidia.com/gpu; of 2 nodes with enough, none has all 2 labels of "
            "nodeSelector. Change them.",
            id="labels that are never together",
        ),
        pytest.param(
            {GPU: 8},
            {
                "nodeSelector": {"zone": "a"},
                **required({"matchExpressions": [needs("zone", "NotIn", "a")]}),
            },
            "requests 8 nvidia.com/gpu; of 2 nodes with enough, nodeSelector allows some "
            "and the required node affinity others, but both together none. Change one.",
            id="nodeSelector against node affinity",
        ),
    ],
)
def test_a_constraint_is_named(amounts: dict[str, int], spec: Raw, expected: str) -> None:
    assert why(amounts, spec) == expected


def test_what_nodes_lack_together_is_said() -> None:
    nodes = (
        Node("both", {"pool": "x"}, (), {GPU: 4, SLICE: 4}),
        Node("one", {"pool": "y"}, (), {GPU: 4}),
        Node("other", {"pool": "y"}, (), {SLICE: 4}),
    )
    assert why({GPU: 1, SLICE: 1}, {"nodeSelector": {"pool": "y"}}, nodes) == (
        "requests 1 nvidia.com/gpu and 1 nvidia.com/mig-1g.5gb; nodeSelector pool=y allows 2 "
        "nodes, none with all of it. Write x: 1 node has enough GPUs."
    )


CURE = "Add a toleration if the pod is meant to run there."


@pytest.mark.parametrize(
    ("nodes", "spec", "expected"),
    [
        pytest.param(
            tainted((ML,)),
            {},
            "the only node with enough is tainted dedicated=ml:NoSchedule",
            id="one node",
        ),
        pytest.param(
            tainted((WEB,), (ML,), (ML,)),
            {},
            "the 3 nodes with enough are tainted dedicated=ml:NoSchedule and "
            "dedicated=web:NoExecute",
            id="several taints: that of most nodes first",
        ),
        pytest.param(
            tainted((ML, WEB), (ML,)),
            {},
            "the 2 nodes with enough are tainted dedicated=ml:NoSchedule",
            id="what all of them have is enough to know",
        ),
        pytest.param(
            tainted((ML, WEB, Taint("starting"), Taint("node.kubernetes.io/not-ready"))),
            {"tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]},
            "the only node with enough is tainted dedicated=web:NoExecute",
            id="what is tolerated, or passes, is not named",
        ),
        pytest.param(
            (*tainted((), (ML,), (ML,)), *PLAIN),
            required({"matchExpressions": [needs("zone", "NotIn", "z0")]}),
            "the 2 nodes with enough that it selects are tainted dedicated=ml:NoSchedule",
            id="the nodes that its selectors leave",
        ),
    ],
)
def test_a_taint_is_named(nodes: tuple[Node, ...], spec: Raw, expected: str) -> None:
    assert why({GPU: 8}, spec, nodes) == f"requests 8 nvidia.com/gpu; {expected}. {CURE}"


def test_a_label_with_thousands_of_values_is_no_model() -> None:
    nodes = [Node(f"n{i}", {MODEL: f"m{i}"}, (), {GPU: 1}) for i in range(300)]
    nodes.append(Node("z", {MODEL: "zz"}, (), {GPU: 2}))
    assert why({GPU: 3}, {}, tuple(nodes)) == (
        "requests 3 nvidia.com/gpu on one node; the largest of 301 GPU nodes has 2. Ask for 2 or "
        "split the work."
    )


def test_a_taint_with_hundreds_of_values_is_named_by_its_key() -> None:
    nodes = tainted(*((Taint("team", f"t{i}"),) for i in range(300)))
    assert why({GPU: 8}, {}, nodes) == (
        "requests 8 nvidia.com/gpu; the 300 nodes with enough are tainted team:NoSchedule. " + CURE
    )


def test_of_hundreds_of_values_none_is_proposed() -> None:
    nodes = tuple(Node(f"n{i}", {"rack": f"r{i}"}, (), {GPU: 8}) for i in range(300))
    assert why({GPU: 8}, {"nodeSelector": {"rack": "r300"}}, nodes) == (
        "requests 8 nvidia.com/gpu, but no node matches nodeSelector rack=r300. Change it: 300 "
        "nodes have enough GPUs."
    )


ENDLESS = "x" * 253 + "/" + "y" * 63
NINE = tuple(f"{i}{ENDLESS}" for i in range(9))


@pytest.mark.parametrize(
    ("amounts", "spec", "nodes"),
    [
        pytest.param({f"{ENDLESS}{i}": 10**30 for i in range(3)}, {}, CLUSTER, id="not offered"),
        pytest.param(
            {f"a{ENDLESS}": 1, f"b{ENDLESS}": 1},
            {"nodeSelector": {ENDLESS: "z" * 63}},
            (
                Node(
                    "a",
                    {ENDLESS: "v" * 63, MODEL: "m" * 63},
                    (),
                    {f"a{ENDLESS}": 4, f"b{ENDLESS}": 4},
                ),
                Node("b", {ENDLESS: "z" * 63}),
            ),
            id="a selector",
        ),
        pytest.param(
            dict.fromkeys(NINE, 100_000),
            {"nodeSelector": {ENDLESS: "z" * 63}},
            (
                *(
                    Node(f"a{i}", {ENDLESS: f"{i:v>63}"}, (), dict.fromkeys(NINE, 100_000))
                    for i in range(200)
                ),
                *(
                    Node(f"b{i}", {ENDLESS: "z" * 63}, (), dict.fromkeys(NINE, 99_999))
                    for i in range(200)
                ),
            ),
            id="everything at once",
        ),
        pytest.param({GPU: 9}, {}, (Node("a", {MODEL: "m" * 63}, (), {GPU: 8}),), id="a model"),
        pytest.param(
            {GPU: 8},
            {},
            tainted((Taint(ENDLESS, "a" * 63),), (Taint(ENDLESS, "b" * 63),)),
            id="taints",
        ),
        pytest.param({GPU: 1}, {"nodeSelector": {"a\nb": "c\t"}}, CLUSTER, id="odd characters"),
    ],
)
def test_names_as_long_as_they_may_be(
    amounts: dict[str, int], spec: Raw, nodes: tuple[Node, ...]
) -> None:
    message = why(amounts, spec, nodes)
    assert len(message) <= LONGEST
    assert message.isprintable()


def test_words() -> None:
    assert in_words({"b": 2, "a": 1}) == "1 a and 2 b"
    assert in_words({"b": 2, "a": 1, "c": 3}) == "1 a, 2 b and 1 more"
    assert (counted(1), counted(2)) == ("1 node", "2 nodes")
    assert (short("a\tb"), short("abcdef", 5)) == ("a?b", "abc..")


def test_only_nodes_that_are_gone_had_such_gpus() -> None:
    index = NodeIndex.of((*group(PLAIN), NodeClass({MODEL: "H100"}, (), {GPU: 8}, removed=2)))
    assert why_never(Pod({"spec": {}}), {GPU: 9}, index, Settings()) == (
        "requests 9 nvidia.com/gpu on one node; the largest node of the last hours (H100) had 8. "
        "Ask for 8 or split the work."
    )


def hinted(name: str, labels: Raw | None = None, *taints: Taint) -> NodeClass:
    """What Karpenter may add, of which it is known that it has 16 GPUs at most."""
    return NodeClass(labels or {}, taints, {GPU: 16}, hint=f"NodePool {name} (Karpenter)")


NODE_POOL = "karpenter.sh/nodepool"
GROWN = NodeClass({NODE_POOL: "sure", "zone": "b"}, (ML,), {GPU: 16}, grows=True)
DECLARED = NodeClass({"zone": "d"}, (ML,), {GPU: 16}, declared=3)


@pytest.mark.parametrize(
    ("amount", "spec", "classes", "expected"),
    [
        pytest.param(
            4,
            {"nodeSelector": {"zone": "c"}},
            (
                *group([Node("one", {"zone": "a"}, (), {GPU: 4})]),
                *(hinted(n, {"zone": "a"}) for n in "xyz"),
            ),
            "requests 4 nvidia.com/gpu, but no node matches nodeSelector zone=c. Write a: 1 node "
            "has enough GPUs.",
            id="only the nodes that are there are counted",
        ),
        pytest.param(
            16,
            {"nodeSelector": {"zone": "c"}},
            (*group(BIG), hinted("x", {"zone": "a"})),
            "requests 16 nvidia.com/gpu, but no node matches nodeSelector zone=c. Write a: "
            "NodePool x (Karpenter) may add a node with enough GPUs.",
            id="only a pool may add one",
        ),
        pytest.param(
            16,
            {"nodeSelector": {"zone": "c"}},
            (*group(BIG), GROWN),
            "requests 16 nvidia.com/gpu, but no node matches nodeSelector zone=c. Write b: "
            "NodePool sure (Karpenter) may add a node with enough GPUs.",
            id="a pool of which it is certain what it adds",
        ),
        pytest.param(
            16,
            {"nodeSelector": {"zone": "c"}},
            (*group(BIG), DECLARED),
            "requests 16 nvidia.com/gpu, but no node matches nodeSelector zone=c. Write d: nodes "
            "that may come have enough GPUs.",
            id="a pool of the settings",
        ),
        pytest.param(
            8,
            {"nodeSelector": {"zone": "b"}},
            (*group(BIG[:1]), NodeClass({"zone": "b"}, (), {GPU: 4}, hint="group g")),
            "requests 8 nvidia.com/gpu; nodeSelector zone=b allows what group g may add, with at "
            "most 4 of nvidia.com/gpu. Write a: 1 node has enough GPUs.",
            id="a pool has too few",
        ),
        pytest.param(
            16,
            {},
            (*group(BIG), hinted("c", {}, ML)),
            "requests 16 nvidia.com/gpu; only NodePool c (Karpenter) may add a node with enough, "
            f"tainted dedicated=ml:NoSchedule. {CURE}",
            id="the taint of a pool",
        ),
        pytest.param(
            16,
            {"nodeSelector": {NODE_POOL: "sure"}},
            (*group(BIG), GROWN, hinted("c", {"zone": "a"})),
            "requests 16 nvidia.com/gpu; only NodePool sure (Karpenter) may add a node with enough "
            f"that it selects, tainted dedicated=ml:NoSchedule. {CURE}",
            id="the taint of the pool that it selects",
        ),
        pytest.param(
            16,
            {},
            (*group(BIG), DECLARED),
            "requests 16 nvidia.com/gpu; only nodes that may come have enough, tainted "
            f"dedicated=ml:NoSchedule. {CURE}",
            id="the taint of a pool of the settings",
        ),
        pytest.param(
            8,
            {},
            (*group(tainted((WEB,))), hinted("c", {}, ML)),
            f"requests 8 nvidia.com/gpu; the only node with enough is tainted {WEB}. {CURE}",
            id="the taint of the node that is there, and not that of a pool",
        ),
        pytest.param(
            16,
            {"nodeSelector": {"zone": "a", "rack": "1"}},
            (hinted("c", {"zone": "a"}), hinted("d", {"rack": "1"})),
            "requests 16 nvidia.com/gpu; of what NodePool c (Karpenter) or NodePool d (Karpenter) "
            "may add with enough, none has all 2 labels of nodeSelector. Change them.",
            id="labels that no pool has together",
        ),
        pytest.param(
            17,
            {},
            (*group(BIG), hinted("c")),
            "requests 17 nvidia.com/gpu on one node; the largest node that NodePool c (Karpenter) "
            "may add has 16. Ask for 16 or split the work.",
            id="more than a pool may add: it is larger than all nodes",
        ),
        pytest.param(
            17,
            {},
            (*group(BIG), DECLARED),
            "requests 17 nvidia.com/gpu on one node; the largest node that may come has 16. Ask "
            "for 16 or split the work.",
            id="more than a pool of the settings has",
        ),
        pytest.param(
            99,
            {},
            (*group(BIG), NodeClass({}, (), {GPU: 16}, removed=1)),
            "requests 99 nvidia.com/gpu on one node; the largest node that may come has 16. Ask "
            "for 16 or split the work.",
            id="more than all nodes, of which the largest is gone",
        ),
        pytest.param(
            1,
            {},
            (*group(PLAIN), NodeClass({}, declared=2), NodeClass({}, removed=1)),
            "requests 1 nvidia.com/gpu, and no node here offers a GPU (1 node). Does the device "
            "plugin run? `kubectl describe nodes` shows what nodes offer.",
            id="no GPU anywhere: the nodes that are there are counted",
        ),
    ],
)
def test_nodes_are_nodes_and_pools_are_named(
    amount: int, spec: Raw, classes: tuple[NodeClass, ...], expected: str
) -> None:
    index = NodeIndex.of(classes)
    assert why_never(Pod({"spec": spec}), {GPU: amount}, index, Settings()) == expected


def test_names_of_pools_as_long_as_they_may_be() -> None:
    """The name of an object has up to 253 characters."""
    pools = [hinted("p" * 253, {"zone": "a"}, ML), hinted("q" * 253, {"rack": "1"}, WEB)]
    index = NodeIndex.of((*pools, hinted("r" * 253, {}, ML)))
    for spec in ({}, {"nodeSelector": {"zone": "a", "rack": "1"}}, {"nodeSelector": {"zone": "z"}}):
        assert len(why_never(Pod({"spec": spec}), {GPU: 16}, index, Settings())) <= LONGEST
    assert len(why_never(Pod({"spec": {}}), {GPU: 17}, index, Settings())) <= LONGEST
