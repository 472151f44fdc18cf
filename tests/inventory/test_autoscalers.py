"""What autoscalers may add, and how that counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from webhook.capacity.nodes import Node, NodeClass
from webhook.core.findings import Severity
from webhook.core.rule import Context
from webhook.core.settings import Taint
from webhook.inventory import cluster_autoscaler, karpenter
from webhook.inventory.cluster_autoscaler import Group
from webhook.inventory.store import Store
from webhook.kube.pod import Pod
from webhook.rules import never_fits, workload_too_large

if TYPE_CHECKING:
    from webhook.capacity.nodes import Inventory

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"
TYPE, POOL = "node.kubernetes.io/instance-type", "karpenter.sh/nodepool"
CATEGORY = "karpenter.k8s.aws/instance-category"
NOW, DAY = 1000.0, 24 * 3600.0


def needs(key: str, operator: str, *values: str) -> Raw:
    return {"key": key, "operator": operator, "values": list(values)}


def pool(*requirements: Raw, limits: Raw | None = None, **made: Any) -> Raw:
    spec = {"requirements": list(requirements), **made}
    template = {"metadata": {"labels": {"team": "ml"}}, "spec": spec}
    return {
        "metadata": {"name": "spot"},
        "spec": {"template": template, **({"limits": limits} if limits else {})},
    }


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(pool(limits={GPU: "0", "cpu": "100"}), id="its limit of GPUs is zero"),
        pytest.param(pool(needs(CATEGORY, "In", "c", "m", "r")), id="the usual categories of AWS"),
        pytest.param(
            pool(needs("eks.amazonaws.com/instance-category", "In", "c")), id="of EKS Auto Mode"
        ),
        pytest.param(pool(needs("karpenter.k8s.aws/instance-family", "In", "m5")), id="families"),
        pytest.param(
            pool(needs("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist")), id="no GPU count"
        ),
        pytest.param(
            pool(needs("karpenter.k8s.aws/instance-family", "In", "u-6tb1", "u7i-12tb", "hpc7g")),
            id="families with longer names",
        ),
        pytest.param(pool(needs("karpenter.azure.com/sku-family", "In", "D")), id="of Azure"),
        pytest.param(
            pool(needs("karpenter.azure.com/sku-family", "In", "DC", "HB")), id="two of Azure"
        ),
    ],
)
def test_a_node_pool_without_gpus_is_nothing(raw: Raw) -> None:
    assert karpenter.node_pool(raw) is None


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(pool(limits={GPU: "8"}), id="some GPUs"),
        pytest.param(pool(needs(CATEGORY, "In", "c", "g")), id="a category with GPUs among others"),
        pytest.param(pool(needs(CATEGORY, "NotIn", "t")), id="all but one category"),
        pytest.param(pool(needs("karpenter.k8s.aws/instance-family", "In", "p5en")), id="a family"),
        pytest.param(
            pool(needs("karpenter.k8s.aws/instance-family", "In", "gr6", "gr6f")), id="AWS's L4"
        ),
        pytest.param(pool(needs(CATEGORY, "In", "gr")), id="the category of AWS's L4"),
        pytest.param(
            pool(needs("eks.amazonaws.com/instance-family", "In", "c7i", "gr6")),
            id="a family with GPUs behind one without",
        ),
        pytest.param(
            pool(needs("karpenter.k8s.aws/instance-family", "In", "ml9")), id="an unknown family"
        ),
        pytest.param(pool(needs(CATEGORY, "In", "cg")), id="an unknown category"),
        pytest.param(pool(needs(CATEGORY, "In")), id="no category at all"),
        pytest.param(
            pool(needs("karpenter.k8s.aws/instance-gpu-count", "In", "0")),
            id="a share of a GPU may count as 0",
        ),
        pytest.param(pool(needs("karpenter.azure.com/sku-family", "In", "N")), id="of Azure"),
        pytest.param(pool(needs("karpenter.azure.com/sku-family", "In", "Q")), id="new of Azure"),
        pytest.param(
            pool(needs("karpenter.k8s.gcp/instance-family", "In", "n1")),
            id="a GPU may be attached to GCP's n1",
        ),
        pytest.param(pool(needs("example.com/instance-category", "In", "c")), id="another label"),
        pytest.param(
            pool(needs("karpenter.k8s.aws/instance-gpu-count", "Exists")), id="any GPU count"
        ),
        pytest.param({"metadata": {"name": "spot"}, "spec": "odd"}, id="nothing that can be read"),
        pytest.param(pool(limits={GPU: "many"}), id="a limit that cannot be read"),
        *(
            pytest.param(
                pool(needs("karpenter.k8s.aws/instance-family", "In", "m5", each)),
                id=f"{each}: the settings may count its accelerators",
            )
            for each in ("dl1", "inf2", "trn1", "trn1n")
        ),
    ],
)
def test_a_node_pool_that_may_have_gpus_is_kept(raw: Raw) -> None:
    assert karpenter.node_pool(raw) is not None


def store_of(*pools: Raw, nodes: tuple[Node, ...] = ()) -> Store:
    store = Store()
    for raw in pools:
        store.node_pools.put(raw["metadata"]["name"], karpenter.node_pool(raw), NOW)
    for node in nodes:
        store.nodes.put(node.name, node, NOW)
    return store


def may_come(store: Store, now: float = NOW) -> list[NodeClass]:
    return [each for each in store.classes(now) if each.may_grow]


def test_what_a_node_pool_says_of_its_nodes_is_known_and_the_rest_is_not() -> None:
    raw = pool(
        needs("topology.kubernetes.io/zone", "In", "a", "b"),
        needs("kubernetes.io/arch", "In", "amd64"),
        needs("kubernetes.io/arch", "In", "amd64", "arm64"),
        needs("karpenter.k8s.aws/instance-generation", "Gt", "4"),
        taints=[{"key": GPU, "effect": "NoSchedule"}],
        startupTaints=[{"key": "example.com/loads", "effect": "NoSchedule"}],
    )
    assert may_come(store_of(raw)) == [
        NodeClass(
            {POOL: "spot", "kubernetes.io/arch": "amd64", "team": "ml"},
            (Taint(GPU),),
            former=({"topology.kubernetes.io/zone": ("a", "b")},),
            open_labels=True,
            open_gpus=True,
            hint="NodePool spot (Karpenter)",
        )
    ]


def test_instance_types_that_nodes_have_shown_count_like_a_declared_pool() -> None:
    nodes = (
        Node("a", {TYPE: "g5.large"}, (), {GPU: 1}),
        Node("b", {TYPE: "g5.large"}, (), {GPU: 0}, most={GPU: 4}),
        Node("c", {TYPE: "m5.large"}),
    )
    store = store_of(pool(needs(TYPE, "In", "g5.large", "m5.large")), nodes=nodes)
    known, more = may_come(store)
    assert (known.grows, known.hint, known.gpus) == (True, "", {GPU: 4})
    assert known.count == 0, "any number of them, and none that is there"
    assert known.labels == {POOL: "spot", "team": "ml", TYPE: "g5.large"}
    assert known.open_labels
    assert not known.open_gpus
    assert (more.hint, more.gpus, more.open_gpus) == ("NodePool spot (Karpenter)", {GPU: 4}, True)
    assert more.former == ({TYPE: ("g5.large",)},), "it may have other names, too"
    store.nodes.drop("a", NOW + 1)
    store.nodes.drop("b", NOW + 1)
    assert may_come(store, NOW + 2) == [known, more], "the type is remembered"
    (unknown,) = may_come(store, NOW + 2 * DAY)
    assert (unknown.hint, unknown.former) == ("NodePool spot (Karpenter)", ({TYPE: ("g5.large",)},))


@pytest.mark.parametrize(
    ("shown", "asked", "found"),
    [
        pytest.param(["A10G"], "A10G", [], id="the model that its nodes show"),
        pytest.param(["A10G"], "A100", [Severity.MANUAL], id="another model"),
        pytest.param(["A10G", "L4"], "A100", [], id="nodes of two models: any"),
        pytest.param([""], "A100", [], id="nodes that do not show their model: any"),
        pytest.param(["A10G", ""], "A100", [Severity.MANUAL], id="one that does not"),
    ],
)
def test_the_next_node_of_an_instance_type_has_the_model_of_its_nodes(
    shown: list[str], asked: str, found: list[Severity]
) -> None:
    """It is not certain: the next driver may give the model another name."""
    product = "nvidia.com/gpu.product"
    nodes = tuple(
        Node(f"n{i}", {TYPE: "g5.xlarge", **({product: model} if model else {})}, (), {GPU: 1})
        for i, model in enumerate(shown)
    )
    inventory = store_of(pool(needs(TYPE, "In", "g5.xlarge")), nodes=nodes).inventory(NOW)
    assert severities(inventory, {GPU: 1}, {product: asked}) == found


@pytest.mark.parametrize(
    "name",
    ["m5.large", "u-6tb1.112xlarge", "mac2-m1ultra.metal", "c7i.metal-24xl", "Standard_D4ps_v5"],
)
def test_an_instance_type_that_is_known_to_have_no_gpus_adds_nothing(name: str) -> None:
    assert may_come(store_of(pool(needs(TYPE, "In", name)))) == []
    assert may_come(store_of(pool(needs(TYPE, "In", name)), nodes=(Node("c", {TYPE: name}),))) == []


SHARED = "nvidia.com/gpu.shared"


@pytest.mark.parametrize(
    ("name", "gpus", "asked", "denied"),
    [
        pytest.param("p4d.24xlarge", {SHARED: 32}, {GPU: 8}, None, id="shared ones only"),
        pytest.param("p4d.24xlarge", {SHARED: 32}, {SHARED: 33}, None, id="more shares"),
        pytest.param("p4d.24xlarge", {SHARED: 32}, {SHARED: 32}, False, id="what it showed"),
        pytest.param("p4d.24xlarge", {GPU: 0}, {GPU: 8}, None, id="a plugin that is away"),
        pytest.param("p4d.24xlarge", {}, {GPU: 8}, None, id="a plugin that never ran"),
        pytest.param("n1-standard-8", {}, {GPU: 1}, None, id="a type that may have GPUs"),
        pytest.param("p4d.24xlarge", {GPU: 8}, {GPU: 9}, True, id="more than all of it"),
        pytest.param("p4d.24xlarge", {GPU: 8}, {MIG: 1}, None, id="slices that it did not show"),
        pytest.param(
            "p4d.24xlarge", {GPU: 8}, {GPU: 9, MIG: 1}, True, id="slices and more than all of it"
        ),
        pytest.param("p4d.24xlarge", {GPU: 7, MIG: 7}, {GPU: 8}, None, id="one device is sliced"),
        pytest.param("m5.large", {}, {GPU: 1}, True, id="a type without GPUs"),
    ],
)
def test_names_that_an_instance_type_did_not_show_are_unsure(
    name: str, gpus: dict[str, int], asked: dict[str, int], *, denied: bool | None
) -> None:
    """The node is there and taken: a pod that selects the NodePool needs another one."""
    nodes = (Node("a", {TYPE: name}, (), gpus), Node("b", {}, (), {GPU: 1}))
    inventory = store_of(pool(needs(TYPE, "In", name)), nodes=nodes).inventory(NOW)
    assert severities(inventory, asked, {POOL: "spot"}) == verdict(denied=denied)


AWS_COUNT = "karpenter.k8s.aws/instance-gpu-count"


@pytest.mark.parametrize(
    ("nodes", "template", "asked", "denied"),
    [
        pytest.param(
            [Node("a", {"nvidia.com/mig.config": "half"}, (), {GPU: 4, MIG: 28})],
            {},
            {GPU: 8},
            None,
            id="half of the devices are sliced",
        ),
        pytest.param(
            [Node("a", {"nvidia.com/mig.config": "half"}, (), {GPU: 4, MIG: 28})],
            {},
            {GPU: 4, MIG: 28},
            False,
            id="what it has shown is certain",
        ),
        pytest.param(
            [Node("a", {"nvidia.com/mig.config": "half"}, (), {GPU: 4})],
            {},
            {GPU: 8},
            None,
            id="sliced by its label, with the slices not there yet",
        ),
        pytest.param(
            [Node("a", {}, (), {GPU: 4, MIG: 0})], {}, {GPU: 8}, None, id="slices that are away"
        ),
        pytest.param(
            [Node("a", {}, (), {GPU: 4}, others=("nvidia.com/mig-3g.40gb",))],
            {},
            {GPU: 8},
            None,
            id="slices that the settings do not count",
        ),
        pytest.param(
            [Node("a", {}, (), {GPU: 4}, former={"nvidia.com/mig.config": ("half",)})],
            {},
            {GPU: 8},
            None,
            id="it was sliced a short while ago",
        ),
        pytest.param(
            [Node("a", {"nvidia.com/gpu.product": "A100-MIG-7g.40gb"}, (), {GPU: 8})],
            {},
            {GPU: 56},
            None,
            id="slices under the name of whole devices",
        ),
        pytest.param(
            [Node("a", {"nvidia.com/gpu.product": "A100-SHARED"}, (), {GPU: 16})],
            {},
            {GPU: 32},
            None,
            id="shares under the name of whole devices",
        ),
        pytest.param(
            [Node("a", {"nvidia.com/device-plugin.config": "twice"}, (), {GPU: 16})],
            {},
            {GPU: 32},
            None,
            id="a configuration of its device plugin",
        ),
        pytest.param(
            [Node("a", {}, (), {GPU: 8}), Node("b", {}, (), {GPU: 7, MIG: 7})],
            {},
            {GPU: 9},
            None,
            id="only one of two is whole",
        ),
        pytest.param(
            [Node("a", {}, (), {GPU: 8})],
            {"nvidia.com/device-plugin.config": "twice"},
            {GPU: 16},
            None,
            id="the NodePool sets its nodes up otherwise",
        ),
        pytest.param(
            [Node("a", {AWS_COUNT: "8"}, (), {GPU: 7})], {}, {GPU: 8}, None, id="a device is away"
        ),
        pytest.param(
            [Node("a", {AWS_COUNT: "8"}, (), {GPU: 7})], {}, {GPU: 9}, True, id="more than it has"
        ),
        pytest.param(
            [
                Node("a", {"nvidia.com/mig.config": "all-disabled"}, (), {GPU: 8}),
                Node("b", {"nvidia.com/gpu.replicas": "1"}, (), {GPU: 8}),
            ],
            {},
            {GPU: 9},
            True,
            id="labels that mean whole devices",
        ),
    ],
)
def test_what_an_instance_type_has_at_most_is_known_from_whole_devices_alone(
    nodes: list[Node],
    template: dict[str, str],
    asked: dict[str, int],
    *,
    denied: bool | None,
) -> None:
    seen = [replace(n, labels={**n.labels, TYPE: "p4d.24xlarge"}) for n in nodes]
    raw = pool(needs(TYPE, "In", "p4d.24xlarge"))
    raw["spec"]["template"]["metadata"]["labels"].update(template)
    inventory = store_of(raw, nodes=tuple(seen)).inventory(NOW)
    assert severities(inventory, asked, {POOL: "spot"}) == verdict(denied=denied)


def test_the_start_up_taints_of_a_node_pool_do_not_count_on_its_nodes() -> None:
    raw = pool(startupTaints=[{"key": "example.com/loads", "effect": "NoSchedule"}])
    taints = (Taint("example.com/loads"), Taint("x"))
    nodes = (Node("a", {POOL: "spot"}, taints, {GPU: 1}), Node("b", {}, taints, {GPU: 1}))
    found = {each.name: each.taints for each in store_of(raw, nodes=nodes).counted(NOW)}
    assert found == {"a": (Taint("x"),), "b": taints}


TEXT = """Cluster-autoscaler status at 2021-01-08 04:04:55.644106199 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=2 unready=0 registered=2 longUnregistered=0)
               LastProbeTime:      2021-01-08 04:04:55.643676127 +0000 UTC m=+6684.06
  ScaleUp:     NoActivity (ready=2 registered=2)

NodeGroups:
  Name:        https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-a-b-1f-grp
  Health:      Healthy (ready=2 unready=0 cloudProviderTarget=2 (minSize=1, maxSize=3))
               LastProbeTime:      2021-01-08 04:04:55.643676127 +0000 UTC m=+6684.06
  ScaleUp:     NoActivity (ready=2 cloudProviderTarget=2)
"""
YAML = """time: 2026-01-08 04:04:55.644106199 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
    nodeCounts: {registered: {total: 3}}
nodeGroups:
- health:
    lastProbeTime: "2026-01-08T04:04:55Z"
    maxSize: 3
    minSize: 1
    nodeCounts:
      registered:
        ready: 2
    cloudProviderTarget: 2
    status: Healthy
  name: first
  scaleUp:
    status: NoActivity
- name: "full"
  health:
    cloudProviderTarget: 3
    maxSize: 3
    nodeCounts:
      registered:
        ready: 3
        total: 3
        unready:
          resourceUnready: 0
          total: 0
- name: on-its-way
  health:
    cloudProviderTarget: 3
    maxSize: 3
    nodeCounts:
      longUnregistered: 0
      registered:
        ready: 2
        total: 3
        unready:
          resourceUnready: 0
          total: 1
      unregistered: 0
- name: none-yet
  health:
    cloudProviderTarget: 1
    maxSize: 1
    nodeCounts:
      registered: {}
- name: at-zero
  health:
    maxSize: 1
- health: {}
"""
QUOTING = """nodeGroups:
- name: a100
  health:
    cloudProviderTarget: 1
    maxSize: 5
    nodeCounts:
      registered:
        ready: 1
  scaleUp:
    backoffInfo:
      errorMessage: |-
        Error 403
        name: other
        maxSize: 1
        - name: more
    status: Backoff
"""


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            TEXT,
            {},
            id="the text of before 1.30, which no release with matchConditions writes",
        ),
        pytest.param(
            YAML,
            {"first": True, "full": False, "on-its-way": True, "none-yet": True, "at-zero": True},
            id="the YAML of today",
        ),
        pytest.param(QUOTING, {"a100": True}, id="an error that quotes what looks like it"),
        pytest.param(
            YAML.partition("    maxSize: 1\n")[0],
            {"first": True, "full": False, "on-its-way": True, "none-yet": True},
            id="a text that is cut: the last one may grow",
        ),
        pytest.param(
            "nodeGroups:\n- name: full\n  health:\n    cloudProviderTarget: 1\n"
            "    maxSize: 1\n    ready: 1\n- name: cut\n",
            {"full": False, "cut": True},
            id="a text that is cut after a name",
        ),
        pytest.param("nodeGroups: []\n", {}, id="no groups"),
        pytest.param("Initializing", {}, id="nothing yet"),
        pytest.param(None, {}, id="no status"),
        pytest.param("x" * 2**21, {}, id="more than a ConfigMap can hold"),
        pytest.param("nodeGroups:\n" + "- " * 10**5, {}, id="something odd"),
        pytest.param(
            "nodeGroups:\n- name: a\n  maxSize: many\n", {"a": True}, id="no number: it may grow"
        ),
    ],
)
def test_the_groups_of_cluster_autoscaler(status: str | None, expected: dict[str, bool]) -> None:
    found = cluster_autoscaler.groups({"data": {"status": status}})
    assert {each.title: each.grows for each in found} == expected


UUID = "0123abcd-0123-4567-89ab-0123456789ab"
EKS = "eks.amazonaws.com/nodegroup"
GKE = "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-c-gpu-1f2e-grp"
ON_GKE = {"cloud.google.com/gke-nodepool": "gpu", "topology.kubernetes.io/zone": "z"}
AKS, ON_AKS = "aks-gpu-12345678-vmss", {"kubernetes.azure.com/agentpool": "gpu"}
API = "MachineDeployment/ns/gpu"


@pytest.mark.parametrize(
    ("name", "node", "known"),
    [
        pytest.param(GKE, Node("gke-c-gpu-1f2e-x7z9", ON_GKE), True, id="GKE"),
        pytest.param(GKE, Node("gke-c-gpu-9999-x7z9", ON_GKE), False, id="another pool of GKE"),
        pytest.param(
            GKE.replace("/zones/z/", "/zones/y/"),
            Node("gke-c-gpu-1f2e-x7z9", ON_GKE),
            False,
            id="of the same name in another zone of GKE",
        ),
        pytest.param(
            GKE, Node("gke-c-gpu-1f2e-x7z9", {}), False, id="a name of GKE alone, without its label"
        ),
        pytest.param(AKS, Node(f"{AKS}00000a", ON_AKS), True, id="AKS"),
        pytest.param(AKS, Node(f"{AKS}00000a", {}), False, id="a name of AKS alone"),
        pytest.param(
            AKS, Node("aks-gpu-87654321-vmss00000a", ON_AKS), False, id="another set of AKS"
        ),
        pytest.param(f"eks-gpu-{UUID}", Node("ip-1", {EKS: "gpu"}), True, id="EKS"),
        pytest.param(
            f"eks-my-gpu-{UUID}", Node("ip-1", {EKS: "gpu"}), False, id="another group of EKS"
        ),
        pytest.param("eks-gpu", Node("ip-1", {EKS: "gpu"}), False, id="no managed group of EKS"),
        pytest.param(
            API, Node("gpu-abc-12", {}, owner="MachineSet/ns/gpu-bcd2f"), True, id="Cluster API"
        ),
        pytest.param(
            API, Node("gpu-abc-12", {}, owner="MachineSet/other/gpu-bcd2f"), False, id="namespace"
        ),
        pytest.param(
            API, Node("gpu-abc-12", {}, owner="MachineSet/ns/gpu-small-bcd2f"), False, id="longer"
        ),
        pytest.param(API, Node("gpu-bcd2f-x1", {}), False, id="a name of Cluster API alone"),
        pytest.param(
            "MachineSet/ns/gpu", Node("x", {}, owner="MachineSet/ns/gpu"), True, id="OpenShift"
        ),
        pytest.param(
            "MachinePool/ns/gpu", Node("x", {}, owner="MachinePool/ns/gpu"), True, id="a pool"
        ),
        pytest.param("gpu", Node("gpu-small-x1", {}), False, id="a name that begins like it"),
        pytest.param("my-asg", Node("ip-1", {}), False, id="a name that tells nothing"),
    ],
)
def test_what_the_nodes_of_a_group_have_shown_is_known_of_it(
    name: str, node: Node, *, known: bool
) -> None:
    store = Store()
    groups = (Group(name, grows=True), Group("full", grows=False))
    store.node_groups.put("kube-system/cluster-autoscaler-status", groups, NOW)
    hint = f"node group {name.rpartition('/')[2]} (cluster-autoscaler)"
    unknown = NodeClass({}, open_labels=True, open_gpus=True, hint=hint)
    expected = replace(unknown, labels=dict(node.labels), gpus={GPU: 1}) if known else unknown
    assert may_come(store) == [unknown]
    store.nodes.put(node.name, replace(node, gpus={GPU: 1}), NOW)
    assert may_come(store) == [expected]
    store.nodes.drop(node.name, NOW + 1)
    assert may_come(store, NOW + DAY) == [expected], "remembered for a day"
    assert may_come(store, NOW + 2 * DAY) == [unknown]


CPU = {TYPE: "m5.large"}
GROUP = Group(f"eks-g-{UUID}", grows=True)


@pytest.mark.parametrize(
    ("nodes", "asked", "denied"),
    [
        pytest.param((), {GPU: 8}, None, id="no node of it was seen"),
        pytest.param((Node("g-1", {}, (), {GPU: 8}),), {GPU: 9}, True, id="more than it showed"),
        pytest.param((Node("g-1", {}, (), {GPU: 8}),), {GPU: 8}, False, id="what it showed"),
        pytest.param((Node("g-1", {}, (), {GPU: 8}),), {MIG: 1}, None, id="slices"),
        pytest.param(
            (Node("g-1", {}, (), {GPU: 8}),), {GPU: 9, MIG: 1}, True, id="slices and more than all"
        ),
        pytest.param((Node("g-1", {}, (), {SHARED: 32}),), {GPU: 8}, None, id="shared ones only"),
        pytest.param((Node("g-1", {}, (), {SHARED: 32}),), {SHARED: 33}, None, id="more shares"),
        pytest.param((Node("g-1", {}, (), {MIG: 7}),), {GPU: 8}, None, id="slices only"),
        pytest.param(
            (Node("g-1", {}, (), {GPU: 7, MIG: 7}),), {GPU: 8}, None, id="one device is sliced"
        ),
        pytest.param((Node("g-1", {}, (), {GPU: 0}),), {GPU: 8}, None, id="a plugin that is away"),
        pytest.param((Node("g-1", {}),), {GPU: 8}, None, id="nodes of which nothing is known"),
        pytest.param((Node("g-1", {TYPE: "p4d.24xlarge"}),), {GPU: 8}, None, id="a GPU type"),
        pytest.param((Node("g-1", {TYPE: "n1-standard-8"}),), {GPU: 2}, None, id="GCP's n1"),
        pytest.param((Node("g-1", CPU),), {GPU: 2}, True, id="a type without GPUs"),
        pytest.param((Node("g-1", {TYPE: "e2-medium"}),), {GPU: 2}, True, id="GCP's e2"),
        pytest.param(
            (Node("g-1", {**CPU, "accelerator": "nvidia"}),), {GPU: 2}, None, id="a label says GPU"
        ),
        pytest.param(
            (Node("g-1", CPU), Node("g-2", {}, (), {GPU: 4})), {GPU: 5}, True, id="of two types"
        ),
        pytest.param(
            (Node("g-1", {}), Node("g-2", {}, (), {GPU: 4})), {GPU: 5}, None, id="one is away"
        ),
        pytest.param((Node("g-1", {}, created=NOW),), {GPU: 8}, None, id="one that just joined"),
        pytest.param(
            (Node("g-1", {"nvidia.com/gpu.count": "8"}, (), {GPU: 7}),),
            {GPU: 8},
            None,
            id="a device is away",
        ),
        pytest.param(
            (Node("g-1", {"nvidia.com/mig.config": "half"}, (), {GPU: 4}),),
            {GPU: 8},
            None,
            id="devices are sliced",
        ),
    ],
)
def test_a_group_that_can_grow_is_unsure_of_what_its_nodes_did_not_show(
    nodes: tuple[Node, ...], asked: dict[str, int], *, denied: bool | None
) -> None:
    members = [replace(each, labels={**each.labels, EKS: "g"}) for each in nodes]
    store = store_of(nodes=(*members, Node("b", {"other": "yes"}, (), {GPU: 1})))
    store.node_groups.put("kube-system/cluster-autoscaler-status", (GROUP,), NOW)
    now = NOW + 1000  # what had just joined has settled
    assert severities(store.inventory(now), asked) == verdict(denied=denied)


def test_what_nobody_of_a_group_that_grows_has_is_refused_as_before() -> None:
    node = Node("g-1", {"nvidia.com/gpu.product": "Tesla-K80", EKS: "g"}, (), {GPU: 8})
    store = store_of(nodes=(node,))
    store.node_groups.put("kube-system/cluster-autoscaler-status", (GROUP,), NOW)
    selector = {"nvidia.com/gpu.product": "Tesla-T4"}
    assert severities(store.inventory(NOW), {GPU: 1}, selector) == [Severity.DENY]


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PRODUCT = "nvidia.com/gpu.product"
ON_EKS = {EKS: "gpu", TYPE: "p2.8xlarge", ZONE: "a", HOST: "m-1", PRODUCT: "K80", "team": "ml"}
M1 = Node("m-1", ON_EKS, (), {GPU: 8})
OF_GKE = Node("gke-c-gpu-1f2e-abcd", {**ON_GKE, TYPE: "n1-standard-8"}, (), {GPU: 4})
OF_AKS = Node(f"{AKS}00000a", {**ON_AKS, TYPE: "Standard_NC6", ZONE: "1"}, (), {GPU: 1})
TAINTED = replace(M1, taints=(Taint("gpus", "", "NoSchedule"),))


@pytest.mark.parametrize(
    ("nodes", "selector", "denied"),
    [
        pytest.param([M1], {ZONE: "a"}, False, id="a zone that it showed"),
        pytest.param([M1], {ZONE: "b"}, None, id="another zone"),
        pytest.param([M1], {"topology.ebs.csi.aws.com/zone": "b"}, None, id="a driver's zone"),
        pytest.param(
            [replace(M1, labels={**ON_EKS, "topology.k8s.aws/zone-id": "use1-az1"})],
            {"topology.k8s.aws/zone-id": "use1-az2"},
            None,
            id="the id of a zone",
        ),
        pytest.param(
            [replace(M1, labels={**ON_EKS, "failure-domain.beta.kubernetes.io/zone": "a"})],
            {"failure-domain.beta.kubernetes.io/zone": "b"},
            None,
            id="a zone by its name of old",
        ),
        pytest.param(
            [M1, replace(M1, name="m-2", labels={**ON_EKS, HOST: "m-2"})],
            {ZONE: "b"},
            None,
            id="another zone than two nodes",
        ),
        pytest.param([M1], {HOST: "m-2"}, None, id="the name of a node to come"),
        pytest.param([M1], {TYPE: "p2.16xlarge"}, None, id="another type, on EKS"),
        pytest.param([M1], {"team": "other"}, None, id="a label that somebody may have set"),
        pytest.param([M1], {EKS: "cpu"}, True, id="another group"),
        pytest.param([M1], {PRODUCT: "T4"}, True, id="another model"),
        pytest.param([M1], {PRODUCT: "T4", ZONE: "b"}, True, id="another model in another zone"),
        pytest.param(
            [M1, replace(M1, name="m-2", labels={**ON_EKS, PRODUCT: "V100"})],
            {PRODUCT: "T4"},
            None,
            id="nodes of two models",
        ),
        pytest.param(
            [M1, replace(M1, name="m-2", labels={EKS: "gpu"})],
            {PRODUCT: "T4"},
            True,
            id="a node that does not say its model",
        ),
        pytest.param([TAINTED], {ZONE: "b"}, True, id="a taint that the pod does not tolerate"),
        pytest.param([TAINTED, M1], {ZONE: "b"}, None, id="a taint that only one node has"),
        pytest.param(
            [replace(M1, taints=(Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),))],
            {ZONE: "b"},
            None,
            id="a taint that goes away",
        ),
        pytest.param([OF_AKS], {ZONE: "2"}, None, id="another zone on AKS"),
        pytest.param([OF_AKS], {TYPE: "Standard_NC12"}, True, id="AKS: one type a pool"),
        pytest.param([OF_GKE], {ZONE: "y"}, True, id="GKE: one zone a group"),
        pytest.param([OF_GKE], {TYPE: "n1-standard-4"}, True, id="GKE: one type a group"),
        pytest.param([OF_GKE], {HOST: "gke-c-gpu-1f2e-wxyz"}, None, id="GKE: a node to come"),
    ],
)
def test_where_the_next_node_of_a_group_is_and_what_it_is_called_is_open(
    nodes: list[Node], selector: dict[str, str], *, denied: bool | None
) -> None:
    store = store_of(nodes=tuple(nodes))
    groups = tuple(Group(name, grows=True) for name in (f"eks-gpu-{UUID}", AKS, GKE))
    found = cluster_autoscaler.shown(groups, nodes)
    of_these = tuple(each for each in groups if each.name in {group for group, *_ in found})
    store.node_groups.put("kube-system/cluster-autoscaler-status", of_these, NOW)
    store.nodes.put("b", Node("b", {}, (), {GPU: 1}), NOW)
    assert severities(store.inventory(NOW), {GPU: 1}, selector) == verdict(denied=denied)


@pytest.mark.parametrize(
    ("types", "asked", "denied"),
    [
        pytest.param(("p2.8xlarge", "p2.8xlarge"), 9, True, id="one type"),
        pytest.param(("p2.8xlarge", "p3.16xlarge"), 8, False, id="two types, as many as there are"),
        pytest.param(("p2.8xlarge", "p3.16xlarge"), 9, None, id="two types, and maybe a third"),
    ],
)
def test_a_group_of_mixed_instance_types_may_have_one_more(
    types: tuple[str, str], asked: int, *, denied: bool | None
) -> None:
    nodes = (Node(str(i), {EKS: "g", TYPE: name}, (), {GPU: 8}) for i, name in enumerate(types))
    store = store_of(nodes=tuple(nodes))
    store.node_groups.put("kube-system/cluster-autoscaler-status", (GROUP,), NOW)
    assert severities(store.inventory(NOW), {GPU: asked}) == verdict(denied=denied)


def test_what_a_group_has_shown_outlives_its_nodes_and_the_watcher() -> None:
    store = store_of(nodes=(TAINTED,))
    group = Group(f"eks-gpu-{UUID}", grows=True)
    store.node_groups.put("kube-system/cluster-autoscaler-status", (group,), NOW)
    before = may_come(store)
    again = Store()
    again.nodes.memory.recall(orjson.loads(orjson.dumps(store.nodes.memory.as_data())))
    again.node_groups.put("kube-system/cluster-autoscaler-status", (group,), NOW)
    assert may_come(again) == before
    assert before[0].gpus == {GPU: 8}


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        pytest.param(
            {"cloud.google.com/gke-nodepool": "nap-e2-standard-2-1x2y"},
            "GKE (node auto-provisioning)",
            id="a pool that GKE made",
        ),
        pytest.param({"cloud.google.com/gke-nodepool": "gpu"}, "", id="a pool that somebody made"),
        pytest.param({"provisioner.cast.ai/managed-by": "cast.ai"}, "Cast AI", id="Cast AI"),
        pytest.param({"spotinst.io/node-lifecycle": "od"}, "Ocean (Spot)", id="Ocean"),
        pytest.param(
            {"karpenter.sh/provisioner-name": "x"}, "Karpenter (Provisioners)", id="old Karpenter"
        ),
    ],
)
def test_autoscalers_that_tell_nobody_are_known_by_any_of_their_nodes(
    labels: dict[str, str], name: str
) -> None:
    nodes = (Node("cpu", labels), Node("gpu", {}, (), {GPU: 4}))
    inventory = store_of(nodes=nodes).inventory(NOW)
    assert severities(inventory, {GPU: 8}) == verdict(denied=None if name else True)
    assert [words for words, _ in inventory.index.hinted] == ([name] if name else [])


def test_an_autoscaler_that_tells_nobody_is_found_where_each_node_has_a_pool_of_its_own() -> None:
    pools = [Node(f"n{i}", {"cloud.google.com/gke-nodepool": f"nap-{i}"}) for i in range(40)]
    inventory = store_of(nodes=(*pools, Node("gpu", {}, (), {GPU: 4}))).inventory(NOW)
    assert severities(inventory, {GPU: 8}) == verdict(denied=None)


K80S = Node("g-1", {EKS: "g", TYPE: "p2.xlarge"}, (), {GPU: 8})
STATIC = replace(K80S, name="s", labels={})


@pytest.mark.parametrize(
    ("nodes", "pools", "groups", "warned"),
    [
        pytest.param([K80S], [], [], True, id="nobody adds nodes"),
        pytest.param([K80S], [], [GROUP], False, id="a known group can grow"),
        pytest.param([STATIC], [], [GROUP], False, id="an unknown group can grow"),
        pytest.param([K80S], [], [replace(GROUP, grows=False)], True, id="a group that is full"),
        pytest.param(
            [STATIC, Node("g-1", {EKS: "g", TYPE: "m5.large"})],
            [],
            [GROUP],
            True,
            id="a group without GPUs can grow",
        ),
        pytest.param([K80S], [pool(needs(TYPE, "In", "p2.xlarge"))], [], False, id="a known type"),
        pytest.param([STATIC], [pool(needs(CATEGORY, "In", "p"))], [], False, id="unknown types"),
        pytest.param([K80S], [pool(needs(TYPE, "In", "m5.large"))], [], True, id="without GPUs"),
        pytest.param(
            [replace(K80S, gpus={GPU: 4}), STATIC],
            [pool(needs(TYPE, "In", "p2.xlarge"))],
            [],
            True,
            id="a known type that is too small",
        ),
        pytest.param(
            [K80S],
            [pool(needs(TYPE, "In", "p2.xlarge"), taints=[{"key": "x", "effect": "NoExecute"}])],
            [],
            True,
            id="a known type that the pod does not tolerate",
        ),
        pytest.param(
            [K80S, Node("new", {TYPE: "p2.xlarge"}, created=NOW)], [], [], False, id="a node joins"
        ),
    ],
)
def test_a_workload_is_not_too_large_for_a_cluster_that_can_grow(
    nodes: list[Node], pools: list[Raw], groups: list[Group], *, warned: bool
) -> None:
    store = store_of(*pools, nodes=tuple(nodes))
    if groups:
        store.node_groups.put("kube-system/cluster-autoscaler-status", tuple(groups), NOW)
    inventory = store.inventory(NOW)
    assert sum(each.nodes for each in inventory.index.totals.values()) == sum(
        bool(each.gpus) for each in nodes
    ), "what may come is not counted as if it were there"
    containers = [{"name": "c", "resources": {"limits": {GPU: "8"}}}]
    cx = Context(inventory=inventory, template=True, workload_gpus={GPU: 80})
    found = workload_too_large.check(Pod({"spec": {"containers": containers}}), cx)
    assert bool(list(found)) is warned


def severities(
    inventory: Inventory, asked: dict[str, int], selector: dict[str, str] | None = None
) -> list[Severity]:
    limits = {resource: str(amount) for resource, amount in asked.items()}
    containers = [{"name": "c", "resources": {"limits": limits}}]
    spec = {"nodeSelector": selector or {}, "containers": containers}
    found = never_fits.check(Pod({"spec": spec}), Context(inventory=inventory))
    return [each.severity for each in found]


def verdict(*, denied: bool | None) -> list[Severity]:
    return [] if denied is False else [Severity.DENY if denied else Severity.MANUAL]


@pytest.mark.parametrize(
    ("state", "denied"),
    [("pending", False), ("rebooting", False), ("success", True), ("failed", True), (None, True)],
)
def test_a_node_whose_gpus_are_being_sliced_anew_may_get_any(
    state: str | None, *, denied: bool
) -> None:
    """NVIDIA's MIG manager; GPU Feature Discovery writes the product anew, too."""
    product = "nvidia.com/gpu.product"
    labels = {product: "A100", **({"nvidia.com/mig.config.state": state} if state else {})}
    store = store_of(nodes=(Node("a", labels, (), {GPU: 8}),))
    selector = {product: "A100-MIG-1g.5gb"}
    assert severities(store.inventory(NOW), {MIG: 1}, selector) == verdict(denied=denied)
    assert severities(store.inventory(NOW), {GPU: 9}) == [Severity.DENY]
