"""What the webhook does where: an installation in, the rules in force and the namespaces out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.modes import Mode, is_opted_out, modes_for
from webhook.doctor.leftovers import OURS, service_of
from webhook.doctor.lines import few
from webhook.doctor.registration import GUARD, REFUSE
from webhook.kube.pod import as_map, labels_of
from webhook.kube.selectors import selects
from webhook.rules import above_limit, leak_guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

_NAME = "kubernetes.io/metadata.name"  # a label that the API server gives to each namespace
_GUARDS = {GUARD: "hides GPUs from", REFUSE: "refuses GPUs to"}  # by their shipped names
# By what an entry calls, or by its name if it has a URL.
_MEANT = {
    "/guard": GUARD,
    "guard.gpu-webhook.dev": GUARD,
    "/guard/refuse": REFUSE,
    "guard-refuse.gpu-webhook.dev": REFUSE,
}


def in_force(facts: Facts, namespaces: Iterable[Raw]) -> Iterator[tuple[str, str]]:
    """The rules that protect something, with what they protect."""
    guards = {name: [*_entries(facts, name)] for name in _GUARDS}
    selectors = [_selector(entry) for entries in guards.values() for entry in entries]
    if names := sorted(_guarded(facts, namespaces, selectors)):
        does = " and ".join(_GUARDS[name] for name, entries in guards.items() if entries)
        yield leak_guard.CODE, f"the guard {does} pods that requested none, in {few(names)}"
    if facts.settings.capacity.limits and _is_enforced_anywhere(facts):
        yield above_limit.CODE, "capacity.limits says how many GPUs a pod may request"


def _entries(facts: Facts, guard: str) -> Iterator[Raw]:
    """The entries of this guard, also those in a configuration of another name."""
    for name, entry in facts.entries(*facts.configurations):
        service = as_map(as_map(entry.get("clientConfig")).get("service"))
        is_ours = str(entry.get("name")).endswith(OURS) or any(
            service_of(entry) == f"{facts.namespace}/{each['metadata']['name']}"
            for each in facts.services
        )
        meant = map(_MEANT.get, (str(service.get("path")), str(entry.get("name"))))
        if is_ours and next(filter(None, meant), name) == guard:
            yield entry


def _guarded(facts: Facts, namespaces: Iterable[Raw], selectors: list[Raw]) -> Iterator[str]:
    for each in namespaces:
        name, labels = each["metadata"]["name"], _labels(each)
        mode = modes_for(facts.settings.policy, name, labels).of(leak_guard)
        is_guarded = any(selects(one, labels) for one in selectors) and not is_opted_out(labels)
        if mode is Mode.ENFORCE and is_guarded:
            yield name


def _is_enforced_anywhere(facts: Facts) -> bool:
    policy, code = facts.settings.policy, above_limit.CODE
    usual = policy.rules.get(code) or policy.mode or above_limit.FACTS.mode
    return Mode.ENFORCE in [usual, *(e.rules.get(code) or e.mode for e in policy.overrides)]


def reaches(facts: Facts, namespace: Raw) -> bool:
    """Whether the API server sends what is created in this namespace to an entry that repairs.

    Of an installation without entries that is not known.
    """
    changing = [name for name in facts.configurations if name.startswith("mutating/")]
    selectors, labels = _selectors(facts, *changing), _labels(namespace)
    is_selected = not selectors or any(selects(each, labels) for each in selectors)
    return is_selected and not is_opted_out(labels)


def _selectors(facts: Facts, *configurations: str) -> list[Raw]:
    """The selectors of namespaces in our entries there."""
    return [
        _selector(entry)
        for _, entry in facts.entries(*configurations)
        if str(entry.get("name")).endswith(OURS)
    ]


def _selector(entry: Raw) -> Raw:
    return as_map(entry.get("namespaceSelector"))


def _labels(namespace: Raw) -> Raw:
    return {_NAME: namespace["metadata"]["name"], **labels_of(namespace)}
