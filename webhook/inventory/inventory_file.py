"""An inventory from a file: takes the output of `kubectl get nodes -o yaml|json`.

The list may also hold Pods (their GPUs are not free), Namespaces (their labels), RuntimeClasses,
DeviceClasses (names that DRA serves), NodePools, and the ConfigMap of cluster-autoscaler. So
`kubectl get nodes,namespaces,runtimeclasses -o yaml` works too; the output of `kubectl get pods -A
-o yaml` may follow as a second document. Other kinds are ignored.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import yaml

from webhook.core.errors import InputError
from webhook.core.settings import Settings
from webhook.files import limited_reading
from webhook.inventory.kinds import add, kinds
from webhook.inventory.publish import declared
from webhook.inventory.store import Store
from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.capacity.nodes import Inventory

_FIX = "pass the output of `kubectl get nodes -o yaml`"
_DEEPEST = 100
_LARGEST = 512 * limited_reading.MIB  # 15,000 nodes of 15 KB take 225
_DEFAULTS = Settings()


def load(file: str, settings: Settings = _DEFAULTS, *, pipes: bool = False) -> Inventory:
    """Read the file; raises InputError with place, reason and fix."""
    return from_objects(objects_of(file, pipes=pipes), settings, time.time())


def objects_of(file: str, *, pipes: bool = False) -> list[dict[str, Any]]:
    """The objects in the file; raises InputError as above."""
    try:
        text = limited_reading.read(file, _LARGEST, pipes=pipes).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}; {_FIX}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8 (byte {error.start}); {_FIX}") from error
    return objects_in(file, text)


def objects_in(file: str, text: str) -> list[dict[str, Any]]:
    """The objects in the text of this file; raises InputError as above."""
    objects = [each for document in _documents(file, text) for each in _flat(document)]
    if not objects:
        raise InputError(f"{file}: holds no Kubernetes object; {_FIX}")
    return objects


def _documents(file: str, text: str) -> list[Any]:
    try:
        if text.lstrip().startswith("{"):
            return [json.loads(text)]
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _check_depth(text, loader)
        return list(yaml.load_all(text, Loader=loader))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        where = getattr(error, "problem_mark", None)
        line = where.line + 1 if where is not None else getattr(error, "lineno", 1)
        raise InputError(f"{file}:{line}: is neither YAML nor JSON; {_FIX}") from error


def _check_depth(text: str, loader: Any) -> None:
    """Raise RecursionError for nesting that no API object has: libyaml's loader would crash."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise RecursionError


def _flat(document: object) -> list[dict[str, Any]]:
    """The objects of a document: itself, or the items of a List."""
    obj = as_map(document)
    if str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
        # Items of a NodeList have no kind.
        kind = str(obj["kind"]).removesuffix("List")
        return [{"kind": kind, **item} for _, item in as_items(obj["items"])]
    return [obj] if obj.get("kind") else []


def from_objects(
    objects: Iterable[dict[str, Any]], settings: Settings = _DEFAULTS, now: float = inf
) -> Inventory:
    """The inventory of these objects; declared pools of the settings count as nodes.

    The age of nodes is computed at `now`; without it, no node counts as new.
    """
    store = Store(settings.capacity)
    known = kinds(store, settings)
    for position, obj in enumerate(objects):
        add(known, str(obj.get("kind")), obj, position, now)
    found = store.inventory(now)
    return replace(found, classes=(*found.classes, *declared(settings)))
