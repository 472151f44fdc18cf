"""Volumes that a container may mount in a part that a template produces.

A volume is removed with all of its mounts or not at all: the API server rejects a mount of a
missing volume.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.kube.pod import KINDS, as_items, as_map
from webhook.kube.pointer import Path, value_at
from webhook.templates.placeholders import may_contain, stands_for_action, stands_for_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.templates.open_places import OpenPlaces
    from webhook.yamlpatch.documents import Document

WHY = "the template may mount it, too"
_LISTS = "volumeMounts", *KINDS


def may_be_mounted(document: Document, open_: OpenPlaces, volume: Path) -> bool:
    """Whether the template may add a mount of this volume, or another name of it."""
    name = as_map(value_at(document.data, volume)).get("name")
    if stands_for_action(name):
        return True
    return any(
        stands_for_part(value)
        or open_.may_hold_more(at)
        or ("mountPath" in as_map(value) and may_contain(value.get("name"), str(name)))
        for at, value in _holders(document.data, Path(volume[:-2]))
    )


def in_the_text(volume: Any) -> re.Pattern[str]:
    """A pattern for a mount of this volume in an invisible branch of a template."""
    name = re.escape(str(as_map(volume).get("name")))
    return re.compile(
        rf"\b(?:name[\"']?[ \t]*:[ \t]*[\"']?(?:{name}(?![\w.-])|\{{\{{)"
        rf"|(?:{'|'.join(_LISTS)})[\"']?[ \t]*:[ \t]*\{{\{{)"
    )


def _holders(data: Any, spec: Path) -> Iterator[tuple[Path, Any]]:
    """The maps and lists around mounts, from the spec of the pod down to each mount."""
    pod_spec = as_map(value_at(data, spec))
    yield spec, pod_spec
    for kind in KINDS:
        yield from _listed(pod_spec, spec, kind)
        for position, container in as_items(pod_spec.get(kind)):
            yield from _listed(container, spec / kind / position, "volumeMounts")


def _listed(holder: Any, at: Path, name: str) -> Iterator[tuple[Path, Any]]:
    if name in holder:
        listed = holder[name]
        yield at / name, listed
        for position, item in enumerate(listed if isinstance(listed, list) else ()):
            yield at / name / position, item
