"""What a RuntimeClass adds to a pod: node selection (KEP-894) and overhead (KEP-688).

The plugin RuntimeClass of the API server adds it when a pod is created, and again after a webhook
has changed the pod. So it is missing in a template, and in a pod whose class was just set here.
Also missing in a template is the node selector that the plugin PodNodeSelector adds to pods of its
namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.capacity.legacy_selector import translated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.capacity.nodes import Inventory
    from webhook.core.rule import Context
    from webhook.kube.pod import Pod


def in_class(pod: Pod, name: str, inventory: Inventory) -> Pod:
    """The pod with the additions of this class, if the class is known.

    If both name a label, the value of the pod stays: the API server rejects a pod with two values.
    """
    selector = inventory.runtime_classes.get(name, {})
    tolerations = inventory.class_tolerations.get(name, ())
    pod = _larger(pod, name, inventory)
    if not selector and not tolerations:
        return pod
    return pod.having(
        nodeSelector={**selector, **pod.node_selector},
        tolerations=[*pod.tolerations(), *tolerations],
    )


def as_admitted(pod: Pod, cx: Context, otherwise: str = "") -> Pod:
    """The pod with the additions of its own class, or of the class `otherwise`.

    Legacy labels in its nodeSelector are as they will be then. A stored pod has all this already.
    The controller of a DaemonSet chooses nodes by the template and ignores the class, but the class
    adds its overhead to the pods.
    """
    return pod if cx.final else pod.once(_as_admitted, cx, otherwise)


def in_namespace(pod: Pod, cx: Context) -> Pod:
    """The pod of a template with the node selector of its namespace; unchanged if it has none.

    Whether PodNodeSelector is on cannot be seen from the cluster, so the pods may also lack it. If
    both name a label, the value of the template stays: the plugin rejects a pod with two values.
    """
    given = node_selector(cx)
    if not given:
        return pod
    return translated(pod.having(nodeSelector={**given, **pod.node_selector}), cx)


def node_selector(cx: Context) -> Mapping[str, str] | None:
    """The node selector that the namespace may add to pods of this template; created pods have it.

    None if the watcher does not know the namespace, which may be new, and the template would be
    changed. Otherwise the pods are repaired, and by then it is known.
    """
    if not cx.template or cx.inventory is None:
        return {}
    given = cx.inventory.node_selector(cx.namespace)
    return {} if given is None and not cx.settings.workloads.repair else given


def _as_admitted(pod: Pod, cx: Context, otherwise: str) -> Pod:
    if cx.inventory is None:
        return pod
    name = pod.spec.get("runtimeClassName") or otherwise
    name = name if isinstance(name, str) else ""
    if cx.makes_daemons:
        return _larger(pod, name, cx.inventory)
    return translated(in_class(pod, name, cx.inventory), cx)


def _larger(pod: Pod, name: str, inventory: Inventory) -> Pod:
    """The pod with the overhead of this class.

    The API server rejects a pod with another overhead.
    """
    overhead = inventory.class_overheads.get(name)
    return pod.having(overhead=overhead) if overhead and "overhead" not in pod.spec else pod
