"""What is kept of each kind of object: little, and nothing of what cannot be read."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from webhook.capacity.nodes import Node
from webhook.core.namespace_selection import Selection
from webhook.core.settings import (
    Allowance,
    Capacity,
    Limit,
    Override,
    Policy,
    Settings,
    Taint,
)
from webhook.inventory import object_facts
from webhook.inventory.object_facts import PodFacts

SETTINGS = Settings()
GPU = "nvidia.com/gpu"
WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"

NODES: dict[str, tuple[Any, Node]] = {
    "all labels, taints, and GPUs alone of what is allocatable": (
        {
            "metadata": {"name": "n", "labels": {"zone": "a", "rack": "1"}},
            "spec": {"taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {GPU: "8"},
                "allocatable": {GPU: "7", "cpu": "96", "vpc.amazonaws.com/pod-eni": "9"},
            },
        },
        Node("n", {"zone": "a", "rack": "1"}, (Taint(GPU, "present"),), {GPU: 7}, most={GPU: 8}),
    ),
    "devices that are not healthy, all of them": (
        {
            "metadata": {"name": "n"},
            "status": {"capacity": {GPU: "8", "cpu": "96"}, "allocatable": {"cpu": "96"}},
        },
        Node("n", {}, (), {}, most={GPU: 8}),
    ),
    "when it was made": (
        {"metadata": {"name": "n", "creationTimestamp": "1970-01-02T00:00:00Z"}},
        Node("n", {}, created=86400.0),
    ),
    "a time that is none": (
        {"metadata": {"name": "n", "creationTimestamp": "yesterday"}},
        Node("n", {}),
    ),
    "nor null": ({"metadata": {"name": "n", "creationTimestamp": None}}, Node("n", {})),
    "names by which a GPU may come, of any vendor": (
        {
            "metadata": {"name": "n"},
            "status": {
                "allocatable": {
                    "volcano.sh/vgpu-number": "10",
                    "aliyun.com/gpu-mem": "0",
                    "nvidia.com/hostdev": "8",
                    "alpha.kubernetes.io/nvidia-gpu": "1",
                    "rdma/hca": "1",
                    "memory": "1Gi",
                }
            },
        },
        Node(
            "n",
            {},
            others=(
                "aliyun.com/gpu-mem",
                "alpha.kubernetes.io/nvidia-gpu",
                "nvidia.com/hostdev",
                "volcano.sh/vgpu-number",
            ),
        ),
    ),
    "capacity where nothing is allocatable yet": (
        {"metadata": {"name": "n"}, "status": {"capacity": {GPU: "8"}}},
        Node("n", {}, (), {GPU: 8}),
    ),
    "slices and shared GPUs under their own names": (
        {
            "metadata": {"name": "n"},
            "status": {"allocatable": {"nvidia.com/mig-1g.5gb": "7", f"{GPU}.shared": "4"}},
        },
        Node("n", {}, (), {"nvidia.com/mig-1g.5gb": 7, f"{GPU}.shared": 4}),
    ),
    "zero is an amount: the plugin is away": (
        {"metadata": {"name": "n"}, "status": {"allocatable": {GPU: "0"}}},
        Node("n", {}, (), {GPU: 0}),
    ),
    "a taint without a value, or with null": (
        {
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": "a", "effect": "NoExecute"}, {"key": "b", "value": None}]},
        },
        Node("n", {}, (Taint("a", "", "NoExecute"), Taint("b", "", "")), {}),
    ),
    "an amount that is no quantity": (
        {"metadata": {"name": "n"}, "status": {"allocatable": {GPU: "many"}}},
        Node("n", {}, (), {}),
    ),
    "members of the wrong type": (
        {"metadata": {"name": "n", "labels": [1]}, "spec": 3, "status": {"allocatable": "x"}},
        Node("n", {}, (), {}),
    ),
}


@pytest.mark.parametrize(("raw", "expected"), NODES.values(), ids=NODES)
def test_node(raw: Any, expected: Node) -> None:
    assert object_facts.node(raw, SETTINGS) == expected


def test_a_legacy_name_of_the_settings_is_kept_whatever_it_is() -> None:
    raw = {"metadata": {"name": "n"}, "status": {"allocatable": {"example.com/old": "1"}}}
    settings = Settings(legacy_resources=("example.com/old",))
    assert object_facts.node(raw, settings).others == ("example.com/old",)
    assert object_facts.node(raw, Settings()).others == ()


def test_nodes_that_offer_the_same_share_what_says_so() -> None:
    raw = NODES["all labels, taints, and GPUs alone of what is allocatable"][0]
    one, other = object_facts.node(raw, SETTINGS), object_facts.node(raw, SETTINGS)
    assert one.gpus is other.gpus
    assert one.taints is other.taints


def pod(phase: str = "Running", node: str = "n", **amounts: str) -> dict[str, Any]:
    resources = {"requests": {name.replace("gpu", GPU): text for name, text in amounts.items()}}
    return {
        "metadata": {"namespace": "team", "name": "p"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase},
    }


def sidecar() -> dict[str, Any]:
    raw = pod(gpu="1")
    raw["spec"]["initContainers"] = [
        {"name": "s", "restartPolicy": "Always", "resources": {"limits": {GPU: "2"}}}
    ]
    return raw


PODS: dict[str, tuple[dict[str, Any], PodFacts | None]] = {
    "a running pod holds what it asked for": (pod(gpu="2"), PodFacts("n", ((GPU, 2),), ())),
    "a pod that waits for its image holds it too": (
        pod("Pending", gpu="2"),
        PodFacts("n", ((GPU, 2),), ()),
    ),
    "a sidecar counts with the containers": (sidecar(), PodFacts("n", ((GPU, 3),), ())),
    "a pod that succeeded holds nothing": (pod("Succeeded", gpu="2"), None),
    "a pod that failed holds nothing": (pod("Failed", gpu="2"), None),
    "a pod without a node holds nothing": (pod("Pending", node="", gpu="2"), None),
    "a pod without GPUs is not kept": (pod(cpu="4"), None),
    "what is no pod is not kept": ({"metadata": {"name": "p"}, "spec": [], "status": 1}, None),
}


@pytest.mark.parametrize(("raw", "expected"), PODS.values(), ids=PODS)
def test_pod(raw: dict[str, Any], expected: PodFacts | None) -> None:
    assert object_facts.pod(raw, SETTINGS) == expected


def test_an_exposed_pod_is_kept_whether_it_holds_gpus_or_not() -> None:
    found = object_facts.pod(pod(cpu="1"), SETTINGS, lambda _: ("variable",))
    assert found == PodFacts("", (), ("variable",))
    found = object_facts.pod(pod(gpu="1"), SETTINGS, lambda _: ("host-path",))
    assert found == PodFacts("n", ((GPU, 1),), ("host-path",))
    assert object_facts.pod(pod("Failed"), SETTINGS, lambda _: ("variable",)) is None


NAMESPACES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "labels that nothing depends on": ({"kubernetes.io/metadata.name": "x", "a": "b"}, {}),
    "our own labels": ({"gpu-webhook.dev/guard": "enabled"}, {"gpu-webhook.dev/guard": "enabled"}),
    "Pod Security": (
        {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "x"},
        {"pod-security.kubernetes.io/enforce": "baseline"},
    ),
    "a label that the settings select by": ({"stage": "prod", "a": "b"}, {"stage": "prod"}),
}


@pytest.mark.parametrize(("labels", "expected"), NAMESPACES.values(), ids=NAMESPACES)
def test_namespace(labels: dict[str, str], expected: dict[str, str]) -> None:
    raw = {"metadata": {"name": "x", "labels": labels}}
    assert object_facts.namespace(raw, frozenset({"stage"})).labels == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({WHITELIST: "[]"}, "[]", id="kept as it is written"),
        pytest.param({"other": "x"}, "", id="no other annotation is"),
        pytest.param({WHITELIST: ""}, "", id="an empty one is as good as none"),
        pytest.param({WHITELIST: 3}, "", id="nor what is no text"),
    ],
)
def test_the_whitelist_of_tolerations(annotations: Any, expected: str) -> None:
    facts = object_facts.namespace({"metadata": {"annotations": annotations}}, frozenset())
    assert facts.whitelist == expected


def test_the_settings_name_labels_in_overrides_exceptions_and_limits() -> None:
    def where(key: str) -> Selection:
        return Selection(labels=((key, "x"),))

    settings = replace(
        SETTINGS,
        policy=Policy(
            overrides=(Override(where("one")),), exceptions=(Allowance((), where("two")),)
        ),
        capacity=Capacity(limits=(Limit({GPU: 1}, where("three")),)),
    )
    assert object_facts.namespace_keys(settings) == {"one", "two", "three"}
    assert object_facts.namespace_keys(SETTINGS) == frozenset()


def test_a_device_class_serves_its_own_name_and_an_extended_one() -> None:
    raw: dict[str, Any] = {"metadata": {"name": "gpu.nvidia.com"}}
    own = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    assert object_facts.device_class(raw) == (own,)
    assert object_facts.device_class({**raw, "spec": {"extendedResourceName": GPU}}) == (own, GPU)
    assert object_facts.device_class({**raw, "spec": {"extendedResourceName": ""}}) == (own,)


GFD, SOLD = "nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count"
COUNTS: dict[str, tuple[dict[str, str], dict[str, str], dict[str, int]]] = {
    "a device is away": ({GFD: "8"}, {GPU: "7"}, {GPU: 8}),
    "as its cloud sells it": ({SOLD: "8"}, {GPU: "7"}, {GPU: 8}),
    "the plugin is away": ({GFD: "8"}, {GPU: "0"}, {GPU: 8}),
    "all are there": ({GFD: "8", SOLD: "8"}, {GPU: "8"}, {GPU: 8}),
    "it offers more, as shares": ({GFD: "8"}, {GPU: "80"}, {GPU: 80}),
    "it is sliced": (
        {GFD: "8", "nvidia.com/mig.config": "half"},
        {GPU: "4", "nvidia.com/mig-1g.5gb": "28"},
        {GPU: 4, "nvidia.com/mig-1g.5gb": 28},
    ),
    "it offers none under any name": ({GFD: "8"}, {"cpu": "8"}, {}),
    "no number": ({GFD: "many", SOLD: "99999"}, {GPU: "7"}, {GPU: 7}),
    "no labels": ({}, {GPU: "7"}, {GPU: 7}),
}


@pytest.mark.parametrize(("labels", "offered", "counted"), COUNTS.values(), ids=COUNTS)
def test_a_node_has_as_many_devices_as_its_labels_count(
    labels: dict[str, str], offered: dict[str, str], counted: dict[str, int]
) -> None:
    raw = {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": offered}}
    found = object_facts.node(raw, SETTINGS)
    assert found.counted == counted
    assert found.gpus == {name: int(offered[name]) for name in counted}, "what it offers now"


API = "cluster.x-k8s.io/"
OWNERS: dict[str, tuple[Any, str]] = {
    "Cluster API": (
        {
            f"{API}owner-kind": "MachineSet",
            f"{API}owner-name": "gpu-bcd2f",
            f"{API}cluster-namespace": "team",
        },
        "MachineSet/team/gpu-bcd2f",
    ),
    "half of it": ({f"{API}owner-kind": "MachineSet", f"{API}owner-name": "gpu-bcd2f"}, ""),
    "OpenShift": (
        {"machine.openshift.io/machine": "openshift-machine-api/c-x2-gpu-us-east-1a-bcd2f"},
        "MachineSet/openshift-machine-api/c-x2-gpu-us-east-1a",
    ),
    "a master of OpenShift": (
        {"machine.openshift.io/machine": "openshift-machine-api/c-master-0"},
        "",
    ),
    "no name": ({"machine.openshift.io/machine": 5}, ""),
    "others": ({"example.com/x": "y"}, ""),
    "none": (None, ""),
}


@pytest.mark.parametrize(("annotations", "expected"), OWNERS.values(), ids=OWNERS)
def test_what_made_the_machine_of_a_node(annotations: Any, expected: str) -> None:
    raw = {"metadata": {"name": "n", "annotations": annotations}}
    assert object_facts.node(raw, SETTINGS).owner == expected


KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "namespace and name": ({"metadata": {"namespace": "x", "name": "y"}}, "x/y"),
    "a name alone": ({"metadata": {"name": "y"}}, "y"),
    "no name": ({"metadata": {"namespace": "x"}}, ""),
    "no metadata": ({}, ""),
}


@pytest.mark.parametrize(("raw", "expected"), KEYS.values(), ids=KEYS)
def test_key(raw: dict[str, Any], expected: str) -> None:
    assert object_facts.key_of(raw) == expected


def _asks(number: int, names: int) -> dict[str, Any]:
    limits = {f"nvidia.com/mig-{number}-{each}": "1" for each in range(names)}
    container = {"name": "c", "resources": {"limits": limits}}
    return {"spec": {"nodeName": "n", "containers": [container]}}


def test_nothing_is_kept_of_pods_that_are_no_more() -> None:
    """A tenant makes up names, a pod at a time; the facts of deleted pods must not stay."""
    object_facts.pod(_asks(0, 30), SETTINGS)
    tracemalloc.start()
    try:
        for number in range(1, 101):
            object_facts.pod(_asks(number, 30), SETTINGS)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000


def test_the_pods_of_a_node_share_its_name() -> None:
    names = [str(b"node", "ascii") for _ in range(2)]
    found = [
        object_facts.pod(
            {**_asks(0, 1), "spec": _asks(0, 1)["spec"] | {"nodeName": name}}, SETTINGS
        )
        for name in names
    ]
    assert names[0] is not names[1]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].node is found[1].node


def test_more_resources_than_any_node_has_hold_nothing() -> None:
    found = object_facts.pod(_asks(0, 32), SETTINGS)
    assert found is not None
    assert len(found.gpus) == 32
    assert object_facts.pod(_asks(0, 33), SETTINGS) is None
    seen = object_facts.pod(_asks(0, 33), SETTINGS, lambda _: ("variable",))
    assert seen == PodFacts("", (), ("variable",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("zone=a", {"zone": "a"}, id="a label"),
        pytest.param(" zone = a , x.io/y=b", {"zone": "a", "x.io/y": "b"}, id="two, with spaces"),
        pytest.param("gpu=", {"gpu": ""}, id="an empty value"),
        pytest.param("zone=a,zone=b", {"zone": "b"}, id="one twice: the last"),
        pytest.param("", {}, id="empty"),
        pytest.param("zone", {}, id="no value: the plugin refuses all pods"),
        pytest.param("zone==a", {}, id="an operator that it does not know"),
        pytest.param("zone=a,", {}, id="a comma too many"),
        pytest.param(3, {}, id="no text"),
    ],
)
def test_the_node_selector_of_a_namespace(text: Any, expected: dict[str, str]) -> None:
    """As ConvertSelectorToLabelsMap reads it, on which PodNodeSelector is built."""
    annotations = {"scheduler.alpha.kubernetes.io/node-selector": text}
    facts = object_facts.namespace({"metadata": {"annotations": annotations}}, frozenset())
    assert facts.node_selector == expected
