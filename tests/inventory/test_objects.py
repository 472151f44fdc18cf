"""Where kinds are served, the objects of a kind, and who stands at the top of their controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.inventory.api_server import ApiServer
from webhook.cluster import client, objects
from webhook.cluster.objects import Catalogue, Owners, Served, controller, of_kind, reference
from webhook.core.settings import CustomKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def resources(*kinds: str) -> dict[str, Any]:
    """What a group's version serves: kinds, one of which cannot be listed, and a subresource."""
    found = [
        {"name": f"{kind.lower()}s", "kind": kind, "namespaced": True, "verbs": ["get", "list"]}
        for kind in kinds
    ]
    found.append({"name": "deployments/scale", "kind": "Scale", "verbs": ["get", "list"]})
    return {"resources": [*found, {"name": "reviews", "kind": "Review", "verbs": ["create"]}]}


def group(name: str, *versions: str) -> dict[str, Any]:
    """A group of the API that prefers the first of its versions."""
    listed = [{"version": each} for each in reversed(versions)]
    return {"name": name, "versions": listed, "preferredVersion": {"version": versions[0]}}


GROUPS = [
    group("apps", "v1", "v1beta1"),
    group("batch", "v1", "v1beta1"),
    group("kubeflow.org", "v1"),
    group("example.org", "v2"),
    group("away.example.org", "v1"),
]
SAID: dict[str, dict[str, Any]] = {
    "/apis": {"groups": GROUPS},
    "/api/v1": resources("Pod", "ReplicationController"),
    "/apis/apps/v1": resources("Deployment", "ReplicaSet"),
    "/apis/apps/v1beta1": resources(),
    "/apis/batch/v1": resources("Job"),
    "/apis/batch/v1beta1": resources("CronJob"),
    "/apis/kubeflow.org/v1": resources("TFJob"),
    "/apis/example.org/v2": resources("TFJob", "Runner"),
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        for path, body in SAID.items():
            say(running, path, body)
        say(running, "/apis/away.example.org/v1", {"message": "no endpoints"}, 503)
        yield running


def say(server: ApiServer, path: str, body: dict[str, Any], status: int = 200) -> None:
    server.answers[path] = (status, orjson.dumps(body), {"Content-Type": "application/json"})


@pytest.fixture
def catalogue(server: ApiServer, tmp_path: Path) -> Catalogue:
    config = str(server.kubeconfig(tmp_path))
    return Catalogue(client.Client(lambda: client.configuration(config)))


@pytest.mark.parametrize(
    ("group_name", "kind", "expected"),
    [
        pytest.param("", "Pod", Served("", "v1", "Pod", "pods"), id="the core group"),
        pytest.param(
            "apps", "Deployment", Served("apps", "v1", "Deployment", "deployments"), id="v1"
        ),
        pytest.param(
            "batch",
            "CronJob",
            Served("batch", "v1beta1", "CronJob", "cronjobs"),
            id="an older version, where the preferred one has it not: a cluster before 1.21",
        ),
        pytest.param("apps", "PetSet", None, id="a kind that is gone"),
        pytest.param("apps", "Scale", None, id="a subresource"),
        pytest.param("apps", "Review", None, id="what cannot be listed"),
        pytest.param("none.example.org", "X", None, id="a group that does not exist"),
        pytest.param("away.example.org", "X", None, id="an aggregated API that is away"),
    ],
)
def test_where_a_kind_is_served(
    group_name: str, kind: str, expected: Served | None, catalogue: Catalogue
) -> None:
    assert catalogue.find(group_name, kind) == expected


def test_each_group_is_asked_for_once(catalogue: Catalogue, server: ApiServer) -> None:
    for _ in range(3):
        catalogue.find("apps", "Deployment")
        catalogue.find("apps", "StatefulSet")
    asked = [path for _, path, _ in server.asked]
    assert sorted(asked) == sorted(set(asked))


def test_a_custom_kind_without_a_group_may_be_of_any(catalogue: Catalogue) -> None:
    kinds = (CustomKind("TFJob", "", ()), CustomKind("Runner", "example.org", ()))
    assert [each.api_version for each in catalogue.custom(kinds)] == [
        "kubeflow.org/v1",
        "example.org/v2",
        "example.org/v2",
    ]
    assert [each.kind for each in catalogue.custom(kinds)] == ["TFJob", "TFJob", "Runner"]


def test_a_refusal_about_a_group_of_kubernetes_itself_is_told(
    catalogue: Catalogue, server: ApiServer
) -> None:
    say(server, "/apis/apps/v1", {"message": "no"}, 403)
    with pytest.raises(client.Refused):
        catalogue.find("apps", "Deployment")


def test_the_addresses() -> None:
    pods = Served("", "v1", "Pod", "pods")
    jobs = Served("batch", "v1", "Job", "jobs")
    nodes = Served("", "v1", "Node", "nodes", namespaced=False)
    assert pods.path() == "/api/v1/pods"
    assert pods.path("n") == "/api/v1/namespaces/n/pods"
    assert jobs.path("n", "j") == "/apis/batch/v1/namespaces/n/jobs/j"
    assert nodes.path("n", "a") == "/api/v1/nodes/a"


def test_objects_come_with_kind_and_version_and_by_selector(
    catalogue: Catalogue, server: ApiServer
) -> None:
    server.answers["/api/v1/namespaces/n/pods"] = (
        200,
        b'{"items": [{"metadata": {"name": "a"}}, {"kind": "Own", "metadata": {}}]}',
        {"Content-Type": "application/json"},
    )
    pods = Served("", "v1", "Pod", "pods")
    found = list(of_kind(catalogue.client, pods, lambda *_: None, "n", "app=x"))
    assert [(each["apiVersion"], each["kind"]) for each in found] == [("v1", "Pod"), ("v1", "Own")]
    assert [query["labelSelector"] for _, path, query in server.asked if "pods" in path] == [
        "app=x"
    ]


def owned(kind: str, name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "n"}
    if owner is not None:
        metadata["ownerReferences"] = [
            {"kind": "Other", "name": "x"},
            {"controller": True, **owner},
        ]
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs"}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
RUNNER = {"apiVersion": "example.org/v2", "kind": "Runner", "name": "r"}


def test_a_controller_is_the_owner_that_says_so() -> None:
    found = controller(owned("Pod", "p", REPLICA_SET))
    assert found is not None
    assert (found.group, str(found), found.namespace) == ("apps", "ReplicaSet/rs", "n")
    assert controller(owned("Pod", "p")) is None


def test_the_top_is_found_step_by_step_and_remembered(
    catalogue: Catalogue, server: ApiServer
) -> None:
    folder = "/apis/apps/v1/namespaces/n"
    say(server, f"{folder}/replicasets/rs", owned("ReplicaSet", "rs", DEPLOYMENT))
    say(server, f"{folder}/deployments/d", owned("Deployment", "d"))
    owners = Owners(catalogue)
    for name in ("one", "two"):
        assert str(reference(owners.top(owned("Pod", name, REPLICA_SET)))) == "Deployment/d"
    assert sum(path.endswith("/d") for _, path, _ in server.asked) == 1
    assert str(reference(owners.top(owned("Pod", "by-hand")))) == "Pod/by-hand"


@pytest.mark.parametrize("owner", [RUNNER, {**RUNNER, "apiVersion": "gone.example.org/v1"}])
def test_a_top_that_we_may_not_see_is_named(
    owner: dict[str, Any], catalogue: Catalogue, server: ApiServer
) -> None:
    say(server, "/apis/example.org/v2/namespaces/n/runners/r", {"message": "no"}, 403)
    top = reference(Owners(catalogue).top(owned("Pod", "p", owner)))
    assert (top.kind, top.name, top.namespace) == ("Runner", "r", "n")
    assert top.group == owner["apiVersion"].partition("/")[0]


def test_owners_in_a_ring_end(catalogue: Catalogue, server: ApiServer) -> None:
    folder = "/apis/apps/v1/namespaces/n"
    say(server, f"{folder}/replicasets/rs", owned("ReplicaSet", "rs", REPLICA_SET))
    assert str(reference(Owners(catalogue).top(owned("Pod", "p", REPLICA_SET)))) == "ReplicaSet/rs"


def test_what_makes_others_is_looked_at_before_what_is_made() -> None:
    order = [kind for _, kind in objects.KINDS]
    for maker, made in (("Deployment", "ReplicaSet"), ("CronJob", "Job"), ("Job", "Pod")):
        assert order.index(maker) < order.index(made)
