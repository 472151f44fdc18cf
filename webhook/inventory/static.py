"""An inventory from a file: what `kubectl get nodes -o yaml|json` prints.

The list may hold Namespaces (their Pod Security labels) and RuntimeClasses too; other kinds are
passed over, so `kubectl get nodes,namespaces,runtimeclasses -o yaml` is as good.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from webhook.core import quantity
from webhook.core.errors import InputError
from webhook.core.nodes import Inventory, NodeClass
from webhook.core.pod import as_items, as_map
from webhook.core.settings import Settings, Taint

_CURE = "give what `kubectl get nodes -o yaml` prints"
_DEEPEST = 100
# Each node has its own value of these, which would make every node a class of its own.
_UNIQUE = ("kubernetes.io/hostname",)


_DEFAULTS = Settings()


def load(file: str, settings: Settings = _DEFAULTS) -> Inventory:
    """Read the file; raises InputError that says where, what and the cure."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}; {_CURE}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8 (byte {error.start}); {_CURE}") from error
    objects = [each for document in _documents(file, text) for each in _flat(document)]
    if not objects:
        raise InputError(f"{file}: holds no Kubernetes object; {_CURE}")
    return from_objects(objects, settings)


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
        raise InputError(f"{file}:{line}: is neither YAML nor JSON; {_CURE}") from error


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
        # Items of a NodeList name no kind.
        kind = str(obj["kind"]).removesuffix("List")
        return [{"kind": kind, **item} for _, item in as_items(obj["items"])]
    return [obj] if obj.get("kind") else []


def from_objects(objects: list[dict[str, Any]], settings: Settings = _DEFAULTS) -> Inventory:
    """The inventory that these Nodes, Namespaces and RuntimeClasses make."""
    classes: dict[Any, list[str]] = {}
    namespaces: dict[str, dict[str, str]] = {}
    runtime_classes: set[str] = set()
    for obj in objects:
        metadata = as_map(obj.get("metadata"))
        name = str(metadata.get("name", ""))
        match obj.get("kind"):
            case "Node":
                classes.setdefault(_node_class(obj, settings), []).append(name)
            case "Namespace":
                namespaces[name] = _labels(metadata)
            case "RuntimeClass":
                runtime_classes.add(name)
    return Inventory(
        tuple(
            NodeClass(dict(labels), taints, dict(gpus), tuple(names))
            for (labels, taints, gpus), names in classes.items()
        ),
        namespaces,
        frozenset(runtime_classes),
    )


def _labels(metadata: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in as_map(metadata.get("labels")).items()}


def _node_class(node: dict[str, Any], settings: Settings) -> Any:
    labels = {
        key: value
        for key, value in _labels(as_map(node.get("metadata"))).items()
        if key not in _UNIQUE
    }
    taints = tuple(
        Taint(
            str(taint.get("key", "")), str(taint.get("value") or ""), str(taint.get("effect", ""))
        )
        for _, taint in as_items(as_map(node.get("spec")).get("taints"))
    )
    return tuple(sorted(labels.items())), taints, tuple(sorted(_gpus(node, settings).items()))


def _gpus(node: dict[str, Any], settings: Settings) -> dict[str, int]:
    """GPUs that the node offers; allocatable is what the scheduler counts.

    Other devices do not count: on EKS every node offers `vpc.amazonaws.com/pod-eni`.
    """
    status = as_map(node.get("status"))
    offered = as_map(status.get("allocatable") or status.get("capacity"))
    found: dict[str, int] = {}
    for name, amount in offered.items():
        value = quantity.parse(amount)
        if settings.is_gpu(str(name)) and value is not None:
            found[str(name)] = quantity.whole(value)
    return found
