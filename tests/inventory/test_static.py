from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.core.errors import InputError
from webhook.core.settings import Settings, Taint
from webhook.inventory import static

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
    inventory = static.load(str(SAMPLE))

    assert inventory.has_gpus
    assert "Tesla-K80" in inventory.values("nvidia.com/gpu.product")
    assert inventory.gpu_taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"),)


def test_alike_nodes_are_one_class() -> None:
    inventory = static.from_objects([node("a", "4"), node("b", "4"), node("c", "2"), node("d")])

    assert [(each.nodes, dict(each.gpus)) for each in inventory.classes] == [
        (("a", "b"), {"nvidia.com/gpu": 4}),
        (("c",), {"nvidia.com/gpu": 2}),
        (("d",), {}),
    ]
    assert [each.has_gpus for each in inventory.classes] == [True, True, False]


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

    assert static.load(str(file)).has_gpus


def test_namespaces_and_runtime_classes_are_known() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    inventory = static.from_objects(
        [
            {"kind": "Namespace", "metadata": {"name": "n", "labels": labels}},
            {"kind": "RuntimeClass", "metadata": {"name": "nvidia"}},
        ]
    )

    assert inventory.namespaces == {"n": labels}
    assert inventory.runtime_classes == {"nvidia"}


def test_other_devices_do_not_make_a_gpu_node() -> None:
    eni = node("a", "0")
    eni["status"]["allocatable"]["vpc.amazonaws.com/pod-eni"] = "9"
    assert not static.from_objects([eni]).has_gpus
    own = Settings(gpu_resources=("vpc.amazonaws.com/*",))
    assert static.from_objects([eni], own).has_gpus


@pytest.mark.parametrize("amount", ["", None, "x", [], {}])
def test_an_odd_node_is_a_node_without_gpus(amount: object) -> None:
    assert not static.from_objects([node("a", amount)]).has_gpus
    assert not static.from_objects([{"kind": "Node", "metadata": amount, "spec": amount}]).has_gpus


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
        static.load(str(file))

    assert said in str(raised.value)
    assert "kubectl get nodes -o yaml" in str(raised.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match="nowhere: cannot be read"):
        static.load("nowhere")
