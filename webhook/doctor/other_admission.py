"""What else changes new pods in API servers: an installation in, whether it changes a pod out.

Webhooks of others and MutatingAdmissionPolicies (KEP-3962). One may give a pod GPUs or take
tolerations away, and decide that by anything in the pod. It may also change the template in the
Job of a CronJob or of a custom kind, which shows it only once there is the Job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cluster import listing
from webhook.cluster.client import Fault
from webhook.cluster.made_pods import JOBS
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
_ALL: Raw = {}  # selectors that select each object
_EACH = [{"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]}]  # rules
PODS = ("", "pods")


class OtherAdmission:
    """Which new pods, and which other new objects, others may change.

    The first that changes a pod was selected by the labels that its controller gives it. So the
    selectors say it exactly.
    """

    def __init__(self, api: Client, facts: Facts, namespaces: Iterable[Raw]) -> None:
        self._spaces = {str(each["metadata"]["name"]): labelled(each) for each in namespaces}
        webhooks = ((entry.get("rules"), [entry]) for _, entry in _others(facts))
        self._asked = [*webhooks, *_policies(api)]  # rules with selectors

    def may_change(self, namespace: str, obj: Raw, resource: tuple[str, str] = PODS) -> bool:
        """Whether one of them is asked about this object. Those of unknown namespaces may be."""
        space, labels = self._spaces.get(namespace), labels_of(obj)
        if resource == JOBS and not labels:  # the API server gives it those of its template
            labels = labels_of(as_map(as_map(obj.get("spec")).get("template")))
        return any(
            _are_for(resource, rules)
            and all(
                (space is None or selects(as_map(each.get("namespaceSelector")), space))
                and selects(as_map(each.get("objectSelector")), labels)
                for each in selectors
            )
            for rules, selectors in self._asked
        )


def foreign(facts: Facts) -> list[str]:
    """The names of other configurations that may change new pods, in the order of the calls."""
    return sorted({name.partition("/")[2] for name, _ in _entries(facts)})


def _entries(facts: Facts) -> Iterator[tuple[str, Raw]]:
    """The entries of other webhooks that may change new pods, each with its configuration."""
    return (each for each in _others(facts) if _are_for(PODS, each[1].get("rules")))


def _others(facts: Facts) -> Iterator[tuple[str, Raw]]:
    names = (name for name in facts.configurations if name.startswith("mutating/"))
    for name, entry in facts.entries(*names):
        if not str(entry.get("name")).endswith(OURS):
            yield name, entry


def _are_for(resource: tuple[str, str], rules: object) -> bool:
    """Whether the rules select new objects of this group and plural."""
    group, plural = resource
    return any(
        {group, "*"} & {*rule.get("apiGroups", ())}
        and {plural, "*", "*/*", f"{plural}/*"} & {*rule.get("resources", ())}
        and {"CREATE", "*"} & {*rule.get("operations", ())}
        for _, rule in as_items(rules)
    )


def _policies(api: Client) -> list[tuple[object, list[Raw]]]:
    """The rules of each policy, with its selectors and its binding's; without one it does nothing.

    Without the right to list them, there may be one on each object.
    """
    catalogue, found = Catalogue(api), {}
    try:
        for each in _listed(api, catalogue, _POLICY):
            found[each["metadata"]["name"]] = as_map(
                as_map(each.get("spec")).get("matchConstraints")
            )
        bound = _listed(api, catalogue, f"{_POLICY}Binding") if found else []
    except Fault:
        return [(_EACH, [_ALL])]
    specs = [as_map(each.get("spec")) for each in bound]
    unread: list[tuple[object, list[Raw]]] = [(_EACH, [_ALL])] if catalogue.unanswered else []
    for each in specs:
        if wanted := found.get(each.get("policyName")):
            selectors = [wanted, as_map(each.get("matchResources"))]
            unread.append((wanted.get("resourceRules"), selectors))
    return unread


def _listed(api: Client, catalogue: Catalogue, kind: str) -> list[Raw]:
    served = catalogue.find(_GROUP, kind)
    return [*listing.objects(api, served.path())] if served else []
