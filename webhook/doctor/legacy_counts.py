"""What the servers have counted: an installation in, the times of the last legacy objects out.

Each server counts for itself, and its counts end with its container. So they are complete only
since the last of them started, and since the last change to what decides which objects come.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cluster import listing
from webhook.cluster.client import Client, Fault, address
from webhook.doctor import running
from webhook.doctor.leftovers import elsewhere, service_of
from webhook.doctor.lines import OK, few
from webhook.doctor.mounted_files import SERVER
from webhook.doctor.registration import REPAIR, conditions
from webhook.kube.pod import as_items, as_map, is_finished, labels_of
from webhook.kube.times import DAY, seconds_of
from webhook.rules import is_legacy, is_repair

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.doctor.facts import Facts

    Raw = dict[str, Any]

_LAST = "gpu_webhook_last_legacy_timestamp_seconds"  # on the page of each server
_SEEN = "gpu_webhook_namespace_last_legacy_timestamp_seconds"
_OBJECTS = "gpu_webhook_legacy_objects_total"
_REPAIRED = "gpu_webhook_rule_last_repair_timestamp_seconds"
_REVIEWS = "gpu_webhook_reviews_total"
_USABLE = "gpu_webhook_inventory_usable"
# Objects for which the API server could not call the webhook, or not find out whether to. Of those
# that it rejects (failurePolicy: Fail), `no_error` are those that a webhook denied.
_OPEN = "apiserver_admission_webhook_fail_open_count"
_FAILED = (
    _OPEN,
    "apiserver_admission_webhook_rejection_count",
    "apiserver_admission_match_condition_evaluation_errors_total",
)
_STARTED = "process_start_time_seconds"
EACH = "each counts for itself; Prometheus keeps what those counted that were removed"
_UNREACHED = (
    "its servers have judged nothing since they started, not even dry runs: others may be called, "
    "or ask again in a minute"
)
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\d{1,16}(?:\.\d+)?(?:e[+-]?\d\d?)?)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class _Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


@dataclass
class Counted:
    """The counts of all servers together; times are seconds of the epoch."""

    since: float = math.inf  # from then on they are complete
    began: str = ""  # what happened then
    last: dict[str, float] = field(default_factory=dict)  # by namespace
    kinds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    repairs: dict[str, float] = field(default_factory=dict)  # of modern pods, by rule: the last
    gaps: list[str] = field(default_factory=list)  # what is not known, and why
    reviews: float = 0.0  # that the servers have answered


def read(api: Client, facts: Facts) -> Counted:
    """Ask each server, and the API server for calls that failed."""
    found = Counted()
    if why := facts.refusal("deployment", "pods", "services", "configurations", "settings_map"):
        found.gaps.append(f"what came to the webhook: the API server answered {why}")
        return found
    if not facts.deployment:
        there = "".join(f"; `-n {name}` may be meant" for name in elsewhere(facts)[:1])
        text = f"the webhook is not installed in the namespace {facts.namespace}{there}"
        found.gaps.append(text)
        return found
    unknown = {"have mistakes": facts.mistakes, "cannot be seen": facts.unseen}
    found.gaps += [f"what is legacy here: the settings {k}: {v}" for k, v in unknown.items() if v]
    if not facts.settings.messages.annotation:
        text = "which objects were repaired: the settings have `messages.annotation: false`"
        found.gaps.append(text)
    tried = [(line.state, line.text) for line in running.dry_run(facts)]
    absent = [(None, f"no webhook configuration {REPAIR}, or an empty one")]
    selected = [(line.state, line.text) for line in conditions(facts)]
    found.gaps += [text for state, text in [*(tried or absent), *selected] if state != OK]
    found.gaps += [*_other_services(facts), *_other_servers(api, facts)]
    servers = {_name(pod): pod for pod in facts.pods if not is_finished(pod)}
    unread = [*_unread(found, api, facts, servers)]
    found.gaps += unread
    begun = [(_start(pod), f"{name} started") for name, pod in servers.items()]
    wanted = max(len(servers), facts.deployment["spec"].get("replicas", 1), 1)
    count = sum(math.isfinite(when) for when, _ in begun)
    if count < wanted:
        found.gaps.append(f"what came to the webhook: {count} of {wanted} servers run")
        return found
    try:
        begun.append((_failed_since(found, api, facts), "the API server started"))
    except Fault as fault:
        found.gaps.append(f"whether calls of the webhook failed: {fault}")
    try:
        begun.append((_scaled(api, facts), f"the number of replicas was changed ({EACH})"))
    except Fault as fault:
        found.gaps.append(f"whether replicas were removed: ReplicaSets: {fault}")
    found.since, found.began = max([*begun, *_changes(facts)])
    if not (found.reviews or unread) and facts.now - found.since > DAY:
        found.gaps.append(f"what came to the webhook: {_UNREACHED}")
    return found


def _unread(found: Counted, api: Client, facts: Facts, servers: Mapping[str, Raw]) -> Iterator[str]:
    """Add up the pages of these servers; which of them cannot be read."""
    for name, pod in servers.items():
        try:
            path = _metrics_of(pod, facts.namespace)
            names = (_LAST, _SEEN, _OBJECTS, _REPAIRED, _REVIEWS, _USABLE)
            samples = _page(api, path, *names)
            _add(found, name, samples)
            usable = [each.value for each in samples if each.name == _USABLE]
            if not all(usable or [not facts.has_watchers]):
                found.gaps.append(_without_inventory(name, facts.namespace))
        except Fault as fault:
            yield f"what came to {name}: its metrics cannot be read: {fault}"


def _without_inventory(server: str, namespace: str) -> str:
    """While it has none, it changes no modern pod, so a dry run does not show what it would do."""
    log = f"`kubectl -n {namespace} logs {server} -c watch`"
    what = f"the inventory of {server} is missing or out of date"
    return f"whether modern pods get what they need: {what}: {log} says why"


def _other_services(facts: Facts) -> Iterator[str]:
    """Services that are called, and are not in front of these servers. A URL names none."""
    labels = labels_of(_template(facts.deployment)).items()
    ours = {
        f"{facts.namespace}/{_name(each)}"
        for each in facts.services
        if (selector := _selector(each)) and selector.items() <= labels
    }
    for service in sorted(_called(facts) - ours):
        space = service.partition("/")[0]
        advice = f"use -n {space}" if space != facts.namespace else "not the pods of its Deployment"
        yield f"{REPAIR} calls {service}: {advice}"


def _other_servers(api: Client, facts: Facts) -> Iterator[str]:
    """The pods behind these Services that another Deployment made: their counts are not read."""
    try:
        found = {
            _name(pod)
            for each in facts.services
            if f"{facts.namespace}/{_name(each)}" in _called(facts)
            for pod in _behind(api, facts.namespace, _selector(each))
            if not _is_ours(pod, facts)
        }
    except Fault as fault:
        yield f"which pods are behind the Services that are called: {fault}"
        return
    if found:
        made_by = f"no pods of the Deployment {_name(facts.deployment)}"
        yield f"what came to {few(sorted(found))}: calls reach them, and they are {made_by}"


def _behind(api: Client, namespace: str, selector: Raw) -> Iterator[Raw]:
    """The pods that a Service with this selector sends calls to. Without one it names them."""
    if selector:
        path = address("api", "v1", "namespaces", namespace, "pods")
        query = {"labelSelector": ",".join(f"{key}={selector[key]}" for key in selector)}
        pods = listing.objects(api, path, query=query)
        yield from (pod for pod in pods if not is_finished(pod))


def _is_ours(pod: Raw, facts: Facts) -> bool:
    """Whether the Deployment selects the pod; so it may be one of a second Deployment, too."""
    ours = as_map(_selector(facts.deployment).get("matchLabels"))
    return ours.items() <= labels_of(pod).items()


def _template(obj: Raw) -> Raw:
    return as_map(as_map(obj.get("spec")).get("template"))


def _called(facts: Facts) -> set[str]:
    """NAMESPACE/NAME of the Services that the API server calls."""
    return {service_of(entry) for _, entry in facts.entries(REPAIR)} - {""}


def _selector(obj: Raw) -> Raw:
    return as_map(as_map(obj.get("spec")).get("selector"))


def _failed_since(found: Counted, api: Client, facts: Facts) -> float:
    """Since when this API server counts calls that fail. A failed call may hide an object."""
    samples = _page(api, "/metrics", *_FAILED, _STARTED)
    ours = {entry.get("name") for _, entry in facts.entries(REPAIR)}
    labels = ((each.value, each.labels) for each in samples)
    if failed := sum(
        value
        for value, each in labels
        if each.get("name") in ours and each.get("error_type") != "no_error"
    ):
        calls = f"{failed:,.0f} call{'s' * (failed != 1)} of the webhook that failed"
        found.gaps.append(f"what came in {calls}; dry runs of `doctor` are among them")
    return _only(samples, _STARTED)


def failed_open(api: Client) -> Counter[str]:
    """How many calls of each mutating webhook failed without a consequence, in this API server.

    Fault if its metrics cannot be read.
    """
    found = Counter[str]()
    for each in _page(api, "/metrics", _OPEN):
        if each.labels.get("type") == "admit":
            found[each.labels.get("name", "")] += round(each.value)
    return found


def _changes(facts: Facts) -> Iterator[tuple[float, str]]:
    """When each object was last changed that decides what the servers get and count."""
    yield _changed(facts.deployment), "the Deployment was changed"
    yield _changed(facts.configurations.get(REPAIR, {})), f"{REPAIR} was changed"
    yield _changed(facts.settings_map), "the settings were changed"


def _scaled(api: Client, facts: Facts) -> float:
    """When replicas were last added or removed: those that were removed took their counts along.

    The Deployment does not say it: writes to its subresource `scale` have no time. Its controller
    then changes a ReplicaSet.
    """
    path = address("apis", "apps", "v1", "namespaces", facts.namespace, "replicasets")
    sets = listing.objects(api, path)
    ours = (each for each in sets if _is_ours(_template(each), facts))
    return max(map(_changed, ours), default=0.0)


def _changed(obj: Raw) -> float:
    metadata = as_map(obj.get("metadata"))
    written = as_items(metadata.get("managedFields"))
    times = [each.get("time") for _, each in written if each.get("subresource") != "status"]
    return max(map(seconds_of, [metadata.get("creationTimestamp"), *times]))


def _name(pod: Raw) -> str:
    return str(pod["metadata"]["name"])


def _start(pod: Raw) -> float:
    """When the server of a pod started; infinite if it does not run."""
    for _, each in as_items(as_map(pod.get("status")).get("containerStatuses")):
        if each.get("name") == SERVER:
            running_now = as_map(as_map(each.get("state")).get("running"))
            return seconds_of(running_now.get("startedAt")) or math.inf
    return math.inf


def _metrics_of(pod: Raw, namespace: str) -> str:
    """The path of its page of metrics."""
    containers = as_items(as_map(pod.get("spec")).get("containers"))
    ports = [port for _, each in containers for _, port in as_items(each.get("ports"))]
    for port in ports:
        if port.get("name") == "metrics":
            server = address("pods", f"{_name(pod)}:{port.get('containerPort')}")
            return f"{address('api', 'v1', 'namespaces', namespace)}{server}/proxy/metrics"
    raise Fault("none of its ports is named metrics")


def _page(api: Client, path: str, *names: str) -> list[_Sample]:
    """The metrics with these names. Fault if one of them is no number of a server."""
    lines = api.get(path, {}, media_type="text/plain").decode(errors="replace").split("\n")
    found = []
    for line in filter(lambda each: each.startswith(names), lines):
        one = _SAMPLE.fullmatch(line)
        if one is None:
            raise Fault(f"a line of them is damaged: {line[:100]}")
        found.append(_Sample(one[1], dict(_LABEL.findall(one[2] or "")), float(one[3])))
    return found


def _add(found: Counted, server: str, samples: list[_Sample]) -> None:
    """Add the page of a server, which always has the times of its last objects; 0: none."""
    _only(samples, _LAST)
    _only(samples, _REPAIRED)
    for name, labels, value in samples:
        namespace = labels.get("namespace", "")
        if name == _SEEN:
            found.last[namespace] = max(value, found.last.get(namespace, 0.0))
        elif name == _REPAIRED and value and _is_modern(code := labels.get("rule", "")):
            found.repairs[code] = max(value, found.repairs.get(code, 0.0))
        elif name == _OBJECTS and value:
            found.kinds[namespace][labels.get("kind", "")] += int(value)
        elif name == _REVIEWS and value:
            found.reviews += value
            if _is_unjudged(labels):
                what = f"{value:,.0f} object{'s' * (value != 1)} that {server} could not judge"
                found.gaps.append(f"what came in {what} (`unfinished` in its log)")


def _is_unjudged(labels: dict[str, str]) -> bool:
    return (labels.get("outcome"), labels.get("path")) == ("unfinished", "/mutate")


def _is_modern(code: str) -> bool:
    """Whether the rule adds what a modern pod cannot run without."""
    return is_repair(code) and not is_legacy(code)


def _only(samples: list[_Sample], name: str) -> float:
    for each in samples:
        if each.name == name:
            return each.value
    raise Fault(f"{name} is missing")
