"""Extracts the pods of an AdmissionRequest; None for requests that no rule concerns."""

from __future__ import annotations

from typing import Any

from webhook.kube.pod import as_items, as_map, controller_of, is_for_linux, is_mirror

_NODES = "system:nodes"  # the group of all kubelets
_DEBUGGING = "ephemeralcontainers"  # the subresource that `kubectl debug` updates
_EPHEMERALS = "ephemeralContainers"  # the field that it changes


def pod_of(request: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that is created; None if the webhook does not handle the request."""
    return _for_linux(_created(request))


def makes_a_pod(request: dict[str, Any]) -> bool:
    """Whether any kind of pod is created."""
    if request.get("operation") != "CREATE" or request.get("subResource"):
        return False
    return _is_about_a_pod(request)


def made_pod_of(request: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that is created, also a mirror pod or one for Windows.

    The scheduler gives such a pod its GPUs, so a limit must count them. Only a kubelet creates
    mirror pods: the annotation alone proves nothing, because any user can write it.
    """
    pod = _created(request)
    return None if pod is None or (is_mirror(pod) and _asked_by_node(request)) else pod


def _created(request: dict[str, Any]) -> dict[str, Any] | None:
    return _pod(request) if makes_a_pod(request) else None


def changes_a_pod(request: dict[str, Any], *by: str) -> bool:
    """Whether a stored pod is changed, itself or `by` one of these subresources."""
    if request.get("operation") != "UPDATE" or not _is_about_a_pod(request):
        return False
    return (request.get("subResource") or "") in ("", *by)


def updated_pod_of(
    request: dict[str, Any], *by: str
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The pod that is changed, and the stored pod; None for another request."""
    pod = _for_linux(_pod(request)) if changes_a_pod(request, *by) else None
    stored = request.get("oldObject")
    return (pod, stored) if pod is not None and isinstance(stored, dict) else None


def debugged_pod_of(request: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that gets ephemeral containers; None for another request.

    It is the stored pod with the ephemeral containers that are sent. The API server ignores all
    other changes (dropNonEphemeralContainerUpdates), but only after the webhook.
    """
    if request.get("operation") != "UPDATE" or request.get("subResource") != _DEBUGGING:
        return None
    sent = _pod(request) if _is_about_a_pod(request) else None
    stored = as_map(request.get("oldObject"))
    if sent is None or not isinstance(stored.get("spec"), dict):
        return _for_linux(sent)
    added = {_EPHEMERALS: sent["spec"].get(_EPHEMERALS)}
    return _for_linux({**stored, "spec": {**stored["spec"], **added}})


def added_to(request: dict[str, Any]) -> frozenset[str]:
    """The names of the ephemeral containers that this update adds: no others may be changed."""
    now, before = (_ephemeral(request.get(each)) for each in ("object", "oldObject"))
    return frozenset(now - before)


def _ephemeral(pod: object) -> set[str]:
    containers = as_map(as_map(pod).get("spec")).get(_EPHEMERALS)
    return {str(each.get("name")) for _, each in as_items(containers)}


def _is_about_a_pod(request: dict[str, Any]) -> bool:
    kind, resource = as_map(request.get("kind")), as_map(request.get("resource"))
    if (kind.get("kind"), kind.get("version"), kind.get("group") or "") != ("Pod", "v1", ""):
        return False
    return (resource.get("resource"), resource.get("group") or "") == ("pods", "")


def _pod(request: dict[str, Any]) -> dict[str, Any] | None:
    pod, namespace = request.get("object"), request.get("namespace")
    if not isinstance(pod, dict) or not isinstance(namespace, str) or not namespace:
        return None
    return pod if isinstance(pod.get("spec"), dict) else None


def _for_linux(pod: dict[str, Any] | None) -> dict[str, Any] | None:
    """The pod, if a kubelet on Linux will run it as the API server stores it."""
    return pod if pod is not None and is_for_linux(pod) else None


def _asked_by_node(request: dict[str, Any]) -> bool:
    groups = as_map(request.get("userInfo")).get("groups")
    return isinstance(groups, list) and _NODES in groups


def owner_of(obj: dict[str, Any]) -> dict[str, str] | None:
    """Kind and name of the controller that created the object; None for one without controller."""
    owner = controller_of(as_map(obj.get("metadata")))
    return {key: text(owner.get(key)) for key in ("kind", "name")} if owner else None


def user_of(request: dict[str, Any]) -> str:
    """The user of the request, as the API server knows them."""
    return text(as_map(request.get("userInfo")).get("username"))


def text(value: object) -> str:
    """The value if it is a string, otherwise empty."""
    return value if isinstance(value, str) else ""
