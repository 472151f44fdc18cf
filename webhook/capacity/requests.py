"""How many GPUs a pod requests from one node, by resource name, as the scheduler computes it.

The computation is part of the API (component-helpers resource/helpers.go, `PodRequests`; KEP-753).
Containers run side by side, so their requests are added. Init containers run one after the other,
and release their GPUs before the containers start. A sidecar (an init container with
`restartPolicy: Always`) keeps running: it counts with the containers, and with each init container
after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from webhook.kube import overflow, quantity
from webhook.kube.pod import Container, Pod, as_map

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.core.settings import Settings


class _Number(Protocol):
    """A type of amounts that can be added."""

    def __add__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> bool: ...


N = TypeVar("N", bound=_Number)

_STEPS = ("initContainers", "containers")  # ephemeral containers cannot request resources


def gpu_requests(pod: Pod, settings: Settings) -> dict[str, int]:
    """What the pod requests from one node, by GPU resource name; only amounts above zero.

    Pod-level `spec.resources` (KEP-2837) cannot name devices, so it is ignored.
    """
    return pod.once(_gpu_requests, settings)


def _gpu_requests(pod: Pod, settings: Settings) -> dict[str, int]:
    needed = _Sum(settings, quantity.nanos, 0).of(pod)
    return {name: quantity.whole_of(nanos) for name, nanos in needed.items() if nanos > 0}


def as_scheduled(pod: Pod, settings: Settings) -> dict[str, int]:
    """The same as kube-scheduler reads it: amounts of 2^63 and more overflow."""
    needed = _Sum(settings, overflow.read, overflow.ZERO).of(pod)
    return {name: amount.value for name, amount in needed.items() if amount.value > 0}


class _Sum(Generic[N]):
    """Sums up amounts of one type."""

    def __init__(self, settings: Settings, read: Callable[[object], N | None], none: N) -> None:
        self._settings = settings
        self._read = read
        self._none = none

    def of(self, pod: Pod) -> dict[str, N]:
        """What the pod requests from one node."""
        total: dict[str, N] = {}  # what runs in the end: containers, and the sidecars beside them
        sidecars: dict[str, N] = {}  # the sidecars that run already
        # Resources of sidecars that started after the last other init container.
        joined: dict[str, N] = {}
        peak: dict[str, N] = {}
        for container in pod.containers:
            if container.kind not in _STEPS:
                continue
            asked = self._asked(container)
            if container.kind == "containers":
                self._add(total, asked)
            elif container.raw.get("restartPolicy") == "Always":
                self._add(total, asked)
                self._add(sidecars, asked)
                joined |= asked
            else:
                names = [name for name in {**asked, **joined} if name in sidecars]
                self._raise(peak, asked, {name: sidecars[name] for name in names})
                joined.clear()
        self._raise(total, peak, {})
        self._add(total, self._gpus(as_map(pod.spec.get("overhead"))))
        return total

    def _asked(self, container: Container) -> dict[str, N]:
        """The request; if it is missing, the API server copies the limit (SetDefaults_Pod)."""
        return self._gpus({**container.limits, **container.requests})

    def _gpus(self, amounts: Mapping[str, object]) -> dict[str, N]:
        """The GPUs among the amounts.

        The API server rejects amounts that Kubernetes cannot read.
        """
        found: dict[str, N] = {}
        for name, text in amounts.items():
            if self._settings.is_gpu(name):
                amount = self._read(text)
                if amount is not None:
                    found[name] = amount
        return found

    def _add(self, to: dict[str, N], more: dict[str, N]) -> None:
        for name, amount in more.items():
            to[name] = to[name] + amount if name in to else amount

    def _raise(self, peak: dict[str, N], asked: dict[str, N], beside: dict[str, N]) -> None:
        """Raise the peak to the sum of this init container and the sidecars before it."""
        for name in asked | beside:
            here = asked.get(name, self._none) + beside.get(name, self._none)
            if name not in peak or here > peak[name]:
                peak[name] = here
