"""Pods that were there before us, and pods that are made while we are away."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import orjson

from tests.cluster.controlplane import free_ports
from tests.cluster.pods import AFFINITY, ALPHA, alpha, limits_of, named, pod
from tests.cluster.scheduling import pods_of, why_pending
from tests.cluster.webhook import failed_open, registered, registered_but_down
from tests.cluster.workloads import made_by

if TYPE_CHECKING:
    from tests.cluster.controlplane import ControlPlane
    from tests.cluster.webhook import Recorder, WebhookServer

_OLD = pod(alpha(1), annotations={AFFINITY: "{}"}, nodeSelector={"disk": "ssd"})
_REST = 12.0  # seconds; longer than a head of a request may take
_TIMEOUT = 3.0  # timeoutSeconds of the shipped configuration


def test_old_pods_can_be_updated_though_nothing_repairs_them(
    cluster: ControlPlane, namespace: str, recorder: Recorder
) -> None:
    """A webhook that rewrote the spec on UPDATE would have every later update refused."""
    client = cluster.client
    before = client.create(_OLD, namespace).body

    with registered(cluster, recorder.endpoint.port, recorder.endpoint.bundle):
        updates = [
            client.patch("Pod", "pod", {"metadata": {"labels": {"new": "label"}}}, namespace),
            client.patch("Pod", "pod", {"metadata": {"finalizers": ["example.com/x"]}}, namespace),
            client.patch("Pod", "pod", {"metadata": {"finalizers": None}}, namespace),
            client.patch(
                "Pod", "pod", {"status": {"message": "seen"}}, namespace, subresource="status"
            ),
            client.patch(
                "Pod",
                "pod",
                {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}},
                namespace,
                subresource="ephemeralcontainers",
            ),
        ]
        after = client.get("Pod", "pod", namespace)
        client.delete("Pod", "pod", namespace)

    assert [update.warnings for update in updates] == [()] * len(updates)
    assert after["metadata"]["labels"] == {"new": "label"}
    assert after["spec"]["containers"] == before["spec"]["containers"]
    assert recorder.calls(namespace) == []


def test_a_deployment_makes_pods_while_the_webhook_is_down(
    cluster: ControlPlane, namespace: str, recorder: Recorder
) -> None:
    nobody = free_ports(1)[0]
    with registered_but_down(cluster, nobody, recorder.endpoint.bundle):
        before = failed_open(cluster)
        cluster.client.create(made_by("Deployment", pod(alpha(1))), namespace)
        made = pods_of(cluster.client, namespace, 2)
        assert failed_open(cluster) >= before + 2

    for each in made:
        assert limits_of(each) == [{ALPHA: "1"}]  # nothing lost: Pending, as it was without us
        assert ALPHA in why_pending(cluster.client, namespace, each["metadata"]["name"])


def test_a_webhook_that_hangs_costs_its_timeout_and_no_pod(
    cluster: ControlPlane, namespace: str, recorder: Recorder
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as accepts_and_says_nothing,
        registered_but_down(
            cluster, accepts_and_says_nothing.getsockname()[1], recorder.endpoint.bundle
        ),
    ):
        started = time.monotonic()
        legacy = cluster.client.create(named(pod(alpha(1)), "waits"), namespace)
        waited = time.monotonic() - started
        started = time.monotonic()
        cluster.client.create(named(pod(), "is-not-asked-about"), namespace)
        plain = time.monotonic() - started

    assert limits_of(legacy.body) == [{ALPHA: "1"}]
    assert _TIMEOUT - 0.1 < waited < _TIMEOUT + 2
    assert plain < 1


def test_a_connection_that_rests_is_kept_for_the_next_call(server: WebhookServer) -> None:
    """The API server keeps it for 90 s. Closing it earlier can cut off a call, which is lost."""
    request = {"uid": "1", "operation": "CREATE", "namespace": "x", "object": pod(alpha(1))}
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {**request, "kind": kind, "resource": resource},
    }
    with ExitStack() as afterwards:
        connections = [server.connect() for _ in range(8)]
        for connection in connections:
            afterwards.callback(connection.close)
        for rest in (0, _REST):
            time.sleep(rest)
            for connection in connections:
                there = connection.sock
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/mutate?timeout=3s", orjson.dumps(review), headers)
                answer = connection.getresponse()
                assert orjson.loads(answer.read())["response"]["patch"]
                assert connection.sock is there or rest == 0
