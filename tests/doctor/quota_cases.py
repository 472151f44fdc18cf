"""Quotas in the namespace of the webhook, and what each allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.doctor.installation import HEALTHY

if TYPE_CHECKING:
    from webhook.doctor.facts import Facts


def quota(hard: dict[str, str], used: dict[str, str], spec: dict[str, Any] | None = None) -> Facts:
    """A quota of the namespace."""
    found = {"metadata": {"name": "q"}, "spec": spec or {}}
    return replace(HEALTHY, quotas=({**found, "status": {"hard": hard, "used": used}},))


def of_class(operator: str, *values: str) -> dict[str, Any]:
    found = {"scopeName": "PriorityClass", "operator": operator, "values": [*values]}
    return {"scopeSelector": {"matchExpressions": [found]}}


# Of a quota: `hard`, `used`, and its spec. A pod requests 120m CPU and 192Mi.
NO_PODS: tuple[dict[str, str], dict[str, str]] = ({"pods": "0"}, {"pods": "0"})
QUOTAS: dict[str, tuple[Any, ...]] = {
    "a quota that is used up": ({"pods": "2"}, {"pods": "2"}),
    "a quota of pods without requests": (*NO_PODS, {"scopes": ["BestEffort"]}),
    "a quota of pods with a deadline": (*NO_PODS, {"scopes": ["Terminating"]}),
    "a quota of another class": (*NO_PODS, of_class("In", "low")),
    "a quota of all other classes": (*NO_PODS, of_class("NotIn", "system-cluster-critical")),
    "a quota of pods like these": (*NO_PODS, {"scopes": ["NotBestEffort", "NotTerminating"]}),
    "a quota of their class": (*NO_PODS, of_class("In", "system-cluster-critical", "low")),
    "a quota of any class": (*NO_PODS, {"scopes": ["PriorityClass"]}),
    "too little CPU for one more": ({"requests.cpu": "300m"}, {"requests.cpu": "240m"}),
    "enough CPU for one more": ({"requests.cpu": "360m"}, {"requests.cpu": "240m"}),
    "too little memory under its short name": ({"memory": "500Mi"}, {"memory": "384Mi"}),
    "too low limits of memory": ({"limits.memory": "2Gi"}, {"limits.memory": "2Gi"}),
    "a limit that pods do not set": ({"limits.cpu": "1"}, {"limits.cpu": "1"}),
    "a count of pods": ({"count/pods": "2"}, {"count/pods": "2"}),
    "more used than allowed": ({"pods": "1"}, {"pods": "2"}),
    "a quota of other things": ({"services": "1"}, {"services": "1"}),
    "a quota that was not counted yet": ({}, {}),
}
