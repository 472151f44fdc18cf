"""Decides who set an amount of a container: the author of the pod, or LimitRanger.

LimitRanger runs before webhooks and puts the defaults of a LimitRange beside what the author wrote.
A `max` without a default is a default, too. What it set it says in an annotation (1.36
plugin/pkg/admission/limitranger/admission.go):

    LimitRanger plugin set: nvidia.com/gpu request for container main; cpu, memory limit for init
    container warm-up

Of several LimitRanges only one is named there, and an author may write the annotation, too.
managedFields name what came with the request (for most clients after the API server has copied
limits to requests), so where they know the container they are asked as well. After a change by a
webhook LimitRanger runs once more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.core import repaired_annotation
from webhook.core.rule import RENAMES_AMOUNTS
from webhook.kube.canonical import parsed
from webhook.kube.managed_fields import entries, fields
from webhook.kube.pod import SECTIONS, as_map

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.kube.pod import Container, Pod, Raw

ANNOTATION = "kubernetes.io/limit-ranger"

_PREFIX = "LimitRanger plugin set: "
_SECTION_NAMES = {"limit": "limits", "request": "requests"}
_KINDS = {"container": "containers", "init container": "initContainers"}
_USUAL_KEY = re.compile(r'k:\{"name":"([-a-z0-9]+)"\}')

Place = tuple[str, str]  # a section, and a resource name in it
_Containers = dict[tuple[str, str], set[Place]]  # by kind and name of the container


@dataclass(frozen=True, slots=True)
class Origins:
    """The amounts that LimitRanger claims, and the amounts that were sent, for each container."""

    claimed: Mapping[tuple[str, str], Collection[Place]]
    sent: Mapping[tuple[str, str], Collection[Place]]
    is_second_round: bool = False  # a legacy name was translated earlier in this request

    @classmethod
    def of(cls, pod: Pod) -> Origins:
        claimed = _claimed(pod.annotations.get(ANNOTATION))
        return cls(claimed, _sent(pod.raw), _is_second_round(pod))

    def defaults(self, container: Container, names: Collection[str]) -> set[Place]:
        """The amounts under these names that the author of the pod did not write."""
        there = {(s, name) for s in SECTIONS for name in container.sections[s] if name in names}
        key = (container.kind, container.name)
        claimed = there & set(self.claimed.get(key, ()))
        if key not in self.sent:
            return claimed
        sent = {place for place in self.sent[key] if place[1] in names}
        # In a server-side apply they name only the limit, although the request is a copy of it.
        sent |= {("requests", name) for section, name in sent if section == "limits"} & there
        if sent <= there - claimed:
            return there - sent
        # A sent amount is missing, or claimed by LimitRanger. Either a webhook renamed it and
        # LimitRanger ran again, or the annotation is forged: then nothing was renamed. If both
        # names were sent, as in `2` beside a current `0`, only the second round shows which.
        if self.is_second_round:
            return claimed
        return set() if {name for _, name in there} <= {name for _, name in sent} else claimed


def _is_second_round(pod: Pod) -> bool:
    """Whether the pod has our annotation and is not stored yet: until then it has no uid (1.36)."""
    return "uid" not in pod.metadata and RENAMES_AMOUNTS in repaired_annotation.earlier(pod.raw)


def _claimed(text: object) -> _Containers:
    """The amounts that the annotation names; parts that LimitRanger would not write are ignored."""
    found: _Containers = {}
    if not isinstance(text, str) or not text.startswith(_PREFIX):
        return found
    for part in text[len(_PREFIX) :].split("; "):
        what, _, whose = part.partition(" for ")
        names, _, section = what.rpartition(" ")
        kind, _, name = whose.rpartition(" ")
        if section in _SECTION_NAMES and kind in _KINDS:
            places = found.setdefault((_KINDS[kind], name), set())
            places |= {(_SECTION_NAMES[section], each) for each in names.split(", ")}
    return found


def _sent(pod: Raw) -> _Containers:
    """The amounts that managedFields name, for any manager."""
    found: _Containers = {}
    for entry in entries(pod):
        spec = as_map(fields(entry).get("f:spec"))
        for kind in _KINDS.values():
            for key, below in as_map(spec.get(f"f:{kind}")).items():
                resources = as_map(as_map(below).get("f:resources"))
                places = found.setdefault((kind, _name_in(key)), set())
                places.update(_places(resources))
    return found


def _places(resources: Raw) -> Iterator[Place]:
    for section in SECTIONS:
        for field in as_map(resources.get(f"f:{section}")):
            yield section, field.removeprefix("f:")


def _name_in(key: str) -> str:
    """The container's name in a key such as `k:{"name":"main"}`; empty if there is none."""
    if usual := _USUAL_KEY.fullmatch(key):
        return usual[1]
    if key == ".":  # the list itself
        return ""
    return str(as_map(parsed(key.removeprefix("k:"))).get("name", ""))
