"""What GPUs are called: resource names, and how nodes name their model."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from webhook.core import settings as core
from webhook.settings import values as v
from webhook.settings.maps import DEFAULT, Section


class ResourceNames(Section):
    """What GPUs are called."""

    legacy: tuple[v.Resource, ...] = DEFAULT.legacy_resources
    """Names of GPUs that no node offers any more."""
    target: v.ExtendedResource = DEFAULT.gpu_resource
    """The current resource name, which replaces the legacy names."""
    gpus: tuple[v.Resources, ...] = DEFAULT.gpu_resources
    """What counts as a GPU. A * at the end stands for any rest, so that nvidia.com/mig-* covers the
    .shared ones too. The webhook configuration must name them as well: `gpu-webhook config
    match-conditions`."""


class Models(Section):
    """How nodes name their GPU model."""

    CORE = core.Models
    legacy_label: v.LabelKey = DEFAULT.models.legacy_label
    """The node label by which pods of 1.6-1.9 chose a GPU model."""
    profile: Annotated[str, v.Word(tuple(core.MODEL_PROFILES))] = DEFAULT.models.profile
    """The kind of cluster: it selects the current label and its possible values."""
    label: v.LabelKey | None = None
    """A node label that takes the place of the profile's."""
    values: dict[v.Line, Annotated[tuple[v.LabelValue, ...], v.NOT_EMPTY, v.NOT_TOO_MANY]] = dict(
        DEFAULT.models.values
    )
    """What a legacy model name is called today; these are asked before the built-in names."""
    shared: bool = DEFAULT.models.shared
    """Whether <model>-SHARED, a GPU that several pods share, is the model as well; so are nodes
    that labels of GKE or GPU Feature Discovery mark as shared."""
    mig: bool = DEFAULT.models.mig
    """Whether <model>-MIG-<slice>, a part of a GPU, is the model as well; so are nodes that a
    label of GKE marks as sliced."""

    def to_core(self) -> core.Models:
        made: core.Models = super().to_core()
        return replace(made, values=tuple(self.values.items()))


class Affinity(Section):
    """How the affinity annotation is read."""

    CORE = core.Affinity
    empty_namespaces: Literal["own", "all"] = DEFAULT.affinity.empty_namespaces
    """What `namespaces: []` means there: the pod's own namespace (from 1.6 on), or all
    (1.3-1.5)."""
