"""What an uninstall has left: what configurations and bindings name in, what to delete out.

What belongs to an installation in another namespace is in use. So it is deleted only if neither the
Deployment nor the Service is there, and that could be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.doctor.lines import OK, WARNING, Line, few
from webhook.issuing.objects import CONFIGURATIONS
from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

OURS = ".gpu-webhook.dev"  # the end of the names of all entries
_CERTIFICATES = "clusterrolebinding/gpu-webhook-certificates"


def service_of(entry: Raw) -> str:
    """NAMESPACE/NAME of the Service that an entry calls; empty if it has a URL."""
    found = as_map(as_map(entry.get("clientConfig")).get("service"))
    return f"{found.get('namespace')}/{found.get('name')}" if found else ""


def called(configuration: Raw) -> set[str]:
    """The Services that it calls, if all entries are those of the webhook."""
    entries = [entry for _, entry in as_items(configuration.get("webhooks"))]
    if not all(str(entry.get("name")).endswith(OURS) for entry in entries):
        return set()
    return {*filter(None, map(service_of, entries))}


def named(configurations: Mapping[str, Raw], bindings: Iterable[Raw]) -> dict[str, set[str]]:
    """Each configuration and binding of the webhook, and the namespaces that it is for."""
    found = {}
    for name, obj in configurations.items():
        kind, _, own = name.partition("/")
        spaces = {service.partition("/")[0] for service in called(obj)}
        found[f"{kind}webhookconfiguration/{own}"] = spaces
    for obj in bindings:
        subjects = (each.get("namespace") for _, each in as_items(obj.get("subjects")))
        found[f"clusterrolebinding/{obj['metadata']['name']}"] = {*filter(None, subjects)}
    return {name: spaces for name, spaces in found.items() if spaces}


def elsewhere(facts: Facts) -> list[str]:
    """The other namespaces in which the webhook is installed, and then those in which it may be."""
    live = {name: each for name, each in facts.live.items() if name != facts.namespace}
    found = (name for name, is_live in live.items() if is_live is not False)
    return sorted(found, key=lambda name: (not live[name], name))


def leftovers(facts: Facts) -> Iterator[Line]:
    """What an uninstall has left, and what belongs to a second installation."""
    found = sorted(named(facts.configurations, facts.bindings).items())
    lines = [line for name, spaces in found for line in _of(name, sorted(spaces), facts)]
    yield from [*lines, *_copies(facts)] or [Line(OK, "none")]


def _copies(facts: Facts) -> Iterator[Line]:
    """Configurations under other names that call this installation; an uninstall forgets them."""
    ours = {service_of(entry) for _, entry in facts.entries(*CONFIGURATIONS)} - {""}
    ours = {each for each in ours if each.startswith(f"{facts.namespace}/")}
    found = {
        name
        for name, entry in facts.entries(*facts.configurations)
        if name not in CONFIGURATIONS
        and (
            service_of(entry) in ours
            or (not service_of(entry) and str(entry.get("name")).endswith(OURS))
        )
    }
    for kind, _, name in (each.partition("/") for each in sorted(found)):
        text = f"{kind}webhookconfiguration/{name} calls this webhook under another name"
        fix = f"kubectl delete {kind}webhookconfiguration {name}, if it was copied"
        yield Line(WARNING, f"{text}: no uninstall deletes it", fix)


def _of(name: str, spaces: list[str], facts: Facts) -> Iterator[Line]:
    text = f"{name} is for the namespace {few(spaces)}, where the webhook"
    used = [each for each in spaces if facts.live[each] is not False]
    if facts.deployment and facts.namespace in spaces:
        if name == _CERTIFICATES and not facts.keeps_certificates:
            text = f"{name} is for watchers that keep certificates"
            yield Line(WARNING, text, f"kubectl delete {name}")
    elif not used:
        yield Line(WARNING, f"{text} is not installed", f"kubectl delete {name}")
    elif facts.deployment:
        seen = "is" if facts.live[used[0]] else "may be"
        yield Line(WARNING, f"{text} {seen} installed, too", f"gpu-webhook doctor -n {used[0]}")
