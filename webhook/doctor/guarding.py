"""Where the leak guard hides GPUs: an installation and a namespace in, why it does not out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.core.modes import Mode, is_opted_out, modes_for
from webhook.doctor.leftovers import OURS, service_of
from webhook.issuing.objects import CONFIGURATIONS
from webhook.kube.pod import as_map, labels_of
from webhook.kube.selectors import selects
from webhook.rules import leak_guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

_, GUARD, _, _, REFUSE = CONFIGURATIONS
_NAME = "kubernetes.io/metadata.name"  # a label that the API server gives to each namespace
# By what an entry calls, or by its name if it has a URL.
_MEANT = {
    "/guard": GUARD,
    "guard.gpu-webhook.dev": GUARD,
    "/guard/refuse": REFUSE,
    "guard-refuse.gpu-webhook.dev": REFUSE,
}


def entries(facts: Facts, guard: str) -> Iterator[Raw]:
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


def why_not(facts: Facts, namespace: Raw, of_guard: Iterable[Raw]) -> str:
    """Why these entries change or refuse no pods of a namespace; empty if they do."""
    name, labels, settings = namespace["metadata"]["name"], labelled(namespace), facts.settings
    mode = modes_for(settings.policy, name, labels).of(leak_guard)
    if mode is not Mode.ENFORCE:
        return f"{leak_guard.CODE} is `{mode}`"
    if is_opted_out(labels):
        return "it has opted out"
    if any(each.covers(name, {}) for each in settings.guard.exempt):
        return "guard.exempt"
    return "" if any(selects(selector(e), labels) for e in of_guard) else "no entry selects it"


def selector(entry: Raw) -> Raw:
    """The selector of namespaces of an entry."""
    return as_map(entry.get("namespaceSelector"))


def labelled(namespace: Raw) -> Raw:
    """The labels by which namespaces are selected."""
    return {_NAME: namespace["metadata"]["name"], **labels_of(namespace)}
