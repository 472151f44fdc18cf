"""Which labels say that a node offers parts of GPUs as whole ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.pods import GPU, PRODUCT
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.capacity.whole_gpus import asked_for, is_exclusion, is_part, parts
from webhook.core.settings import Models, Settings

SLICES = "cloud.google.com/gke-gpu-partition-size"
SHARING = "cloud.google.com/gke-gpu-sharing-strategy"
CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
STRATEGY = "nvidia.com/gpu.sharing-strategy"
REPLICAS = "nvidia.com/gpu.replicas"
MPS = "nvidia.com/mps.capable"


def other(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn", "values": [value]}


@pytest.mark.parametrize(
    ("key", "value", "setting", "expected"),
    [
        pytest.param(SLICES, "1g.5gb", "mig", other(SLICES, "1g.5gb"), id="GKE: slices"),
        pytest.param(SHARING, "mps", "shared", other(SHARING, "mps"), id="GKE: sharing"),
        pytest.param(CLIENTS, "2", "shared", other(CLIENTS, "2"), id="GKE: clients of one GPU"),
        pytest.param(SLICES, "", "", None, id="GKE: no slices"),
        pytest.param(SHARING, "", "", None, id="GKE: no sharing"),
        pytest.param(CLIENTS, "1", "", None, id="GKE: one client"),
        pytest.param(CLIENTS, "", "", None, id="GKE: no number of clients"),
        pytest.param(CLIENTS, "odd", "", None, id="GKE: odd number of clients"),
        pytest.param(STRATEGY, "mps", "shared", other(STRATEGY, "mps"), id="GFD: sharing"),
        pytest.param(STRATEGY, "none", "", None, id="GFD: no sharing"),
        pytest.param(REPLICAS, "4", "shared", other(REPLICAS, "4"), id="GFD: replicas"),
        pytest.param(REPLICAS, "1", "", None, id="GFD: one replica"),
        pytest.param(REPLICAS, "", "", None, id="GFD: no number of replicas"),
        pytest.param(MPS, "true", "shared", other(MPS, "true"), id="GFD: MPS"),
        pytest.param(MPS, "false", "", None, id="GFD: no MPS"),
        pytest.param(
            PRODUCT, "A100-MIG-1g.5gb", "mig", other(PRODUCT, "A100-MIG-1g.5gb"), id="GFD: a slice"
        ),
        pytest.param(
            PRODUCT,
            "Tesla-T4-SHARED",
            "shared",
            other(PRODUCT, "Tesla-T4-SHARED"),
            id="GFD: shared",
        ),
        pytest.param(PRODUCT, "Tesla-T4", "", None, id="a whole GPU"),
    ],
)
def test_marks(key: str, value: str, setting: str, expected: Any) -> None:
    inventory = Inventory((NodeClass({key: value}, (), {GPU: 2}), NodeClass({}, (), {GPU: 2})))
    found = parts(Settings(), inventory)
    assert [each.excluded for each in found] == ([expected] if expected else [])
    assert [(each.setting, each.words, each.nodes) for each in found] == (
        [(setting, f"{key}={value}", 1)] if expected else []
    )
    assert parts(Settings(), inventory) is found, "worked out once"
    if expected:
        operator, values = expected["operator"], expected.get("values", ())
        assert is_exclusion(key, operator, values)
        assert not is_exclusion(key, "In", values)
        assert not is_exclusion("zone", operator, values)
        assert parts(Settings(models=Models(shared=True, mig=True)), inventory) == ()


def test_nodes_that_offer_no_gpus_under_that_name_do_not_count() -> None:
    renamed = NodeClass({STRATEGY: "time-slicing"}, (), {"nvidia.com/gpu.shared": 8})
    assert parts(Settings(), Inventory((renamed,))) == ()
    assert parts(Settings(), None) == ()


def test_a_model_by_its_name() -> None:
    assert is_part("A100-MIG-1g.5gb")
    assert not is_part("A100")
    assert not is_exclusion(PRODUCT, "NotIn", ["A100"])


def test_exclusions_as_they_were_written_before() -> None:
    assert is_exclusion(SHARING, "DoesNotExist", ())
    assert not is_exclusion(STRATEGY, "DoesNotExist", ())


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        pytest.param(SHARING, "In", ["time-sharing"], "shared", id="a strategy"),
        pytest.param(SLICES, "Exists", [], "mig", id="any slices"),
        pytest.param(CLIENTS, "Gt", ["2"], "shared", id="a number of clients"),
        pytest.param(PRODUCT, "In", ["A100-MIG-1g.5gb"], "mig", id="the name of a slice"),
        pytest.param(PRODUCT, "In", ["Tesla-T4-SHARED"], "shared", id="the name of a shared one"),
        pytest.param(PRODUCT, "Exists", [], "", id="any model"),
        pytest.param(STRATEGY, "In", ["none"], "", id="none of it"),
        pytest.param(SHARING, "NotIn", ["mps"], "", id="another than this"),
        pytest.param("zone", "In", ["a"], "", id="another label"),
    ],
)
def test_what_asks_for_parts(key: str, operator: str, values: list[str], expected: str) -> None:
    assert asked_for(key, operator, values) == expected
