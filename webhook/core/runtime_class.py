"""What a pod is given of its RuntimeClass: the nodes that it may choose (KEP-894).

The plugin RuntimeClass of the API server adds it when a pod is made, and again when a webhook has
changed the pod. So a template lacks it, and so does a pod whose class was just set here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.pod import Pod

if TYPE_CHECKING:
    from webhook.core.nodes import Inventory
    from webhook.core.rule import Context


def in_class(pod: Pod, name: str, inventory: Inventory) -> Pod:
    """The pod with what this class gives it, as far as the class is known.

    Where both name a label, the pod's value stands: the API server refuses a pod with two of them.
    """
    selector = inventory.runtime_classes.get(name, {})
    tolerations = inventory.class_tolerations.get(name, ())
    if not selector and not tolerations:
        return pod
    spec = {
        **pod.spec,
        "nodeSelector": {**selector, **pod.node_selector},
        "tolerations": [*pod.tolerations(), *tolerations],
    }
    return Pod({**pod.raw, "spec": spec})


def as_admitted(pod: Pod, cx: Context, otherwise: str = "") -> Pod:
    """The pod with what its own class, or `otherwise` this one, will give it.

    A pod as it will be stored has it already. The controller of a DaemonSet chooses nodes by the
    template, and looks at no class.
    """
    name = pod.spec.get("runtimeClassName") or otherwise
    if cx.final or cx.makes_daemons or cx.inventory is None or not isinstance(name, str):
        return pod
    return in_class(pod, name, cx.inventory)
