"""Finds out how each container of a pod gets GPUs, or why it gets none.

The name of a resource counts only if the pod can get it; the manual of rules/leak_guard.py has the
conditions.
"""

from __future__ import annotations

import re
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.namespace_selection import matches
from webhook.core.settings import DEVICE_CLASS, Settings
from webhook.kube import quantity
from webhook.kube.pod import Container, Pod, as_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.core.rule import Context

VARIABLE = "NVIDIA_VISIBLE_DEVICES"
FRACTIONS = ("gpu-fraction", "gpu-memory")  # annotations of KAI-Scheduler (pkg/common/constants)
_NONE = Fraction(0)
_OVERFLOW = 2**63  # from here on the scheduler and the kubelet read another number
_EVERYDAY = {"cpu", "memory"}  # requested by nearly every pod of the cluster, so these are skipped


class By(Enum):
    """How a container gets GPUs, or why it gets none. The value is the text for messages."""

    GPUS = "gpus"
    SHARE = "share"
    FRACTION = "fraction"
    TOO_MANY = "too many"
    ELSEWHERE = "not on this node"
    NOWHERE = "nowhere"
    CLAIM = "claim"
    NOTHING = "void"


SHARED = (By.SHARE, By.FRACTION)
_SEEING = (By.GPUS, *SHARED)


class Holder(NamedTuple):
    """A container, and how it gets GPUs; `shown` is the resource name for messages."""

    container: Container
    by: By
    shown: str = ""


def holders(pod: Pod, cx: Context, node: str = "") -> Iterator[Holder]:
    """How each container gets GPUs. `node` is the node that the author of the pod has set."""
    asked = [_asked(container, cx.settings) for container in pod.containers]
    totals: dict[str, Fraction] = {}
    for each in asked:
        for name, amount in each.items():
            totals[name] = totals.get(name, _NONE) + amount
    rights = {name: _right(name, total, cx, node) for name, total in totals.items()}
    fraction = "" if node else _fraction(pod, cx.settings)
    for container, names in zip(pod.containers, asked, strict=True):
        found = {rights[name]: name for name in names}
        by = next((each for each in By if each in found), By.NOTHING)
        if by not in _SEEING and fraction and _comes_from_config_map(container):
            yield Holder(container, By.FRACTION, fraction)
        elif by is By.NOTHING and as_map(container.raw.get("resources")).get("claims"):
            yield Holder(container, By.CLAIM)
        else:
            yield Holder(container, by, found.get(by, ""))


def _asked(container: Container, settings: Settings) -> dict[str, Fraction]:
    """The amounts above zero that may stand for GPUs.

    Only for Kubernetes' own names may a request be below the limit (ValidateResourceRequirements),
    and a request of 0 allows any node.
    """
    found: dict[str, Fraction] = {}
    for name, text in container.requested().items():
        if name not in _EVERYDAY and _is_of_interest(name, settings):
            amount = quantity.parse(text)
            if amount is not None and amount > 0:
                found[name] = amount
    return found


def _is_of_interest(name: str, settings: Settings) -> bool:
    return (
        settings.may_bring_gpus(name)
        or name in settings.legacy_resources
        or name.startswith(DEVICE_CLASS)
    )


def _right(name: str, total: Fraction, cx: Context, node: str) -> By:
    """What a pod gets under this name, of which all its containers request `total`."""
    settings, inventory = cx.settings, cx.inventory
    offering = inventory.index.offers(name) if inventory is not None else 0
    served = inventory is not None and name in inventory.served_by_dra
    if name.startswith(DEVICE_CLASS) or (served and not offering):
        return By.CLAIM
    if total >= _OVERFLOW:
        return By.TOO_MANY
    here = inventory.index.named(node) if node and inventory is not None else 0
    if node and not _is_native(name) and not here & offering:
        return By.ELSEWHERE
    # A legacy name that is still here was not renamed, and may never be.
    is_legacy = name in settings.legacy_resources
    if settings.is_gpu(name) or (is_legacy and offering):
        return By.GPUS
    if offering or matches(settings.guard.resources, name):
        return By.SHARE
    if _is_native(name):
        return By.NOWHERE
    known = inventory is not None and cx.fresh
    if known and (is_legacy or not settings.is_known_to_bring_gpus(name)):
        return By.NOWHERE
    return By.SHARE  # if no node offers it, the scheduler finds no node


def _is_native(name: str) -> bool:
    """Whether the name is one of Kubernetes' own, not an extended resource.

    No device plugin may offer such a name (IsExtendedResourceName, kubelet's Register), and no
    kubelet runs a pod that requests one which its node lacks.
    """
    return "/" not in name or "kubernetes.io/" in name


def _fraction(pod: Pod, settings: Settings) -> str:
    """The annotation by which a listed scheduler gives this pod a share of a GPU, if it does."""
    if pod.spec.get("schedulerName") not in settings.guard.fraction_schedulers:
        return ""
    said = {key: str(text) for key, text in pod.annotations.items() if text is not None}
    is_valid = all(fits(said[key]) for key, fits in _VALUES.items() if key in said)
    if not is_valid or any(key.startswith(_SLICES) for key in said):
        return ""
    return next((key for key in FRACTIONS if key in said), "")


def _is_fraction(text: str) -> bool:
    """As ParseFloat of Go reads it, but for hexadecimal numbers."""
    return len(text) <= _LONGEST and bool(_NUMBER.fullmatch(text)) and _LEAST <= float(text) < 1


def _is_whole(text: str, below: int) -> bool:
    """As ParseUint of Go reads it."""
    return len(text) <= _LONGEST and bool(_DIGITS.fullmatch(text)) and 0 < int(text) < below


# With other values KAI-Scheduler refuses the pod (ValidateGpuRequests), or ignores the request
# (pkg/scheduler/api/pod_info, updatePodAdditionalFields; v0.4 to v0.13): it reads memory into an
# int64, rounds a fraction to hundredths, and multiplies these by the number of devices in an int64.
# An annotation with the name of a MIG resource replaces the whole request.
_VALUES: dict[str, Callable[[str], bool]] = {
    "gpu-fraction": _is_fraction,
    "gpu-memory": partial(_is_whole, below=2**63),
    "gpu-fraction-num-devices": partial(_is_whole, below=2**31),
}
_SLICES = "nvidia.com/mig-"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[0-9]+")
_LEAST = 0.01
_LONGEST = 400  # characters that are read


def _comes_from_config_map(container: Container) -> bool:
    """True if the variable is read from a ConfigMap; its last entry counts."""
    entries = entries_of(container)
    return bool(entries) and "configMapKeyRef" in as_map(entries[-1][1].get("valueFrom"))


def entries_of(container: Container) -> list[tuple[int, dict[str, Any]]]:
    """The entries of the variable in env, with their positions."""
    return [(at, entry) for at, entry in container.env() if entry.get("name") == VARIABLE]
