"""Settings and inventories to repair pods with, each of a kind that some cluster has."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.rule import Context
from webhook.core.settings import (
    Affinity,
    DriverMount,
    Drivers,
    Models,
    Placement,
    Settings,
    Taint,
)

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-gpu"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
GKE = "cloud.google.com/gke-accelerator"
PRODUCT = "nvidia.com/gpu.product"
GPUS = {"nvidia.com/gpu": 4}

SETTINGS = {
    "default": Settings(),
    "further names": Settings(legacy_resources=(LEGACY, OPAQUE), gpu_resources=("nvidia.com/*",)),
    "all legacy": Settings(scope="all-legacy", affinity=Affinity("all")),
    "shared": Settings(
        gpu_resource="nvidia.com/gpu.shared",
        models=Models(shared=True, mig=True, values=(("Voodoo 2", ("V2",)),)),
        annotation_schedulers=("gpu-scheduler",),
    ),
    "gke": Settings(models=Models(profile="gke"), taints=(Taint("sku", "gpu"), Taint("x", "y"))),
    "nvidia-375": Settings(
        drivers=Drivers((DriverMount("/usr/lib/nvidia-375", "/usr/lib/nvidia"),), "/usr/lib/nvidia")
    ),
    "host-path": Settings(
        drivers=Drivers(
            (
                DriverMount("/opt/driver", "/usr/local/nvidia"),
                DriverMount("/dev/x", "/dev/x", "File"),
            ),
            "/usr/local/nvidia/lib64",
            remove=("/usr/lib", "/data", "/dev/nvidia*"),
        )
    ),
    "runtime-class": Settings(
        drivers=Drivers(runtime_class="nvidia"),
        placement=Placement(enabled=True),
    ),
}

INVENTORIES: dict[str, Inventory | None] = {
    "none": None,
    "empty": Inventory(),
    "GFD": Inventory(
        (
            NodeClass({PRODUCT: "Tesla-K80"}, (Taint("nvidia.com/gpu"), Taint("sku", "gpu")), GPUS),
            NodeClass({PRODUCT: "Tesla-P100-PCIE-16GB"}, (), GPUS),
            NodeClass({PRODUCT: "Tesla-P100-SXM2-16GB"}, (Taint("dedicated", "gpu"),), GPUS),
            NodeClass({PRODUCT: "NVIDIA-GeForce-GTX-1080-Ti", "zone": "a"}, (), GPUS),
            NodeClass({"zone": "b"}, (Taint("node.kubernetes.io/not-ready"),)),
        ),
        namespaces={"default": {"pod-security.kubernetes.io/enforce": "privileged"}},
        runtime_classes={"nvidia": {}},
    ),
    "legacy labels": Inventory((NodeClass({LABEL: "Tesla-K80", PRODUCT: "K80"}, (), GPUS),)),
    "GKE": Inventory((NodeClass({GKE: "nvidia-tesla-k80"}, (Taint("x", "y"),), GPUS),)),
    "restricted": Inventory(
        (NodeClass({PRODUCT: "Tesla-K80-SHARED"}, (), GPUS),),
        namespaces={"default": {"pod-security.kubernetes.io/enforce": "restricted"}},
    ),
}


@dataclass(frozen=True)
class Cluster:
    """What a pod is repaired with; prints as its two names, so that a failure can be read."""

    settings: str
    inventory: str

    @property
    def context(self) -> Context:
        return Context(SETTINGS[self.settings], INVENTORIES[self.inventory], "default")


def clusters() -> st.SearchStrategy[Cluster]:
    """Draw any settings with any inventory."""
    return st.builds(Cluster, st.sampled_from(list(SETTINGS)), st.sampled_from(list(INVENTORIES)))
