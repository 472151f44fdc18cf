from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, PRODUCT, SPEC, container, found, modern_pod, pod
from webhook.capacity.nodes import Inventory, Node, NodeClass, group
from webhook.core.findings import Finding, Severity
from webhook.core.modes import Mode, Modes
from webhook.core.rule import Context
from webhook.core.settings import Capacity, Settings, Taint
from webhook.kube.pod import Pod
from webhook.kube.pointer import Path
from webhook.rules import never_fits as rule

A100 = {PRODUCT: "Tesla-A100", "zone": "a"}
GPU_NODES = [Node(f"big-{i}", A100, (Taint("gpu"),), {GPU: 8}) for i in range(4)]
THERE = Inventory(group([*GPU_NODES, Node("web", {"zone": "b"})]))
CX = Context(inventory=THERE, modes=Modes(Mode.ENFORCE))
H100 = Inventory(
    (
        *THERE.classes,
        NodeClass({PRODUCT: "H100"}, (), {GPU: 16}, declared=2, open_labels=True),
    )
)
JOINING = Inventory(group([Node("new", {"zone": "b"}, joining=True), *GPU_NODES]))
LOST = Inventory(
    group([Node("a", {}, (), {GPU: 7}, most={GPU: 8}, former={PRODUCT: ("Tesla-A100",)})])
)
GONE = Inventory(
    (
        *THERE.classes,
        NodeClass({PRODUCT: "H100"}, (), {GPU: 16}, removed=3),
    )
)
GROWS = Inventory(
    (
        *THERE.classes,
        NodeClass(
            {"zone": "z"},
            (Taint("gpu"),),
            hint="NodePool spot (Karpenter)",
            open_labels=True,
            open_gpus=True,
        ),
    )
)
NO_GPUS = Inventory((NodeClass({}, nodes=("web",)),))
WITH_SCHEDULER = Settings(capacity=Capacity(equivalent_schedulers=("volcano",)))

# Their only GPU node is tainted, which the class tolerates; another class is for other nodes.
OF_CLASSES = replace(
    THERE,
    runtime_classes={"gpu": {"zone": "a"}, "web": {"zone": "b"}, "plain": {}},
    class_tolerations={"gpu": [{"key": "gpu", "operator": "Exists"}]},
)

denied = partial(Finding, rule.CODE, SPEC, severity=Severity.DENY, lags=True)
warned = partial(Finding, rule.CODE, SPEC, severity=Severity.MANUAL, lags=True)

TOO_MUCH = (
    "requests 9 nvidia.com/gpu on one node; the largest of 4 GPU nodes (Tesla-A100) has 8. Ask for "
    "8 or split the work."
)
NONE_HERE = (
    "requests 9 nvidia.com/gpu, and no node here offers a GPU (1 node). Does the device plugin "
    "run? `kubectl describe nodes` shows what nodes offer."
)
NOT_HERE = (
    "requests 1 nvidia.com/gpu.shared, which no node here offers; the cluster has nvidia.com/gpu. "
    "Ask for what it has."
)
TAINTED = (
    "requests 1 nvidia.com/gpu; the 4 nodes with enough are tainted gpu:NoSchedule. Add a "
    "toleration if the pod is meant to run there."
)
NO_MODEL = (
    "requests 9 nvidia.com/gpu, but no node matches nodeSelector nvidia.com/gpu.product=B200. "
    "Write H100: nodes that may come have enough GPUs."
)
TOLERATED = [{"key": "gpu", "operator": "Exists"}]


def nine(**spec: Any) -> Any:
    return pod(container({GPU: "9"}), **spec)


def owned(obj: Any, kind: str) -> Any:
    obj["metadata"]["ownerReferences"] = [{"kind": kind, "name": "x", "controller": True}]
    return obj


def known(inventory: Inventory | None = THERE, **more: Any) -> Context:
    return replace(CX, inventory=inventory, **more)


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(modern_pod(tolerations=TOLERATED), CX, [], id="a pod that fits: untouched"),
        pytest.param(nine(), CX, [denied(TOO_MUCH)], id="more than any node has: denied"),
        pytest.param(
            pod(container({GPU: "5"}), container({GPU: "4"}, name="b")),
            CX,
            [denied(TOO_MUCH)],
            id="containers run on one node: their GPUs add up",
        ),
        pytest.param(
            pod(
                container({GPU: "8"}),
                initContainers=[container({GPU: "8"}, name="i")],
                tolerations=TOLERATED,
            ),
            CX,
            [],
            id="what an init container had is given back",
        ),
        pytest.param(
            modern_pod(),
            CX,
            [denied(TAINTED, may_run=True)],
            id="a taint that it does not tolerate",
        ),
        pytest.param(
            pod(container({"nvidia.com/gpu.shared": "1"})),
            CX,
            [denied(NOT_HERE)],
            id="a name that no node offers, where others do",
        ),
        pytest.param(
            nine(),
            replace(CX, template=True),
            [denied(TOO_MUCH)],
            id="a template: so will its pods be",
        ),
        pytest.param(
            nine(),
            replace(CX, template=True, workload={"kind": "DaemonSet"}),
            [warned(TOO_MUCH)],
            id="the template of a DaemonSet, which places its pods: a warning",
        ),
        pytest.param(
            nine(schedulerName="volcano"), CX, [warned(TOO_MUCH)], id="another scheduler: a warning"
        ),
        pytest.param(
            nine(schedulerName="volcano"),
            replace(CX, settings=WITH_SCHEDULER),
            [denied(TOO_MUCH)],
            id="a listed scheduler: denied",
        ),
        pytest.param(
            nine(schedulingGates=[{"name": "queue"}]), CX, [warned(TOO_MUCH)], id="gated: a warning"
        ),
        pytest.param(nine(nodeName="big-1"), CX, [warned(TOO_MUCH)], id="on a node: a warning"),
        pytest.param(
            owned(nine(), "DaemonSet"), CX, [warned(TOO_MUCH)], id="of a DaemonSet: a warning"
        ),
        *(
            pytest.param(
                pod(container({GPU: amount}), container({GPU: "9"}), tolerations=TOLERATED),
                CX,
                [],
                id=f"{amount[:20]} overflows in the scheduler, which may place the pod",
            )
            for amount in (
                str(2**63 - 9),  # a sum that overflows
                str(2**63),
                "10E",
                "20000000000000000000",
                "9" * 301,
                "9" * 5000,
            )
        ),
        pytest.param(
            pod(container({GPU: str(2**63 - 1)}), tolerations=TOLERATED),
            CX,
            [
                denied(
                    "requests 9223372036854775807 nvidia.com/gpu on one node; the whole cluster "
                    "has 32 on 4 nodes, the largest (Tesla-A100) 8. Ask for 8 or split the work."
                )
            ],
            id="the largest amount that the scheduler reads",
        ),
        pytest.param(
            nine(os={"name": "windows"}), CX, [], id="for Windows, whose nodes have other rules"
        ),
        pytest.param(
            pod(container({GPU: "10E"}), nodeSelector={"zone": "c"}, tolerations=TOLERATED),
            CX,
            [
                denied(
                    "requests GPUs, but no node matches nodeSelector zone=c. Write a or b: 5 nodes "
                    "have enough GPUs."
                )
            ],
            id="its selector counts all the same",
        ),
        pytest.param(owned(nine(), "Job"), CX, [denied(TOO_MUCH)], id="of a Job: denied"),
        pytest.param(
            nine(), known(NO_GPUS), [warned(NONE_HERE)], id="no node offers GPUs: a warning"
        ),
        pytest.param(
            nine(nodeSelector={PRODUCT: "H100", "kubernetes.io/arch": "amd64"}),
            known(H100),
            [],
            id="a label that a declared pool does not name may be there",
        ),
        pytest.param(
            nine(nodeSelector={PRODUCT: "B200"}),
            known(H100),
            [denied(NO_MODEL)],
            id="one that it names is what it says",
        ),
        pytest.param(
            nine(nodeSelector={PRODUCT: "B200"}),
            known(JOINING),
            [],
            id="a node that joins may get any label and any GPU",
        ),
        pytest.param(
            nine(nodeSelector={"zone": "c"}),
            known(JOINING),
            [
                denied(
                    "requests 9 nvidia.com/gpu, but no node matches nodeSelector zone=c. Write b: "
                    "1 node has enough GPUs."
                )
            ],
            id="but a label that it shows is as it shows it",
        ),
        pytest.param(
            pod(container({GPU: "8"}), nodeSelector={PRODUCT: "Tesla-A100"}),
            known(LOST),
            [],
            id="a lost device and a lost label may come back",
        ),
        pytest.param(
            nine(nodeSelector={PRODUCT: "H100"}), known(GONE), [], id="so may nodes that are gone"
        ),
        pytest.param(
            pod(container({GPU: "17"})),
            known(GONE),
            [
                denied(
                    "requests 17 nvidia.com/gpu on one node; the largest node that may come (H100) "
                    "has 16. Ask for 16 or split the work."
                )
            ],
            id="but not with more than they had",
        ),
        pytest.param(
            nine(tolerations=TOLERATED, nodeSelector={PRODUCT: "B200"}),
            known(GROWS),
            [
                warned(
                    "requests 9 nvidia.com/gpu, and fits on no node of this cluster. It stays "
                    "Pending unless NodePool spot (Karpenter) adds a node that fits: of what it "
                    "can add, not enough is known."
                )
            ],
            id="an autoscaler may add what fits: a warning that names it",
        ),
        pytest.param(
            pod(container({GPU: "8"}), tolerations=TOLERATED),
            known(GROWS),
            [],
            id="and nothing where a node fits that is there",
        ),
        pytest.param(
            nine(nodeSelector={"zone": "y"}, tolerations=TOLERATED),
            known(GROWS),
            [
                denied(
                    "requests 9 nvidia.com/gpu, but no node matches nodeSelector zone=y. Write z: "
                    "NodePool spot (Karpenter) may add a node with enough GPUs."
                )
            ],
            id="what is known of it counts: denied",
        ),
        pytest.param(nine(), known(None), [], id="no inventory: nothing is said"),
        pytest.param(nine(), known(Inventory()), [], id="an empty one: nothing is said"),
        pytest.param(nine(), known(fresh=False), [], id="a stale one: nothing is said"),
        pytest.param(
            nine(),
            known(replace(THERE, served_by_dra=frozenset({GPU}))),
            [],
            id="a device class serves the name: nothing is said",
        ),
        pytest.param(
            nine(),
            known(Inventory((*THERE.classes, NodeClass({}, (), {GPU: 16}, declared=2)))),
            [],
            id="it fits into a declared pool",
        ),
        pytest.param(
            modern_pod(tolerations=TOLERATED),
            known(
                Inventory(
                    group([Node("n", {}, (Taint("node.kubernetes.io/unschedulable"),), {GPU: 1})])
                )
            ),
            [],
            id="all GPU nodes are cordoned: not now is not never",
        ),
    ],
)
def test_never_fits(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected


ZONE_B = (
    "requests 1 nvidia.com/gpu; nodeSelector zone=b allows 1 node, with none of nvidia.com/gpu. "
    "Write a: 4 nodes have enough GPUs."
)


@pytest.mark.parametrize(
    ("spec", "more", "expected"),
    [
        pytest.param({"runtimeClassName": "gpu"}, {}, [], id="its class tolerates the taint"),
        pytest.param(
            {"runtimeClassName": "web", "tolerations": TOLERATED},
            {},
            [denied(ZONE_B)],
            id="its class is for nodes without GPUs",
        ),
        pytest.param(
            {"runtimeClassName": "web", "nodeSelector": {"zone": "a"}, "tolerations": TOLERATED},
            {},
            [],
            id="its own word on a label: the API server refuses a pod with both by itself",
        ),
        pytest.param(
            {"runtimeClassName": "plain"},
            {},
            [denied(TAINTED, may_run=True)],
            id="a class that says nothing of nodes",
        ),
        pytest.param(
            {"runtimeClassName": "unknown"},
            {},
            [denied(TAINTED, may_run=True)],
            id="a class that is not known may tolerate it",
        ),
        pytest.param(
            {"runtimeClassName": ["gpu"]},
            {},
            [denied(TAINTED, may_run=True)],
            id="no name of a class",
        ),
        pytest.param(
            {"runtimeClassName": "gpu"},
            {"final": True},
            [denied(TAINTED, may_run=True)],
            id="a pod as it will be stored: its class has given all that it gives",
        ),
        pytest.param(
            {"runtimeClassName": "gpu"},
            {"workload": {"kind": "DaemonSet"}},
            [warned(TAINTED, may_run=True)],
            id="a DaemonSet, whose controller knows no classes",
        ),
        pytest.param(
            {"nodeSelector": {"zone": "b"}},
            {},
            [denied(ZONE_B)],
            id="no toleration would be enough",
        ),
    ],
)
def test_what_the_class_of_a_pod_gives_it_is_there(
    spec: Any, more: Any, expected: list[Finding]
) -> None:
    assert found(rule, modern_pod(**spec), known(OF_CLASSES, **more)) == expected


@pytest.mark.parametrize(
    ("key", "value", "setting"),
    [
        pytest.param(
            "cloud.google.com/gke-gpu-sharing-strategy", "time-sharing", "shared", id="shared"
        ),
        pytest.param("cloud.google.com/gke-gpu-partition-size", "1g.5gb", "mig", id="slices"),
    ],
)
def test_who_excludes_parts_of_gpus_reads_the_setting_that_allows_them(
    key: str, value: str, setting: str
) -> None:
    excluded = {"key": key, "operator": "NotIn", "values": [value]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [excluded]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    inventory = Inventory((NodeClass({key: value}, (), {GPU: 4}, ("a",)),))
    (told,) = found(rule, modern_pod(affinity=affinity), Context(inventory=inventory))
    assert told.message.endswith(
        "1 node has enough GPUs, but as parts of GPUs: ask the administrator to set "
        f"models.{setting} to true, or select other nodes."
    )


BOUND = (
    "requests 1 nvidia.com/gpu, and no node fits that the node selector of the namespace allows "
    "({}). Ask for what those nodes have, or use another namespace."
)


def bound_to(*labels: str, **more: Any) -> Context:
    given = dict(each.split("=") for each in labels)
    known_to_be = replace(THERE, node_selectors={"lab": given})
    return known(known_to_be, **{"namespace": "lab", "template": True, **more})


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param({}, bound_to("zone=a"), [], id="nodes that fit"),
        pytest.param(
            {}, bound_to("zone=b"), [denied(BOUND.format("zone=b"), may_run=True)], id="others"
        ),
        pytest.param(
            {},
            bound_to("zone=b", "a=b"),
            [denied(BOUND.format("a=b and zone=b"), may_run=True)],
            id="two labels",
        ),
        pytest.param(
            {}, bound_to("zone=b", template=False), [], id="a pod, which would have it already"
        ),
        pytest.param({}, bound_to("zone=b", namespace="x"), [], id="another namespace"),
        pytest.param(
            {"nodeSelector": {"zone": "b"}},
            bound_to("zone=a"),
            [denied(ZONE_B)],
            id="the template's own word on the label: its pods are refused by all",
        ),
        pytest.param(
            {},
            bound_to("zone=b", workload={"kind": "DaemonSet"}),
            [warned(BOUND.format("zone=b"), may_run=True)],
            id="a DaemonSet: a warning",
        ),
    ],
)
def test_pods_of_a_template_may_be_refused_for_the_node_selector_of_their_namespace(
    obj: Any, cx: Context, expected: list[Finding]
) -> None:
    assert found(rule, modern_pod(**obj, tolerations=TOLERATED), cx) == expected


@pytest.mark.parametrize("is_ours", [True, False], ids=["of the repair", "of its author"])
def test_it_says_that_an_earlier_repair_wrote_the_affinity(*, is_ours: bool) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    asked = [{"matchExpressions": [{"key": PRODUCT, "operator": "In", "values": ["Tesla-K80"]}]}]
    spec = {
        "nodeSelector": {"pool": "a"},
        "affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": asked}}},
    }
    noted = asked if is_ours else [{"matchExpressions": []}]
    pointer = f"/spec/affinity/nodeAffinity/{required}/nodeSelectorTerms"
    text = json.dumps({"/spec/template": {pointer: [None, noted]}})
    template = {"metadata": {}, "spec": modern_pod()["spec"] | spec}
    workload = {
        "kind": "Deployment",
        "metadata": {"annotations": {"gpu-webhook.dev/template-repair": text}},
        "spec": {"template": template},
    }
    classes = ({"pool": "a", PRODUCT: "T4"}, {"pool": "b", PRODUCT: "Tesla-K80"})
    nodes = Inventory(tuple(NodeClass(labels, gpus={GPU: 8}) for labels in classes))
    cx = Context(inventory=nodes, template=True, workload=workload)
    (told,) = rule.check(Pod(workload, Path(("spec", "template"))), cx)
    assert "both together none" in told.message
    assert ("An earlier repair wrote this affinity" in told.message) is is_ours


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        pytest.param(("deviceclasses",), "deviceclasses, so", id="one kind"),
        pytest.param(
            ("deviceclasses", "nodepools", "configmaps"),
            "deviceclasses, nodepools and 1 more, so",
            id="all of them",
        ),
    ],
)
def test_it_only_warns_while_something_that_may_give_capacity_may_not_be_listed(
    refused: tuple[str, ...], named: str
) -> None:
    known, asked = Inventory((NodeClass({}, gpus={GPU: 4}),)), pod(container({GPU: "8"}))
    (certain,) = found(rule, asked, Context(inventory=known))
    (told,) = found(rule, asked, Context(inventory=replace(known, refused=refused)))
    assert (certain.severity, told.severity) == (Severity.DENY, Severity.MANUAL)
    assert f"may not list {named} it does not know" in told.message
    assert len(told.message) < 256
