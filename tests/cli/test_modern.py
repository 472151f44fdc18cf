"""A correct manifest of today is nothing to fix, whatever is known of the cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
WHITELIST = '[{"key": "team", "operator": "Exists"}]'
WHITELISTED = {
    "kind": "Namespace",
    "metadata": {
        "name": "default",
        "annotations": {"scheduler.alpha.kubernetes.io/tolerationsWhitelist": WHITELIST},
    },
}


def node(*taints: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": "gpu-1"},
        "spec": {"taints": taints},
        "status": {"allocatable": {GPU: "8"}},
    }


def deployment(*tolerations: dict[str, str]) -> dict[str, Any]:
    container = {"name": "main", "image": "cuda", "resources": {"limits": {GPU: 1}}}
    spec: dict[str, Any] = {"containers": [container]}
    if tolerations:
        spec["tolerations"] = list(tolerations)
    labels = {"app": "train"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


PLAIN, WILD = deployment(), deployment({"operator": "Exists"})


@pytest.mark.parametrize(
    ("manifest", "known", "code"),
    [
        pytest.param(PLAIN, [], 0, id="no inventory"),
        pytest.param(PLAIN, [node()], 0, id="no node is tainted"),
        pytest.param(
            PLAIN, [node({**TAINT, "key": "team"})], 3, id="another taint: GPU301 says so"
        ),
        pytest.param(WILD, [node(TAINT)], 0, id="tainted, and tolerated by a wildcard"),
        pytest.param(PLAIN, [node(TAINT)], 2, id="tainted: the toleration is missing"),
        pytest.param(PLAIN, [node(TAINT), WHITELISTED], 3, id="forbidden: GPU301 says so"),
    ],
)
def test_a_manifest_of_today(
    manifest: Any, known: list[Any], code: int, gpu_webhook: Command, tmp_path: Path
) -> None:
    (tmp_path / "train.json").write_text(json.dumps(manifest))
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"kind": "List", "items": known}))
    flags = [f"--inventory={nodes}"] if known else []
    assert gpu_webhook("scan", *flags, "train.json").code == code
    assert gpu_webhook("review", *flags, "-f", "train.json").code == code
