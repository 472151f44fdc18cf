"""What rules may read of a review of a new pod: a light review in, the body of a smaller one out.

Replicas of one template have the same view, so they get the same answer, which is worked out once
(decide.py). The rules run on the view and never see the pod. So whatever they read, the answer
depends on the bytes of the view alone, and no pod gets an answer that is for another view.

A view has everything of the pod except what is left out here: what the API server and controllers
draw anew for each pod, and what programs get (arguments, variables, the sources of volumes). Maps
and lists that rules may edit keep their size, because patches name positions, and a map that an
edit leaves empty is removed. A rule that must read more of the pod finds nothing there;
tests/admission/test_view.py fails then and names the member to add here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.admission.review import Review, is_heavy
from webhook.core.limit_ranger import ANNOTATION as OF_LIMIT_RANGER
from webhook.core.modes import IGNORE
from webhook.kube.pod import KINDS, controller_of

if TYPE_CHECKING:
    Raw = dict[str, Any]

# The volume that the ServiceAccount plugin adds has this name and five characters that it draws.
# The beginning alone, which is no legal name, stands for all of them.
_OF_ALL: Final = "kube-api-access-"
_OURS: Final = "gpu-webhook.dev/"
_HOST_NAME: Final = "pod.beta.kubernetes.io/hostname"
_SEARCH_PATHS: Final = ("LD_LIBRARY_PATH", "PATH")
LARGEST = 16 * 1024  # bytes of a view
_ANY: Final[Raw] = {}  # stands for an item that no rule reads
_CREATED: Final = {
    "operation": "CREATE",
    "kind": {"version": "v1", "kind": "Pod"},
    "resource": {"resource": "pods"},
}


def body_of(review: Review) -> bytes | None:
    """The view of this review, which creates a pod; None if the whole pod must be judged.

    That is so for a pod that has no replicas: no controller made it, or a DaemonSet, whose pods
    name their nodes. And for one that may take long or is too large to be remembered, and one with
    odd types: it may be odd in what is left out, too, and what cannot be written as JSON has no
    view.
    """
    request = review.request
    pod, namespace = request["object"], request["namespace"]
    try:
        owner = controller_of(pod["metadata"])
        has_replicas = owner and owner["kind"] != "DaemonSet"
        if not has_replicas or is_heavy(review.body) or request.get("oldObject") is not None:
            return None
        seen = {"metadata": _metadata(pod["metadata"], owner["kind"]), "spec": _spec(pod)}
        body = orjson.dumps({"request": {**_CREATED, "namespace": namespace, "object": seen}})
    except (AttributeError, LookupError, TypeError):
        return None
    return body if len(body) <= LARGEST else None


def review_of(body: bytes, review: Review) -> Review:
    """The smaller review in place of this one."""
    return Review(review.version, review.uid, orjson.loads(body)["request"], body, False)


def _metadata(metadata: Raw, maker: str) -> Raw:
    """Annotations that rules know, the opt-out, the maker, and which amounts clients sent."""
    seen: Raw = {}
    if "annotations" in metadata:
        seen["annotations"] = annotations = metadata["annotations"]
        if annotations:
            kept = {key: text for key, text in annotations.items() if _is_read(key)}
            if len(kept) < len(annotations):
                kept[""] = ""
            seen["annotations"] = kept
    if "uid" in metadata:
        seen["uid"] = ""
    if metadata.get("labels") and IGNORE in metadata["labels"]:
        seen["labels"] = {IGNORE: metadata["labels"][IGNORE]}
    seen["ownerReferences"] = [{"kind": maker, "controller": True}]
    if (sent := metadata.get("managedFields")) is not None:
        seen["managedFields"] = [_sent(each) for each in sent]
    return seen


def _is_read(annotation: str) -> bool:
    return (
        "alpha." in annotation
        or "beta." in annotation
        or annotation.startswith(_OURS)
        or annotation == OF_LIMIT_RANGER
    )


def _sent(entry: Raw) -> Raw:
    """The amounts of containers, a node selector, and our own annotations."""
    fields: Raw = entry["fieldsV1"]
    spec: Any = fields.get("f:spec", _ANY)
    annotations: Any = fields.get("f:metadata", _ANY).get("f:annotations", _ANY)
    if not (isinstance(spec, dict) and isinstance(annotations, dict)):
        raise TypeError
    amounts: Raw = {
        kind: {
            key: {"f:resources": each["f:resources"]} if "f:resources" in each else _ANY
            for key, each in spec[kind].items()
        }
        for kind in ("f:containers", "f:initContainers")
        if kind in spec
    }
    if "f:nodeSelector" in spec:
        amounts["f:nodeSelector"] = _ANY
    ours = {key: _ANY for key in annotations if key.startswith("f:" + _OURS)}
    return {"fieldsV1": {"f:spec": amounts, "f:metadata": {"f:annotations": ours}}}


def _spec(pod: Raw) -> Raw:
    """All of it but the host name of a StatefulSet's pod, sources of volumes, and programs."""
    spec: Raw = {**pod["spec"]}
    if "hostname" in spec and _HOST_NAME not in (pod["metadata"].get("annotations") or _ANY):
        del spec["hostname"]
    volumes, token = spec.get("volumes"), _OF_ALL
    if volumes:
        names = [each["name"] for each in volumes]
        tokens = [name for name in names if name.startswith(_OF_ALL)]
        token = tokens[0] if len(tokens) == 1 else _OF_ALL
        spec["volumes"] = [
            {"name": _OF_ALL if name == token else name, "hostPath": each["hostPath"]}
            if "hostPath" in each
            else {"name": _OF_ALL if name == token else name}
            for name, each in zip(names, volumes, strict=True)
        ]
    for kind in KINDS:
        if spec.get(kind):
            spec[kind] = [_container(each, token) for each in spec[kind]]
    return spec


def _container(container: Raw, token: str) -> Raw:
    seen = {**container}
    seen.pop("args", None)
    seen.pop("command", None)
    if mounts := seen.get("volumeMounts"):
        seen["volumeMounts"] = [_mount(each, token) for each in mounts]
    if variables := seen.get("env"):
        seen["env"] = [each if each["name"] in _SEARCH_PATHS else _ANY for each in variables]
    return seen


def _mount(mount: Raw, token: str) -> Raw:
    """The mount, that of the token under the one name: nothing else may have it then."""
    if mount["name"] == token:
        return {**mount, "name": _OF_ALL}
    if mount["name"] == _OF_ALL:
        raise LookupError
    return mount
