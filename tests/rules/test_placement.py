from __future__ import annotations

from typing import Any

import pytest

from tests.rules.pods import GPU, LEGACY, SPEC, container, found, modern_pod, pod
from webhook.core.edits import Set
from webhook.core.findings import Finding
from webhook.core.rule import Context
from webhook.core.settings import Placement, Settings
from webhook.rules import placement as rule

PRESENT = "nvidia.com/gpu.present"
ON = Context(Settings(placement=Placement(enabled=True)))
ANTI: dict[str, Any] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}


def placed(label: str = PRESENT, value: str = "true") -> Finding:
    message = f"GPU pods go to GPU nodes here; write nodeSelector: {label}: {value}"
    at = SPEC / "nodeSelector" / label
    return Finding(rule.CODE, at, message, (Set(at, value),))


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(modern_pod(), Context(), [], id="off by default: untouched"),
        pytest.param(
            modern_pod(nodeSelector={"zone": "a"}), ON, [], id="a nodeSelector: untouched"
        ),
        pytest.param(modern_pod(affinity=ANTI), ON, [], id="any affinity: untouched"),
        pytest.param(
            pod(container({LEGACY: "0"}), container({GPU: "0"})), ON, [], id="no GPU: untouched"
        ),
        pytest.param(modern_pod(), ON, [placed()], id="a GPU pod that names no node"),
        pytest.param(
            modern_pod(nodeSelector={}, affinity={}), ON, [placed()], id="empty is as good as none"
        ),
        pytest.param(
            pod(container(), initContainers=[container({GPU: "1"})]),
            ON,
            [placed()],
            id="an init container with a GPU",
        ),
        pytest.param(
            modern_pod(),
            Context(Settings(placement=Placement(enabled=True, label="pool", value="gpu"))),
            [placed("pool", "gpu")],
            id="the label of the settings",
        ),
    ],
)
def test_placement(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected
