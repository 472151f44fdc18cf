"""What a controller made: objects in, whether they run or still make pods out. Pure.

A controller goes on making pods from an older template until its rollout has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webhook.cluster import objects
from webhook.core.repaired_annotation import codes_of, was_sent
from webhook.kube.pod import as_items, as_map, is_finished
from webhook.rules import is_legacy

if TYPE_CHECKING:
    from webhook.cluster.objects import Reference

Raw = dict[str, Any]

# The last conditions of a Job, a JobSet and the kinds of Kubeflow, and the last phases of a RayJob
# and of a Job of Volcano. That one can go on when it is `Aborted`.
_ENDED = {"Complete", "Completed", "Succeeded", "Failed"}
_PHASES = {"Complete", "Completed", "Failed", "Terminated"}
_SETS = ("ReplicaSet", "ReplicationController")  # the latter of a DeploymentConfig


@dataclass(slots=True)
class Seen:
    """What was seen of owners and templates before the pods that they make."""

    makers: set[Reference] = field(default_factory=set)  # owners that were checked or skipped
    _active: set[Reference] = field(default_factory=set)  # owners of a ReplicaSet with pods

    def add(self, obj: Raw) -> None:
        """Remember an object that is no pod."""
        self.makers.add(objects.reference(obj))
        maker = objects.controller(obj)
        if maker is not None and obj["kind"] in _SETS and is_used(obj):
            self._active.add(maker)

    def codes(self, obj: Raw) -> tuple[str, ...]:
        """The codes of its repairs.

        Codes that a client sent with a pod were copied from a repaired pod, or made up: what the
        pod was made from says what it needs. But that of an unknown owner may have legacy words.
        """
        codes, maker = codes_of(obj), objects.controller(obj)
        if not codes or obj["kind"] != "Pod" or not was_sent(obj):
            return codes
        is_unknown = maker is not None and maker not in self.makers
        return codes if is_unknown and any(map(is_legacy, codes)) else ()

    def has_pods(self, maker: Reference) -> bool:
        """Whether one of its ReplicaSets has: the others without pods are its history.

        What custom kinds (Argo Rollouts) do with them, if none has pods, is not known.
        """
        return maker in self._active


def is_idle(obj: Raw) -> bool:
    """Whether it is a ReplicaSet without pods that another object made."""
    is_set = obj["kind"] in _SETS and objects.controller(obj) is not None
    return is_set and not is_used(obj)


def is_used(obj: Raw) -> bool:
    """Whether it is no finished or deleted pod, finished Job, or ReplicaSet of the history."""
    match obj["kind"]:
        case "Pod":
            return not is_finished(obj) and not as_map(obj["metadata"]).get("deletionTimestamp")
        case kind if kind in _SETS:
            return as_map(obj.get("spec")).get("replicas") != 0
        case _:
            return not is_finished_job(obj)


def is_finished_job(obj: Raw) -> bool:
    """Whether it is a job that makes no more pods; a suspended one will."""
    if not str(obj["kind"]).endswith(("Job", "JobSet")):
        return False
    status = as_map(obj.get("status"))
    met = {
        e.get("type") for _, e in as_items(status.get("conditions")) if e.get("status") == "True"
    }
    phases = {status.get("jobDeploymentStatus"), as_map(status.get("state")).get("phase")}
    return bool(met & _ENDED or phases & _PHASES)


def is_rolling_out(obj: Raw) -> bool:
    """Whether it still makes pods from an older template, which it does not show itself."""
    spec, status = as_map(obj.get("spec")), as_map(obj.get("status"))
    match obj["kind"]:
        case "StatefulSet":  # below its partition: also while it has no replicas
            # With OnDelete each new pod is of the new template, and currentRevision never moves
            # (newVersionedStatefulSetPod, completeRollingUpdate of 1.36). Old pods are seen.
            if as_map(spec.get("updateStrategy")).get("type") == "OnDelete":
                return False
            return status.get("currentRevision") != status.get("updateRevision")
        case "Deployment":  # scaled while paused, it scales a ReplicaSet that it has
            return spec.get("paused") is True
        case _:
            return False


def at_revision(obj: Raw, revision: Raw) -> Raw:
    """A StatefulSet as it was at a ControllerRevision."""
    template = as_map(as_map(revision.get("data")).get("spec")).get("template")
    return {**obj, "spec": {**as_map(obj.get("spec")), "template": template}}
