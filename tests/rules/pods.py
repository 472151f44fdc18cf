"""Pods for the tables, and one rule alone on the real engine."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import jsonpatch

from tests.engine import run
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.rule import Context
from webhook.kube.pointer import Path

if TYPE_CHECKING:
    from webhook.core.findings import Finding
    from webhook.core.rule import Rule
    from webhook.core.settings import Taint

    Raw = dict[str, Any]

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
GPU = "nvidia.com/gpu"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
PRODUCT = "nvidia.com/gpu.product"
SPEC = Path(("spec",))
ANNOTATIONS = Path(("metadata", "annotations"))
FIRST = SPEC / "containers" / 0
LIMITS = FIRST / "resources" / "limits"
REQUESTS = FIRST / "resources" / "requests"
LONGEST_WARNING = 256


def container(
    limits: Raw | None = None, requests: Raw | None = None, name: str = "cuda", **more: Any
) -> Raw:
    sections = {"limits": limits, "requests": requests}
    resources = {key: amounts for key, amounts in sections.items() if amounts is not None}
    return {"name": name, "image": "registry.example/cuda", "resources": resources, **more}


def pod(*containers: Raw, annotations: Raw | None = None, **spec: Any) -> Raw:
    metadata = {"name": "train"} if annotations is None else {"annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": list(containers), **spec},
    }


def legacy_pod(annotations: Raw | None = None, **spec: Any) -> Raw:
    """A pod that can never run as it is, as the API server sends it: limits copied to requests."""
    return pod(container({LEGACY: "1"}, {LEGACY: "1"}), annotations=annotations, **spec)


def modern_pod(annotations: Raw | None = None, **spec: Any) -> Raw:
    """A pod that has run for years, whatever else it says."""
    return pod(container({GPU: "1"}, {GPU: "1"}), annotations=annotations, **spec)


def gpu_nodes(*labels: dict[str, str], taints: tuple[Taint, ...] = ()) -> Inventory:
    """A cluster with a class of GPU nodes for each map of labels."""
    return Inventory(tuple(NodeClass(each, taints, {GPU: 4}) for each in labels))


def found(rule: Rule, obj: Raw, cx: Context | None = None) -> list[Finding]:
    """What the rule says when it runs alone; holds each row to what must be true of them all."""
    cx = cx or Context()
    before = copy.deepcopy(obj)
    verdict = run((rule,), obj, cx)
    assert verdict.failed == ()
    assert jsonpatch.apply_patch(before, verdict.patch) == obj
    assert run((rule,), copy.deepcopy(obj), cx).patch == [], "a second run finds nothing to do"
    for each in verdict.findings:
        assert each.message.isprintable()
        assert len(f"{each.code}: {each.message}") <= LONGEST_WARNING
    return list(verdict.findings)
