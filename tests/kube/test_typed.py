"""Pods with other types than an API server sends: whoever sends them sets off no alarm on bugs."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import run
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.rule import Context
from webhook.core.settings import DriverMount, Drivers, Placement, Settings
from webhook.kube.typed import is_typed
from webhook.rules import GUARD, POLICY, RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

LEGACY, MODERN = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EXPRESSION = {"key": "alpha.kubernetes.io/nvidia-gpu-name", "operator": "In", "values": ["V100"]}
TERM = {"matchExpressions": [EXPRESSION], "matchFields": [EXPRESSION]}
AFFINITY = {
    "nodeAffinity": {
        REQUIRED: {"nodeSelectorTerms": [TERM]},
        PREFERRED: [{"weight": 1, "preference": TERM}],
    },
    "podAntiAffinity": {
        REQUIRED: [{"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "k"}]
    },
}
CONTAINER = {
    "name": "c",
    "image": "i",
    "command": ["nvidia-smi"],
    "args": ["/usr/lib/nvidia-375/x"],
    "env": [
        {"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia-375:/x"},
        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
    ],
    "volumeMounts": [{"name": "v", "mountPath": "/usr/local/nvidia"}],
    "securityContext": {"privileged": True, "seccompProfile": {"type": "x"}},
    "resources": {
        "limits": {LEGACY: 2, MODERN: "1"},
        "requests": {LEGACY: 1},
        "claims": [{"name": "c"}],
    },
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "labels": {"a": "b"},
        "ownerReferences": [{"kind": "Job", "name": "j", "controller": True}],
        "annotations": {
            "scheduler.alpha.kubernetes.io/affinity": json.dumps(AFFINITY),
            "scheduler.alpha.kubernetes.io/tolerations": '[{"key": "a", "value": "b"}]',
            "scheduler.alpha.kubernetes.io/name": "s",
            "pod.beta.kubernetes.io/hostname": "h",
            "security.alpha.kubernetes.io/sysctls": "a=b",
            "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
            "container.seccomp.security.alpha.kubernetes.io/c": "unconfined",
        },
    },
    "spec": {
        "nodeSelector": {"alpha.kubernetes.io/nvidia-gpu-name": "V100"},
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": AFFINITY,
        "volumes": [{"name": "v", "hostPath": {"path": "/usr/lib/nvidia-375"}}],
        "securityContext": {"sysctls": [{"name": "a", "value": "b"}]},
        "schedulerName": "s",
        "runtimeClassName": "r",
        "os": {"name": "linux"},
        "initContainers": [{"name": "i", "resources": {"limits": {MODERN: 1}}}],
        "ephemeralContainers": [{"name": "e", "env": [{"name": "A", "value": "all"}]}],
        "containers": [CONTAINER],
    },
}
JUNK: list[Any] = ["x", 1, True, [], {}, [1], [[]], {"x": 1}]
NODES = Inventory((NodeClass({"nvidia.com/gpu.product": "V100"}, gpus={MODERN: 8}, nodes=("a",)),))
SETTINGS = Settings(
    scope="all-legacy",
    drivers=Drivers((DriverMount("/a", "/b"),), "/b"),
    placement=Placement(enabled=True),
)


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if at:
        yield at
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        yield from places(member, (*at, key))


def with_junk(at: tuple[str | int, ...], junk: Any) -> dict[str, Any]:
    pod: Any = copy.deepcopy(POD)
    holder = pod
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = junk
    return pod  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(
            at, id=".".join(map(str, at)), marks=[pytest.mark.large] if len(at) > 2 else []
        )
        for at in places(POD)
    ],
)
def test_no_rule_fails_by_what_an_api_server_never_sends(at: tuple[str | int, ...]) -> None:
    for junk in JUNK:
        for rules in (RULES, POLICY, GUARD):
            pod = with_junk(at, copy.deepcopy(junk))
            verdict = run(rules, pod, Context(SETTINGS, NODES, "default"), every_pod=True)
            assert verdict.failed == (), junk


def test_a_pod_of_an_api_server_is_typed() -> None:
    assert is_typed(POD)
    assert is_typed({})
    assert is_typed({"metadata": None, "spec": {"containers": None, "new": {"a": [1]}}})


@pytest.mark.parametrize(
    ("at", "junk"),
    [
        pytest.param(("spec",), "x", id="a text for a map"),
        pytest.param(("spec", "tolerations"), {}, id="a map for a list"),
        pytest.param(("spec", "tolerations"), [1], id="a number for a map"),
        pytest.param(("spec", "nodeSelector", "a"), 1, id="a number for a text"),
        pytest.param(("spec", "containers", 0, "resources", "limits", "a"), True, id="a truth"),
        pytest.param(("spec", "containers", 0, "args", 0), 1, id="a number in a list of texts"),
    ],
)
def test_what_is_not_typed(at: tuple[str | int, ...], junk: Any) -> None:
    assert not is_typed(with_junk(at, junk))
