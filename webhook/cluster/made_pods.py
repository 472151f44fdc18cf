"""Objects of dry runs: an object in, what its controller makes of it out.

Policies and other webhooks may decide by it: they refuse pods that no controller made, or leave
those of DaemonSets alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.cluster import controllers
from webhook.cluster.objects import KINDS, reference
from webhook.kube.pod import KINDS as CONTAINERS
from webhook.kube.pod import annotations_of, as_items, as_map, labels_of
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

JOBS, SETS, STATEFUL_SETS = ("batch", "jobs"), ("apps", "replicasets"), ("apps", "statefulsets")
# The second is of the plugin OwnerReferencesPermissionEnforcement.
_NO_RIGHT = ("cannot create resource", "cannot set blockOwnerDeletion")
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
# The controller of a Deployment does not copy these annotations, or writes its own.
_NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.")
_OF_DEPLOYMENT = "deployment.kubernetes.io/"
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def may_make_pods(obj: Raw, at: Path) -> Iterator[tuple[tuple[str, str], Raw]]:
    """What may make the pods of its template here, each with its group and plural.

    This is known of built-in kinds. A custom kind may make pods, or anything that makes pods.
    """
    named, template = reference(obj), as_map(value_at(obj, at))
    spec = as_map(obj.get("spec"))
    if (named.group, named.kind) == ("batch", "CronJob"):
        yield JOBS, _of_cron_job(obj, as_map(spec.get("jobTemplate")))
    elif (named.group, named.kind) == ("apps", "Deployment"):
        yield SETS, _of_deployment(obj, spec, template)
    elif is_custom(obj):
        if named.group == "jobset.x-k8s.io":  # its templates are those of Jobs
            job = as_map(value_at(obj, at.parent.parent))
            yield JOBS, _job(obj, job, as_map(job.get("spec")) | _in_job(template))
        else:
            yield JOBS, _job(obj, template, _in_job(template))
        held = _in_set(obj, template)
        written = as_map(held["template"]["metadata"])
        yield SETS, _made("apps/v1", "ReplicaSet", obj, written, held)
        held = held | {"serviceName": "pods"}
        yield STATEFUL_SETS, _made("apps/v1", "StatefulSet", obj, written, held)


def is_custom(obj: Raw) -> bool:
    """Whether its kind is none of Kubernetes, whatever its name is: Volcano has a kind Job."""
    named = reference(obj)
    return (named.group, named.kind) not in KINDS


def _of_cron_job(obj: Raw, written: Raw) -> Raw:
    job = _job(obj, written, as_map(written.get("spec")))
    metadata = job["metadata"]
    metadata["annotations"] = {**annotations_of(job), _SCHEDULED: controllers.MINUTE_BEGINS}
    return job


def _of_deployment(obj: Raw, spec: Raw, template: Raw) -> Raw:
    """The ReplicaSet that its next template gets."""
    revision = controllers.of_revision(obj, "")
    labels = {**labels_of(template), **revision}
    replicas = spec.get("replicas") or 1
    own = {
        "desired-replicas": str(replicas),
        "max-replicas": str(replicas + 1),  # a roll-out may have some more
        "revision": annotations_of(obj).get(f"{_OF_DEPLOYMENT}revision", "1"),
    }
    annotations = {
        name: value
        for name, value in annotations_of(obj).items()
        if not name.startswith((*_NOT_COPIED, _OF_DEPLOYMENT))
    }
    annotations |= {f"{_OF_DEPLOYMENT}{name}": value for name, value in own.items()}
    selector = as_map(spec.get("selector"))
    chosen = {**as_map(selector.get("matchLabels")), **revision}
    metadata = {**controllers.copied(template), "labels": labels}
    ready = "minReadySeconds"
    held = {
        **({ready: spec[ready]} if ready in spec else {}),
        "replicas": replicas,
        "selector": {**selector, "matchLabels": chosen},
        "template": {"metadata": metadata, "spec": as_map(template.get("spec"))},
    }
    written = {"labels": labels, "annotations": annotations}
    return _made("apps/v1", "ReplicaSet", obj, written, held)


def _job(obj: Raw, written: Raw, spec: Raw) -> Raw:
    return _made("batch/v1", "Job", obj, as_map(written.get("metadata")), spec)


def _made(version: str, kind: str, obj: Raw, written: Raw, spec: Raw) -> Raw:
    """What the controller of an object makes, with the labels and annotations that are written.

    The API server is asked to make it, so its name is one that is not there.
    """
    named = reference(obj)
    metadata: Raw = {name: written[name] for name in ("labels", "annotations") if written.get(name)}
    name = controllers.beside(named.name) if is_custom(obj) else controllers.owner_of(obj)["name"]
    owner = controllers.reference_to(obj.get("apiVersion"), named.kind, named.name, named.uid)
    metadata |= {"name": name, "ownerReferences": [owner]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _in_job(template: Raw) -> Raw:
    """The template in a Job, which the API server accepts only with pods that end."""
    spec = as_map(template.get("spec"))
    if spec.get("restartPolicy") not in _ENDING:
        spec = {**spec, "restartPolicy": "Never"}
    return {"template": {"metadata": controllers.copied(template), "spec": spec}}


def _in_set(obj: Raw, template: Raw) -> Raw:
    """The template in a set, which selects its pods and restarts them for ever."""
    spec = {**as_map(template.get("spec")), "restartPolicy": "Always"}
    spec.pop("activeDeadlineSeconds", None)
    hashed = controllers.of_revision(obj, controllers.owner_of(obj)["name"])
    hashed = hashed or {controllers.TEMPLATE_HASH: controllers.HASH}
    labels = {**labels_of(template), **hashed}
    metadata = {**controllers.copied(template), "labels": labels}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": metadata, "spec": spec}}


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
    return bool(is_denied) and not any(each in said for each in _NO_RIGHT)


def may_be_accepted_later(refused: Refused) -> bool:
    """Whether its status says so, such as that of a webhook whose registry does not answer."""
    return refused.status == _TOO_MANY or refused.status >= _ERRORS
