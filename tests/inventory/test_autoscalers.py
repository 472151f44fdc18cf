"""What autoscalers may add, and how that counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.findings import Severity
from webhook.core.nodes import Node, NodeClass
from webhook.core.pod import Pod
from webhook.core.rule import Context
from webhook.core.settings import Taint
from webhook.inventory import autoscalers
from webhook.inventory.autoscalers import Group
from webhook.inventory.store import Store
from webhook.rules import never_fits

if TYPE_CHECKING:
    from webhook.core.nodes import Inventory

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
    assert autoscalers.node_pool(raw) is None


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
    ],
)
def test_a_node_pool_that_may_have_gpus_is_kept(raw: Raw) -> None:
    assert autoscalers.node_pool(raw) is not None


def store_of(*pools: Raw, nodes: tuple[Node, ...] = ()) -> Store:
    store = Store()
    for raw in pools:
        store.node_pools.put(raw["metadata"]["name"], autoscalers.node_pool(raw), NOW)
    for node in nodes:
        store.nodes.put(node.name, node, NOW)
    return store


def may_come(store: Store, now: float = NOW) -> list[NodeClass]:
    return [each for each in store.classes(now) if each.declared or each.hint]


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
    assert (known.declared, known.hint, known.gpus) == (1, "", {GPU: 4})
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
        pytest.param("p4d.24xlarge", {SHARED: 32}, {SHARED: 33}, True, id="more than it showed"),
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

  Name:        full
  Health:      Healthy (ready=3 unready=0 cloudProviderTarget=3 (minSize=1, maxSize=3))

  Name:        on-its-way
  Health:      Healthy (ready=0 unready=3 notStarted=0 longNotStarted=0 registered=0 \
longUnregistered=0 cloudProviderTarget=3 (minSize=0, maxSize=3))

  Name:        uncounted
  Health:      Healthy (cloudProviderTarget=3 (minSize=1, maxSize=3))
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


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            TEXT,
            {"gke-a-b-1f-grp": True, "full": False, "on-its-way": True, "uncounted": True},
            id="the text of before 1.30",
        ),
        pytest.param(
            YAML,
            {"first": True, "full": False, "on-its-way": True, "none-yet": True, "at-zero": True},
            id="the YAML of today",
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
    found = autoscalers.groups({"data": {"status": status}})
    assert {each.title: each.grows for each in found} == expected


UUID = "0123abcd-0123-4567-89ab-0123456789ab"
EKS = "eks.amazonaws.com/nodegroup"


@pytest.mark.parametrize(
    ("name", "node", "known"),
    [
        pytest.param("x/gke-c-gpu-1f2e-grp", Node("gke-c-gpu-1f2e-x7", {}), True, id="GKE"),
        pytest.param("x/gke-c-gpu-1f2e-grp", Node("gke-c-gpu-9999-x7", {}), False, id="another"),
        pytest.param("aks-gpu-123-vmss", Node("aks-gpu-123-vmss00000a", {}), True, id="AKS"),
        pytest.param(f"eks-gpu-{UUID}", Node("ip-1", {EKS: "gpu"}), True, id="EKS"),
        pytest.param(
            f"eks-my-gpu-{UUID}", Node("ip-1", {EKS: "gpu"}), False, id="another group of EKS"
        ),
        pytest.param("MachineDeployment/ns/gpu", Node("gpu-abc-12", {}), True, id="Cluster API"),
        pytest.param("gpu", Node("gpu-large-abc", {}), False, id="the name of a longer group"),
        pytest.param("my-asg", Node("ip-1", {}), False, id="a name that tells nothing"),
    ],
)
def test_what_the_nodes_of_a_group_have_shown_is_known_of_it(
    name: str, node: Node, *, known: bool
) -> None:
    store = Store()
    groups = (Group(name, grows=True), Group("full", grows=False), Group("gpu-large", grows=False))
    store.node_groups.put("kube-system/cluster-autoscaler-status", groups, NOW)
    hint = f"node group {name.rpartition('/')[2]} (cluster-autoscaler)"
    unknown = NodeClass({}, open_labels=True, open_gpus=True, hint=hint)
    expected = replace(unknown, gpus={GPU: 0}) if known else unknown
    assert may_come(store) == [unknown]
    store.nodes.put(node.name, replace(node, gpus={GPU: 1}), NOW)
    assert may_come(store) == [expected]
    store.nodes.drop(node.name, NOW + 1)
    assert may_come(store, NOW + DAY) == [expected], "remembered for a day"
    assert may_come(store, NOW + 2 * DAY) == [unknown]


CPU = {TYPE: "m5.large"}


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
        pytest.param((Node("g-1", {}, (), {SHARED: 32}),), {SHARED: 33}, True, id="more shares"),
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
    ],
)
def test_a_group_that_can_grow_is_unsure_of_what_its_nodes_did_not_show(
    nodes: tuple[Node, ...], asked: dict[str, int], *, denied: bool | None
) -> None:
    store = store_of(nodes=(*nodes, Node("b", {"other": "yes"}, (), {GPU: 1})))
    store.node_groups.put("kube-system/cluster-autoscaler-status", (Group("g", grows=True),), NOW)
    now = NOW + 1000  # what had just joined has settled
    assert severities(store.inventory(now), asked) == verdict(denied=denied)


def test_what_nobody_of_a_group_that_grows_has_is_refused_as_before() -> None:
    node = Node("g-1", {"nvidia.com/gpu.product": "Tesla-K80"}, (), {GPU: 8})
    store = store_of(nodes=(node,))
    store.node_groups.put("kube-system/cluster-autoscaler-status", (Group("g", grows=True),), NOW)
    selector = {"nvidia.com/gpu.product": "Tesla-T4"}
    assert severities(store.inventory(NOW), {GPU: 1}, selector) == [Severity.DENY]


def severities(
    inventory: Inventory, asked: dict[str, int], selector: dict[str, str] | None = None
) -> list[Severity]:
    limits = {resource: str(amount) for resource, amount in asked.items()}
    containers = [{"name": "c", "resources": {"limits": limits}}]
    spec = {"nodeSelector": selector or {}, "containers": containers}
    found = never_fits.check(Pod({"spec": spec}), Context(inventory=inventory))
    return [each.severity for each in found]


def verdict(*, denied: bool | None) -> list[Severity]:
    return [] if denied is False else [Severity.DENY if denied else Severity.PERSON]


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
