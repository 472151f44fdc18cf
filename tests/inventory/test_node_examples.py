"""Which labels of GKE say that a node hands out parts of GPUs."""

from __future__ import annotations

import pytest

from tests.rules.pods import GPU
from webhook.capacity.nodes import Node
from webhook.inventory import node_examples

SLICES = "cloud.google.com/gke-gpu-partition-size"
SHARING = "cloud.google.com/gke-gpu-sharing-strategy"
CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"


@pytest.mark.parametrize(
    ("key", "value", "whole"),
    [
        pytest.param(SLICES, "", True, id="no slices"),
        pytest.param(SLICES, "1g.5gb", False, id="slices"),
        pytest.param(SHARING, "", True, id="no sharing"),
        pytest.param(SHARING, "time-sharing", False, id="sharing"),
        pytest.param(CLIENTS, "", True, id="no number of clients"),
        pytest.param(CLIENTS, "1", True, id="one client"),
        pytest.param(CLIENTS, "2", False, id="two clients"),
    ],
)
def test_only_a_node_with_whole_devices_says_what_the_next_one_has(
    key: str, value: str, *, whole: bool
) -> None:
    assert node_examples.at_most(Node("a", {key: value}, (), {GPU: 8})) == (
        {GPU: 8} if whole else {}
    )
