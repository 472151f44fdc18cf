"""Names, labels and annotations that a kustomization adds: its objects in, changed in place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from webhook.core.draft import copied
from webhook.evaluation.workloads import group_of, template_at
from webhook.kube.pod import as_items, as_map
from webhook.kube.pointer import value_at

if TYPE_CHECKING:
    from webhook.projects.building import BuiltObject

    Raw = dict[str, Any]

_SELECTED = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")  # by labels that are added


def rename(objects: list[BuiltObject], fields: Raw, file: str) -> None:
    """Prefix, suffix and namespace; an object is still found by the names that it had.

    Its namespace may decide what is repaired.
    """
    parts = [str(fields.get(each) or "") for each in ("nameprefix", "namesuffix")]
    namespace = fields.get("namespace")
    for made in objects:
        metadata = dict(as_map(made.data.get("metadata")))
        if any(parts):
            metadata["name"] = f"{parts[0]}{metadata.get('name')}{parts[1]}"
            made.names.add(metadata["name"])
        if isinstance(namespace, str):
            metadata["namespace"] = namespace
            made.namespaces.add(namespace)
            made.by += (file,)
            made.files.add(file)
        if made.data and (any(parts) or namespace):
            made.data = {**made.data, "metadata": metadata}


def label(objects: list[BuiltObject], fields: Raw, file: str) -> None:
    """Labels and annotations, of objects, and of their templates and selectors."""
    given = [({"includeselectors": True}, fields.get("commonlabels"))]
    given += [
        ({str(k).lower(): v for k, v in each.items()}, each.get("pairs"))
        for _, each in as_items(fields.get("labels"))
    ]
    for made in (each for each in objects if each.data):
        for options, pairs in given:
            if labels := as_map(pairs):
                selects = bool(options.get("includeselectors"))
                made.data = copied(made.data)
                _add_labels(made.data, labels, selects, bool(options.get("includetemplates")))
                if options.get("fields"):
                    made.unsure = made.unsure or f"labels of {os.path.relpath(file)} may change it"
        if annotations := as_map(fields.get("commonannotations")):
            made.data = copied(made.data)
            for holder in _with_metadata(made.data):
                _put(holder, ("metadata", "annotations"), annotations)
        if fields.keys() & {"commonlabels", "labels", "commonannotations"}:
            made.by += (file,)
            made.files.add(file)


def _add_labels(obj: Raw, labels: Raw, selects: bool, templates: bool) -> None:  # noqa: FBT001
    holders = _with_metadata(obj)
    for holder in holders if selects or templates else holders[:1]:
        _put(holder, ("metadata", "labels"), labels)
    if not selects:
        return
    if obj.get("kind") in _SELECTED:
        _put(obj, ("spec", "selector", "matchLabels"), labels)
    waiting: list[Any] = [holder.get("spec") for holder in holders[1:]]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict) and isinstance(here.get("matchLabels"), dict):
            here["matchLabels"] = {**here["matchLabels"], **labels}
        waiting += here.values() if isinstance(here, dict) else ()
        waiting += here if isinstance(here, list) else ()


def _with_metadata(obj: Raw) -> list[Raw]:
    """The object, and its pod template if it is a known workload."""
    at = template_at(obj) if "." not in group_of(obj) else None
    return [obj, as_map(value_at(obj, at))] if at else [obj]


def _put(holder: Any, at: tuple[str, ...], values: Raw) -> None:
    for name in at:
        if not isinstance(holder.get(name), dict):
            holder[name] = {}
        holder = holder[name]
    holder.update(values)
