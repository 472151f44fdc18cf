"""How many GPUs a pod requests from one node, by resource name, as the scheduler computes it.

The computation is part of the API (component-helpers resource/helpers.go, `PodRequests`; KEP-753).
Containers run side by side, so their requests are added. Init containers run one after the other,
and release their GPUs before the containers start. A sidecar (an init container with
`restartPolicy: Always`) keeps running: it counts with the containers, and with each init container
after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.kube import quantity
from webhook.kube.pod import Pod, as_map, once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.settings import Settings

    Nanos = dict[str, int]  # by resource name

_STEPS = ("initContainers", "containers")  # ephemeral containers cannot request resources


@once
def gpu_requests(pod: Pod, settings: Settings) -> dict[str, int]:
    """What the pod requests from one node, by GPU resource name; only amounts above zero.

    Pod-level `spec.resources` (KEP-2837) cannot name devices, so it is ignored.
    """
    needed = _needed(pod, settings).items()
    return {name: quantity.whole_of(nanos) for name, nanos in needed if nanos > 0}


def _needed(pod: Pod, settings: Settings) -> Nanos:
    total: Nanos = {}  # what runs in the end: containers, and the sidecars beside them
    sidecars: Nanos = {}  # the sidecars that run already
    joined: Nanos = {}  # resources of sidecars that started after the last other init container
    peak: Nanos = {}
    for container in pod.containers:
        if container.kind not in _STEPS:
            continue
        asked = _gpus(container.requested(), settings)
        if container.kind == "containers":
            _add(total, asked)
        elif container.raw.get("restartPolicy") == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            joined |= asked
        else:
            names = [name for name in {**asked, **joined} if name in sidecars]
            _raise(peak, asked, {name: sidecars[name] for name in names})
            joined.clear()
    _raise(total, peak, {})
    _add(total, _gpus(as_map(pod.spec.get("overhead")), settings))
    return total


def _gpus(amounts: Mapping[str, object], settings: Settings) -> Nanos:
    """The GPUs among the amounts.

    The API server rejects amounts that Kubernetes cannot read.
    """
    found: Nanos = {}
    for name, text in amounts.items():
        if settings.is_gpu(name):
            amount = quantity.nanos(text)
            if amount is not None:
                found[name] = amount
    return found


def _add(to: Nanos, more: Nanos) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0) + amount


def _raise(peak: Nanos, asked: Nanos, beside: Nanos) -> None:
    """Raise the peak to the sum of this init container and the sidecars before it."""
    for name in asked | beside:
        here = asked.get(name, 0) + beside.get(name, 0)
        peak[name] = max(here, peak.get(name, here))
