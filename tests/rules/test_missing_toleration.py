from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.rules.pods import GPU, LEGACY, SPEC, container, found, gpu_nodes, modern_pod, pod
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.edits import Append
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import Drivers, Settings, Taint
from webhook.rules import missing_toleration as rule

SLICE = "nvidia.com/mig-1g.5gb"
TO = SPEC / "tolerations"

repaired = partial(Finding, rule.CODE)


def exists(key: str, effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "operator": "Exists", "effect": effect}


def tolerated(*tolerations: dict[str, str], more: str = "") -> Finding:
    keys = ", ".join(f"{each['key']}:{each['effect']}" for each in tolerations)
    message = f"GPU nodes are usually tainted: add the toleration {keys} to the manifest{more}"
    return repaired(TO, message, tuple(Append(TO, each) for each in tolerations))


OLD = container({LEGACY: "1"}, {LEGACY: "1"}, name="old")


def legacy(*containers: Any, **spec: Any) -> Any:
    """A pod that cannot run as it is; its GPU of today stands for what another rule has renamed."""
    return pod(*containers, OLD, **spec)


GPU_ONE = container({GPU: "1"}, {GPU: "1"})
CPU = container({"cpu": "2"}, {"cpu": "2"})
MEMORY = container({"memory": "1Gi"}, {"memory": "1Gi"})
UNRELATED = {"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(legacy(), [], id="1 empty pod: untouched"),
        pytest.param(legacy(CPU), [], id="2 a container without a GPU: untouched"),
        pytest.param(legacy(initContainers=[MEMORY]), [], id="3 an init container without a GPU"),
        pytest.param(
            legacy(GPU_ONE), [tolerated(exists(GPU))], id="4 a container with a GPU: added"
        ),
        pytest.param(
            legacy(initContainers=[GPU_ONE]),
            [tolerated(exists(GPU))],
            id="5 an init container with one",
        ),
        pytest.param(
            legacy(GPU_ONE, tolerations=[UNRELATED]),
            [tolerated(exists(GPU))],
            id="6 an unrelated toleration: kept, the new one after it",
        ),
        pytest.param(
            legacy(container({SLICE: "1"}), GPU_ONE),
            [tolerated(exists(GPU), exists(SLICE))],
            id="7 two resources: two tolerations, sorted by key",
        ),
        pytest.param(
            legacy(GPU_ONE, tolerations=[exists(GPU)]), [], id="8 that very toleration: unchanged"
        ),
        pytest.param(
            legacy(
                GPU_ONE,
                tolerations=[
                    {"key": GPU, "operator": "Equal", "value": "foo", "effect": "NoExecute"}
                ],
            ),
            [tolerated(exists(GPU))],
            id="9 the same key with another effect: kept, the new one added",
        ),
        pytest.param(
            legacy(GPU_ONE, tolerations=[{"operator": "Exists"}]),
            [tolerated(exists(GPU))],
            id="10 a wildcard: kept, the new one added",
        ),
    ],
)
def test_as_extended_resource_toleration(obj: Any, expected: list[Finding]) -> None:
    """The table of plugin/pkg/admission/extendedresourcetoleration, for GPUs."""
    there = list(obj["spec"].get("tolerations", []))
    assert found(rule, obj) == expected
    added = [edit.value for each in expected for edit in each.edits if isinstance(edit, Append)]
    assert obj["spec"].get("tolerations", []) == there + added


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({GPU: "0"}, [], id="no GPU: no toleration, where the plugin would add one"),
        pytest.param({GPU: "-1"}, [], id="a negative amount"),
        pytest.param({GPU: "many"}, [], id="no amount"),
        pytest.param({"example.com/fpga": "1"}, [], id="an extended resource that is no GPU"),
        pytest.param({LEGACY: "1"}, [], id="the legacy name: another rule renames it first"),
        pytest.param({GPU: "500m"}, [tolerated(exists(GPU))], id="a fraction is a GPU"),
    ],
)
def test_only_gpus_with_a_positive_amount(resources: Any, expected: list[Finding]) -> None:
    assert found(rule, legacy(container(resources))) == expected


def test_the_settings_say_which_names_are_gpus() -> None:
    cx = Context(Settings(gpu_resource="example.com/gpu", gpu_resources=("example.com/slice-*",)))
    obj = legacy(container({"example.com/slice-2": 1}), container({"example.com/gpu": 1}), GPU_ONE)
    assert found(rule, obj, cx) == [
        tolerated(exists("example.com/gpu"), exists("example.com/slice-2"))
    ]


SKU = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
EVICT = Taint("gpu-drain", "", "NoExecute")
EVICTED = {"key": "gpu-drain", "operator": "Equal", "value": "", "effect": "NoExecute"}
LABELS = {"nvidia.com/gpu.present": "true"}


@pytest.mark.parametrize(
    ("listed", "carried", "expected"),
    [
        pytest.param(
            (Taint("sku", "gpu"),), (), [exists(GPU)], id="listed, carried by no node: not added"
        ),
        pytest.param(
            (Taint("sku", "gpu"),),
            (Taint("sku", "gpu"),),
            [exists(GPU), SKU],
            id="listed and carried",
        ),
        pytest.param(
            (Taint("sku", "gpu"),),
            (Taint("sku", "gpu", "NoExecute"),),
            [exists(GPU)],
            id="listed, carried with another effect",
        ),
        pytest.param(
            (Taint("sku", "gpu"),),
            (Taint("sku", "fpga"),),
            [exists(GPU)],
            id="carried with another value",
        ),
        pytest.param(
            (), (Taint("sku", "gpu"),), [exists(GPU)], id="carried, but off until it is listed"
        ),
        pytest.param((), (EVICT,), [exists(GPU)], id="never NoExecute"),
        pytest.param(
            (EVICT,), (EVICT,), [exists(GPU), EVICTED], id="NoExecute only if it is listed"
        ),
    ],
)
def test_taints_of_the_settings(
    listed: tuple[Taint, ...], carried: tuple[Taint, ...], expected: list[dict[str, str]]
) -> None:
    cx = Context(Settings(taints=listed), gpu_nodes(LABELS, taints=carried))
    obj = legacy(GPU_ONE)
    (finding,) = found(rule, obj, cx)
    assert obj["spec"]["tolerations"] == expected
    assert (" sku=gpu:NoSchedule to the manifest" in finding.message) == (SKU in expected)


def test_a_listed_taint_needs_an_inventory() -> None:
    cx = Context(Settings(taints=(Taint("sku", "gpu"),)))
    assert found(rule, legacy(GPU_ONE), cx) == [tolerated(exists(GPU))]


OFF_LIMITS = [
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/not-ready",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "startup-taint.cluster-autoscaler.kubernetes.io/driver",
    "karpenter.sh/disrupted",
    "karpenter.sh/unregistered",
]


@pytest.mark.parametrize("key", OFF_LIMITS)
def test_taints_that_say_not_now_are_never_tolerated_nor_named(key: str) -> None:
    taint = Taint(key)
    cx = Context(Settings(taints=(taint,)), gpu_nodes(LABELS, taints=(taint,)))
    assert found(rule, legacy(GPU_ONE), cx) == [tolerated(exists(GPU))]


TEAM = Taint("team", "vision")


@pytest.mark.parametrize(
    ("taints", "there", "more"),
    [
        pytest.param((Taint(GPU, "present"),), [], "", id="the GPU taint is tolerated now"),
        pytest.param(
            (TEAM,), [], "team=vision:NoSchedule", id="a taint that nobody tolerates: named"
        ),
        pytest.param((Taint("cold"),), [], "cold:NoSchedule", id="a taint without a value: named"),
        pytest.param(
            (Taint("a", "1"), Taint("b", "2"), Taint("c", "3"), TEAM),
            [],
            "a=1:NoSchedule, b=2:NoSchedule and 2 more",
            id="many taints: the first two, since a warning is one line",
        ),
        pytest.param(
            (Taint("soft", "", "PreferNoSchedule"),), [], "", id="a taint that repels nobody"
        ),
        pytest.param((TEAM,), [{"operator": "Exists"}], "", id="tolerated by a wildcard"),
        pytest.param((TEAM,), [exists("team")], "", id="tolerated by key"),
        pytest.param((TEAM,), [{"key": "team", "value": "vision"}], "", id="tolerated by value"),
        pytest.param(
            (TEAM,),
            [{"key": "team", "value": "speech"}],
            "team=vision:NoSchedule",
            id="another value: named",
        ),
        pytest.param(
            (TEAM,),
            [exists("team", "NoExecute")],
            "team=vision:NoSchedule",
            id="another effect: named",
        ),
        pytest.param((TEAM,), [exists("crew")], "team=vision:NoSchedule", id="another key: named"),
        pytest.param(
            (Taint("", "vision"),),
            [{"value": "vision"}],
            "=vision:NoSchedule",
            id="no key, no operator",
        ),
    ],
)
def test_other_taints_of_gpu_nodes_are_named(
    taints: tuple[Taint, ...], there: list[Any], more: str
) -> None:
    cx = Context(inventory=gpu_nodes(LABELS, taints=taints))
    text = f". Not tolerated taints of GPU nodes: {more}" if more else ""
    assert found(rule, legacy(GPU_ONE, tolerations=there), cx) == [
        tolerated(exists(GPU), more=text)
    ]


@pytest.mark.parametrize(
    ("name", "drivers"),
    [
        pytest.param("team", Drivers(), id="its own"),
        pytest.param("", Drivers(runtime_class="team"), id="of the driver profile"),
    ],
)
def test_taints_that_the_runtime_class_tolerates_are_not_named(name: str, drivers: Drivers) -> None:
    known = replace(
        gpu_nodes(LABELS, taints=(TEAM, Taint("else"))),
        class_tolerations={"team": [{"key": TEAM.key, "operator": "Exists"}]},
    )
    cx = Context(Settings(drivers=drivers), known)
    spec = {"runtimeClassName": name} if name else {}
    more = ". Not tolerated taints of GPU nodes: else:NoSchedule"
    assert found(rule, legacy(GPU_ONE, **spec), cx) == [tolerated(exists(GPU), more=more)]


def test_taints_of_nodes_without_gpus_are_not_named() -> None:
    cx = Context(inventory=Inventory((NodeClass({}, (TEAM,)),)))
    assert found(rule, legacy(GPU_ONE), cx) == [tolerated(exists(GPU))]


TAINTED = Taint(GPU, "present")
SHARED = f"{GPU}.shared"


def nodes(*classes: tuple[str, Taint | None]) -> Inventory:
    """A class of nodes for each resource, with its taint."""
    return Inventory(
        tuple(
            NodeClass({}, () if taint is None else (taint,), {resource: 4})
            for resource, taint in classes
        )
    )


@pytest.mark.parametrize(
    ("known", "there", "expected"),
    [
        pytest.param(None, [], [], id="no inventory: untouched"),
        pytest.param(nodes((GPU, None)), [], [], id="no node is tainted: untouched"),
        pytest.param(nodes((GPU, Taint("team", "x"))), [], [], id="another taint: untouched"),
        pytest.param(
            nodes((GPU, Taint(GPU, "present", "NoExecute"))), [], [], id="never NoExecute"
        ),
        pytest.param(
            nodes((GPU, Taint(GPU, "x", "PreferNoSchedule"))), [], [], id="a taint that only asks"
        ),
        pytest.param(
            Inventory((NodeClass({}, (TAINTED,)),)), [], [], id="a node without GPUs is tainted"
        ),
        pytest.param(nodes((GPU, TAINTED)), [], [exists(GPU)], id="tainted: added"),
        pytest.param(
            nodes((GPU, None), (GPU, TAINTED)), [], [exists(GPU)], id="one of the nodes is tainted"
        ),
        pytest.param(
            Inventory((NodeClass({}, (TAINTED,), {GPU: 4}, declared=2),)),
            [],
            [exists(GPU)],
            id="a declared pool is tainted",
        ),
        pytest.param(nodes((GPU, TAINTED)), [exists(GPU)], [], id="tolerated"),
        pytest.param(
            nodes((GPU, TAINTED)), [{"operator": "Exists"}], [], id="tolerated by a wildcard"
        ),
        pytest.param(
            nodes((GPU, TAINTED)), [{"key": GPU, "value": "present"}], [], id="tolerated by value"
        ),
        pytest.param(
            nodes((GPU, TAINTED), (GPU, Taint(GPU, "true"))),
            [{"key": GPU, "value": "present"}],
            [exists(GPU)],
            id="one of two values is tolerated",
        ),
    ],
)
def test_a_pod_of_today_gets_it_only_for_a_taint_that_is_there(
    known: Inventory | None, there: list[Any], expected: list[dict[str, str]]
) -> None:
    obj = modern_pod(tolerations=[*there])
    findings = found(rule, obj, Context(inventory=known))
    assert obj["spec"]["tolerations"] == [*there, *expected]
    assert bool(findings) is bool(expected)


def test_a_listed_taint_of_a_pod_of_today_is_tolerated_once() -> None:
    cx = Context(
        Settings(taints=(Taint("sku", "gpu"),)), gpu_nodes(LABELS, taints=(Taint("sku", "gpu"),))
    )
    obj = modern_pod()
    found(rule, obj, cx)
    assert obj["spec"]["tolerations"] == [SKU]
    assert found(rule, modern_pod(tolerations=[{"operator": "Exists"}]), cx) == []


@pytest.mark.parametrize(
    ("resource", "known", "expected"),
    [
        pytest.param(SLICE, nodes((SLICE, TAINTED)), [GPU], id="a slice behind the GPU taint"),
        pytest.param(SHARED, nodes((SHARED, TAINTED)), [GPU], id="a shared GPU behind it"),
        pytest.param(
            SLICE, nodes((SLICE, None), (GPU, TAINTED)), [], id="only other nodes carry it"
        ),
        pytest.param(
            SLICE, nodes((SLICE, Taint(SLICE)), (SLICE, TAINTED)), [GPU, SLICE], id="both taints"
        ),
        pytest.param(
            SLICE,
            nodes((SLICE, Taint(GPU, "", "NoExecute"))),
            [],
            id="another effect",
        ),
    ],
)
def test_slices_and_shared_gpus_behind_the_taint_of_all_gpu_nodes(
    resource: str, known: Inventory, expected: list[str]
) -> None:
    cx = Context(inventory=known)
    of_today = pod(container({resource: "1"}, {resource: "1"}))
    found(rule, of_today, cx)
    assert of_today["spec"].get("tolerations", []) == [exists(key) for key in expected]
    repaired_one = legacy(container({resource: "1"}))
    found(rule, repaired_one, cx)
    keys = sorted({resource, *expected})
    assert repaired_one["spec"]["tolerations"] == [exists(key) for key in keys]


def whitelisted(text: str, known: Inventory) -> Context:
    return Context(inventory=replace(known, whitelists={"lab": text}), namespace="lab")


def test_a_whitelist_of_the_namespace_forbids_it() -> None:
    cx = whitelisted('[{"key": "team", "operator": "Exists"}]', nodes((GPU, TAINTED)))
    assert found(rule, modern_pod(), cx) == []
    message = (
        f"the tolerationsWhitelist of the namespace forbids a toleration of {GPU}:NoSchedule, so "
        "the pod cannot run on GPU nodes with that taint: add it to the namespace's annotation"
    )
    assert found(rule, legacy(GPU_ONE), cx) == [
        Finding(rule.CODE, TO, message, severity=Severity.MANUAL)
    ]


def test_a_whitelist_that_allows_it_changes_nothing() -> None:
    cx = whitelisted('[{"operator": "Exists"}]', nodes((GPU, TAINTED)))
    assert found(rule, modern_pod(), cx) == [tolerated(exists(GPU))]
    assert found(rule, modern_pod(), replace(cx, namespace="other")) == [tolerated(exists(GPU))]


@pytest.mark.parametrize(
    ("whitelists", "is_left_alone"),
    [
        pytest.param({}, True, id="namespaces may not be listed"),
        pytest.param({"old": ""}, True, id="a namespace of which nothing was heard yet"),
        pytest.param({"lab": ""}, False, id="a namespace without a whitelist"),
        pytest.param({"lab": '[{"operator": "Exists"}]'}, False, id="one that allows it"),
    ],
)
def test_where_the_whitelist_is_unknown_a_pod_of_today_is_left_alone(
    whitelists: dict[str, str], *, is_left_alone: bool
) -> None:
    """The plugin PodTolerationRestriction might refuse it; a legacy pod is refused anyway."""
    known = replace(nodes((GPU, TAINTED)), whitelists=whitelists, watched=True)
    cx = Context(inventory=known, namespace="lab")
    assert found(rule, modern_pod(), cx) == ([] if is_left_alone else [tolerated(exists(GPU))])
    assert found(rule, legacy(GPU_ONE), cx) == [tolerated(exists(GPU))]


def test_one_of_two_tolerations_is_forbidden() -> None:
    cx = whitelisted(f'[{{"key": "{GPU}", "operator": "Exists"}}]', nodes((SLICE, TAINTED)))
    first, second = found(rule, legacy(container({SLICE: "1"})), cx)
    assert first == tolerated(exists(GPU))
    assert f"forbids a toleration of {SLICE}:NoSchedule" in second.message
