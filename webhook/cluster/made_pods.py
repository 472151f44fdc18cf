"""Objects of dry runs: an object in, what its controller makes of it out.

Policies and other webhooks may decide by it: they refuse pods that no controller made, or leave
those of DaemonSets alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.cluster.objects import reference
from webhook.kube.pod import as_map, controller_of, labels_of

if TYPE_CHECKING:
    from webhook.cluster.client import Refused

Raw = dict[str, Any]

_FORBIDDEN = 403
_DENIED = re.compile(
    r"admission webhook \".*\" denied the request|ValidatingAdmissionPolicy .* denied request"
)

# The name is the same for all, so that refusals are; nothing is stored.
NAME = "gpu-webhook-report"
# An object that does not exist may be named as the owner: a dry run is accepted, and not stored.
_NO_UID = "00000000-0000-4000-8000-000000000000"
_BETWEEN = {  # kinds whose pods are made by an object in between
    "Deployment": ("apps/v1", "ReplicaSet"),
    "Rollout": ("apps/v1", "ReplicaSet"),
    "DeploymentConfig": ("v1", "ReplicationController"),
    "CronJob": ("batch/v1", "Job"),
}
_OF_OWNER = ("apiVersion", "kind", "name", "uid", "controller")


def made_by(obj: Raw) -> Raw:
    """The name with its beginning, and the owner. A pod keeps its own; a PodTemplate makes none."""
    named = reference(obj)
    if named.kind in {"Pod", "PodTemplate"}:
        owner = controller_of(as_map(obj.get("metadata")))
        owner = {member: owner[member] for member in _OF_OWNER if member in owner}
        return of(owner.get("name") or named.name, owner)
    version, kind = _BETWEEN.get(named.kind, (obj.get("apiVersion"), named.kind))
    name = f"{named.name}-gpu-webhook" if named.kind in _BETWEEN else named.name
    uid = named.uid if named.uid and name == named.name else _NO_UID
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
    return of(name, owner)


def of(owner_name: str, owner: Raw) -> Raw:
    """As all controllers do it, but for the name."""
    owners = {"ownerReferences": [owner]} if owner else {}
    return {"name": NAME, "generateName": f"{owner_name}-", **owners}


def of_replica_set(name: str) -> Raw:
    """The same for a ReplicaSet of this name, which need not exist; the pod has the same name."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}}
    return made_by(owner) | {"name": name}


def job_of(cron_job: Raw) -> Raw:
    """The Job that the controller of a CronJob makes."""
    template = as_map(as_map(cron_job.get("spec")).get("jobTemplate"))
    written = as_map(template.get("metadata"))
    copied: Raw = {name: written[name] for name in ("labels", "annotations") if name in written}
    named = reference(cron_job)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": named.name, "controller": True}
    metadata = copied | of(named.name, {**owner, "uid": named.uid or _NO_UID})
    spec = as_map(template.get("spec"))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def replica_set_of(deployment: Raw) -> Raw:
    """The ReplicaSet that the controller of a Deployment makes."""
    spec, named = as_map(deployment.get("spec")), reference(deployment)
    template = as_map(spec.get("template"))
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": named.name, "controller": True}
    metadata = of(named.name, {**owner, "uid": named.uid or _NO_UID})
    if labels := labels_of(template):
        metadata["labels"] = labels
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {"replicas": 0, "selector": spec.get("selector"), "template": template},
    }


def is_by_admission(refused: Refused) -> bool:
    """Whether a quota, a policy or a webhook refused the pod, and not for want of a right.

    A webhook chooses the status of its refusal, and so does a ValidatingAdmissionPolicy.
    """
    said = str(refused)
    is_denied = refused.status == _FORBIDDEN or _DENIED.search(said)
    return bool(is_denied) and "cannot create resource" not in said
