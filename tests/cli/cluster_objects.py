"""A cluster with something of everything, as `kubectl get nodes,pods -A -o json` would print it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = dict[str, Any]

GPU = "nvidia.com/gpu"
NVIDIA = {"key": GPU, "effect": "NoSchedule"}
VISION = {"key": "team", "value": "vision", "effect": "NoSchedule"}
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
A100, T4 = "NVIDIA-A100-SXM4-80GB", "Tesla-T4-SHARED"
SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"

POOLS = """\
capacity:
  pools:
  - name: h100-spot
    nodes: 4
    gpus: {nvidia.com/gpu: 8}
    labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
    taints: ["nvidia.com/gpu=present:NoSchedule"]
"""


def node(
    name: str,
    model: str = "",
    gpus: Mapping[str, int] | None = None,
    *taints: Mapping[str, str],
    capacity: Mapping[str, int] | None = None,
    zone: str = "a",
) -> Json:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "zone": zone}
    offered = {name: f"{amount}" for name, amount in (gpus or {}).items()}
    there = {name: f"{amount}" for name, amount in (capacity or {}).items()}
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels | ({"nvidia.com/gpu.product": model} if model else {}),
        },
        "spec": {"taints": list(taints)},
        "status": {"allocatable": offered, "capacity": offered | there},
    }


def pod(name: str, on: str, gpus: Mapping[str, int] | None = None, **container: Any) -> Json:
    limits = {name: f"{amount}" for name, amount in (gpus or {}).items()}
    main = {"name": "main", "image": "cuda", "resources": {"limits": limits}, **container}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"nodeName": on, "containers": [main]},
        "status": {"phase": "Running"},
    }


def nodes() -> list[Json]:
    slices = {SMALL: 14, LARGE: 4}
    return [
        *(node(f"a100-{n}", A100, {GPU: 8}, NVIDIA) for n in range(6)),
        node("a100-ill", A100, {GPU: 7}, NVIDIA, capacity={GPU: 8}),
        node("a100-resting", A100, {GPU: 8}, NVIDIA, CORDONED),
        *(node(f"mig-{n}", A100, slices, NVIDIA, VISION) for n in range(2)),
        *(node(f"t4-{n}", T4, {"nvidia.com/gpu.shared": 4}, zone="ab"[n > 1]) for n in range(5)),
        node("unlabelled", "", {GPU: 2}),
        *(node(f"cpu-{n}") for n in range(12)),
    ]


def pods() -> list[Json]:
    finished = pod("finished", "a100-5", {GPU: 8})
    finished["status"]["phase"] = "Succeeded"
    return [
        *(pod(f"train-{n}", f"a100-{n}", {GPU: 8}) for n in range(4)),
        pod("tune", "a100-4", {GPU: 3}),
        pod("slice", "mig-0", {SMALL: 1}),
        *(pod(f"serve-{n}", f"t4-{n}", {"nvidia.com/gpu.shared": 4}) for n in range(5)),
        finished,
        pod("waiting", "", {GPU: 8}),
        pod("curious", "cpu-1", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
        pod("root", "cpu-2", securityContext={"privileged": True}),
    ]
