"""Small pods to try the API server with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.cluster.client import Json

ALPHA = "alpha.kubernetes.io/nvidia-gpu"
MODEL = "alpha.kubernetes.io/nvidia-gpu-name"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
NVIDIA = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"


def container(
    name: str = "main",
    limits: Mapping[str, object] | None = None,
    requests: Mapping[str, object] | None = None,
    **fields: Any,
) -> Json:
    resources = {k: v for k, v in (("limits", limits), ("requests", requests)) if v is not None}
    return {"name": name, "image": "example.com/image:1", "resources": resources, **fields}


def pod(*containers: Json, annotations: Mapping[str, str] | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "annotations": dict(annotations or {})},
        "spec": {"containers": list(containers or [container()]), **spec},
    }


def alpha(amount: object = 1, **fields: Any) -> Json:
    """Give a container that requests GPUs as in 1.3-1.7."""
    return container(limits={ALPHA: amount}, **fields)


def modern(amount: object = 1, **fields: Any) -> Json:
    return container(limits={NVIDIA: amount}, **fields)


def expression(key: str, operator: str, *values: str) -> Json:
    found: Json = {"key": key, "operator": operator}
    return {**found, "values": list(values)} if values else found


def required(*expressions: Json) -> Json:
    """Give an affinity with one required node selector term."""
    terms = [{"matchExpressions": list(expressions)}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }


def preferred(*expressions: Json, weight: int = 1) -> Json:
    term = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def named(what: Json, name: str) -> Json:
    return {**what, "metadata": {**what["metadata"], "name": name}}


def limits_of(what: Json) -> list[dict[str, str]]:
    """Give the limits of each container, init containers first."""
    spec = what["spec"]
    both: Sequence[Json] = [*spec.get("initContainers", []), *spec["containers"]]
    return [each.get("resources", {}).get("limits", {}) for each in both]
