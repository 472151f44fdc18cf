"""Checks of the webhook configurations: facts in, lines out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.doctor import guarding
from webhook.doctor.facts import GUARD as LABEL
from webhook.doctor.leftovers import elsewhere, service_of
from webhook.doctor.lines import FAILED, OK, WARNING, Line, few
from webhook.doctor.other_admission import foreign
from webhook.evaluation.match_conditions import entries
from webhook.issuing.objects import CONFIGURATIONS
from webhook.kube.pod import as_items, as_map, labels_of
from webhook.rules import leak_guard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

REPAIR, GUARD, WORKLOADS, POLICY, REFUSE = CONFIGURATIONS
_VALUES = {"guard": "guard.enabled=true", "workload-repair": "workloadRepair.enabled=true"}
_MEANT = {"", "1", "enable", "enabled", "on", "true", "yes"}  # values that others give to labels
_INSTALLED_FROM = "the kustomization that you installed from"


def registered(facts: Facts) -> Iterator[Line]:
    """Whether an API server calls the webhook, and where."""
    if not facts.deployment:
        text = f"there is no Deployment of the webhook in the namespace {facts.namespace}"
        if others := elsewhere(facts):
            seen = "it is" if facts.live[others[0]] else "it may be"
            text = f"{text}: {seen} installed in {few(others)}"
            yield Line(FAILED, text, f"gpu-webhook doctor -n {others[0]}")
            return
        fix = "install it as before or as in docs/install.md, or name another namespace with -n"
        yield Line(FAILED, text, fix)
    if missing := [name for name in (REPAIR, POLICY) if not any(facts.entries(name))]:
        state = FAILED if REPAIR in missing else WARNING
        text = f"no webhook configuration {' and '.join(missing)}, or an empty one"
        text = f"{text}: its pods are never sent"
        yield Line(state, text, again(facts, "both configurations"))
    services = {f"{facts.namespace}/{each['metadata']['name']}" for each in facts.services}
    nowhere = {
        f"{name} calls {service_of(entry)}, which is not there"
        for name, entry in facts.entries(*CONFIGURATIONS)
        if _is_here(entry, facts) and service_of(entry) not in services
    }
    yield from (Line(FAILED, text, again(facts, "the Service")) for text in sorted(nowhere))
    if facts.deployment and not missing and not nowhere:
        names = [name for name in CONFIGURATIONS if name in facts.configurations]
        yield Line(OK, ", ".join(names))


def conditions(facts: Facts) -> Iterator[Line]:
    """Whether the conditions are what the settings make of them."""
    made = entries(facts.settings)
    found = {str(entry.get("name")): entry for _, entry in facts.entries(*CONFIGURATIONS)}
    part = "matchConditions"
    wrong = [
        f"{name} has other {part}"
        for name, parts in made.items()
        if name in found and _stripped(found[name].get(part)) != _stripped(parts[part])
    ]
    if wrong:
        fix = "write what `gpu-webhook config match-conditions --config FILE` prints into them"
        text = f"{'; '.join(wrong)} than the settings of the cluster: objects may be missed"
        yield Line(WARNING, text, fix)
    else:
        yield Line(OK, "those of the settings")


def order(facts: Facts) -> Iterator[Line]:
    """Other webhooks that change pods: the API server calls them in the order of their names."""
    others = foreign(facts)
    if not others:
        yield Line(OK, "no other webhook changes pods")
        return
    ours = REPAIR.partition("/")[2]
    after = [name for name in others if name > ours]
    once = {
        name
        for name, entry in facts.entries(REPAIR, GUARD)
        if entry.get("reinvocationPolicy") != "IfNeeded"
    }
    before = [name for name in others if name < ours]
    text = f"other webhooks change pods: before this one {few(before)}; after it {few(after)}"
    if after and once:
        text += f"; {few(sorted(once))} does not look at what they change"
        yield Line(WARNING, text, "set reinvocationPolicy: IfNeeded in it")
    else:
        yield Line(OK, text)


def guard(facts: Facts) -> Iterator[Line]:
    """Whether the label, the entry and the mode of the guard go together."""
    names = [each["metadata"]["name"] for each in facts.guarded]
    found = [*guarding.entries(facts, GUARD)]
    why = {each["metadata"]["name"]: guarding.why_not(facts, each, found) for each in facts.guarded}
    quiet = [f"{name} ({reason})" for name, reason in why.items() if reason]
    code, is_there = leak_guard.CODE, {GUARD, REFUSE} & facts.configurations.keys()
    if is_there and (wrong := sorted(filter(None, map(_misspelt, facts.labelled)))):
        text = f"the label {LABEL} guards only where it is `enabled`: not {few(wrong)}"
        fix = f"kubectl label namespace NAME --overwrite {LABEL}=enabled"
        yield Line(WARNING, text, fix)
    if GUARD in facts.configurations:
        if quiet:
            text = f"pods of these namespaces do not change: {few(quiet)}"
            fix = f"set {code} to `enforce` there, or remove what spares them: docs/guard.md"
            yield Line(WARNING, text, fix)
        else:
            yield Line(OK, f"guards {few(names)}" if names else "no namespace is guarded")
    elif REFUSE in facts.configurations:
        text = f"{REFUSE} refuses what {GUARD} would make safe, and that is not there"
        yield Line(WARNING, text, _with(facts, "guard"))
    elif names:
        text = f"nothing guards {few(names)}, which have the label {LABEL}"
        yield Line(WARNING, text, _with(facts, "guard"))
    else:
        yield Line(OK, "not installed")


def workloads(facts: Facts) -> Iterator[Line]:
    """Whether the entry and the setting of the repair of templates go together."""
    repaired, is_there = facts.settings.workloads.repair, WORKLOADS in facts.configurations
    if repaired and not is_there:
        text = f"the settings have workloads.repair, but {WORKLOADS} is not there"
        yield Line(WARNING, text, _with(facts, "workload-repair"))
    elif is_there and not repaired:
        text = f"{WORKLOADS} is there, but the settings do not have workloads.repair: true"
        yield Line(WARNING, text, "add the setting, or delete the configuration")
    else:
        yield Line(OK, f"templates are {'' if repaired else 'not '}repaired")


def again(facts: Facts, what: str) -> str:
    """How to put a part back. No command for the base: it would undo an overlay of it."""
    return _upgrade(facts) or f"apply again {_INSTALLED_FROM}: it has {what}"


def _with(facts: Facts, part: str) -> str:
    """How to install a component, too."""
    add = f"add the component manifests/{part} to {_INSTALLED_FROM}, and apply it"
    return _upgrade(facts, f" --set {_VALUES[part]}") or add


def _upgrade(facts: Facts, value: str = "") -> str:
    """The command that does either with Helm; empty without Helm."""
    noted = as_map(as_map(facts.deployment.get("metadata")).get("annotations"))
    if release := noted.get("meta.helm.sh/release-name"):
        command = f"helm upgrade {release} manifests -n {facts.namespace} --reset-then-reuse-values"
        # Helm 4 applies server-side, and kubectl owns what it changed.
        return f"{command}{value} (if Helm 4 reports a conflict, add --force-conflicts)"
    return ""


def _stripped(part: object) -> list[Raw]:
    """YAML may add a line end to an expression."""
    return [
        {key: value.strip() if isinstance(value, str) else value for key, value in each.items()}
        for _, each in as_items(part)
    ]


def _is_here(entry: Raw, facts: Facts) -> bool:
    return service_of(entry).startswith(f"{facts.namespace}/")


def _misspelt(namespace: Raw) -> str:
    """NAME (VALUE) if the label of the guard has a value by which guarding was meant."""
    value = str(labels_of(namespace)[LABEL])
    is_meant = value != "enabled" and value.lower() in _MEANT
    return f"{namespace['metadata']['name']} ({value})" if is_meant else ""
