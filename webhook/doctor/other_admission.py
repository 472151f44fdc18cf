"""What else changes new pods in API servers: an installation in, whether it changes a pod out.

Webhooks of others and MutatingAdmissionPolicies (KEP-3962). One may give a pod GPUs or take
tolerations away, and decide that by anything in the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster import listing
from webhook.cluster.client import Fault
from webhook.cluster.objects import Catalogue
from webhook.doctor.guarding import labelled
from webhook.doctor.leftovers import OURS
from webhook.kube.pod import as_items, as_map, labels_of
from webhook.kube.selectors import selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.cluster.client import Client
    from webhook.doctor.facts import Facts

Raw = dict[str, Any]

_GROUP = "admissionregistration.k8s.io"
_POLICY = "MutatingAdmissionPolicy"
_ALL: Raw = {}  # selectors that select each pod


class OtherAdmission:
    """Which new pods others may change.

    The first that changes a pod was selected by the labels that its template has. So the selectors
    say it exactly, but for labels that only controllers add.
    """

    def __init__(self, api: Client, facts: Facts, namespaces: Iterable[Raw]) -> None:
        self._spaces = {str(each["metadata"]["name"]): labelled(each) for each in namespaces}
        self._selectors = [[entry] for _, entry in _entries(facts)] + _policies(api)

    def may_change(self, namespace: str, pod: Raw) -> bool:
        """Whether one of them is asked about this pod. Those of unknown namespaces may be."""
        space, labels = self._spaces.get(namespace), labels_of(pod)
        return any(
            all(
                (space is None or selects(as_map(each.get("namespaceSelector")), space))
                and selects(as_map(each.get("objectSelector")), labels)
                for each in selectors
            )
            for selectors in self._selectors
        )


def foreign(facts: Facts) -> list[str]:
    """The names of other configurations that may change new pods, in the order of the calls."""
    return sorted({name.partition("/")[2] for name, _ in _entries(facts)})


def _entries(facts: Facts) -> Iterator[tuple[str, Raw]]:
    """The entries of other webhooks that may change new pods, each with its configuration."""
    names = (name for name in facts.configurations if name.startswith("mutating/"))
    for name, entry in facts.entries(*names):
        if not str(entry.get("name")).endswith(OURS) and _are_for_pods(entry.get("rules")):
            yield name, entry


def _are_for_pods(rules: object) -> bool:
    return any(
        {"", "*"} & {*rule.get("apiGroups", ())}
        and {"pods", "*", "*/*", "pods/*"} & {*rule.get("resources", ())}
        and {"CREATE", "*"} & {*rule.get("operations", ())}
        for _, rule in as_items(rules)
    )


def _policies(api: Client) -> list[list[Raw]]:
    """The selectors of each policy on new pods and of its binding; without one it does nothing.

    Without the right to list them, there may be one on each pod.
    """
    catalogue, found = Catalogue(api), {}
    try:
        for each in _listed(api, catalogue, _POLICY):
            wanted = as_map(as_map(each.get("spec")).get("matchConstraints"))
            if _are_for_pods(wanted.get("resourceRules")):
                found[each["metadata"]["name"]] = wanted
        bound = _listed(api, catalogue, f"{_POLICY}Binding") if found else []
    except Fault:
        return [[_ALL]]
    specs = [as_map(each.get("spec")) for each in bound]
    unread = [[_ALL]] if catalogue.unanswered else []
    return unread + [
        [found[each["policyName"]], as_map(each.get("matchResources"))]
        for each in specs
        if each.get("policyName") in found
    ]


def _listed(api: Client, catalogue: Catalogue, kind: str) -> list[Raw]:
    served = catalogue.find(_GROUP, kind)
    return [*listing.objects(api, served.path())] if served else []
