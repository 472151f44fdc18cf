"""What a controller made: an object in, whether it runs or still makes pods out. Pure.

A controller goes on making pods from an older template until its rollout has ended.
"""

from __future__ import annotations

from typing import Any

from webhook.kube.pod import as_items, as_map, is_finished

Raw = dict[str, Any]


def is_used(obj: Raw) -> bool:
    """Whether it is no finished or deleted pod, finished Job, or ReplicaSet of the history."""
    match obj["kind"]:
        case "Pod":
            return not is_finished(obj) and not as_map(obj["metadata"]).get("deletionTimestamp")
        case "ReplicaSet" | "ReplicationController":  # the latter of a DeploymentConfig
            return as_map(obj.get("spec")).get("replicas") != 0
        case _:
            return not is_finished_job(obj)


def is_finished_job(obj: Raw) -> bool:
    """Whether it is a Job that makes no more pods; a suspended one will."""
    conditions = as_items(as_map(obj.get("status")).get("conditions"))
    met = {each.get("type") for _, each in conditions if each.get("status") == "True"}
    return obj["kind"] == "Job" and bool(met & {"Complete", "Failed"})


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
