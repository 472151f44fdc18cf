"""What each rule may do, and where."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Self

from pydantic import Field, model_validator

from webhook.core import settings as core
from webhook.core.built_in import MANAGEMENT_NAMESPACES
from webhook.core.namespace_selection import Selection
from webhook.settings import values as v
from webhook.settings.maps import DEFAULT, Map, Section


def _either(*names: str) -> dict[str, list[v.Schema]]:
    return {"anyOf": [{"required": [name]} for name in names]}


def _of_a_map(part: v.Schema) -> None:
    """By its name alone, pydantic takes the modes for a text."""
    part["minProperties"] = part.pop("minLength")


class Where(Map):
    """Namespaces; all that is given must hold."""

    namespaces: v.Namespaces | None = None
    """Patterns of names of namespaces, of which one must fit. Left out: any name."""
    labels: v.Labels | None = None
    """Labels that the namespace must have, all of them. Left out: any."""
    percent: v.Percent = 100
    """A staged roll-out: this share of all namespaces, always the same ones; a higher number only
    adds some."""

    @property
    def where(self) -> Selection:
        """As the engine reads it."""
        labels = tuple((self.labels or {}).items())
        return Selection(self.namespaces or (), labels, self.percent)


class Override(Where, title="an override", json_schema_extra=_either("mode", "rules")):
    """Modes in some namespaces."""

    mode: v.AnyMode | None = None
    """Of all rules in these namespaces."""
    rules: Annotated[v.Modes, v.NOT_EMPTY] | None = Field(
        None, examples=[{"GPU301": "enforce"}], json_schema_extra=_of_a_map
    )
    """Of some rules in these namespaces; they win over `mode`."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set & {"mode", "rules"}:
            what = "an override needs mode or rules: add what is to hold in these namespaces"
            raise v.refused(what)
        return self

    def to_core(self) -> core.Override:
        return core.Override(self.where, self.mode, v.by_code(self.rules or {}))


class Allowance(Where, title="an entry of exceptions"):
    """Where exceptions count."""

    rules: Annotated[tuple[Annotated[str, v.POLICY_RULE], ...], v.NOT_EMPTY] = Field(
        examples=[["GPU301", "GPU304"]]
    )
    """For which the annotation counts."""

    def to_core(self) -> core.Allowance:
        return core.Allowance(tuple(v.CODES[each] for each in self.rules), self.where)


class Policy(Section):
    """What each rule may do, and where."""

    CORE = core.Policy
    mode: v.AnyMode | None = None
    """off: does not run. audit: only counts and logs. warn: warns the user, nothing changes.
    enforce: repairs, or denies. Left out, each rule has its usual mode: repairs enforce, GPU3xx
    warn, the leak guard GPU303 audit."""
    rules: v.Modes = {}
    """Modes of single rules, by code or name; they override `mode`."""
    overrides: tuple[Override, ...] = ()
    """Modes in some namespaces. Later entries override earlier ones. All conditions of an entry
    must match."""
    exceptions: tuple[Allowance, ...] = ()
    """Where the annotation gpu-webhook.dev/allow.GPU3xx exempts a pod from that rule. Without an
    entry it has no effect, because every user who creates a pod can write it."""

    def to_core(self) -> core.Policy:
        made: core.Policy = super().to_core()
        return replace(made, rules=v.by_code(self.rules))


class Exempt(Map, title="an exemption", json_schema_extra=_either("namespaces", "labels")):
    """Pods that may see GPUs without asking."""

    namespaces: v.Namespaces | None = None
    """Patterns of names of namespaces, of which one must fit. Left out: any name."""
    labels: v.Labels | None = None
    """Labels that the pod must have, all of them. Users who create pods choose these labels, so
    name a namespace as well."""

    @model_validator(mode="after")
    def _exempts_not_everything(self) -> Self:
        if not self.model_fields_set:
            raise v.refused(
                "an exemption needs namespaces or labels; to turn the guard off, say "
                "policy: {rules: {GPU303: off}}"
            )
        return self

    def to_core(self) -> core.Exempt:
        return core.Exempt(self.namespaces or (), tuple((self.labels or {}).items()))


class Guard(Section):
    """Pods that see GPUs without asking (GPU303)."""

    CORE = core.Guard
    exempt: tuple[Exempt, ...] = (Exempt(namespaces=MANAGEMENT_NAMESPACES),)
    """GPU management software: pods that may see GPUs without asking for one. A list given here
    takes the place of the default one."""
    resources: tuple[v.Resources, ...] = DEFAULT.guard.resources
    """Further resource names by which a container gets a GPU or a part of one; a * at the end
    stands for any rest. Containers that ask for one are left alone. Names that contain gpu or
    cuda, and names of nvidia.com that a node offers, need not be listed."""
    fraction_schedulers: tuple[v.Scheduler, ...] = DEFAULT.guard.fraction_schedulers
    """Schedulers that share GPUs by annotation: with one of these, gpu-fraction or gpu-memory is a
    right to a GPU, if the container has NVIDIA_VISIBLE_DEVICES from a ConfigMap."""
