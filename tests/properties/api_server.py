"""The rules of kube-apiserver that a repaired GPU pod must pass, written from its documentation.

They are not taken from the code under test, but for the number that a quantity stands for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from webhook.kube import quantity
from webhook.kube.pod import KINDS, PREFERRED, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterator

    Raw = dict[str, Any]

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def containers(pod: Raw) -> Iterator[Raw]:
    for kind in KINDS:
        yield from (pod.get("spec") or {}).get(kind) or ()


def extended_amounts(pod: Raw) -> Iterator[tuple[Raw, str, Raw, Raw]]:
    """Containers with names of extended resources (`kubernetes.io/` in none), limits, requests."""
    for container in containers(pod):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in {**limits, **requests}:
            if "/" in name and "kubernetes.io/" not in name:
                yield container, name, limits, requests


def is_label_value(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 63 and bool(_LABEL_VALUE.fullmatch(value))


def node_requirements(pod: Raw) -> Iterator[Raw]:
    """All matchExpressions of node affinity, required and preferred."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    terms = list((affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ())
    terms += [each.get("preference") or {} for each in affinity.get(PREFERRED) or ()]
    for term in terms:
        yield from term.get("matchExpressions") or ()


def is_amount(amount: object) -> bool:
    """True for what counts devices: it parses and is not negative."""
    value = quantity.parse(amount)
    return value is not None and value >= 0
