"""Finds containers that ask for GPUs under a name of Kubernetes 1.3-1.10.

Why: no node offers `alpha.kubernetes.io/nvidia-gpu` since 1.11. The API server accepts it without
a word, and the pod stays Pending for ever: "Insufficient alpha.kubernetes.io/nvidia-gpu".

Does: renames the key to `nvidia.com/gpu` in limits and requests and keeps the amount as written.
An amount of 0 meant no GPU, so the key goes (where limit and request differ, the limit decides:
kubelets gave devices by limit). Where both names stand in one container, `nvidia.com/gpu` wins and
the legacy name goes; the two are never added up, since a LimitRange may have added one of them.

Safety: safe. An amount that is no quantity, or is negative, is left for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core import quantity
from webhook.core.edits import Edit, Remove, Rename
from webhook.core.findings import Finding, Severity
from webhook.core.pod import SECTIONS, Container, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.pod import Pod
    from webhook.core.rule import Context

NAME = "legacy-resource"
CODE = "GPU101"


def check(pod: Pod, cx: Context) -> Iterator[Finding]:
    for container in pod.containers:
        present = set(cx.settings.gpu_resource in section for section in _sections(container))
        taken = True in present
        for name in cx.settings.legacy_resources:
            if name in container.limits or name in container.requests:
                finding = _finding(container, name, cx.settings.gpu_resource, taken=taken)
                taken = taken or any(isinstance(edit, Rename) for edit in finding.edits)
                yield finding
    for section in SECTIONS:
        for name in as_map(as_map(pod.spec.get("resources")).get(section)):
            if name in cx.settings.legacy_resources:
                at = pod.spec_at / "resources" / section / name
                message = (
                    f"the pod as a whole asks for {name}: GPUs can only be asked for by a "
                    f"container; move it to a container's limits as {cx.settings.gpu_resource}"
                )
                yield Finding(CODE, at, message, severity=Severity.PERSON)


def _sections(container: Container) -> Iterator[dict[str, object]]:
    yield container.limits
    yield container.requests


def _finding(container: Container, name: str, new: str, *, taken: bool) -> Finding:
    where = [section for section in SECTIONS if name in container.section(section)]
    at = container.section_at(where[0]) / name
    raw = container.section(where[0])[name]
    who = f"container {container.name}"
    places = [container.section_at(section) / name for section in where]
    edits: tuple[Edit, ...] = tuple(Remove(place) for place in places)
    if taken:
        return Finding(CODE, at, f"{who} {_both(container, name, new)}", edits)
    amount = quantity.parse(raw)
    if amount is None or amount < 0:
        message = f"{who} asks for {str(raw)[:40]!r} {name}, which is no amount of GPUs: mend it"
        return Finding(CODE, at, message, severity=Severity.PERSON)
    if amount == 0:
        return Finding(CODE, at, f"{who} asks for 0 {name}: no GPU; delete the line", edits)
    edits = tuple(Rename(place, new) for place in places)
    message = f"{who} asks for {name}, which no node offers; write {new}: {raw}"
    return Finding(CODE, at, message, edits)


def _both(container: Container, name: str, new: str) -> str:
    legacy = {str(section[name]) for section in _sections(container) if name in section}
    today = {str(section[new]) for section in _sections(container) if new in section}
    if today and legacy != today:
        return (
            f"asks for {', '.join(sorted(legacy))} {name} and {', '.join(sorted(today))} {new}: "
            f"the latter counts; delete the {name} line"
        )
    return f"asks for {name} beside {new}: delete the {name} line"
