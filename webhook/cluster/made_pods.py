"""Objects of dry runs: an object in, what its controller makes of it out.

Policies and other webhooks may decide by it: they refuse pods that no controller made, or leave
those of DaemonSets alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.cluster.objects import KINDS, reference
from webhook.kube.pod import KINDS as CONTAINERS
from webhook.kube.pod import as_items, as_map, controller_of, labels_of
from webhook.kube.pointer import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cluster.client import Refused
    from webhook.kube.pointer import Path

Raw = dict[str, Any]

_FORBIDDEN = 403
_TOO_MANY, _ERRORS = 429, 500  # a status from here on is one of a server
DENIED = re.compile(
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
JOBS, SETS, STATEFUL_SETS = ("batch", "jobs"), ("apps", "replicasets"), ("apps", "statefulsets")
_COPIED = ("labels", "annotations", "finalizers")  # by the controllers, of the metadata
_ENDING = ("Never", "OnFailure")
RESTRICTED: Raw = {  # of a container: what Pod Security and policies ask for
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_PLAIN = ("tolerations", "nodeSelector", "affinity", "schedulerName")  # of the spec
_NOT_PLAIN = ("ports", "resources", "securityContext", "volumeDevices", "volumeMounts")
_STANDARD = ("cpu", "memory", "ephemeral-storage", "hugepages-")  # of which others decide nothing
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


def may_make_pods(obj: Raw, at: Path) -> Iterator[tuple[tuple[str, str], Raw]]:
    """What may make the pods of its template here, each with its group and plural.

    This is known of built-in kinds. A custom kind may make pods, or anything that makes pods.
    """
    named, template = reference(obj), as_map(value_at(obj, at))
    spec = as_map(obj.get("spec"))
    if (named.group, named.kind) == ("batch", "CronJob"):
        job = as_map(spec.get("jobTemplate"))
        yield JOBS, _job(obj, job, as_map(job.get("spec")))
    elif (named.group, named.kind) == ("apps", "Deployment"):
        held = {"replicas": 0, "selector": spec.get("selector"), "template": template}
        yield SETS, _made("apps/v1", "ReplicaSet", obj, {"labels": labels_of(template)}, held)
    elif is_custom(obj):
        if named.group == "jobset.x-k8s.io":  # its templates are those of Jobs
            job = as_map(value_at(obj, at.parent.parent))
            yield JOBS, _job(obj, job, as_map(job.get("spec")) | _in_job(template))
        else:
            yield JOBS, _job(obj, template, _in_job(template))
        held = _in_set(template)
        written = as_map(template.get("metadata"))
        yield SETS, _made("apps/v1", "ReplicaSet", obj, written, held)
        held = held | {"serviceName": NAME}
        yield STATEFUL_SETS, _made("apps/v1", "StatefulSet", obj, written, held)


def is_custom(obj: Raw) -> bool:
    """Whether its kind is none of Kubernetes, whatever its name is: Volcano has a kind Job."""
    named = reference(obj)
    return (named.group, named.kind) not in KINDS


def _job(obj: Raw, written: Raw, spec: Raw) -> Raw:
    return _made("batch/v1", "Job", obj, as_map(written.get("metadata")), spec)


def _made(version: str, kind: str, obj: Raw, written: Raw, spec: Raw) -> Raw:
    """What the controller of an object makes, with the labels and annotations that are written."""
    named = reference(obj)
    copied: Raw = {name: written[name] for name in ("labels", "annotations") if written.get(name)}
    owner = {"apiVersion": obj.get("apiVersion"), "kind": named.kind, "name": named.name}
    metadata = of(named.name, {**owner, "uid": named.uid or _NO_UID, "controller": True})
    return {"apiVersion": version, "kind": kind, "metadata": copied | metadata, "spec": spec}


def _in_job(template: Raw) -> Raw:
    """The template in a Job, which the API server accepts only with pods that end."""
    spec = as_map(template.get("spec"))
    if spec.get("restartPolicy") not in _ENDING:
        spec = {**spec, "restartPolicy": "Never"}
    return {"template": {"metadata": copied(template), "spec": spec}}


def _in_set(template: Raw) -> Raw:
    """The template in a set, which selects its pods and restarts them for ever."""
    spec = {**as_map(template.get("spec")), "restartPolicy": "Always"}
    spec.pop("activeDeadlineSeconds", None)
    labels = labels_of(template) or {"pod-template-hash": NAME}
    metadata = {**copied(template), "labels": labels}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": metadata, "spec": spec}}


def copied(template: Raw) -> Raw:
    """The metadata of a template that controllers give its pods."""
    written = as_map(template.get("metadata"))
    return {name: written[name] for name in _COPIED if name in written}


def plain(pod: Raw) -> Raw:
    """The pod without what quotas, Pod Security and missing objects may refuse.

    It keeps the amounts of extended resources: others may give it GPUs for them.
    """
    spec = {name: pod["spec"][name] for name in _PLAIN if name in pod["spec"]}
    for kind in CONTAINERS:
        if held := [each for _, each in as_items(pod["spec"].get(kind))]:
            spec[kind] = [{n: e[n] for n in e if n not in _NOT_PLAIN} | _amounts(e) for e in held]
    return {**pod, "spec": spec}


def _amounts(container: Raw) -> Raw:
    """Its amounts of extended resources, and what Pod Security wants of a container."""
    resources = as_map(container.get("resources"))
    kept = {
        which: {
            n: a for n, a in as_map(resources.get(which)).items() if not n.startswith(_STANDARD)
        }
        for which in ("limits", "requests")
    }
    kept = {which: amounts for which, amounts in kept.items() if amounts}
    return {"securityContext": RESTRICTED, **({"resources": kept} if kept else {})}


def is_by_admission(refused: Refused) -> bool:
    """Whether a quota, a policy or a webhook refused the pod, and not for want of a right.

    A webhook chooses the status of its refusal, and so does a ValidatingAdmissionPolicy.
    """
    said = str(refused)
    is_denied = refused.status == _FORBIDDEN or DENIED.search(said)
    return bool(is_denied) and "cannot create resource" not in said


def may_be_accepted_later(refused: Refused) -> bool:
    """Whether its status says so, such as that of a webhook whose registry does not answer."""
    return refused.status == _TOO_MANY or refused.status >= _ERRORS
