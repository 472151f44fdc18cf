"""What a RuntimeClass adds to a pod: node selection (KEP-894) and overhead (KEP-688).

The plugin RuntimeClass of the API server adds it when a pod is made, and again when a webhook has
changed the pod. So a template lacks it, and so does a pod whose class was just set here. A template
also lacks the node selector that the plugin PodNodeSelector gives the pods of its namespace.
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
    """The pod with what this class gives it, as far as the class is known.

    Where both name a label, the pod's value stands: the API server refuses a pod with two of them.
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
    """The pod with what its own class, or `otherwise` this one, will give it.

    Legacy labels in its nodeSelector are as they will be then. A pod as it will be stored has all
    this already. The controller of a DaemonSet chooses nodes by the template, and looks at no
    class; but its pods are as large as the class makes them.
    """
    return pod if cx.final else pod.once(_as_admitted, cx, otherwise)


def in_namespace(pod: Pod, cx: Context) -> Pod:
    """The pod of a template with the node selector of its namespace, or itself if it gets none.

    Whether PodNodeSelector is on, nobody can see: the pods may lack it as well. Where both name a
    label, the template's value stands: the plugin refuses a pod with two of them.
    """
    given = node_selector(cx)
    if not given:
        return pod
    return translated(pod.having(nodeSelector={**given, **pod.node_selector}), cx)


def node_selector(cx: Context) -> Mapping[str, str] | None:
    """What the namespace may give the pods of this template; a pod that is made has it already.

    None where the watcher does not know the namespace, which may be new, and something would be
    written into the template. Else the pods are repaired, and by then it is known.
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
    """The pod with the overhead of this class; one that says another is refused as it is."""
    overhead = inventory.class_overheads.get(name)
    return pod.having(overhead=overhead) if overhead and "overhead" not in pod.spec else pod
