"""Whether the entries are as shipped: webhook configurations in, how an entry differs out.

The values are those of `manifests/` (a test compares them). What decides whether a pod is sent, and
where to, has failed if it differs. What the chart or the documentation lets administrators choose
is a warning: it may be deliberate.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from webhook.core.modes import IGNORE
from webhook.doctor.facts import GUARD as GUARD_LABEL
from webhook.doctor.leftovers import OURS, service_of
from webhook.doctor.lines import FAILED, OK, WARNING, Line, few
from webhook.doctor.registration import GUARD, POLICY, REFUSE, REPAIR, WORKLOADS, again
from webhook.evaluation.match_conditions import entries
from webhook.issuing.objects import CONFIGURATIONS
from webhook.kube.pod import as_items, as_map
from webhook.kube.selectors import selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]
    Difference = tuple[int, str]  # how bad it is, and what differs


class _Entry(NamedTuple):
    """What is shipped. Without `sent`, the settings say which workloads are."""

    configuration: str
    path: str
    seconds: int
    sent: tuple[str, ...] = ()  # OPERATION RESOURCE
    may_fail: bool = False  # the documentation offers failurePolicy: Fail


_NEW, _CHANGED, _DEBUGGED = "CREATE pods", "UPDATE pods", "UPDATE pods/ephemeralcontainers"
_SHIPPED = {
    "repair": _Entry(REPAIR, "/mutate", 3, (_NEW, _CHANGED)),
    "policy": _Entry(POLICY, "/validate", 5, (_NEW,), may_fail=True),
    "workloads": _Entry(POLICY, "/validate", 5),
    "workload-repair": _Entry(WORKLOADS, "/mutate", 3),
    "guard": _Entry(GUARD, "/guard", 3, (_NEW, _CHANGED, _DEBUGGED), may_fail=True),
    "guard-refuse": _Entry(
        REFUSE,
        "/guard/refuse",
        5,
        (_NEW, _CHANGED, _DEBUGGED, "UPDATE pods/status"),
        may_fail=True,
    ),
}
_NAME = "kubernetes.io/metadata.name"  # a label that the API server sets
_MEMBERS = ("operations", "resources", "apiGroups", "apiVersions")  # of a rule
_VERSIONS = {"v1", "v1beta1"}  # of reviews: the API server takes the first that it knows


def shipped(facts: Facts) -> Iterator[Line]:
    """One line for what has failed, one for what may be deliberate, one for what is more."""
    found: dict[int, list[str]] = {FAILED: [], WARNING: []}
    for short, wanted in _SHIPPED.items():
        name = f"{short}{OURS}"
        there = {str(entry.get("name")): entry for _, entry in facts.entries(wanted.configuration)}
        if name in there:
            differences = _differences(name, there[name], wanted, facts)
        else:  # `registered` reports a configuration without any
            lacks = [(FAILED if wanted.configuration == REPAIR else WARNING, "is not there")]
            differences = iter(lacks if there else [])
        for state, text in differences:
            found[state].append(f"{name}: {text}")
    fix = again(facts, "the entries as they are shipped")
    if found[FAILED]:
        yield Line(FAILED, "; ".join(found[FAILED]), fix)
    if found[WARNING]:
        text = f"these differ from what is shipped: {'; '.join(found[WARNING])}"
        yield Line(WARNING, text, f"if this is not deliberate: {fix}")
    if added := _added(facts):
        kind, _, name = added[0][0].partition("/")
        text = (
            f"not shipped: {few(f'{entry} in {configuration}' for configuration, entry in added)}"
        )
        fix = f"kubectl edit {kind}webhookconfiguration {name}, and delete it there"
        yield Line(WARNING, text, f"if this is not deliberate: {fix} (to apply does not)")
    if not (any(found.values()) or added):
        yield Line(OK, "as shipped")


def _added(facts: Facts) -> list[tuple[str, str]]:
    """The entries of our configurations that are none of ours, each after its configuration."""
    ours = {(wanted.configuration, f"{short}{OURS}") for short, wanted in _SHIPPED.items()}
    found = ((name, str(entry.get("name"))) for name, entry in facts.entries(*CONFIGURATIONS))
    return [each for each in found if each not in ours]


def _differences(name: str, entry: Raw, wanted: _Entry, facts: Facts) -> Iterator[Difference]:
    yield from _rules(name, entry, wanted, facts)
    yield from _target(entry, wanted, facts)
    yield from _selectors(entry, wanted, facts)
    for state, member, value in (
        (WARNING if wanted.may_fail else FAILED, "failurePolicy", "Ignore"),
        (WARNING, "timeoutSeconds", wanted.seconds),
        (WARNING, "reinvocationPolicy", "IfNeeded"),
        (WARNING, "matchPolicy", "Equivalent"),
        (WARNING, "sideEffects", "None"),
    ):
        # The API server fills each in; an entry that validates has no reinvocationPolicy.
        if (is_now := entry.get(member, value)) != value:
            yield state, f"{member} is {is_now}, not {value}"
    versions = [each for each in entry.get("admissionReviewVersions") or () if each in _VERSIONS]
    if versions[:1] != ["v1"]:
        yield FAILED, f"admissionReviewVersions is {few(versions)}, not v1"


def _rules(name: str, entry: Raw, wanted: _Entry, facts: Facts) -> Iterator[Difference]:
    """The objects that are not sent, and those that are sent besides."""
    now = {*_sent(entry.get("rules"))}
    if wanted.sent:
        state, to_send = FAILED, {(*each.split(" "), "", "v1") for each in wanted.sent}
    else:  # `*` is for custom kinds whose plural is not known; others may name it
        state, to_send = WARNING, {*_sent(entries(facts.settings)[name]["rules"])}
    if missed := [each for each in to_send if not any(_covers(other, each) for other in now)]:
        yield state, f"the rules do not send {_shown(missed)}"
    more = [each for each in now if not any(_covers(other, (*each[:3], "v1")) for other in to_send)]
    if more:
        yield WARNING, f"the rules also send {_shown(more)}"


def _sent(rules: object) -> Iterator[tuple[str, ...]]:
    """Each operation, resource, group and version of objects that have a namespace."""
    for _, rule in as_items(rules):
        if rule.get("scope", "*") != "Cluster":
            yield from product(*(rule.get(member) or () for member in _MEMBERS))


def _covers(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether all of the other is in the first; the resource `*` has no subresources."""
    resource, _, sub = other[1].partition("/")
    wide = {other[1], "*/*", *([f"{resource}/*", f"*/{sub}"] if sub else ["*"])}
    rest = zip((one[0], *one[2:]), (other[0], *other[2:]), strict=True)
    return one[1] in wide and all(mine in {"*", each} for mine, each in rest)


def _shown(sent: Iterable[tuple[str, ...]]) -> str:
    return few(sorted(f"{operation} {resource}" for operation, resource, *_ in sent))


def _target(entry: Raw, wanted: _Entry, facts: Facts) -> Iterator[Difference]:
    """Where the API server calls."""
    client = as_map(entry.get("clientConfig"))
    service = as_map(client.get("service"))
    path = str(service.get("path") or urlsplit(str(client.get("url") or "")).path or "/")
    # A proxy at a URL may have paths of its own before it.
    if path != wanted.path and (service or not path.endswith(wanted.path)):
        yield FAILED, f"the path of clientConfig is {path}, not {wanted.path}"
    port = service.get("port", 443)
    for each in facts.services:
        is_it = service_of(entry) == f"{facts.namespace}/{each['metadata']['name']}"
        ports = [item.get("port") for _, item in as_items(as_map(each.get("spec")).get("ports"))]
        if is_it and port not in ports:
            has = few(map(str, ports))
            yield FAILED, f"the port of clientConfig is {port}, and the Service has {has}"


def _selectors(entry: Raw, wanted: _Entry, facts: Facts) -> Iterator[Difference]:
    """Whose pods are sent: tried with the labels of namespaces."""
    selector = as_map(entry.get("namespaceSelector"))
    is_guard = wanted.configuration in {GUARD, REFUSE}
    usual = {_NAME: "", **({GUARD_LABEL: "enabled"} if is_guard else {})}
    if entry.get("objectSelector"):
        yield WARNING, "the objectSelector selects only some objects"
    if not selects(selector, usual):
        yield WARNING, "the namespaceSelector selects only some namespaces"
    left_out = {
        "the namespace of the webhook": {**usual, _NAME: facts.namespace},
        "kube-system": {**usual, _NAME: "kube-system"},
        f"namespaces with the label {IGNORE}: true": {**usual, IGNORE: "true"},
    }
    if is_guard:
        left_out[f"namespaces without the label {GUARD_LABEL}"] = {_NAME: ""}
    if hit := [what for what, labels in left_out.items() if selects(selector, labels)]:
        yield FAILED, f"the namespaceSelector selects {few(hit)}"
