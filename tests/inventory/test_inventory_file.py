from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.core.errors import InputError
from webhook.core.settings import Capacity, Pool, Settings, Taint
from webhook.inventory import inventory_file

SAMPLE = Path(__file__).parents[2] / "examples" / "inventory.yaml"


def node(name: str, gpus: Any = None, **labels: str) -> dict[str, Any]:
    allocatable = {"cpu": "8"} | ({} if gpus is None else {"nvidia.com/gpu": gpus})
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        "status": {"allocatable": allocatable},
    }


def test_the_sample_is_what_it_says() -> None:
    inventory = inventory_file.load(str(SAMPLE))

    assert inventory.has_gpus
    assert "Tesla-K80" in inventory.values("nvidia.com/gpu.product")
    assert inventory.gpu_taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"),)


def test_alike_nodes_are_one_class() -> None:
    inventory = inventory_file.from_objects(
        [node("a", "4"), node("b", "4"), node("c", "2"), node("d")]
    )

    assert [(each.nodes, dict(each.gpus)) for each in inventory.classes] == [
        (("a", "b"), {"nvidia.com/gpu": 4}),
        (("c",), {"nvidia.com/gpu": 2}),
        (("d",), {}),
    ]
    assert [each.has_gpus for each in inventory.classes] == [True, True, False]


def test_what_is_unique_to_a_node_is_still_known_of_it() -> None:
    index = inventory_file.from_objects([node("a", "4"), node("b", "4")]).index

    assert index.label("kubernetes.io/hostname").having("b") == index.named("b") != 0


def test_a_node_without_a_name_is_there_and_two_of_one_name_are_one() -> None:
    nameless = {"kind": "Node", "status": {"allocatable": {"nvidia.com/gpu": 2}}}
    inventory = inventory_file.from_objects([nameless, nameless, node("a", "1"), node("a", "4")])

    assert inventory.index.size == 3
    assert inventory.index.totals["nvidia.com/gpu"].total == 8


def pod(name: str, gpus: int, on: str = "a", phase: str = "Running") -> dict[str, Any]:
    container = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"containers": [container, container], "initContainers": [container]} | at(on),
        "status": {"phase": phase},
    }


def at(name: str) -> dict[str, str]:
    return {"nodeName": name} if name else {}


@pytest.mark.parametrize(
    ("pods", "held"),
    [
        pytest.param([], 0, id="no pods are given"),
        pytest.param([pod("x", 1), pod("y", 2)], 6, id="what each pod asks of its node"),
        pytest.param([pod("x", 1, phase="Pending")], 2, id="one that has not started yet"),
        pytest.param([pod("x", 1, on="")], 0, id="one that waits for a node"),
        pytest.param([pod("x", 1, phase="Succeeded")], 0, id="one that is done"),
        pytest.param([pod("x", 1, phase="Failed")], 0, id="one that failed"),
        pytest.param([pod("x", 0)], 0, id="one without GPUs"),
        pytest.param([pod("x", 1, on="gone")], 0, id="one on a node that is gone"),
    ],
)
def test_pods_hold_gpus(pods: list[dict[str, Any]], held: int) -> None:
    index = inventory_file.from_objects([*pods, node("a", "8"), node("b", "1")]).index

    assert index.totals["nvidia.com/gpu"].held == held
    assert index.free_at_least("nvidia.com/gpu", 8 - held) & index.named("a")
    assert not index.free_at_least("nvidia.com/gpu", 9 - held) & index.named("a")


def test_declared_pools_count_as_nodes() -> None:
    pool = Pool("big", {"nvidia.com/gpu": 8}, 3, {"pool": "big"}, (Taint("gpu"),))
    own = Settings(capacity=Capacity(pools=(pool,)))
    inventory = inventory_file.from_objects([node("a", "4")], own)

    assert inventory.index.totals["nvidia.com/gpu"].total == 28
    assert inventory.values("pool") == {"big"}
    assert Taint("gpu") in inventory.taints


def test_names_that_a_device_class_serves_are_known() -> None:
    inventory = inventory_file.from_objects(
        [
            {"kind": "DeviceClass", "metadata": {"name": "plain"}},
            {
                "kind": "DeviceClass",
                "metadata": {"name": "gpu.nvidia.com"},
                "spec": {"extendedResourceName": "nvidia.com/gpu"},
            },
        ]
    )

    assert "nvidia.com/gpu" in inventory.served_by_dra
    assert "nvidia.com/gpu.shared" not in inventory.served_by_dra


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            json.dumps({"kind": "List", "items": [node("a", "1")]}), id="a List, as kubectl prints"
        ),
        pytest.param(json.dumps({"kind": "NodeList", "items": [node("a", "1")]}), id="a NodeList"),
        pytest.param(
            json.dumps(
                {
                    "kind": "NodeList",
                    "items": [{k: v for k, v in node("a", "1").items() if k != "kind"}],
                }
            ),
            id="a NodeList whose items name no kind",
        ),
        pytest.param(json.dumps(node("a", "1")), id="one Node"),
        pytest.param(yaml.safe_dump_all([node("a", "1"), {"kind": "Event"}]), id="YAML documents"),
        pytest.param("\ufeff" + yaml.safe_dump(node("a", "1")), id="with a byte order mark"),
    ],
)
def test_every_form_of_a_list_is_read(text: str, tmp_path: Path) -> None:
    file = tmp_path / "inventory"
    file.write_text(text, encoding="utf-8")

    assert inventory_file.load(str(file)).has_gpus


def test_namespaces_and_runtime_classes_are_known() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    annotations = {
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist": "[]",
        "scheduler.alpha.kubernetes.io/node-selector": "zone=a",
    }
    metadata = {"name": "n", "labels": labels, "annotations": annotations}
    inventory = inventory_file.from_objects(
        [
            {"kind": "Namespace", "metadata": metadata},
            {"kind": "RuntimeClass", "metadata": {"name": "nvidia"}},
            {
                "kind": "RuntimeClass",
                "metadata": {"name": "sandbox"},
                "scheduling": {
                    "nodeSelector": {"a": "b", "odd": 1},
                    "tolerations": [{"key": "x"}, "odd"],
                },
                "overhead": {"podFixed": {"nvidia.com/gpu": 1}},
            },
        ]
    )

    assert inventory.namespaces == {"n": labels}
    assert inventory.whitelists == {"n": "[]"}
    assert inventory.node_selectors == {"n": {"zone": "a"}}
    assert inventory.runtime_classes == {"nvidia": {}, "sandbox": {"a": "b"}}
    assert inventory.class_tolerations == {"sandbox": [{"key": "x"}]}
    assert inventory.class_overheads == {"sandbox": {"nvidia.com/gpu": 1}}


def test_other_devices_do_not_make_a_gpu_node() -> None:
    eni = node("a", "0")
    eni["status"]["allocatable"]["vpc.amazonaws.com/pod-eni"] = "9"
    assert not inventory_file.from_objects([eni]).has_gpus
    own = Settings(gpu_resources=("vpc.amazonaws.com/*",))
    assert inventory_file.from_objects([eni], own).has_gpus


@pytest.mark.parametrize("amount", ["", None, "x", [], {}])
def test_an_odd_node_is_a_node_without_gpus(amount: object) -> None:
    assert not inventory_file.from_objects([node("a", amount)]).has_gpus
    assert not inventory_file.from_objects(
        [{"kind": "Node", "metadata": amount, "spec": amount}]
    ).has_gpus


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "holds no Kubernetes object", id="nothing"),
        pytest.param(b"a: [", ":2: is neither YAML nor JSON", id="broken YAML"),
        pytest.param(b'{"a":\n\n', ":3: is neither YAML nor JSON", id="broken JSON"),
        pytest.param(b"\xff", "is not UTF-8 (byte 0)", id="no text"),
        pytest.param(b"NAME STATUS\n", "holds no Kubernetes object", id="kubectl without -o yaml"),
        pytest.param(b"[" * 5000, "is neither YAML nor JSON", id="deep nesting"),
        pytest.param(b"- " * 100_000, "is neither YAML nor JSON", id="nesting beyond any stack"),
    ],
)
def test_a_bad_file_is_named_with_the_cure(raw: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    file.write_bytes(raw)

    with pytest.raises(InputError) as raised:
        inventory_file.load(str(file))

    assert said in str(raised.value)
    assert "kubectl get nodes -o yaml" in str(raised.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match="nowhere: cannot be read"):
        inventory_file.load("nowhere")
