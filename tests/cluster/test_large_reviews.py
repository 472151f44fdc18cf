"""Pods that make a review large, deep or dense: no size is a way round what is in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from tests.cluster import webhook
from tests.cluster.client import until
from tests.cluster.conftest import INVENTORY
from tests.cluster.pods import MODEL, NVIDIA, container, modern, named, pod, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane

SETTINGS = """
policy:
  rules: {GPU303: enforce, GPU304: enforce}
capacity:
  limits:
  - gpus: {nvidia.com/gpu: 1}
"""
VARIABLE = "NVIDIA_VISIBLE_DEVICES"
SEEING = {"name": VARIABLE, "value": "all"}
VOID = {"name": VARIABLE, "value": "void"}
READ, UNREAD = 1_300_000, 2_500_000  # of `<`: six times as many bytes in the review


@pytest.fixture(scope="module")
def strict(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server of its own, with a limit, the guard and its refusing half in force."""
    folder = tmp_path_factory.mktemp("strict")
    with webhook.guarded(cluster, folder, SETTINGS, f"--inventory={INVENTORY}"):
        yield


@pytest.fixture
def limited(cluster: ControlPlane, namespace: str, strict: None) -> Iterator[str]:  # noqa: ARG001
    """A namespace about which no call may fail."""
    before = webhook.failed_open(cluster)
    yield namespace
    assert webhook.failed_open(cluster) == before


@pytest.fixture
def guarded(cluster: ControlPlane, limited: str) -> str:
    """The same, with the guard."""
    client = cluster.client
    label = {"metadata": {"labels": {"gpu-webhook.dev/guard": "enabled"}}}
    client.patch("Namespace", limited, label)
    seeing = named(pod(container(env=[SEEING])), "seeing")

    def is_guarded() -> bool:
        answer = client.try_create(seeing, limited, dry_run=True)
        return answer.ok and VOID in answer.body["spec"]["containers"][0]["env"]

    until(is_guarded, "the guard to be called")
    return limited


def large_args(gpus: int, size: int) -> Json:
    return pod(modern(gpus, args=["<" * size]))


def large_annotation() -> Json:
    """250 KB of what an annotation may have, and an env of 2 MB."""
    env = [{"name": "E", "value": "&" * 2_000_000}]
    return pod(modern(4, env=env), annotations={"a": ">" * 250_000})


def deep(levels: int) -> Json:
    """Fields of managedFields are JSON of any kind."""
    made = pod(modern(4))
    fields = orjson.Fragment(b'{"f:a":' * levels + b"{}" + b"}" * levels)
    made["metadata"]["managedFields"] = [
        {
            "manager": "x",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
    ]
    return made


JUDGED, UNJUDGED = "requests 4 nvidia.com/gpu", "GPU304 is in force here and could not check"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        pytest.param(large_args(4, READ), JUDGED, id="7.8 MB of escapes"),
        pytest.param(large_args(4, UNREAD), UNJUDGED, id="15 MB of escapes"),
        pytest.param(large_annotation(), UNJUDGED, id="escapes in an annotation and an env"),
        pytest.param(deep(600), JUDGED, id="managedFields nested 600 deep"),
        pytest.param(deep(3000), UNJUDGED, id="managedFields nested 3,000 deep"),
    ],
)
def test_a_limit_holds(cluster: ControlPlane, limited: str, made: Json, why: str) -> None:
    answer = cluster.client.try_create(named(made, "large"), limited)
    assert answer.status == 403
    assert why in answer.message


def test_who_keeps_to_the_limit_is_let_in(cluster: ControlPlane, limited: str) -> None:
    answer = cluster.client.try_create(named(large_args(1, READ), "honest"), limited)
    assert answer.ok, answer.message
    assert answer.body["spec"]["containers"][0]["resources"]["limits"] == {NVIDIA: "1"}


def test_the_guard_holds(cluster: ControlPlane, guarded: str) -> None:
    """What can be read is made safe, what cannot is refused."""
    made = [
        named(pod(container(env=[SEEING], args=["<" * size])), f"seeing-{size}")
        for size in (READ, UNREAD)
    ]
    safe, refused = (cluster.client.try_create(each, guarded) for each in made)
    assert safe.ok, safe.message
    assert VOID in safe.body["spec"]["containers"][0]["env"]
    assert refused.status == 403
    assert "GPU303 is in force here and could not check" in refused.message


def test_the_guard_holds_for_ephemeral_containers(cluster: ControlPlane, guarded: str) -> None:
    """Both versions of the pod are sent: 13 MB."""
    made = named(pod(container(args=["<" * 1_100_000])), "debugged")
    assert cluster.client.try_create(made, guarded).ok
    added = {"name": "debug", "image": "i", "env": [SEEING]}
    answer = cluster.client.request(
        "PATCH",
        f"/api/v1/namespaces/{guarded}/pods/debugged/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [added]}},
        media_type="application/strategic-merge-patch+json",
    )
    assert answer.status == 403
    assert "GPU303 is in force here and could not check" in answer.message


def test_a_job_is_warned(cluster: ControlPlane, limited: str) -> None:
    template = large_args(4, UNREAD)
    template["spec"]["restartPolicy"] = "Never"
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "large"},
        "spec": {"template": {"spec": template["spec"]}},
    }
    answer = cluster.client.try_create(job, limited, dry_run=True)
    assert answer.ok, answer.message
    assert any("this object was admitted without checks" in each for each in answer.warnings)


AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
NEARLY = MODEL[:-1]


@pytest.mark.parametrize(
    ("made", "status"),
    [
        pytest.param(
            pod(annotations={AFFINITY: NEARLY * 80_000}), 422, id="an annotation of 2.7 MB"
        ),
        pytest.param(pod(annotations={AFFINITY: NEARLY * 7_500}), 201, id="as long as it may be"),
        pytest.param(
            pod(affinity=required(*[{"key": NEARLY, "operator": "Exists"}] * 40_000)),
            201,
            id="40,000 expressions",
        ),
    ],
)
def test_what_has_nothing_of_gpus_is_never_too_large_for_the_conditions(
    cluster: ControlPlane, limited: str, made: Json, status: int
) -> None:
    before = webhook.failed_conditions(cluster.client)
    answer = cluster.client.try_create(named(made, "large"), limited, dry_run=True)
    assert answer.status == status
    assert webhook.failed_conditions(cluster.client) == before
