"""How many GPUs a pod needs on one node, by resource name: what the scheduler will ask for.

The computation is part of the API (component-helpers resource/helpers.go, `PodRequests`; KEP-753).
Containers run side by side, so theirs add up. Init containers run one after the other, and give
their GPUs back before the containers start. A sidecar (an init container with `restartPolicy:
Always`) goes on running: it counts with the containers, and with each init container after it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from webhook.core import quantity
from webhook.core.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.pod import Container, Pod
    from webhook.core.settings import Settings

    Amounts = dict[str, Fraction]

_NONE = Fraction(0)
_STEPS = ("initContainers", "containers")  # ephemeral containers may not ask for resources


def gpu_requests(pod: Pod, settings: Settings) -> dict[str, int]:
    """What the pod asks of one node, by GPU resource name; only amounts above zero.

    Pod-level `spec.resources` (KEP-2837) may not name devices, so it is not looked at.
    """
    together: Amounts = {}  # what runs at last: the containers, and the sidecars beside them
    sidecars: Amounts = {}  # those that run already
    peak: Amounts = {}
    for container in pod.containers:
        if container.kind not in _STEPS:
            continue
        asked = _asked(container, settings)
        if container.kind == "containers":
            _add(together, asked)
        elif container.raw.get("restartPolicy") == "Always":
            _add(together, asked)
            _add(sidecars, asked)
        else:
            _raise(peak, asked, sidecars)
    needed = {
        name: max(together.get(name, _NONE), peak.get(name, _NONE)) for name in (together | peak)
    }
    _add(needed, _gpus(as_map(pod.spec.get("overhead")), settings))
    return {name: quantity.whole(amount) for name, amount in needed.items() if amount > 0}


def _asked(container: Container, settings: Settings) -> Amounts:
    """The request; where it is missing the API server copies the limit (SetDefaults_Pod)."""
    return _gpus({**container.limits, **container.requests}, settings)


def _gpus(amounts: Mapping[str, object], settings: Settings) -> Amounts:
    """The GPUs among the amounts; one that Kubernetes cannot read is refused by the API server."""
    found: Amounts = {}
    for name, text in amounts.items():
        if settings.is_gpu(name):
            amount = quantity.parse(text)
            if amount is not None:
                found[name] = amount
    return found


def _add(to: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, _NONE) + amount


def _raise(peak: Amounts, asked: Amounts, sidecars: Amounts) -> None:
    """Raise the peak to what this init container and the sidecars before it ask together."""
    for name in asked | sidecars:
        here = asked.get(name, _NONE) + sidecars.get(name, _NONE)
        peak[name] = max(peak.get(name, _NONE), here)
