"""Finds containers that ask for GPUs under a name of Kubernetes 1.3-1.10.

Why: no node offers `alpha.kubernetes.io/nvidia-gpu` since 1.11. The API server accepts it without
a word, and the pod stays Pending for ever: "Insufficient alpha.kubernetes.io/nvidia-gpu".

Does: renames the key to `nvidia.com/gpu` in limits and requests and keeps the amount as written.
An amount of 0 meant no GPU, so the key goes (where limit and request differ, the limit decides:
kubelets gave devices by limit). Where a container asks under a name of today as well, that one wins
and the legacy name goes; the two are never added up, since a LimitRange may have added one of them.

Safety: safe. An amount that is no quantity, or is negative, is left for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core import quantity
from webhook.core.edits import Remove, Rename
from webhook.core.findings import Finding, Severity
from webhook.core.pod import SECTIONS, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from webhook.core.edits import Edit
    from webhook.core.pod import Container, Pod
    from webhook.core.rule import Context
    from webhook.core.settings import Settings

NAME = "legacy-resource"
CODE = "GPU101"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for container in pod.containers:
        counts = _asked_today(container, cx.settings)
        for name in _legacy_names(container, cx.settings):
            finding = _finding(container, name, cx.settings.gpu_resource, counts)
            if any(isinstance(edit, Rename) for edit in finding.edits):
                counts = f"{_amounts(container, name)} {name}"
            yield finding
    yield from _pod_level(pod, cx)


def _legacy_names(container: Container, settings: Settings) -> list[str]:
    """The legacy names in this container. Those that are no amount of GPUs come last.

    What they stand beside is known then, as it would be if the pod were repaired once more.
    """
    named = [
        name
        for name in settings.legacy_resources
        if name in container.limits or name in container.requests
    ]
    if len(named) <= 1:
        return named
    return sorted(named, key=lambda name: _amount(container, name) is None)


def _amount(container: Container, name: str) -> Fraction | None:
    """How much is asked for: the limit, or else the request; None for what is no amount."""
    section = container.limits if name in container.limits else container.requests
    amount = quantity.parse(section[name])
    return None if amount is None or amount.numerator < 0 else amount


def _pod_level(pod: Pod, cx: Context) -> Iterator[Finding]:
    for section in SECTIONS:
        for name in as_map(as_map(pod.spec.get("resources")).get(section)):
            if name in cx.settings.legacy_resources:
                at = pod.spec_at / "resources" / section / name
                message = (
                    f"the pod as a whole asks for {name}: GPUs can only be asked for by a "
                    f"container; move it to a container's limits as {cx.settings.gpu_resource}"
                )
                yield Finding(CODE, at, message, severity=Severity.PERSON)


def _asked_today(container: Container, settings: Settings) -> str:
    """The amount and name of today that this container asks for already; empty if there is none.

    Any GPU name counts, not only the target: a LimitRange may put the legacy name beside a slice.
    """
    names = {*container.limits, *container.requests}.difference(settings.legacy_resources)
    if not names:
        return ""
    asked = names & {*container.gpus(settings), settings.gpu_resource}
    return ", ".join(f"{_amounts(container, name)} {name}" for name in sorted(asked))


def _amounts(container: Container, name: str) -> str:
    sections = (container.limits, container.requests)
    return ", ".join(sorted({str(section[name]) for section in sections if name in section}))


def _finding(container: Container, name: str, new: str, counts: str) -> Finding:
    where = [section for section in SECTIONS if name in container.section(section)]
    raw = container.section(where[0])[name]
    who = f"container {container.name}"
    places = [container.section_at(section) / name for section in where]
    at = places[0]
    edits: tuple[Edit, ...] = tuple(map(Remove, places))
    if counts:
        asked = f"{_amounts(container, name)} {name}"
        message = f"{who} asks for {asked} beside {counts}, which counts alone: delete the former"
        return Finding(CODE, at, message, edits)
    amount = _amount(container, name)
    if amount is None:
        message = f"{who} asks for {str(raw)[:40]!r} {name}, which is no amount of GPUs: mend it"
        return Finding(CODE, at, message, severity=Severity.PERSON)
    if amount == 0:
        return Finding(CODE, at, f"{who} asks for 0 {name}: no GPU; delete the line", edits)
    edits = tuple(Rename(place, new) for place in places)
    shown = raw if quantity.is_whole(amount) else quantity.whole(amount)
    message = f"{who} asks for {name}, which no node offers; write {new}: {shown}"
    return Finding(CODE, at, message, edits)
