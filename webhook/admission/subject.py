"""What a request is about, and what is none of our business."""

from __future__ import annotations

from typing import Any

from webhook.core.modes import is_opted_out
from webhook.core.pod import as_items, as_map, controller_of

_MIRROR = "kubernetes.io/config.mirror"
_OS_LABELS = ("kubernetes.io/os", "beta.kubernetes.io/os")
_EPHEMERAL = "ephemeralcontainers"  # the subresource that `kubectl debug` updates


def pod_of(request: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that is being made, or None if the request is none of our business."""
    if request.get("operation") != "CREATE" or request.get("subResource"):
        return None
    return _pod(request)


def debugged_pod_of(request: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that gets ephemeral containers, or None if it is another request."""
    if request.get("operation") != "UPDATE" or request.get("subResource") != _EPHEMERAL:
        return None
    return _pod(request)


def added_to(request: dict[str, Any]) -> frozenset[str]:
    """The names of the ephemeral containers that this update adds: no other may be changed."""
    now, before = (_ephemeral(request.get(each)) for each in ("object", "oldObject"))
    return frozenset(now - before)


def _ephemeral(pod: object) -> set[str]:
    containers = as_map(as_map(pod).get("spec")).get("ephemeralContainers")
    return {str(each.get("name")) for _, each in as_items(containers)}


def _pod(request: dict[str, Any]) -> dict[str, Any] | None:
    kind, resource = as_map(request.get("kind")), as_map(request.get("resource"))
    if (kind.get("kind"), kind.get("version"), kind.get("group") or "") != ("Pod", "v1", ""):
        return None
    if (resource.get("resource"), resource.get("group") or "") != ("pods", ""):
        return None
    pod, namespace = request.get("object"), request.get("namespace")
    if not isinstance(pod, dict) or not isinstance(namespace, str) or not namespace:
        return None
    spec = pod.get("spec")
    if not isinstance(spec, dict) or _is_mirror(pod) or is_for_windows(spec):
        return None
    return pod


def _is_mirror(pod: dict[str, Any]) -> bool:
    """True for the API server's image of a static pod: the kubelet runs it as it is on disk."""
    return _MIRROR in as_map(as_map(pod.get("metadata")).get("annotations"))


def is_for_windows(spec: dict[str, Any]) -> bool:
    """Whether this pod spec is for a Windows node, where GPUs have other names."""
    selector = as_map(spec.get("nodeSelector"))
    return as_map(spec.get("os")).get("name") == "windows" or any(
        selector.get(label) == "windows" for label in _OS_LABELS
    )


def pod_is_opted_out(pod: dict[str, Any]) -> bool:
    """Whether the pod itself wants no repairs. Policy and guard ask nobody who makes a pod."""
    return is_opted_out(as_map(as_map(pod.get("metadata")).get("labels")))


def owner_of(metadata: dict[str, Any]) -> str:
    """The kind of the controller that made the object; nothing for one made by hand."""
    return text(controller_of(metadata).get("kind"))


def text(value: object) -> str:
    """The value if it is a text, else nothing."""
    return value if isinstance(value, str) else ""
