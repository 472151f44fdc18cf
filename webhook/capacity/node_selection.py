"""The nodes that a pod allows: nodeSelector, required node affinity and tolerations.

Exactly as kube-scheduler reads them (component-helpers scheduling/corev1/nodeaffinity, apimachinery
labels.Requirement, api core/v1 Toleration), but with bit sets. If a feature gate of the scheduler
decides, a toleration counts: one node too many is harmless, one too few could deny a pod that runs.
For the same reason an unknown label matches every requirement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.capacity.node_sets import NodeSet, as_int64
from webhook.capacity.whole_gpus import excluded_by
from webhook.kube.labels import is_key, is_value
from webhook.kube.pod import REQUIRED, Pod, Raw, as_items, once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.capacity.node_index import NodeIndex
    from webhook.core.settings import Capacity


_NAME = "metadata.name"  # the only field that a node selector can name
_HARD = ("NoSchedule", "NoExecute")
_EQUAL = (None, "", "Equal")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One requirement of the pod on its node, as text, and the nodes that fulfil it."""

    words: str
    nodes: NodeSet
    key: str = ""  # of the label, if it is one label that must have a value
    parts: str = ""  # the setting that allows the shares of GPUs which it excludes
    values: Sequence[str] = ()  # one of which the label must have


def selector(pod: Pod, index: NodeIndex) -> Iterator[Constraint]:
    """Each entry of nodeSelector; a node must have all of them."""
    for key, value in pod.node_selector.items():
        if isinstance(value, str):
            words = f"nodeSelector {key}={value}"
            nodes = index.label(key).having(value) | index.may_be(key, (value,))
            yield Constraint(words, nodes, key, values=(value,))


def terms(pod: Pod) -> list[Raw] | None:
    """The terms of the required node affinity, of which one must match; None if there is none."""
    required = pod.node_affinity.get(REQUIRED)
    if not isinstance(required, dict):
        return None
    return [term for _, term in as_items(required.get("nodeSelectorTerms"))]


def matching(term: Raw, index: NodeIndex) -> NodeSet:
    """The nodes that one term of a node affinity matches; an empty term matches none."""
    found = None
    for kind, key, operator, values in _asked(term):
        nodes = _NODES_OF[kind](index, key, operator, values)
        found = nodes if found is None else found & nodes
    return found or 0


def requirements(term: Raw, index: NodeIndex) -> Iterator[Constraint]:
    """Each requirement of a term; one that Kubernetes rejects matches no node."""
    for kind, key, operator, values in _asked(term):
        words = f"node affinity {key} {operator}"
        words += f" [{', '.join(values)}]" if values else ""
        nodes = _NODES_OF[kind](index, key, operator, values)
        labelled = operator == "In" and kind == "matchExpressions"
        parts = excluded_by(key, operator, values) if kind == "matchExpressions" else ""
        yield Constraint(words, nodes, key if labelled else "", parts, values)


def _asked(term: Raw) -> Iterator[tuple[str, str, str, list[str]]]:
    """Kind, key, operator and values of each requirement."""
    for kind in _NODES_OF:
        for _, raw in as_items(term.get(kind)):
            yield kind, str(raw.get("key") or ""), str(raw.get("operator") or ""), values_of(raw)


def values_of(raw: Raw) -> list[str]:
    values = raw.get("values")
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else []


def _expression(index: NodeIndex, key: str, operator: str, values: list[str]) -> NodeSet:
    """labels.NewRequirement and Requirement.Matches."""
    if not is_key(key) or not all(is_value(value) for value in values):
        return 0
    label = index.label(key)
    match operator:
        case "In" | "NotIn" if values:
            found = label.having_any(values)
            if operator == "In":
                return found | index.may_be(key, values)
            return index.everything & ~found | index.may_be(key)
        case "Exists" if not values:
            return label.present | index.may_be(key)
        case "DoesNotExist" if not values:
            return index.everything & ~label.present
        case "Gt" | "Lt" if len(values) == 1:
            bound = as_int64(values[0])
            if bound is None:
                return 0
            found = label.above(bound) if operator == "Gt" else label.below(bound)
            return found | index.may_be(key)
    return 0


def _field(index: NodeIndex, key: str, operator: str, values: list[str]) -> NodeSet:
    """nodeSelectorRequirementsAsFieldSelector; a field that nodes do not have is empty."""
    if len(values) != 1 or operator not in {"In", "NotIn"}:
        return 0
    nameless = 0 if values[0] else index.everything
    found = index.named(values[0]) if key == _NAME else nameless
    if operator == "NotIn":
        return index.everything & ~found
    return index.may_come if key == _NAME and not found else found


_NODES_OF = {"matchExpressions": _expression, "matchFields": _field}


@once
def tolerated(pod: Pod, index: NodeIndex, capacity: Capacity) -> NodeSet:
    """The nodes all of whose taints the pod tolerates; temporary taints are ignored."""
    found = index.everything
    for _, nodes in kept_away(pod, index, capacity):
        found &= ~nodes
    return found


@once
def kept_away(
    pod: Pod, index: NodeIndex, capacity: Capacity
) -> list[tuple[tuple[str, str, int], NodeSet]]:
    """Keys of index.tainted, with the nodes from which these taints keep the pod permanently."""
    found = []
    values = _tolerated_values(pod)
    keys = {key for key, _ in values}
    for at, tainted in index.tainted.items():
        key, effect, _ = at
        if effect not in _HARD or capacity.passes_by(key):
            continue
        if keys.isdisjoint((key, "")):
            found.append((at, tainted.present))
            continue
        # A toleration may omit the key and the effect.
        known = [values.get((k, e), _NO_VALUE) for k in (key, "") for e in (effect, "")]
        if None not in known:
            nodes = tainted.present
            for each in filter(None, known):
                nodes &= ~tainted.having_any(each)
            found.append((at, nodes))
    return found


_NO_VALUE: set[str] = set()


def _tolerated_values(pod: Pod) -> dict[tuple[str, str], set[str] | None]:
    """By key and effect, which may be empty: the tolerated values of taints; None for any.

    As in Toleration.ToleratesTaint, but an unknown operator tolerates any value: Lt and Gt
    (KEP-5471) compare numbers only if the cluster has enabled them.
    """
    found: dict[tuple[str, str], set[str] | None] = {}
    for each in pod.tolerations():
        at = (_named(each.get("key")), _named(each.get("effect")))
        values = found.setdefault(at, set())
        if each.get("operator") not in _EQUAL:
            found[at] = None
        elif values is not None:
            values.add(str(each.get("value") or ""))
    return found


def _named(value: object) -> str:
    return "" if value is None else str(value)
