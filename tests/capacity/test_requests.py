"""What a pod asks of one node, held against a port of the API's own computation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.capacity.requests import gpu_requests
from webhook.core.settings import Settings
from webhook.kube.pod import Pod

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
SLICE = "nvidia.com/mig-1g.5gb"
DEFAULT = Settings()


def asks(requests: Raw | None = None, limits: Raw | None = None, **more: Any) -> Raw:
    sections = {"requests": requests, "limits": limits}
    return {"resources": {k: v for k, v in sections.items() if v is not None}, **more}


def sidecar(amount: object, name: str = GPU) -> Raw:
    return asks({name: amount}, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [asks({"cpu": 1})]}, {}, id="no GPU: nothing is asked"),
        pytest.param(
            {"containers": [asks({GPU: 2}), asks({GPU: "3"})]}, {GPU: 5}, id="containers add up"
        ),
        pytest.param(
            {"containers": [asks({GPU: 2})], "initContainers": [asks({GPU: 2})]},
            {GPU: 2},
            id="what an init container held is given back",
        ),
        pytest.param(
            {"containers": [asks({GPU: 1})], "initContainers": [asks({GPU: 4}), asks({GPU: 3})]},
            {GPU: 4},
            id="the largest init container counts if it is above the containers",
        ),
        pytest.param(
            {"containers": [asks({GPU: 1})], "initContainers": [sidecar(2)]},
            {GPU: 3},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {
                "containers": [asks({GPU: 1})],
                "initContainers": [sidecar(2), asks({GPU: 3}), sidecar(1)],
            },
            {GPU: 5},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {
                "containers": [asks({GPU: 1})],
                "initContainers": [asks({GPU: 3}), sidecar(1)],
            },
            {GPU: 3},
            id="and not beside those after it",
        ),
        pytest.param(
            {"initContainers": [sidecar(1, SLICE), asks({GPU: 3})]},
            {GPU: 3, SLICE: 1},
            id="each name is counted for itself",
        ),
        pytest.param(
            {"containers": [asks(None, {GPU: 2})]}, {GPU: 2}, id="a limit stands in for a request"
        ),
        pytest.param(
            {"containers": [asks({GPU: 0}, {GPU: 2})]}, {}, id="a request of zero is a request"
        ),
        pytest.param(
            {"containers": [asks({GPU: None}, {GPU: 2})]}, {}, id="and null is zero in Kubernetes"
        ),
        pytest.param(
            {"containers": [asks({GPU: 1}, {GPU: 2, SHARED: 1})]},
            {GPU: 1, SHARED: 1},
            id="a limit stands in for its own name only",
        ),
        pytest.param(
            {"containers": [asks({GPU: 1})], "overhead": {GPU: 1, "cpu": "250m"}},
            {GPU: 2},
            id="the overhead of a runtime class is added",
        ),
        pytest.param(
            {"containers": [asks({GPU: 1})], "ephemeralContainers": [asks({GPU: 8})]},
            {GPU: 1},
            id="an ephemeral container holds none",
        ),
        pytest.param(
            {"containers": [asks({GPU: 1})], "resources": {"requests": {GPU: 8}}},
            {GPU: 1},
            id="nor do pod-level resources",
        ),
        pytest.param(
            {"containers": [asks({GPU: "500m"}), asks({GPU: "500m"})]},
            {GPU: 1},
            id="the sum is rounded up, not each part",
        ),
        pytest.param(
            {"containers": [asks({GPU: "many"}), asks({GPU: 1})]},
            {GPU: 1},
            id="what is no amount is refused by the API server",
        ),
        pytest.param(
            {"containers": [asks({GPU: -4})], "overhead": []}, {}, id="and so is a negative one"
        ),
        pytest.param(
            {"containers": [asks({"example.com/gpu": 2, "nvidia.com/mig-3g.20gb.shared": 1})]},
            {"nvidia.com/mig-3g.20gb.shared": 1},
            id="only what the settings call a GPU",
        ),
    ],
)
def test_what_a_pod_asks_of_one_node(spec: Raw, expected: dict[str, int]) -> None:
    assert gpu_requests(Pod({"spec": spec}), DEFAULT) == expected


def aggregate_container_requests(pod: Raw) -> dict[str, int]:
    """AggregateContainerRequests of component-helpers, line by line, and PodRequests' overhead."""
    requests: dict[str, int] = {}
    for container in pod["spec"]["containers"]:
        _add_resource_list(requests, container["resources"]["requests"])
    restartable_init_container_requests: dict[str, int] = {}
    init_container_requests: dict[str, int] = {}
    for container in pod["spec"]["initContainers"]:
        container_requests = container["resources"]["requests"]
        if container.get("restartPolicy") == "Always":
            _add_resource_list(requests, container_requests)
            _add_resource_list(restartable_init_container_requests, container_requests)
            container_requests = restartable_init_container_requests
        else:
            tmp: dict[str, int] = {}
            _add_resource_list(tmp, container_requests)
            _add_resource_list(tmp, restartable_init_container_requests)
            container_requests = tmp
        _max_resource_list(init_container_requests, container_requests)
    _max_resource_list(requests, init_container_requests)
    _add_resource_list(requests, pod["spec"]["overhead"])
    return requests


def _add_resource_list(to: dict[str, int], new: dict[str, int]) -> None:
    for name, amount in new.items():
        to[name] = to.get(name, 0) + amount


def _max_resource_list(to: dict[str, int], new: dict[str, int]) -> None:
    for name, amount in new.items():
        if name not in to or amount > to[name]:
            to[name] = amount


def defaulted(pod: Raw) -> Raw:
    """The pod as SetDefaults_Pod leaves it: each limit is a request where there is none."""
    pod = copy.deepcopy(pod)
    for container in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
        resources = container["resources"]
        requests = resources.setdefault("requests", {})
        for name, amount in resources.get("limits", {}).items():
            requests.setdefault(name, amount)
    return pod


_amounts = st.dictionaries(st.sampled_from([GPU, SHARED, SLICE, "cpu"]), st.integers(0, 5))
_containers = st.builds(
    asks,
    st.none() | _amounts,
    st.none() | _amounts,
)
_init_containers = st.builds(
    lambda container, policy: {**container, **policy},
    _containers,
    st.sampled_from([{}, {"restartPolicy": "Always"}, {"restartPolicy": "OnFailure"}]),
)
_pods = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {
                "containers": st.lists(_containers, max_size=3),
                "initContainers": st.lists(_init_containers, max_size=5),
                "overhead": _amounts,
            }
        )
    }
)


@given(_pods)
def test_it_is_what_the_scheduler_computes(pod: Raw) -> None:
    expected = {
        name: amount
        for name, amount in aggregate_container_requests(defaulted(pod)).items()
        if amount > 0 and DEFAULT.is_gpu(name)
    }
    assert gpu_requests(Pod(pod), DEFAULT) == expected
