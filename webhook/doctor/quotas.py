"""What one more pod needs of quotas: quotas and the spec of a pod in, names of full ones out.

As the quota plugin of the API server computes it (pkg/quota/v1/evaluator/core/pods.go), for pods
without init containers. What a LimitRange would add is not known here, and counts as nothing.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from webhook.kube.pod import as_items, as_map
from webhook.kube.quantity import parse
from webhook.kube.selectors import selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Raw = dict[str, Any]


def full(quotas: Iterable[Raw], pod: Raw) -> Iterator[str]:
    """The quotas that leave no room for one more pod, each with what is used up."""
    needs = _needs(pod)
    for quota in quotas:
        if not _concerns(quota, pod):
            continue
        status = as_map(quota.get("status"))
        hard, used = as_map(status.get("hard")), as_map(status.get("used"))
        for name in sorted(needs.keys() & hard.keys()):
            if needs[name] and _amount(used.get(name)) + needs[name] > _amount(hard[name]):
                yield f"{quota['metadata']['name']} ({name})"


def _needs(pod: Raw) -> dict[str, Fraction]:
    """Resources of quotas, with the amount that one pod uses."""
    found: defaultdict[str, Fraction] = defaultdict(Fraction)
    for _, container in as_items(pod.get("containers")):
        resources = as_map(container.get("resources"))
        limits = as_map(resources.get("limits"))
        requests = {**limits, **as_map(resources.get("requests"))}  # the default of a request
        for name, amount in requests.items():
            found[name] += _amount(amount)
            found[f"requests.{name}"] += _amount(amount)
        for name, amount in limits.items():
            found[f"limits.{name}"] += _amount(amount)
    return {**found, "pods": Fraction(1), "count/pods": Fraction(1)}


def _concerns(quota: Raw, pod: Raw) -> bool:
    """Whether all its scopes are those of the pod."""
    spec, name = as_map(quota.get("spec")), pod.get("priorityClassName")
    has_amounts = any(each.get("resources") for _, each in as_items(pod.get("containers")))
    scopes = {"NotTerminating": "", "NotBestEffort" if has_amounts else "BestEffort": ""}
    scopes |= {"PriorityClass": name} if name else {}
    wanted = [{"key": each, "operator": "Exists"} for each in spec.get("scopes") or ()]
    selector = as_map(spec.get("scopeSelector"))
    wanted += [
        {**each, "key": each.get("scopeName")}
        for _, each in as_items(selector.get("matchExpressions"))
    ]
    return selects({"matchExpressions": wanted}, scopes)


def _amount(text: object) -> Fraction:
    return parse(text) or Fraction()
