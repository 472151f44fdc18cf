"""What the servers have counted: pages of metrics in; what is known, and since when, out."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.doctor.installation import HEALTHY, REPAIR, tried, with_settings, without
from webhook.cluster.client import Fault, Refused
from webhook.doctor import legacy_counts
from webhook.settings.file import parse

if TYPE_CHECKING:
    from webhook.doctor.facts import Facts

Raw = dict[str, Any]
DAY = 86_400.0
NOW = HEALTHY.now
API = "/metrics"
OURS = "repair.gpu-webhook.dev"
SEEN = "gpu_webhook_namespace_last_legacy_timestamp_seconds"
PAGE = """\
# HELP gpu_webhook_last_legacy_timestamp_seconds When.
# TYPE gpu_webhook_last_legacy_timestamp_seconds gauge
gpu_webhook_last_legacy_timestamp_seconds {last}
gpu_webhook_rule_last_repair_timestamp_seconds{{rule="GPU101"}} {last}
gpu_webhook_rule_last_repair_timestamp_seconds{{rule="GPU201"}} 0.0
gpu_webhook_reviews_total{{outcome="passed",path="/mutate"}} 1.0
gpu_webhook_reviews_total{{outcome="passed",path="/validate"}} 0.0
gpu_webhook_inventory_usable 1.0
{more}"""


def stamp(days: float) -> str:
    return datetime.fromtimestamp(NOW - days * DAY, UTC).isoformat().replace("+00:00", "Z")


def page_of(name: str) -> str:
    return f"/api/v1/namespaces/gpu-webhook/pods/{name}%3A8080/proxy/metrics"


def server(name: str, days: float | None) -> Raw:
    """A replica that started so long ago, or does not run."""
    state = {"waiting": {}} if days is None else {"running": {"startedAt": stamp(days)}}
    watch = {"name": "watch", "state": {"running": {"startedAt": stamp(0)}}}
    status = {"containerStatuses": [watch, {"name": "gpu-webhook", "state": state}]}
    spec = HEALTHY.deployment["spec"]["template"]["spec"]
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def written(obj: Raw, *times: tuple[float, str]) -> Raw:
    """The object as it was created 90 days ago, with writes so long ago."""
    fields = [{"time": stamp(days), "subresource": of} for days, of in times]
    metadata = {**obj.get("metadata", {}), "creationTimestamp": stamp(90), "managedFields": fields}
    return {**obj, "metadata": metadata}


def seen(*servers: Raw, **more: Any) -> Facts:
    return replace(WHOLE, pods=servers, **more)


def labelled(name: str, **labels: str) -> Raw:
    """A pod of the Deployment, or one with other labels."""
    ours = HEALTHY.deployment["spec"]["selector"]["matchLabels"]
    return {"metadata": {"name": name, "labels": labels or ours}}


SETS = "/apis/apps/v1/namespaces/gpu-webhook/replicasets"
PODS = "/api/v1/namespaces/gpu-webhook/pods"


def replica_set(days: float, owner: str = "gpu-webhook", **labels: str) -> Raw:
    """One that its Deployment scaled so long ago."""
    by = {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "controller": True}
    made = labelled("x", **labels)
    spec = {"replicas": 0, "template": {"metadata": made["metadata"]}}
    return written({"metadata": {"ownerReferences": [by]}, "spec": spec}, (days, ""), (0, "status"))


def listed(*sets: Raw) -> str:
    return json.dumps({"kind": "ReplicaSetList", "metadata": {}, "items": sets})


WHOLE = replace(
    HEALTHY,
    deployment=written(HEALTHY.deployment, (80, ""), (0, "status")),
    configurations={
        **HEALTHY.configurations,
        REPAIR: written(copy.deepcopy(HEALTHY.configurations[REPAIR])),
    },
    settings_map=written(HEALTHY.settings_map),
    pods=(server("a", 50), server("b", 40)),
)
QUIET = {
    page_of("a"): PAGE.format(last=0, more=""),
    page_of("b"): PAGE.format(last=0, more=""),
    API: f"process_start_time_seconds {NOW - 70 * DAY}\n",
    SETS: listed(replica_set(60)),
    PODS: listed(labelled("a"), labelled("b")),  # behind the Service
}


class Pages:
    """What the API server answers on these paths."""

    def __init__(self, pages: dict[str, Any]) -> None:
        self._pages = pages

    def get(self, path: str, _query: object, _most: int = 0, *, media_type: str = "") -> bytes:
        assert (media_type == "text/plain") == (path not in {SETS, PODS})
        answer = self._pages.get(path, Refused(404, "not found"))
        if isinstance(answer, Fault):
            raise answer
        return str(answer).encode()


def read(facts: Facts, **pages: Any) -> legacy_counts.Counted:
    named = {"a": page_of("a"), "b": page_of("b"), "api": API, "sets": SETS, "pods": PODS}
    given = QUIET | {named[key]: value for key, value in pages.items()}
    return legacy_counts.read(Pages(given), facts)  # type: ignore[arg-type]


def changed(obj: Raw, days: float) -> Raw:
    """The object, as it was written so long ago."""
    return written(obj, (days, ""), (0, "status"))


REGISTERED = dict(WHOLE.configurations)
SINCE: dict[str, tuple[Facts, dict[str, Any], float, str]] = {
    "the last server that started": (WHOLE, {}, 40, "b started"),
    "a server whose container started again": (
        seen(server("a", 50), server("b", 2)),
        {},
        2,
        "b started",
    ),
    "the Deployment had other replicas before": (
        replace(WHOLE, deployment=changed(HEALTHY.deployment, 9)),
        {},
        9,
        "the Deployment was changed",
    ),
    "the settings were others before": (
        replace(WHOLE, settings_map=changed(HEALTHY.settings_map, 8)),
        {},
        8,
        "the settings were changed",
    ),
    "the webhook was registered later": (
        replace(
            WHOLE,
            configurations=REGISTERED | {REPAIR: written(REGISTERED[REPAIR], (7, ""))},
        ),
        {},
        7,
        f"{REPAIR} was changed",
    ),
    "the API server counts since it started": (
        WHOLE,
        {"api": f"process_start_time_seconds {NOW - 3 * DAY}\n"},
        3,
        "the API server started",
    ),
    "a replica was removed, of whichever template": (
        WHOLE,
        {"sets": listed(replica_set(60), replica_set(6), replica_set(1, "grafana", app="grafana"))},
        6,
        f"the number of replicas was changed ({legacy_counts.EACH})",
    ),
    "a replica of a second Deployment behind the Service was removed": (
        WHOLE,
        {"sets": listed(replica_set(60), replica_set(5, "canary"))},
        5,
        f"the number of replicas was changed ({legacy_counts.EACH})",
    ),
    "a pod that finished counts no more": (
        seen(*WHOLE.pods, {**server("c", 1), "status": {"phase": "Failed"}}),
        {},
        40,
        "b started",
    ),
}


@pytest.mark.parametrize(("facts", "pages", "days", "began"), SINCE.values(), ids=SINCE)
def test_the_counts_are_complete_since(
    facts: Facts, pages: dict[str, Any], days: float, began: str
) -> None:
    found = read(facts, **pages)
    assert (found.gaps, found.began) == ([], began)
    assert (NOW - found.since) / DAY == pytest.approx(days)


FAILED = (
    QUIET[API]
    + f'apiserver_admission_webhook_fail_open_count{{name="{OURS}",type="admit"}} 2\n'
    + f'apiserver_admission_match_condition_evaluation_errors_total{{name="{OURS}"}} 1\n'
)
FOREIGN = QUIET[API] + 'apiserver_admission_webhook_fail_open_count{name="x.example.com"} 9\n'
REJECTED = 'apiserver_admission_webhook_rejection_count{{error_type="{}",name="{}"}} 1\n'
REFUSED = QUIET[API] + REJECTED.format("calling_webhook_error", OURS)
DENIED = QUIET[API] + REJECTED.format("no_error", OURS)
LATE = 'gpu_webhook_reviews_total{{outcome="{}",path="{}"}} 2.0\n'
UNASKED = QUIET[page_of("a")].replace("} 1.0", "} 0.0")
FOREIGN_PODS = "no pods of the Deployment gpu-webhook"
UNREACHED = (
    "its servers have judged nothing since they started, not even dry runs: others may be called, "
    "or ask again in a minute"
)
UNREAD = "its metrics cannot be read: "
INVENTORY = "whether modern pods get what they need: the inventory of"
WATCH = "`kubectl -n gpu-webhook logs b -c watch`"
WATCHERLESS = replace(
    WHOLE, deployment=json.loads(json.dumps(WHOLE.deployment).replace("--snapshot=", "--other="))
)
SPEC = WHOLE.deployment["spec"]


def calling(namespace: str, name: str) -> Facts:
    """Where the configuration calls this Service."""
    found = copy.deepcopy(WHOLE.configurations[REPAIR])
    for entry in found["webhooks"]:
        entry["clientConfig"] = {"service": {"namespace": namespace, "name": name}}
    return replace(WHOLE, configurations={REPAIR: found})


def selecting(name: str, **labels: str) -> Raw:
    return {"metadata": {"name": name}, "spec": {"selector": labels}}


AT_A_URL = copy.deepcopy(WHOLE.configurations[REPAIR])
AT_A_URL["webhooks"][0]["clientConfig"] = {"url": "https://gpu.example.com"}
GAPS: dict[str, tuple[Facts, dict[str, Any], list[str], bool]] = {
    "a foreign webhook that fails is no gap": (WHOLE, {"api": FOREIGN}, [], True),
    "calls of the webhook that failed": (
        WHOLE,
        {"api": FAILED},
        ["what came in 3 calls of the webhook that failed; dry runs of `doctor` are among them"],
        True,
    ),
    "one call that failed": (
        WHOLE,
        {"api": f'{QUIET[API]}apiserver_admission_webhook_fail_open_count{{name="{OURS}"}} 1\n'},
        ["what came in 1 call of the webhook that failed; dry runs of `doctor` are among them"],
        True,
    ),
    "one call that failed, and refused the object": (
        WHOLE,
        {"api": REFUSED},
        ["what came in 1 call of the webhook that failed; dry runs of `doctor` are among them"],
        True,
    ),
    "an object that the webhook denied": (WHOLE, {"api": DENIED}, [], True),
    "objects that a server could not judge": (
        WHOLE,
        {"a": QUIET[page_of("a")] + LATE.format("unfinished", "/mutate")},
        ["what came in 2 objects that a could not judge (`unfinished` in its log)"],
        True,
    ),
    "objects that it could judge, and others that it could not judge by a policy": (
        WHOLE,
        {
            "a": QUIET[page_of("a")]
            + LATE.format("unfinished", "/validate")
            + LATE.format("passed", "/mutate")
        },
        [],
        True,
    ),
    "repairs that are not noted on the objects": (
        replace(WHOLE, settings=parse("messages: {annotation: false}")),
        {},
        ["which objects were repaired: the settings have `messages.annotation: false`"],
        True,
    ),
    "legacy names of the settings that no entry selects": (
        replace(WHOLE, settings=parse("resources: {legacy: [example.com/old-gpu]}")),
        {},
        [
            (
                "repair.gpu-webhook.dev has other matchConditions; workloads.gpu-webhook.dev has "
                "other matchConditions than the settings of the cluster: objects may be missed"
            )
        ],
        True,
    ),
    "settings that cannot be read": (
        replace(WHOLE, mistakes="policy.mode: no such mode"),
        {},
        ["what is legacy here: the settings have mistakes: policy.mode: no such mode"],
        True,
    ),
    "settings that are in no ConfigMap": (
        replace(WHOLE, settings_map={}),
        {},
        [
            (
                "what is legacy here: the settings cannot be seen: there is no ConfigMap "
                "gpu-webhook-settings with the key settings.yaml"
            )
        ],
        True,
    ),
    "the metrics of the API server are forbidden": (
        WHOLE,
        {"api": Refused(403, "no")},
        ["whether calls of the webhook failed: 403: no"],
        True,
    ),
    "the metrics of the API server are others": (
        WHOLE,
        {"api": "up 1\n"},
        ["whether calls of the webhook failed: process_start_time_seconds is missing"],
        True,
    ),
    "ReplicaSets may not be listed": (
        WHOLE,
        {"sets": Refused(403, "no")},
        ["whether replicas were removed: ReplicaSets: 403: no"],
        True,
    ),
    "a page of an older version, which does not say what it repaired": (
        WHOLE,
        {"a": "gpu_webhook_last_legacy_timestamp_seconds 0\n"},
        [f"what came to a: {UNREAD}gpu_webhook_rule_last_repair_timestamp_seconds is missing"],
        True,
    ),
    "a watcher that ended": (
        WHOLE,
        {"b": PAGE.format(last=0, more="").replace("usable 1.0", "usable 0.0")},
        [f"{INVENTORY} b is missing or out of date: {WATCH} says why"],
        True,
    ),
    "a server that does not say whether it has an inventory": (
        WHOLE,
        {"b": PAGE.format(last=0, more="").replace("gpu_webhook_inventory_usable 1.0\n", "")},
        [f"{INVENTORY} b is missing or out of date: {WATCH} says why"],
        True,
    ),
    "one whose flags are in its environment": (
        WATCHERLESS,
        {"b": PAGE.format(last=0, more="").replace("usable 1.0", "usable 0.0")},
        [f"{INVENTORY} b is missing or out of date: {WATCH} says why"],
        True,
    ),
    "a server without a watcher, which completes no modern pods": (
        WATCHERLESS,
        {"b": PAGE.format(last=0, more="").replace("gpu_webhook_inventory_usable 1.0\n", "")},
        [],
        True,
    ),
    "a page that does not answer": (
        WHOLE,
        {"a": Refused(503, "no route")},
        [f"what came to a: {UNREAD}503: no route"],
        True,
    ),
    "a page of something else": (
        WHOLE,
        {"b": "up 1\n"},
        [f"what came to b: {UNREAD}gpu_webhook_last_legacy_timestamp_seconds is missing"],
        True,
    ),
    "a server without a port for metrics": (
        seen(server("a", 50), {**server("b", 40), "spec": {"containers": [{"name": "x"}]}}),
        {},
        [f"what came to b: {UNREAD}none of its ports is named metrics"],
        True,
    ),
    "a server that waits for its restart": (
        seen(server("a", 50), server("b", None)),
        {},
        ["what came to the webhook: 1 of 2 servers run"],
        False,
    ),
    "fewer servers than there should be": (
        seen(server("a", 50)),
        {},
        ["what came to the webhook: 1 of 2 servers run"],
        False,
    ),
    "no server at all": (
        seen(deployment={**WHOLE.deployment, "spec": {**SPEC, "replicas": 0}}),
        {},
        ["what came to the webhook: 0 of 1 servers run"],
        False,
    ),
    "no installation": (
        replace(WHOLE, deployment={}),
        {},
        ["the webhook is not installed in the namespace gpu-webhook"],
        False,
    ),
    "no installation here, and one elsewhere": (
        replace(WHOLE, deployment={}, namespace="nope", live={"gpu-webhook": True, "x": False}),
        {},
        ["the webhook is not installed in the namespace nope; `-n gpu-webhook` may be meant"],
        False,
    ),
    "another installation is called": (
        calling("gpu-system", "gpu-webhook"),
        {},
        [f"{REPAIR} calls gpu-system/gpu-webhook: use -n gpu-system"],
        True,
    ),
    "a Service of this namespace with other pods is called": (
        replace(calling("gpu-webhook", "old"), services=(selecting("old", app="old"),)),
        {},
        [f"{REPAIR} calls gpu-webhook/old: not the pods of its Deployment"],
        True,
    ),
    "a Service without a selector is called": (
        replace(calling("gpu-webhook", "old"), services=(selecting("old"),)),
        {},
        [f"{REPAIR} calls gpu-webhook/old: not the pods of its Deployment"],
        True,
    ),
    "a second Deployment is behind the Service": (
        WHOLE,
        {
            "pods": listed(
                labelled("a"), labelled("green-1", color="green"), labelled("green-2", x="y")
            )
        },
        [f"what came to green-1, green-2: calls reach them, and they are {FOREIGN_PODS}"],
        True,
    ),
    "a second Deployment was behind the Service, and its pod has finished": (
        WHOLE,
        {"pods": listed({**labelled("green-1", x="y"), "status": {"phase": "Failed"}})},
        [],
        True,
    ),
    "the pods behind the Service may not be listed": (
        WHOLE,
        {"pods": Refused(403, "no")},
        ["which pods are behind the Services that are called: 403: no"],
        True,
    ),
    "a time that is no number": (
        WHOLE,
        {"a": PAGE.format(last=0, more=f'{SEEN}{{namespace="ml"}} NaN\n')},
        [f'what came to a: {UNREAD}a line of them is damaged: {SEEN}{{namespace="ml"}} NaN'],
        True,
    ),
    "servers that no object has reached since they started": (
        WHOLE,
        {"a": UNASKED, "b": UNASKED},
        [f"what came to the webhook: {UNREACHED}"],
        True,
    ),
    "pages that cannot be read do not say that nothing was judged": (
        WHOLE,
        {"a": "up 1\n", "b": UNASKED},
        [f"what came to a: {UNREAD}gpu_webhook_last_legacy_timestamp_seconds is missing"],
        True,
    ),
    "servers of which one was asked": (WHOLE, {"a": UNASKED}, [], True),
    "servers that began today, which nothing may have reached yet": (
        seen(server("a", 0.5), server("b", 0.5)),
        {"a": UNASKED, "b": UNASKED},
        [],
        True,
    ),
    "a URL is called": (replace(WHOLE, configurations={REPAIR: AT_A_URL}), {}, [], True),
    "a user who may not read Services": (
        replace(WHOLE, services=(), unread={"services": "403: no"}),
        {},
        ["what came to the webhook: the API server answered 403: no"],
        False,
    ),
    "a user who may not read pods": (
        replace(WHOLE, unread={"pods": "403: no"}),
        {},
        ["what came to the webhook: the API server answered 403: no"],
        False,
    ),
    "nothing is registered": (
        replace(without(REPAIR), deployment=WHOLE.deployment, pods=WHOLE.pods, trial=tried()),
        {},
        [f"no webhook configuration {REPAIR}, or an empty one"],
        True,
    ),
    "the webhook is not called": (
        replace(WHOLE, trial=tried()),
        {},
        [
            (
                "a legacy pod came back unrepaired at once: nothing listens behind the Service, "
                "the API server does not trust the certificate, or no entry matches the pod"
            )
        ],
        True,
    ),
    "the rule is off where the pod was tried": (
        replace(with_settings("policy: {rules: {GPU101: off}}", trial=tried()), pods=WHOLE.pods),
        {},
        ["it cannot be seen whether the webhook answers: GPU101 is `off` in the namespace default"],
        True,
    ),
}


@pytest.mark.parametrize(("facts", "pages", "gaps", "is_dated"), GAPS.values(), ids=GAPS)
def test_what_is_not_known_is_a_gap(
    facts: Facts,
    pages: dict[str, Any],
    gaps: list[str],
    is_dated: bool,  # noqa: FBT001
) -> None:
    found = read(facts, **pages)
    assert found.gaps == gaps
    assert math.isfinite(found.since) == is_dated


def test_the_counts_of_all_servers_are_added_up() -> None:
    def page(*lines: tuple[str, str, float, int]) -> str:
        return PAGE.format(
            last=NOW,
            more="".join(
                f'{SEEN}{{namespace="{name}"}} {when}\n'
                f'gpu_webhook_legacy_objects_total{{kind="{kind}",namespace="{name}"}} {number}.0\n'
                for name, kind, when, number in lines
            ),
        )

    found = read(
        WHOLE,
        a=page(("ml", "Job", 5e8, 2), ("ml", "Pod", 5e8, 1), ("other", "other", 4e8, 7)),
        b=page(("ml", "Job", 6e8, 3), ("vision", "Pod", 3e8, 1)),
    )
    assert found.last == {"ml": 6e8, "other": 4e8, "vision": 3e8}
    assert found.repairs == {}, "those of legacy words are known by namespace"
    assert found.kinds == {"ml": {"Job": 5, "Pod": 1}, "other": {"other": 7}, "vision": {"Pod": 1}}


def test_the_last_repair_by_each_rule_that_modern_pods_need() -> None:
    more = 'gpu_webhook_rule_last_repair_timestamp_seconds{{rule="{}"}} {}\n'
    pages = {
        "a": PAGE.format(last=NOW, more=more.format("GPU202", 5e8) + more.format("GPU303", 9e8)),
        "b": PAGE.format(last=NOW, more=more.format("GPU202", 6e8) + more.format("GPU299", 7e8)),
    }
    newer = {"GPU299": 7e8}  # only a newer version knows what it does
    assert read(WHOLE, **pages).repairs == {"GPU202": 6e8, **newer}


def test_calls_that_failed_open_are_counted_for_each_mutating_webhook() -> None:
    name = "apiserver_admission_webhook_fail_open_count"
    page = f"""# TYPE {name} counter
{name}{{name="x.io",type="admit"}} 2
{name}{{name="y.io",type="admit"}} 1
{name}{{name="x.io",type="validating"}} 4
"""
    found = legacy_counts.failed_open(Pages({API: page}))  # type: ignore[arg-type]
    assert found == {"x.io": 2, "y.io": 1}
