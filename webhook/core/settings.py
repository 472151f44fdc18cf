"""The settings, each default with its reason. Frozen; `settings` builds them from a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

from webhook.core import legacy_names
from webhook.core.built_in import (
    AUTOSCALER_TAINTS,
    MANAGEMENT_NAMESPACES,
    STARTUP_TAINTS,
    UNTOLERABLE,
)
from webhook.core.namespace_selection import EVERYWHERE, Selection, matches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.modes import Mode

_NVIDIA = "nvidia.com/"
DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"  # a claim written as a resource (KEP-5004)


@dataclass(frozen=True, slots=True)
class Taint:
    """A node taint; in the settings, one that GPU pods tolerate if a node has it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        """The taint as `kubectl taint` writes it."""
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )

    @property
    def is_off_limits(self) -> bool:
        """True for taints of the node life cycle, the autoscaler and Karpenter."""
        return self.key.startswith(UNTOLERABLE) or self.key.startswith(AUTOSCALER_TAINTS)

    @property
    def goes_away(self) -> bool:
        """True for taints that are removed automatically, or together with their node."""
        return _passes_by(self.key, ())


@lru_cache(maxsize=4096)  # the keys of nodes are looked up for each pod
def _passes_by(key: str, startup_taints: tuple[str, ...]) -> bool:
    return Taint(key).is_off_limits or matches((*STARTUP_TAINTS, *startup_taints), key)


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How a kind of cluster labels the GPU model: the node label and its possible values.

    `named` maps a model to values that do not contain its name, or not all of it (machine sizes).
    """

    label: str
    values: tuple[str, ...] = ()
    named: tuple[tuple[str, tuple[str, ...]], ...] = ()


MODEL_PROFILES: dict[str, ModelProfile] = {
    "gfd": ModelProfile("nvidia.com/gpu.product", legacy_names.GFD_PRODUCTS),
    "gke": ModelProfile(
        "cloud.google.com/gke-accelerator", legacy_names.GKE_ACCELERATORS, legacy_names.GKE_NAMED
    ),
    "aks": ModelProfile("node.kubernetes.io/instance-type", named=legacy_names.AKS_SIZES),
    "eks": ModelProfile("k8s.amazonaws.com/accelerator", legacy_names.EKS_ACCELERATORS),
    "karpenter": ModelProfile("karpenter.k8s.aws/instance-gpu-name", legacy_names.KARPENTER_NAMES),
}


@dataclass(frozen=True, slots=True)
class Models:
    """How the label `alpha.kubernetes.io/nvidia-gpu-name` is written now."""

    legacy_label: str = legacy_names.LEGACY_MODEL_LABEL
    profile: str = "gfd"  # a key of MODEL_PROFILES
    label: str = ""  # overrides the profile's label
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()  # legacy value -> current values
    # A shared or sliced GPU is not what the author of a pod of 2017 requested with the model's
    # name.
    shared: bool = False  # accept <model>-SHARED for the model
    mig: bool = False  # accept <model>-MIG-<slice> for the model

    @property
    def key(self) -> str:
        return self.label or MODEL_PROFILES[self.profile].label


@dataclass(frozen=True, slots=True)
class DriverMount:
    """A host path that GPU containers get read-only; the pod fails visibly if it is missing.

    Without a type, containerd would create an empty directory for a missing path.
    """

    path: str
    mount_path: str
    type: Literal["Directory", "File"] = "Directory"


@dataclass(frozen=True, slots=True)
class Drivers:
    """How containers get the CUDA driver: by default, the nodes provide it. Stale host paths."""

    mounts: tuple[DriverMount, ...] = ()  # of the profile `host-path`
    library_path: str = ""  # added to LD_LIBRARY_PATH of GPU containers, if given
    runtime_class: str = ""  # of the profile `runtime-class`
    assume_runtime_class: bool = False  # the class exists, although no inventory shows it
    # The default of Pod Security Admission for namespaces without a label is in a file of the API
    # server that cannot be read from inside the cluster.
    pod_security: Literal["privileged", "baseline", "restricted"] = "privileged"
    remove: tuple[str, ...] = ()  # more stale host paths; * stands for text within a segment


@dataclass(frozen=True, slots=True)
class Affinity:
    """How the affinity annotation is read."""

    # `namespaces: []` meant all namespaces in 1.3-1.5, and the pod's own since 1.6 (CHANGELOG-1.6).
    empty_namespaces: Literal["own", "all"] = "own"


@dataclass(frozen=True, slots=True)
class Placement:
    """Adds this label as nodeSelector to GPU pods without nodeSelector and affinity."""

    enabled: bool = False  # the resource request is enough for placement
    label: str = "nvidia.com/gpu.present"  # set by the GPU operator only
    value: str = "true"


@dataclass(frozen=True, slots=True)
class Override:
    """Modes in some namespaces: `mode` for all rules, `rules` for single rules."""

    where: Selection = EVERYWHERE
    mode: Mode | None = None
    rules: Mapping[str, Mode] = field(default_factory=dict)  # by code


@dataclass(frozen=True, slots=True)
class Allowance:
    """Where the annotation gpu-webhook.dev/allow.GPU3xx counts, and for which rules."""

    rules: tuple[str, ...]  # codes
    where: Selection = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Policy:
    """The mode of each rule. core/modes.py has the modes of rules that are not set here."""

    mode: Mode | None = None
    rules: Mapping[str, Mode] = field(default_factory=dict)  # by code
    overrides: tuple[Override, ...] = ()  # later ones win
    # None: every user who creates pods could exempt their own pods.
    exceptions: tuple[Allowance, ...] = ()

    def allows_exception(self, code: str, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether an exception to this rule counts in this namespace."""
        return any(
            code in each.rules and each.where.selects(namespace, labels) for each in self.exceptions
        )


@dataclass(frozen=True, slots=True)
class Pool:
    """A node pool that may be empty now: it counts as if it had this number of nodes."""

    name: str
    gpus: Mapping[str, int]
    nodes: int = 1  # at most
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """The most GPUs that one pod may request in some namespaces, by resource name."""

    gpus: Mapping[str, int]
    where: Selection = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Capacity:
    """How GPU requests are checked against the inventory."""

    equivalent_schedulers: tuple[str, ...] = ()  # checked like pods of default-scheduler
    startup_taints: tuple[str, ...] = ()  # keys of more taints that are temporary; * at the end
    pools: tuple[Pool, ...] = ()
    # Kubelet, cloud, driver and GPU Feature Discovery need some minutes for a new node.
    joining_minutes: int = 15
    # A driver upgrade takes hours at worst; a spot market offers a model again by the next day.
    remembered_hours: int = 24
    autoscaler_status: str = "kube-system/cluster-autoscaler-status"  # namespace/name
    limits: tuple[Limit, ...] = ()

    def passes_by(self, key: str) -> bool:
        """True for the key of a temporary taint."""
        return _passes_by(key, self.startup_taints)


@dataclass(frozen=True, slots=True)
class Exempt:
    """Pods that may see GPUs without a request; all given conditions must hold."""

    namespaces: tuple[str, ...] = ()  # name patterns
    labels: tuple[tuple[str, str], ...] = ()  # of the pod, which its author chooses

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels in this namespace is exempt."""
        return (not self.namespaces or matches(self.namespaces, namespace)) and all(
            labels.get(key) == value for key, value in self.labels
        )


@dataclass(frozen=True, slots=True)
class Guard:
    """The leak guard."""

    # No labels by default: every author of a pod could exempt it.
    exempt: tuple[Exempt, ...] = (Exempt(MANAGEMENT_NAMESPACES),)
    # Resource names of GPUs or shares of GPUs whose names do not show it.
    resources: tuple[str, ...] = ()  # a `*` at the end stands for any rest
    # These schedulers use annotations for fractions of a GPU and place the pods themselves. Where
    # such a scheduler does not run, the pods do not run, so its name alone gives no access.
    fraction_schedulers: tuple[str, ...] = ("kai-scheduler",)


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A custom kind with pod templates, by JSON Pointer; a * stands for any member or item."""

    kind: str
    group: str = ""  # empty: of any group
    templates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workloads:
    """Objects with a pod template."""

    repair: bool = False  # change templates too, not only the pods
    kinds: tuple[CustomKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Messages:
    """What users get besides the warning or the denial."""

    help: str = ""  # where to ask for help; added to denials and warnings
    annotation: bool = True  # repaired objects get the annotation gpu-webhook.dev/repaired
    events: bool = True  # owners of repaired pods get a Kubernetes Event


@dataclass(frozen=True)
class Settings:
    """All settings. `Settings()` is the default."""

    # gpu: only pods that name a legacy GPU resource or label, or request a GPU.
    scope: Literal["gpu", "all-legacy"] = "gpu"
    legacy_resources: tuple[str, ...] = (legacy_names.LEGACY_RESOURCE,)
    gpu_resource: str = "nvidia.com/gpu"  # the name that replaces the legacy names
    # A `*` at the end stands for any rest. Names must match completely.
    gpu_resources: tuple[str, ...] = (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-*",
    )
    models: Models = field(default_factory=Models)
    affinity: Affinity = field(default_factory=Affinity)
    drivers: Drivers = field(default_factory=Drivers)
    placement: Placement = field(default_factory=Placement)
    taints: tuple[Taint, ...] = ()  # GPU pods tolerate them if a node has them
    annotation_schedulers: tuple[str, ...] = ()  # the annotation .../name is converted for these
    policy: Policy = field(default_factory=Policy)
    capacity: Capacity = field(default_factory=Capacity)
    guard: Guard = field(default_factory=Guard)
    workloads: Workloads = field(default_factory=Workloads)
    messages: Messages = field(default_factory=Messages)
    unsafe: tuple[str, ...] = ()  # codes of rules whose unsafe edits are made in manifests

    def is_gpu(self, name: str) -> bool:
        """True for a resource name that counts GPUs now."""
        return name in self._gpu_names or name.startswith(self._gpu_prefixes)

    def names_gpus(self, name: str) -> bool:
        """The same for a resource name that counts GPUs now, or did in Kubernetes 1.3-1.10."""
        return name in self.legacy_resources or self.is_gpu(name)

    def may_bring_gpus(self, name: str) -> bool:
        """True for a resource name that may stand for a GPU or a share of one, of any vendor.

        Examples are volcano.sh/vgpu-number, aliyun.com/gpu-mem and tencent.com/vcuda-core. The name
        of a device class is not included: it stands for a claim (KEP-5004).
        """
        return self.is_known_to_bring_gpus(name) or name.startswith(_NVIDIA)

    def is_known_to_bring_gpus(self, name: str) -> bool:
        """The same without other names of nvidia.com, which may also be network cards."""
        if self.is_gpu(name):
            return True
        lower = name.lower()
        return not name.startswith(DEVICE_CLASS) and (
            "gpu" in lower or "cuda" in lower or matches(self.guard.resources, name)
        )

    @cached_property
    def _gpu_names(self) -> frozenset[str]:
        return frozenset({self.gpu_resource, *self.gpu_resources})

    @cached_property
    def _gpu_prefixes(self) -> tuple[str, ...]:
        return tuple(name[:-1] for name in self.gpu_resources if name.endswith("*"))
