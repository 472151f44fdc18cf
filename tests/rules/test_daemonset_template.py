from __future__ import annotations

from typing import Any

import pytest

from tests.rules.pods import GPU, LEGACY, container, found, legacy_pod, modern_pod, pod
from webhook.core.findings import Finding, Severity
from webhook.core.pointer import Path
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.rules import daemonset_template as rule


def owned(obj: dict[str, Any], kind: str = "DaemonSet", **more: Any) -> dict[str, Any]:
    owner = {"kind": kind, "name": "trainer", "controller": True, **more}
    obj["metadata"]["ownerReferences"] = [{"kind": "Node", "name": "other"}, owner]
    return obj


MIGRATE = Finding(
    rule.CODE,
    Path(("metadata",)),
    "the DaemonSet trainer makes such a pod on every node, and without these GPUs it stays Pending "
    "there: migrate the DaemonSet's template",
    severity=Severity.PERSON,
)
ALL = Context(Settings(scope="all-legacy"))


@pytest.mark.parametrize(
    ("obj", "cx", "expected"),
    [
        pytest.param(legacy_pod(), Context(), [], id="a pod by hand: untouched"),
        pytest.param(
            owned(legacy_pod(), "ReplicaSet"), Context(), [], id="a ReplicaSet: untouched"
        ),
        pytest.param(owned(modern_pod()), Context(), [], id="a DaemonSet that was migrated"),
        pytest.param(owned(modern_pod()), ALL, [], id="the same in scope all-legacy"),
        pytest.param(
            owned(pod(container({LEGACY: 0, GPU: 1}))), Context(), [], id="it wants no legacy GPU"
        ),
        pytest.param(
            owned(legacy_pod(), controller=False), Context(), [], id="it owns, but does not control"
        ),
        pytest.param(owned(legacy_pod()), Context(), [MIGRATE], id="a legacy DaemonSet"),
        pytest.param(owned(legacy_pod()), ALL, [MIGRATE], id="the same in scope all-legacy, too"),
    ],
)
def test_daemonset_template(obj: Any, cx: Context, expected: list[Finding]) -> None:
    assert found(rule, obj, cx) == expected
