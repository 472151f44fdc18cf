"""Others that change the pod after us: what they bring in is repaired in the second round."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson
import pytest

from tests.cluster.client import until
from tests.cluster.pods import (
    AFFINITY,
    ALPHA,
    MODEL,
    NVIDIA,
    PRODUCT,
    alpha,
    container,
    limits_of,
    modern,
    named,
    pod,
)
from tests.cluster.scheduling import node_of
from tests.cluster.webhook import Endpoint
from webhook.core.repaired_annotation import REPAIRED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.client import Json
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder


def test_a_limit_range_that_brings_the_legacy_name_back_is_repaired_in_the_second_round(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    cluster.client.create(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "a-gpu-for-everyone"},
            "spec": {"limits": [{"type": "Container", "default": {ALPHA: "1"}}]},
        },
        namespace,
    )
    answer = _created_when_limited(cluster, namespace)

    # Not taken away: LimitRanger would miss it if the range had a max for it, and refuse the pod.
    assert limits_of(answer) == [{NVIDIA: "1", ALPHA: "0"}]
    requests = answer["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {NVIDIA: "1", ALPHA: "0"}
    assert node_of(cluster.client, namespace, "plain")
    first, second = webhook.calls(namespace, "plain")
    assert limits_of(first.pod) == [{ALPHA: "1"}]
    assert limits_of(second.pod) == [{ALPHA: "1", NVIDIA: "1"}]  # LimitRanger ran once more


def _created_when_limited(cluster: ControlPlane, namespace: str) -> Json:
    """Create a plain pod as soon as LimitRanger has read the range."""

    def limited() -> bool:
        probe = cluster.client.create(named(pod(), "probe"), namespace, dry_run=True)
        return limits_of(probe.body) != [{}]

    until(limited, "LimitRanger to know the range")
    created: Json = cluster.client.create(named(pod(), "plain"), namespace).body
    return created


def test_a_sidecar_that_a_later_webhook_adds_is_repaired_in_the_second_round(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    with _changed_later(cluster, namespace, _sidecar):
        created = cluster.client.create(named(pod(alpha(2)), "gets-a-sidecar"), namespace).body

    assert [each["name"] for each in created["spec"]["containers"]] == ["main", "late"]
    assert limits_of(created) == [{NVIDIA: "2"}, {NVIDIA: "1"}]
    first, second = webhook.calls(namespace, "gets-a-sidecar")
    assert limits_of(first.pod) == [{ALPHA: "2"}]
    assert limits_of(second.pod) == [{NVIDIA: "2"}, {ALPHA: "1"}]
    touched = {operation["path"] for operation in _patch(second.response)}
    assert all(path.startswith("/spec/containers/1/") for path in touched), touched


def test_a_pod_that_needs_no_repair_gets_a_legacy_sidecar(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    tolerant = [{"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}]
    with _changed_later(cluster, namespace, _sidecar):
        mended = named(pod(modern(1), tolerations=tolerant), "mended")
        created = cluster.client.create(mended, namespace).body

    assert limits_of(created) == [{NVIDIA: "1"}, {NVIDIA: "1"}]
    first, second = webhook.calls(namespace, "mended")
    assert "patch" not in first.response
    assert second.response["patch"]


@pytest.mark.parametrize(
    ("asked", "written", "expected"),
    [
        pytest.param({"limits": {ALPHA: 3}}, 2, 3, id="a limit, less"),
        pytest.param({"limits": {"cpu": 1}, "requests": {ALPHA: 3}}, 2, 3, id="a request, less"),
        pytest.param({"limits": {ALPHA: 3}}, 4, 4, id="a limit, more"),
    ],
)
def test_who_asked_under_the_legacy_name_gets_no_less_than_that_by_another_webhook(
    asked: Json,
    written: int,
    expected: int,
    cluster: ControlPlane,
    namespace: str,
    webhook: Recorder,
) -> None:
    with _changed_later(cluster, namespace, _limit(written)):
        created = cluster.client.create(named(pod(container(**asked)), "asks"), namespace).body

    (limits,) = limits_of(created)
    assert limits[NVIDIA] == str(expected)
    assert ALPHA not in limits
    _, second = webhook.calls(namespace, "asks")
    assert limits_of(second.pod)[0].items() >= {NVIDIA: "3", ALPHA: str(written)}.items()


@pytest.mark.parametrize("written", [None, {"kubernetes.io/os": "linux"}, {MODEL: "Tesla-K80"}])
def test_a_legacy_selector_in_place_of_the_repaired_one_is_translated(
    written: Json | None, cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    """The second webhook is not called again: the pod is stored as the second round left it."""
    spec = {"nodeSelector": written} if written else {}
    with _changed_later(cluster, namespace, _selector):
        answer = cluster.client.try_create(named(pod(alpha(), **spec), "selected"), namespace)

    assert answer.ok, answer.message
    assert answer.body["spec"]["nodeSelector"] == {PRODUCT: "Tesla-K80"}
    assert "namespace" not in " ".join(answer.warnings)
    assert node_of(cluster.client, namespace, "selected") == "gpu-k80-1"
    _, second = webhook.calls(namespace, "selected")
    assert second.pod["spec"]["nodeSelector"] == {MODEL: "Tesla-K80"}


def test_what_both_rounds_repaired_is_on_the_pod(
    cluster: ControlPlane, namespace: str, webhook: Recorder
) -> None:
    both = named(pod(alpha(2), annotations={AFFINITY: "{}"}), "both")
    with _changed_later(cluster, namespace, _sidecar):
        created = cluster.client.create(both, namespace).body

    first, second = webhook.calls(namespace, "both")
    assert AFFINITY not in second.pod["metadata"]["annotations"]
    assert second.pod["metadata"]["annotations"][REPAIRED] == "GPU101,GPU106,GPU201"
    assert created["metadata"]["annotations"] == {REPAIRED: "GPU101,GPU106,GPU201"}
    assert second.response["patch"], "the sidecar was repaired in the second round"
    assert REPAIRED not in str(first.pod["metadata"])


def _patch(response: Json) -> list[Json]:
    patch: list[Json] = orjson.loads(base64.b64decode(response["patch"]))
    return patch


def _add(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": value}


def _sidecar(spec: Json) -> list[Json]:
    if any(each["name"] == "late" for each in spec["containers"]):
        return []
    return [_add("/spec/containers/-", container("late", limits={ALPHA: "1"}))]


def _selector(_spec: Json) -> list[Json]:
    return [_add("/spec/nodeSelector", {MODEL: "Tesla-K80"})]


def _limit(amount: int) -> Callable[[Json], list[Json]]:
    """Where today's name is written: a limit under the legacy name, as a policy of old has it."""
    at = f"/spec/containers/0/resources/limits/{ALPHA.replace('/', '~1')}"

    def change(spec: Json) -> list[Json]:
        limits = spec["containers"][0]["resources"].get("limits", {})
        return [_add(at, str(amount))] if NVIDIA in limits else []

    return change


@contextmanager
def _changed_later(
    cluster: ControlPlane, namespace: str, change: Callable[[Json], list[Json]]
) -> Iterator[None]:
    """Run and register a second mutating webhook; by its name it comes after ours."""

    def respond(_target: str, body: bytes) -> tuple[int, bytes]:
        review = orjson.loads(body)
        spec = review["request"]["object"]["spec"]
        patch = [*change(spec), _add("/metadata/labels", {"late": "called"})]
        response = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(orjson.dumps(patch)).decode(),
        }
        return 200, orjson.dumps({**review, "request": None, "response": response})

    with Endpoint(cluster.authority, respond, "late") as endpoint:
        bundle = base64.b64encode(endpoint.bundle.read_bytes()).decode()
        url = f"https://127.0.0.1:{endpoint.port}/"
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "zz-late"},
            "webhooks": [
                {
                    "name": "late.example.com",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"url": url, "caBundle": bundle},
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": namespace}
                    },
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                            "operations": ["CREATE"],
                        }
                    ],
                }
            ],
        }
        cluster.client.create(configuration)
        try:

            def is_called() -> bool:
                probe = cluster.client.create(named(pod(), "probe"), namespace, dry_run=True)
                return "late" in probe.body["metadata"].get("labels", {})

            until(is_called, "the second webhook to be called")
            yield
        finally:
            cluster.client.delete("MutatingWebhookConfiguration", "zz-late")
