"""Pods as controllers make them: an object and one of its templates in, a pod out.

Other admission may decide by anything that a controller adds: the owner, the beginning of the name,
labels, a finalizer, tolerations. A test compares these pods with those of the real controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster.objects import reference
from webhook.kube.pod import KINDS, annotations_of, as_items, as_map, controller_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cluster.objects import Reference

Raw = dict[str, Any]

# What is not there is named in these words, so that no name is taken: the revision of a template,
# and the minute at which a Job of a CronJob begins, in 2065.
HASH = "5f4bd6c7d8"
MINUTE = 49_999_999
MINUTE_BEGINS = "2065-01-24T05:19:00Z"
# An object that does not exist may be named as the owner: a dry run is accepted, and not stored.
NO_UID = "00000000-0000-4000-8000-000000000000"
_BETWEEN = {  # kinds whose pods are made by an object in between, with the end of its name
    ("apps", "Deployment"): ("apps/v1", "ReplicaSet", HASH),
    ("argoproj.io", "Rollout"): ("apps/v1", "ReplicaSet", HASH),
    ("apps.openshift.io", "DeploymentConfig"): ("v1", "ReplicationController", str(MINUTE)),
    ("batch", "CronJob"): ("batch/v1", "Job", str(MINUTE)),
}
_COPIED = ("labels", "annotations", "finalizers")  # by the controllers, of the metadata
_OF_OWNER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
TEMPLATE_HASH = "pod-template-hash"
_REVISION = "controller-revision-hash"
_GENERATION = "deprecated.daemonset.template.generation"
_TRACKING = "batch.kubernetes.io/job-tracking"
_INDEX = "batch.kubernetes.io/job-completion-index"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_NODE = "node.kubernetes.io"
_ON_EACH_NODE = [
    *({"key": f"{_NODE}/{name}", "effect": "NoExecute"} for name in ("not-ready", "unreachable")),
    *(
        {"key": f"{_NODE}/{name}", "effect": "NoSchedule"}
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
]
_ON_ITS_NETWORK = {"key": f"{_NODE}/network-unavailable", "effect": "NoSchedule"}


def pod(obj: Raw, template: Raw) -> Raw:
    """The next pod of this template. That of a Pod is like it, and a PodTemplate makes none."""
    named, metadata, spec = reference(obj), copied(template), {**as_map(template.get("spec"))}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    match named.group, named.kind:
        case "", "Pod":
            metadata |= _again(as_map(obj.get("metadata")), named)
            return made
        case "", "PodTemplate":
            metadata["generateName"] = f"{named.name}-"
            return made
        case _:
            owner = owner_of(obj)
    metadata |= {"generateName": f"{owner['name']}-", "ownerReferences": [owner]}
    held = as_map(obj.get("spec"))
    match named.group, named.kind:
        case "batch", "CronJob":
            _of_job(made, owner, as_map(as_map(held.get("jobTemplate")).get("spec")))
        case "batch", "Job":
            _of_job(made, owner, held)
        case "apps", "StatefulSet":
            _of_stateful_set(made, obj)
        case "apps", "DaemonSet":
            _of_daemon_set(made, obj)
        case _:
            _label(metadata, of_revision(obj, owner["name"]))
    return made


def owner_of(obj: Raw) -> Raw:
    """What its pods name as their controller."""
    named = reference(obj)
    found = _BETWEEN.get((named.group, named.kind))
    if found:
        version, kind, end = found
        return reference_to(version, kind, f"{named.name}-{end}")
    return reference_to(obj.get("apiVersion"), named.kind, named.name, named.uid)


def reference_to(version: object, kind: str, name: str, uid: str = "") -> Raw:
    """An owner as controllers write it."""
    by = {"controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid or NO_UID, **by}


def of_revision(obj: Raw, name: str) -> Raw:
    """The labels that differ with each version of its template."""
    named = reference(obj)
    match named.group, named.kind:
        case "apps", "Deployment":
            return {TEMPLATE_HASH: HASH}
        case "argoproj.io", "Rollout":
            return {f"rollouts-{TEMPLATE_HASH}": HASH}
        case "apps.openshift.io", "DeploymentConfig":
            return {"deployment": name, "deploymentconfig": named.name}
        case _:
            return {}


def of_replica_set(name: str) -> Raw:
    """The metadata of a pod with this name, of a ReplicaSet that need not exist."""
    owner = reference_to("apps/v1", "ReplicaSet", f"{name}-{HASH}")
    del owner["blockOwnerDeletion"]  # OpenShift wants a right to the owner for it
    made = {"name": name, "generateName": f"{owner['name']}-", "ownerReferences": [owner]}
    return {**made, "labels": {TEMPLATE_HASH: HASH}}


def copied(template: Raw) -> Raw:
    """The metadata of a template that controllers give its pods."""
    written = as_map(template.get("metadata"))
    return {name: written[name] for name in _COPIED if name in written}


def _again(metadata: Raw, named: Reference) -> Raw:
    """The names of another pod as the same author sends it. It keeps its owner."""
    begins = metadata.get("generateName")
    made: Raw = {"generateName": begins} if begins else {"name": beside(named.name)}
    if owner := controller_of(metadata):
        made["ownerReferences"] = [{each: owner[each] for each in _OF_OWNER if each in owner}]
    return made


def beside(name: str) -> str:
    """A name that begins like this one and is not taken. A label and a host may have it, too."""
    return f"{name[:50].replace('.', '-').rstrip('-')}-{HASH}"


def _label(metadata: Raw, labels: Raw) -> None:
    if labels:
        metadata["labels"] = {**as_map(metadata.get("labels")), **labels}


def _of_job(made: Raw, owner: Raw, job: Raw) -> None:
    """The API server labels the template of a Job; the controller knows the pod by a finalizer."""
    metadata, spec = made["metadata"], made["spec"]
    finalizers = [each for each in metadata.get("finalizers") or () if each != _TRACKING]
    metadata["finalizers"] = [*finalizers, _TRACKING]
    if not job.get("manualSelector"):
        names = {"job-name": owner["name"], "controller-uid": owner["uid"]}
        _label(metadata, names | {f"batch.kubernetes.io/{k}": v for k, v in names.items()})
    if job.get("completionMode") == "Indexed":
        _label(metadata, {_INDEX: "0"})
        failures = {_FAILURES: "0"} if job.get("backoffLimitPerIndex") is not None else {}
        there = as_map(metadata.get("annotations"))
        metadata["annotations"] = {**there, _INDEX: "0", **failures}
        metadata["generateName"] = f"{owner['name']}-0-"
        spec["hostname"] = f"{owner['name']}-0"
        field = {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX}']"}}
        variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": field}
        for kind in KINDS:
            if held := [each for _, each in as_items(spec.get(kind))]:
                spec[kind] = [{**e, "env": [*(e.get("env") or ()), variable]} for e in held]


def _of_stateful_set(made: Raw, obj: Raw) -> None:
    """The pod behind its last one."""
    metadata, spec, held = made["metadata"], made["spec"], as_map(obj.get("spec"))
    replicas = held.get("replicas")
    index = as_map(held.get("ordinals")).get("start", 0) + (1 if replicas is None else replicas)
    name = metadata["name"] = f"{reference(obj).name}-{index}"
    revision = as_map(obj.get("status")).get("updateRevision") or f"{reference(obj).name}-{HASH}"
    of_apps = {"apps.kubernetes.io/pod-index": str(index), _REVISION: revision}
    _label(metadata, {"statefulset.kubernetes.io/pod-name": name, **of_apps})
    spec |= {"hostname": name, "subdomain": held.get("serviceName") or ""}
    if claims := {each["name"]: each for each in _claims(held, name)}:
        rest = [each for _, each in as_items(spec.get("volumes")) if each.get("name") not in claims]
        spec["volumes"] = [*claims.values(), *rest]


def _claims(stateful_set: Raw, pod_name: str) -> Iterator[Raw]:
    """The volumes that the controller of a StatefulSet adds."""
    for _, each in as_items(stateful_set.get("volumeClaimTemplates")):
        name = str(as_map(each.get("metadata")).get("name"))
        yield {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod_name}"}}


def _of_daemon_set(made: Raw, obj: Raw) -> None:
    """The controller writes the node. Which one is not known: it is any that the template allows.

    The field of the node is there, but excludes only one that does not exist.
    """
    spec = made["spec"]
    generation = annotations_of(obj).get(_GENERATION, "1")
    _label(made["metadata"], {_REVISION: HASH, "pod-template-generation": generation})
    affinity = as_map(spec.get("affinity"))
    of_nodes = as_map(affinity.get("nodeAffinity"))
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [term for _, term in as_items(as_map(of_nodes.get(required)).get("nodeSelectorTerms"))]
    any_node = {"key": "metadata.name", "operator": "NotIn", "values": [HASH]}
    terms = [{**e, "matchFields": [*(e.get("matchFields") or ()), any_node]} for e in terms or [{}]]
    of_nodes = {**of_nodes, required: {"nodeSelectorTerms": terms}}
    spec["affinity"] = {**affinity, "nodeAffinity": of_nodes}
    added = [*_ON_EACH_NODE, *([_ON_ITS_NETWORK] if spec.get("hostNetwork") else [])]
    there = [each for _, each in as_items(spec.get("tolerations"))]
    spec["tolerations"] = [*there, *({**each, "operator": "Exists"} for each in added)]
