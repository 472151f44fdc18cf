"""Questions to the real scheduler: where did the pod go, or why nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.client import until

if TYPE_CHECKING:
    from tests.cluster.client import Client, Json

_CONTROLLERS = (
    "CronJob",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "ReplicaSet",
    "ReplicationController",
)


def node_of(client: Client, namespace: str, name: str, seconds: float = 20.0) -> str:
    """Give the node that the scheduler chose; wait for it."""

    def chosen() -> str | None:
        pod = client.get("Pod", name, namespace)
        node: str | None = pod["spec"].get("nodeName")
        return node

    try:
        return until(chosen, "the scheduler", seconds)
    except TimeoutError:
        why = refusal(client.get("Pod", name, namespace))
        raise AssertionError(f"{namespace}/{name} has no node: {why}") from None


def why_pending(client: Client, namespace: str, name: str) -> str:
    """Give the scheduler's message that the pod fits no node; wait for it."""

    def refused() -> str | None:
        pod = client.get("Pod", name, namespace)
        node = pod["spec"].get("nodeName")
        if node:
            raise AssertionError(f"{namespace}/{name} was scheduled to {node}")
        return refusal(pod)

    return until(refused, f"the scheduler's verdict on {namespace}/{name}")


def refusal(pod: Json) -> str | None:
    """Give the message of the condition PodScheduled=False, Unschedulable, if it is there."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            assert condition["reason"] == "Unschedulable", condition
            message: str = condition["message"]
            return message
    return None


def pods_of(client: Client, namespace: str, count: int) -> list[Json]:
    """Wait until controllers have made so many pods; give them."""

    def made() -> list[Json] | None:
        pods = client.list("Pod", namespace)
        return pods if len(pods) == count else None

    return until(made, f"{count} pods in {namespace}")


_LOOKS = 6


def leave(client: Client, namespace: str) -> None:
    """Delete everything that runs or makes pods in a namespace that nobody uses again."""
    if [kind for kind in _CONTROLLERS if client.delete_all(kind, namespace)]:
        # The API server lets no controller make one more pod, which would keep its GPUs: there is
        # no kubelet that would end it.
        client.delete("Namespace", namespace)
    until(lambda: not client.delete_all("Pod", namespace), f"{namespace} to be empty")


def empty(client: Client, namespace: str) -> None:
    """Delete everything that runs or makes pods; nothing of it holds a GPU when this returns."""
    controllers = [kind for kind in _CONTROLLERS if client.delete_all(kind, namespace)]
    # A controller may be about to make one more pod: nothing is there at several looks in a row.
    wanted = _LOOKS if controllers else 1
    looks = [0]

    def gone() -> bool:
        looks[0] = 0 if client.delete_all("Pod", namespace) else looks[0] + 1
        return looks[0] >= wanted

    until(gone, f"{namespace} to be empty")


def remove(client: Client, namespace: str) -> None:
    """Delete a namespace, if it is there; return when nothing of it is left.

    No kubelet ends its pods, and a controller may have made one more since the last look.
    """
    path = f"/api/v1/namespaces/{namespace}"
    if not client.request("GET", path).ok:
        return
    client.request("DELETE", path)

    def left() -> bool:
        for kind in (*_CONTROLLERS, "Pod"):
            client.delete_all(kind, namespace)
        return not client.request("GET", path).ok

    until(left, f"the namespace {namespace} to be deleted", 120)
