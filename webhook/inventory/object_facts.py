"""Reduces a raw object to the few facts that are kept. Pure; fields of a wrong type are ignored.

Texts and small maps that many objects share are stored once: a cluster of 15,000 nodes has a few
hundred different labels, taints and amounts.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.capacity.nodes import Node
from webhook.capacity.requests import gpu_requests
from webhook.core.namespace_selection import Selection
from webhook.core.settings import DEVICE_CLASS, Settings, Taint
from webhook.inventory import node_examples
from webhook.kube import quantity
from webhook.kube.pod import Pod, Raw, annotations_of, as_items, as_map, is_finished
from webhook.kube.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    # The causes by which a pod sees GPUs that it did not request.
    Audit = Callable[[Pod], Iterable[str]]

_OURS = "gpu-webhook.dev/"
_POD_SECURITY = "pod-security.kubernetes.io/enforce"
_NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"  # of PodTolerationRestriction
_CLUSTER_API = "cluster.x-k8s.io/"
_OWNER = ("owner-kind", "cluster-namespace", "owner-name")
_OPENSHIFT_MACHINE = "machine.openshift.io/machine"
_MADE = re.compile(r"([^/]+/.+)-[a-z0-9]{5}")

_PAIR = 2  # a label and its value
# Devices of one node or pod. A tenant may request any number; the sums must fit into 64 bits.
_MOST = 2**40
# Resource names of one pod. No node offers so many, so a pod that requests more never runs; a
# tenant could invent thousands of names.
_MOST_NAMES = 32

Amounts = tuple[tuple[str, int], ...]


class PodFacts(NamedTuple):
    """The facts of a pod that holds GPUs or that the leak guard reports."""

    node: str  # empty: it holds nothing
    gpus: Amounts
    exposed: tuple[str, ...]  # the causes by which it sees GPUs that it did not request


class NamespaceFacts(NamedTuple):
    """The facts of a namespace."""

    labels: Mapping[str, str]  # only labels that a setting uses
    whitelist: str = ""  # the annotation with the tolerations that its pods may have
    node_selector: Mapping[str, str] = {}  # from the annotation that PodNodeSelector reads


def key_of(raw: Raw) -> str:
    """Namespace and name; only the name for objects without namespace. Empty if it has no name."""
    metadata = as_map(raw.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str):
        return ""
    return f"{namespace}/{name}" if isinstance(namespace, str) else name


def node(raw: Raw, settings: Settings) -> Node:
    """A node: all labels (a selector may name any of them), taints, and the GPUs that it offers.

    It has more GPUs than it offers while devices are unhealthy (its capacity shows them) or while
    they or their plugin are missing (labels with device counts show them).
    """
    metadata, status = as_map(raw.get("metadata")), as_map(raw.get("status"))
    capacity = dict(amounts(status.get("capacity"), settings))
    # Allocatable is what the scheduler counts; unhealthy devices are not in it.
    allocatable = status.get("allocatable")
    offered = dict(amounts(allocatable, settings)) if allocatable else capacity
    found = Node(
        str(metadata.get("name", "")),
        {intern(key): intern(value) for key, value in labels_of(metadata)},
        taints_of(as_map(raw.get("spec")).get("taints")),
        _shared(tuple(sorted(offered.items()))),
        most=_shared(_more(capacity, offered)),
        created=seconds_of(metadata.get("creationTimestamp")),
        others=_same(tuple(sorted(_others(allocatable or status.get("capacity"), settings)))),
        owner=intern(_owner(as_map(metadata.get("annotations")))),
    )
    more = _more(node_examples.at_most(found), found.counted)
    return replace(found, most=_shared(more)) if more else found


def _more(amounts: Mapping[str, int], than: Mapping[str, int]) -> Amounts:
    """The amounts that are larger than these."""
    return tuple(sorted(each for each in amounts.items() if each[1] > than.get(each[0], 0)))


def _owner(annotations: Raw) -> str:
    """The owner of the node's machine, as cluster-autoscaler names it; empty if unknown.

    Cluster API names the owner of the machine. OpenShift names the machine: the name of its
    MachineSet and five characters.
    """
    kind, namespace, name = (annotations.get(f"{_CLUSTER_API}{each}") for each in _OWNER)
    if isinstance(kind, str) and isinstance(namespace, str) and isinstance(name, str):
        return f"{kind}/{namespace}/{name}"
    machine = annotations.get(_OPENSHIFT_MACHINE)
    if isinstance(machine, str) and (made := _MADE.fullmatch(machine)):
        return f"MachineSet/{made[1]}"
    return ""


def labels_of(metadata: Raw) -> Iterator[tuple[str, str]]:
    """The labels whose values are strings."""
    for key, value in as_map(metadata.get("labels")).items():
        if isinstance(value, str):
            yield key, value


def taints_of(taints: object) -> tuple[Taint, ...]:
    """The taints of this list."""
    return _same(
        tuple(
            Taint(
                str(each.get("key", "")), str(each.get("value") or ""), str(each.get("effect", ""))
            )
            for _, each in as_items(taints)
        )
    )


def amounts(found: object, settings: Settings) -> Iterator[tuple[str, int]]:
    """GPUs by resource name.

    Other devices do not count: on EKS every node offers `vpc.amazonaws.com/pod-eni`.
    """
    for name, amount in as_map(found).items():
        if settings.is_gpu(name):
            value = quantity.parse(amount)
            if value is not None:
                yield name, min(quantity.whole(value), _MOST)


def _others(amounts: object, settings: Settings) -> Iterator[str]:
    """Resource names that may be GPUs or shares of them, although no setting counts them."""
    for name in as_map(amounts):
        of_gpus = settings.may_bring_gpus(name) or name in settings.legacy_resources
        if of_gpus and not settings.is_gpu(name):
            yield name


@lru_cache(maxsize=4096)
def _same(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """One tuple for all equal ones: thousands of nodes and pods have the same."""
    return value


@lru_cache(maxsize=4096)
def _shared(amounts: Amounts) -> Mapping[str, int]:
    """One map for all nodes that offer the same; it is never changed."""
    return dict(amounts)


def pod(raw: Raw, settings: Settings, audit: Audit | None = None) -> PodFacts | None:
    """The GPUs that the pod holds on its node, and what the leak guard reports; mostly nothing."""
    if is_finished(raw):
        return None
    bound = as_map(raw.get("spec")).get("nodeName")
    node_name = bound if isinstance(bound, str) else ""
    read = Pod(raw)
    asked = gpu_requests(read, settings) if node_name else {}
    if len(asked) > _MOST_NAMES:
        asked = {}
    gpus = tuple((name, min(amount, _MOST)) for name, amount in sorted(asked.items()))
    exposed = tuple(audit(read)) if audit is not None else ()
    if not gpus and not exposed:
        return None
    if len(gpus) == 1:  # the cache is bounded, because the tenant chooses the name and the amount
        gpus = _same(gpus)
    return PodFacts(intern(node_name) if gpus else "", gpus, exposed)


def namespace(raw: Raw, keys: frozenset[str]) -> NamespaceFacts:
    """The labels of a namespace that settings use; also if there are none, because it exists."""
    found = {
        intern(key): intern(value)
        for key, value in labels_of(as_map(raw.get("metadata")))
        if key in keys or key == _POD_SECURITY or key.startswith(_OURS)
    }
    return NamespaceFacts(found, _annotation(raw, _WHITELIST), node_selector_of(raw))


def node_selector_of(raw: Raw) -> dict[str, str]:
    """The labels that PodNodeSelector adds to pods (1.36 ConvertSelectorToLabelsMap).

    Empty if the annotation cannot be read: then the plugin rejects each pod anyway.
    """
    text = _annotation(raw, _NODE_SELECTOR)
    pairs = [each.split("=") for each in text.split(",")]
    if any(len(pair) != _PAIR for pair in pairs):
        return {}
    return {key.strip(): value.strip() for key, value in pairs}


def _annotation(raw: Raw, name: str) -> str:
    text = annotations_of(raw).get(name)
    return text if isinstance(text, str) else ""


def namespace_keys(settings: Settings) -> frozenset[str]:
    """The label keys of namespaces by which any setting selects."""
    return frozenset(key for each in _selections(settings) for key, _ in each.labels)


def _selections(part: object) -> Iterator[Selection]:
    if isinstance(part, Selection):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from _selections(getattr(part, field.name))
    elif isinstance(part, tuple):
        for item in part:
            yield from _selections(item)


class ClassFacts(NamedTuple):
    """What pods of a RuntimeClass get (KEP-894, KEP-688)."""

    node_selector: dict[str, str]
    tolerations: list[Raw]
    overhead: Mapping[str, Any] = {}


def runtime_class(raw: Raw) -> ClassFacts:
    scheduling = as_map(raw.get("scheduling"))
    selector = as_map(scheduling.get("nodeSelector"))
    return ClassFacts(
        {key: value for key, value in selector.items() if isinstance(value, str)},
        [each for _, each in as_items(scheduling.get("tolerations"))],
        as_map(as_map(raw.get("overhead")).get("podFixed")),
    )


def device_class(raw: Raw) -> tuple[str, ...]:
    """The resource names that this DeviceClass serves instead of a device plugin."""
    name = DEVICE_CLASS + str(as_map(raw.get("metadata")).get("name", ""))
    extended = as_map(raw.get("spec")).get("extendedResourceName")
    return (name, extended) if isinstance(extended, str) and extended else (name,)
