"""Which servers are asked for the page of their readiness, and what is taken from the answers."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from tests.doctor.installation import POD, deployed
from webhook.cluster.client import Fault, Refused
from webhook.doctor.facts import read, readiness

Raw = dict[str, Any]

ADDRESS = {"podIP": "10.0.0.1"}
STARTS = {"containerStatuses": [{"name": "gpu-webhook", "started": False}]}
STARTED = {"containerStatuses": [{"name": "watch", "started": False}]}


class Pages:
    """The API server: the answer of each pod, and who was asked."""

    def __init__(self, answer: str | Fault) -> None:
        self.answer, self.asked = answer, list[str]()

    def get(self, path: str, _query: object, *, media_type: str) -> bytes:
        assert media_type == "text/plain"
        self.asked.append(path)
        if isinstance(self.answer, Fault):
            raise self.answer
        return self.answer.encode()


def pod(status: Raw, **metadata: str) -> Raw:
    made = copy.deepcopy(POD)
    made["metadata"].update(metadata)
    return {**made, "status": status}


PAGE = "/api/v1/namespaces/gpu-webhook/pods/https%3Agpu-webhook-1%3A8443/proxy/readyz"
ASKED: dict[str, tuple[Raw, bool]] = {
    "one that runs": (pod(ADDRESS), True),
    "one whose watcher starts": (pod({**ADDRESS, **STARTED}), True),
    "one that starts": (pod({**ADDRESS, **STARTS}), False),
    "one without an address": (pod({}), False),
    "one that was deleted": (pod(ADDRESS, deletionTimestamp="2026-06-01T00:00:00Z"), False),
    "one that ended": (pod({**ADDRESS, "phase": "Failed"}), False),
    "one without the port": ({**pod(ADDRESS), "spec": {"containers": []}}, False),
}


@pytest.mark.parametrize(("one", "asked"), ASKED.values(), ids=ASKED)
def test_only_servers_that_run_are_asked(one: Raw, asked: bool) -> None:  # noqa: FBT001
    api: Any = Pages("ok")
    assert readiness(api, "gpu-webhook", [one]) == ({"gpu-webhook-1": "ok"} if asked else {})
    assert api.asked == [PAGE] * asked


class Installed:
    """The API server: it has one Deployment, and stores nothing."""

    def __init__(self, deployment: Raw) -> None:
        self.deployment, self.tried = deployment, list[Raw]()

    def get(self, path: str, *_: object, **_more: object) -> bytes:
        if path != "/apis/apps/v1/namespaces/gpu-webhook/deployments":
            raise Refused(404, "no")
        return orjson.dumps({"items": [self.deployment]})

    def create(self, _path: str, _review: Raw) -> bytes:
        return b"{}"

    def dry_run(self, _path: str, pod: Raw) -> tuple[bytes, list[str]]:
        self.tried.append(pod)
        return orjson.dumps(pod), []

    def now(self) -> float:
        return 0.0


def test_the_pod_that_is_tried_has_the_image_of_the_server() -> None:
    """A policy of the cluster may allow only the images of one registry."""
    made = deployed()
    for container in made["spec"]["template"]["spec"]["containers"]:
        container["image"] = f"registry.corp/{container['name']}"
    api: Any = Installed(made)
    read(api, "gpu-webhook", "default")
    (tried,) = api.tried
    assert [e["image"] for e in tried["spec"]["containers"]] == ["registry.corp/gpu-webhook"]


@pytest.mark.parametrize("fault", [Refused(503, "not ready: x"), Fault("the answer ended")])
def test_why_there_is_no_page(fault: Fault) -> None:
    api: Any = Pages(fault)
    assert readiness(api, "gpu-webhook", [pod(ADDRESS)]) == {"gpu-webhook-1": str(fault)}


def test_without_the_right_to_the_proxy_nothing_is_known() -> None:
    api: Any = Pages(Refused(403, "no"))
    with pytest.raises(Refused):
        readiness(api, "gpu-webhook", [pod(ADDRESS)])
