"""The whole settings file: its sections, and the checks across them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from webhook.core import settings as core
from webhook.evaluation.workloads import READY_MADE
from webhook.settings import values as v
from webhook.settings.capacity import Capacity
from webhook.settings.drivers import Drivers
from webhook.settings.gpus import Affinity, Models, ResourceNames
from webhook.settings.maps import DEFAULT, Map, Section
from webhook.settings.nodes import AT_THE_NAME
from webhook.settings.placement import Placement, Tolerations, taint
from webhook.settings.policy import Guard, Policy

_KNOWN = [
    {"kind": {"const": each.kind}, "group": {"enum": ["", each.group]}} for each in READY_MADE
]
_KNOWN_OR_GIVEN = [{"required": ["templates"]}, *({"properties": each} for each in _KNOWN)]


class CustomKind(Map, title="a custom kind", json_schema_extra={"anyOf": _KNOWN_OR_GIVEN}):
    """A custom kind with pod templates."""

    CORE = core.CustomKind
    kind: v.KindName
    """As in the object."""
    group: v.Group = ""
    """Its API group. Left out or empty: any."""
    templates: Annotated[tuple[v.Pointer, ...], v.NOT_EMPTY] | None = Field(
        None,
        description="JSON Pointers to its pod templates; a * stands for any member or item. Kinds "
        "that are known already may leave it out: "
        f"{', '.join(sorted({each.kind for each in READY_MADE}))}.",
    )

    @model_validator(mode="after")
    def _templates_are_known(self) -> Self:
        if self.templates is None and not any(
            self.kind == each.kind and self.group in {"", each.group} for each in READY_MADE
        ):
            what = "of this kind nothing is known: add templates, as [/spec/template]"
            raise v.refused(what, "kind")
        return self


class Workloads(Section):
    """Objects that hold pod templates."""

    CORE = core.Workloads
    repair: bool = DEFAULT.workloads.repair
    """Change templates too. Off, a workload that a user applies only gets warnings, and its pods
    are repaired: see docs/gitops.md for what tools that apply from Git see of a change. On, it
    needs the component manifests/workload-repair, too: without it no workload is changed."""
    kinds: tuple[CustomKind, ...] = ()
    """Custom kinds with pod templates, which get the same warnings as those of a Deployment. Their
    objects must be in namespaces. Of a kind that is not known already, a template is repaired only
    if it has all fields that the repair writes: see docs/gitops.md."""


class Messages(Section):
    """Messages to users."""

    CORE = core.Messages
    help: v.ShortLine = DEFAULT.messages.help
    """Where to ask. Ends every denial, and the warnings of an answer."""
    annotation: bool = DEFAULT.messages.annotation
    """A repaired pod carries gpu-webhook.dev/repaired with the codes of the rules, as
    GPU101,GPU106; so does a workload whose template was repaired, on itself."""
    events: bool = DEFAULT.messages.events
    """The owner of a repaired pod (the pod itself, if it has none) gets one Kubernetes Event. The
    watcher writes it and goes by the annotation, so both must be on."""


class File(Section, title="Settings of gpu-webhook"):
    """What is left out keeps its default; an empty file is all defaults."""

    scope: Literal["gpu", "all-legacy"] = DEFAULT.scope
    """gpu: those that name a legacy GPU resource or label, or ask for a GPU; a rule that adds a
    constraint or removes something acts only on pods that can never run as they are. all-legacy:
    everything legacy."""
    resources: ResourceNames = Field(default_factory=ResourceNames)
    models: Models = Field(default_factory=Models)
    affinity: Affinity = Field(default_factory=Affinity)
    drivers: Drivers = Field(default_factory=Drivers)
    tolerations: Tolerations = Field(default_factory=Tolerations)
    annotation_schedulers: tuple[v.AnnotationScheduler, ...] = DEFAULT.annotation_schedulers
    """The annotation scheduler.alpha.kubernetes.io/name is converted for these."""
    placement: Placement = Field(default_factory=Placement)
    policy: Policy = Field(default_factory=Policy)
    capacity: Capacity = Field(default_factory=Capacity)
    guard: Guard = Field(default_factory=Guard)
    workloads: Workloads = Field(default_factory=Workloads)
    messages: Messages = Field(default_factory=Messages)
    unsafe: tuple[Annotated[str, v.UNSAFE_RULE], ...] = DEFAULT.unsafe
    """Rules whose edits in files are made though they may change how a pod runs, or who may have
    how much; `--unsafe` is all of them. In admission they are never made."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Checks of settings that are valid alone but not together."""
        settings, names = self.to_core(), self.resources
        if names.target in names.legacy:
            at = "target" if "target" in names.model_fields_set else "legacy"
            what = f"{names.target} cannot be both legacy and what legacy names become: delete one"
            raise v.refused(what, "resources", at, AT_THE_NAME)
        for part in ("pools", "limits"):
            for number, entry in enumerate(getattr(settings.capacity, part)):
                for name in entry.gpus:
                    if not settings.is_gpu(name):
                        what = f"{name} is no GPU by resources.gpus: add it there"
                        raise v.refused(what, "capacity", part, number, "gpus", name, AT_THE_NAME)
        return self

    def to_core(self) -> core.Settings:
        return core.Settings(
            scope=self.scope,
            legacy_resources=self.resources.legacy,
            gpu_resource=self.resources.target,
            gpu_resources=self.resources.gpus,
            models=self.models.to_core(),
            affinity=self.affinity.to_core(),
            drivers=self.drivers.to_core(),
            placement=self.placement.to_core(),
            taints=tuple(dict.fromkeys(map(taint, self.tolerations.taints))),
            annotation_schedulers=self.annotation_schedulers,
            policy=self.policy.to_core(),
            capacity=self.capacity.to_core(),
            guard=self.guard.to_core(),
            workloads=self.workloads.to_core(),
            messages=self.messages.to_core(),
            unsafe=tuple(v.CODES[each] for each in self.unsafe),
        )
