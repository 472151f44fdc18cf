"""The legacy pod of `doctor`, where quotas and LimitRanges ask for amounts of other resources."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from webhook.cluster.client import Refused
from webhook.core.settings import Settings
from webhook.doctor.legacy_trial import legacy_pod, tried

DEFAULT = {"metadata": {"name": "default"}}
ALPHA = "alpha.kubernetes.io/nvidia-gpu"


class Namespace:
    """An API server whose namespace refuses pods in this order, and keeps the amounts it saw."""

    def __init__(self, *refusals: str) -> None:
        self.refusals, self.seen = list(refusals), list[Any]()
        self.users: list[int] = []

    def dry_run(self, _path: str, pod: Any) -> tuple[bytes, list[str]]:
        self.seen.append(copy.deepcopy(pod["spec"]["containers"][0]["resources"]))
        self.users.append(pod["spec"]["securityContext"].get("runAsUser", 0))
        if self.refusals:
            raise Refused(403, self.refusals.pop(0))
        return json.dumps(pod).encode(), []


def both(amounts: dict[str, str]) -> Any:
    return {"limits": amounts, "requests": amounts}


QUOTA = "failed quota: team: must specify limits.cpu for: main; requests.memory for: main"
OLD_QUOTA = "failed quota: team: must specify limits.cpu,requests.memory"
STORAGE = "failed quota: disks: must specify limits.ephemeral-storage for: main"
RANGE = (
    "[minimum memory usage per Container is 16Mi, but request is 8Mi, "
    "minimum cpu usage per Container is 10m, but request is 1m]"
)
POD = "minimum cpu usage per Pod is 20m, but request is 1m"
OTHER = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
MAXIMUM = "maximum memory usage per Pod is 1Gi.  No limit is specified"
RATIO = "cpu max limit to request ratio per Pod is 2, but no request is specified or request is 0"
POLICY = 'admission webhook "policies" denied the request: container main has no limits'
RIGHT = 'User "ann" cannot create resource "pods" in API group ""'
SMALL = {"cpu": "1m", "memory": "8Mi"}
ALL = {**SMALL, "ephemeral-storage": "1Mi"}
# What it answers first, and the amounts that were tried last; None if the pod was refused.
ANSWERS: dict[str, tuple[list[str], dict[str, str], bool]] = {
    "nothing is asked for": ([], {}, True),
    "a quota": ([QUOTA], SMALL, True),
    "a quota of an older release": ([OLD_QUOTA], SMALL, True),
    "two quotas": ([QUOTA, STORAGE], {**SMALL, "ephemeral-storage": "1Mi"}, True),
    "a quota, and a LimitRange with a minimum": (
        [QUOTA, RANGE],
        {"cpu": "10m", "memory": "16Mi"},
        True,
    ),
    "a minimum of the whole pod": ([QUOTA, POD], {**SMALL, "cpu": "20m"}, True),
    "the same in a request of none": (
        ["minimum memory usage per Pod is 64Mi.  No request is specified"],
        {"memory": "64Mi"},
        True,
    ),
    "a maximum of the whole pod": ([MAXIMUM], ALL, True),
    "a ratio of limits to requests": ([RATIO], ALL, True),
    "a policy that wants limits": ([POLICY], ALL, True),
    "a quota that is full": ([OTHER, OTHER], ALL, False),
    "the same again": ([QUOTA, QUOTA, QUOTA], ALL, False),
    "a right that is missing": ([RIGHT], {}, False),
    "minimums that exclude each other": (
        [QUOTA, RANGE, POD, RANGE, POD],
        {"cpu": "10m", "memory": "16Mi"},
        False,
    ),
}


@pytest.mark.parametrize(("refusals", "amounts", "is_made"), ANSWERS.values(), ids=ANSWERS)
def test_the_pod_asks_for_what_the_namespace_wants(
    refusals: list[str],
    amounts: dict[str, str],
    is_made: bool,  # noqa: FBT001
) -> None:
    """It asks for nothing else first: LimitRanges give what they want."""
    api: Any = Namespace(*refusals)
    made = tried(api, DEFAULT, legacy_pod(Settings()))
    assert api.seen[0] == both({ALPHA: "1"})
    assert api.seen[-1] == both({ALPHA: "1", **amounts})
    assert bool(made.pod) is is_made
    assert (made.refusal == "") is is_made


def test_the_pod_has_what_policies_on_all_pods_usually_ask_for() -> None:
    pod = legacy_pod(Settings())
    (container,) = pod["spec"]["containers"]
    recommended = ("name", "instance", "version", "component", "part-of", "managed-by")
    wanted = {"app", "pod-template-hash", *(f"app.kubernetes.io/{each}" for each in recommended)}
    assert wanted == {*pod["metadata"]["labels"]}
    assert container["imagePullPolicy"] == "Always"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["readinessProbe"] != container["livenessProbe"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True


IDS = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
USER = 'admission webhook "policies" denied the request: runAsUser must be at least 1000'
# What it answers first, and which of the pods run as a user of their own.
USERS: dict[str, tuple[list[str], list[bool]]] = {
    "nothing is refused": ([], [False]),
    "a quota, which names what it wants": ([QUOTA], [False, False]),
    "a policy on users": ([USER], [False, True]),
    "a policy on users, behind quotas": ([QUOTA, STORAGE, USER], [False, False, False, True]),
    "a right that is missing": ([RIGHT], [False]),
}


@pytest.mark.parametrize(("refusals", "own"), USERS.values(), ids=USERS)
def test_the_pod_runs_as_a_user_of_its_own_where_a_policy_may_want_that(
    refusals: list[str], own: list[bool]
) -> None:
    """OpenShift refuses users that are not those of the namespace."""
    api: Any = Namespace(*refusals)
    made = tried(api, DEFAULT, legacy_pod(Settings()))
    assert [each >= 1000 for each in api.users] == own
    assert (IDS.items() <= made.pod.get("spec", {}).get("securityContext", {}).items()) is own[-1]
