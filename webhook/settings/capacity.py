"""How requests are held against the cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from webhook.core import settings as core
from webhook.rules import POLICY
from webhook.settings import values as v
from webhook.settings.maps import DEFAULT, Map, Section
from webhook.settings.placement import Taint, taint
from webhook.settings.policy import Where


class Pool(Map, title="a pool"):
    """A node pool that may be empty."""

    name: v.LabelValue = Field(examples=["a100"])
    """The name of the pool in messages."""
    gpus: Annotated[dict[v.Resource, v.Amount], v.NOT_EMPTY] = Field(
        examples=[{"nvidia.com/gpu": 8}]
    )
    """GPUs of one node: allocatable amounts by resource name."""
    nodes: v.Amount = 1
    """To how many nodes the pool may grow."""
    labels: dict[v.LabelKey, v.LabelValue] = {}
    """Labels of its nodes that pods may select. One that is not named may have any value."""
    taints: tuple[Taint, ...] = ()
    """Taints of its nodes that stay."""

    def to_core(self) -> core.Pool:
        taints = tuple(map(taint, self.taints))
        return core.Pool(self.name, self.gpus, self.nodes, self.labels, taints)


class Limit(Where, title="a limit"):
    """GPUs that one pod may ask for."""

    gpus: Annotated[dict[v.Resource, Annotated[int, Field(ge=0, le=100_000)]], v.NOT_EMPTY] = Field(
        examples=[{"nvidia.com/gpu": 1}]
    )
    """GPUs for one pod at most, by resource name; 0 for none at all. Sums per namespace are what a
    ResourceQuota is for."""

    def to_core(self) -> core.Limit:
        return core.Limit(self.gpus, self.where)


_CODES = ", ".join(sorted(rule.CODE for rule in POLICY))
_ABOUT = {"description": f"How requests are held against the cluster ({_CODES})."}


class Capacity(Section, json_schema_extra=_ABOUT):
    CORE = core.Capacity
    equivalent_schedulers: tuple[v.Scheduler, ...] = DEFAULT.capacity.equivalent_schedulers
    """Schedulers that choose nodes as default-scheduler does: their pods are judged as its pods.
    About pods of any other scheduler GPU301 only warns."""
    startup_taints: tuple[v.TaintKeys, ...] = DEFAULT.capacity.startup_taints
    """Keys of taints that say `not yet`: a node that carries one counts as without it."""
    pools: tuple[Pool, ...] = ()
    """Node pools that may be empty. Their nodes count as if they were there, so that a pool that
    scales from zero is never called impossible."""
    joining_minutes: Annotated[int, Field(ge=0, le=1440)] = DEFAULT.capacity.joining_minutes
    """So long after a node was made, GPUs and labels that it lacks may still come, unless its pool
    or instance type is known to have no GPUs."""
    remembered_hours: Annotated[int, Field(ge=0, le=720)] = DEFAULT.capacity.remembered_hours
    """So long GPUs and labels that a node has lost still count, and nodes that went away."""
    autoscaler_status: v.NamespacedName = DEFAULT.capacity.autoscaler_status
    """The ConfigMap in which cluster-autoscaler writes its status. Its Helm chart writes it in the
    namespace of the release. The role of the watcher must allow the name. Users who may write in
    that namespace can turn denials of GPU301 into warnings."""
    limits: tuple[Limit, ...] = ()
    """GPUs that one pod may ask for, by namespace. Of the entries that fit the last one counts."""
