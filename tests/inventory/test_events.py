"""Who owns a repaired pod is told by an Event: once, of young pods only; nothing waits for it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.cluster.client import until
from tests.inventory.api_server import ApiServer
from webhook.cluster.client import Client, configuration
from webhook.core.settings import CustomKind, Messages, Settings, Workloads
from webhook.inventory import events
from webhook.inventory.events import MOST_A_MINUTE, MOST_OWNERS, MOST_WAITING, Events, event_of
from webhook.telemetry.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = 1_800_000_000.0
PLACE = "/api/v1/namespaces/team/events"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "name": "train",
    "uid": "u-1",
    "controller": True,
}


def pod(
    note: object = "GPU101,GPU106", *, age: float = 1.0, now: float = NOW, **metadata: Any
) -> Any:
    created = datetime.fromtimestamp(now - age, UTC).isoformat(timespec="seconds")
    return {
        "metadata": {
            "name": "train-x7",
            "namespace": "team",
            "uid": "p-1",
            "creationTimestamp": created.replace("+00:00", "Z"),
            "annotations": {"gpu-webhook.dev/repaired": note},
            "ownerReferences": [JOB],
            **metadata,
        }
    }


class Running:
    """Events that go to a small API server, and their log."""

    def __init__(self, api: ApiServer, folder: Path, name: str = "") -> None:
        kubeconfig = str(api.kubeconfig(folder))
        self._file = folder / f"log{name}"
        self.log = Log(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
        self.events = Events(Client(lambda: configuration(kubeconfig)), Settings(), self.log)

    def lines(self) -> list[dict[str, Any]]:
        self.log.close()
        return [orjson.loads(line) for line in self._file.read_bytes().splitlines()]


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def running(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    monkeypatch.setattr(events, "REST_SECONDS", 0.0)
    return Running(api, tmp_path)


def told(api: ApiServer, number: int) -> list[dict[str, Any]]:
    """So many Events, and none after them."""
    until(lambda: len(api.posted) >= number, f"{number} Events")
    time.sleep(0.1)
    assert len(api.posted) == number
    return [body for _, body in api.posted]


def test_the_controller_of_a_repaired_pod_is_told(api: ApiServer, running: Running) -> None:
    running.events.look(pod(), NOW)
    (event,) = told(api, 1)
    assert api.posted[0][0] == PLACE
    about = event["involvedObject"]
    assert about == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train",
        "uid": "u-1",
        "namespace": "team",
    }
    assert (event["type"], event["reason"], event["count"]) == ("Normal", "PodRepaired", 1)
    assert event["message"] == (
        "Its pods are repaired when they are created (GPU101, GPU106). Change the manifest: "
        "`gpu-webhook explain GPU101`"
    )
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2027-01-15T08:00:00Z"


def test_a_pod_by_hand_is_told_itself(api: ApiServer, running: Running) -> None:
    running.events.settings = Settings(messages=Messages(help="ask #gpu"))
    running.events.look(pod(ownerReferences=None), NOW)
    (event,) = told(api, 1)
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "train-x7",
        "uid": "p-1",
        "namespace": "team",
    }
    assert event["message"].startswith("This pod was repaired when it was created (GPU101, GPU106)")
    assert event["message"].endswith("; ask #gpu")


@pytest.mark.parametrize(
    ("group", "kind", "owner"),
    [
        *(
            pytest.param(group, kind, True, id=f"{group} {kind}")
            for group, kind in (
                ("apps/v1", "ReplicaSet"),
                ("apps/v1", "StatefulSet"),
                ("apps/v1", "DaemonSet"),
                ("batch/v1", "Job"),
                ("v1", "ReplicationController"),
                ("kubeflow.org/v1", "PyTorchJob"),
                ("example.com/v1", "TrainingRun"),
            )
        ),
        *(
            pytest.param(group, kind, False, id=f"no controller of pods: {group} {kind}")
            for group, kind in (
                ("v1", "Node"),
                ("v1", "Namespace"),
                ("v1", "Pod"),
                ("v1", "PodTemplate"),
                ("apps/v1", "Deployment"),
                ("batch/v1", "CronJob"),
                ("v1", "ReplicaSet"),
                ("batch/v1", "ReplicaSet"),
                ("example.com/v1", "Job"),
                ("example.com/v1", "PyTorchJob"),
                ("other.example/v1", "TrainingRun"),
                ("", ""),
                (7, ["Job"]),
            )
        ),
    ],
)
def test_only_what_makes_pods_is_told_as_their_owner(
    group: object, kind: object, *, owner: bool
) -> None:
    """Whoever makes a pod writes its owner. Of others the pod itself is told."""
    kinds = (CustomKind("TrainingRun", "example.com", ("/spec/template",)),)
    named = {**JOB, "apiVersion": group, "kind": kind}
    made = pod(ownerReferences=[named])
    body = event_of(made, ("GPU101",), Settings(workloads=Workloads(kinds=kinds)), NOW).body
    assert body["involvedObject"]["uid"] == ("u-1" if owner else "p-1")
    assert body["involvedObject"]["kind"] == (kind if owner else "Pod")
    assert body["message"].startswith("Its pods" if owner else "This pod was repaired")


def test_one_event_for_an_owner_and_codes(api: ApiServer, running: Running, tmp_path: Path) -> None:
    other = Running(api, tmp_path, "2")
    for each in (running, other):
        for name in ("a", "b"):
            each.events.look(pod(name=name), NOW)
            each.events.look(pod("GPU106,GPU101", name=name), NOW)
    told(api, 2)
    assert len(api.made) == 1, "the API server took it once"
    running.events.look(pod("GPU107"), NOW)
    running.events.look(pod(ownerReferences=[{**JOB, "uid": "u-2"}]), NOW)
    told(api, 4)
    assert len(api.made) == 3
    assert running.lines() == other.lines() == []


def test_an_owner_of_the_same_uid_in_another_namespace_has_an_event_of_its_own(
    api: ApiServer, running: Running
) -> None:
    """Whoever may read an owner's uid may write it into pods of their own, and sooner."""
    running.events.look(pod(namespace="forger"), NOW)
    running.events.look(pod(), NOW)
    told(api, 2)
    assert [path for path, _ in api.posted] == [PLACE.replace("team", "forger"), PLACE]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({**JOB, "name": "other"}, id="name"),
        pytest.param({**JOB, "apiVersion": "apps/v1", "kind": "ReplicaSet"}, id="kind"),
    ],
)
def test_an_owner_of_the_same_uid_and_another_has_an_event_of_its_own(
    other: dict[str, Any], api: ApiServer, running: Running
) -> None:
    running.events.look(pod(ownerReferences=[other]), NOW)
    running.events.look(pod(), NOW)
    told(api, 2)
    assert len(api.made) == 2


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param({"name": "x" * 1_200_000}, id="a name of a megabyte"),
        pytest.param({"name": "x\n{}"}, id="a line end in the name"),
        pytest.param({"name": "../x"}, id="a path"),
        pytest.param({"name": "x\x1b[31m"}, id="what acts on a screen"),
        pytest.param({"name": ["x"]}, id="a name that is no text"),
        pytest.param({"uid": "u" * 1_200_000}, id="a uid of a megabyte"),
        pytest.param({"uid": "u\n"}, id="a line end in the uid"),
        pytest.param({"uid": {"a": 1}}, id="a uid that is no text"),
        pytest.param({"apiVersion": "batch/v" + "1" * 1_200_000}, id="a version of a megabyte"),
        pytest.param({"apiVersion": "batch/v1\n"}, id="a line end in the version"),
    ],
)
def test_an_owner_that_no_object_can_be_is_none(forged: dict[str, Any]) -> None:
    made = pod(ownerReferences=[{**JOB, **forged}])
    body = event_of(made, ("GPU101",), Settings(), NOW).body
    assert body["involvedObject"]["kind"] == "Pod"
    assert body["involvedObject"]["name"] == "train-x7"
    assert len(orjson.dumps(body)) < 2000


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(pod(age=301), id="a pod that is not young"),
        pytest.param(pod(creationTimestamp="yesterday"), id="nobody knows how old"),
        pytest.param(pod(creationTimestamp=None), id="no age"),
        pytest.param(pod("GPU303"), id="the guard hid GPUs, nothing more"),
        pytest.param(pod("hello"), id="no codes"),
        pytest.param(pod(7), id="no text"),
        pytest.param(pod(annotations=None), id="no annotation"),
        pytest.param({"metadata": 7}, id="odd metadata"),
        pytest.param(
            pod(
                ownerReferences=[{**JOB, "uid": "forged"}],
                managedFields=[
                    {
                        "manager": "kubectl",
                        "fieldsV1": {
                            "f:metadata": {"f:annotations": {"f:gpu-webhook.dev/repaired": {}}}
                        },
                    }
                ],
            ),
            id="whoever made the pod wrote the annotation",
        ),
        pytest.param({}, id="no metadata"),
    ],
)
def test_of_these_nobody_is_told(odd: Any, api: ApiServer, running: Running) -> None:
    running.events.look(odd, NOW)
    running.events.look(pod(), NOW)
    told(api, 1)


def test_events_can_be_switched_off(api: ApiServer, running: Running) -> None:
    running.events.settings = Settings(messages=Messages(events=False))
    running.events.look(pod(), NOW)
    running.events.settings = Settings()
    running.events.look(pod(), NOW)
    told(api, 1)


def test_a_missing_right_is_said_once_and_not_tried_for_a_while(
    api: ApiServer, running: Running
) -> None:
    api.refusals[PLACE] = (403, b'{"message": "events is forbidden"}', {})
    for number in range(3):
        running.events.look(pod(ownerReferences=[{**JOB, "uid": str(number)}]), NOW)
    told(api, 1)
    (line,) = running.lines()
    assert line["message"] == "owners of repaired pods get no Events: RBAC forbids creating them"
    assert line["reason"] == "403: events is forbidden"


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        pytest.param(403, "because it is being terminated", [], id="the namespace goes"),
        pytest.param(404, 'namespaces "team" not found', [], id="the namespace is gone"),
        pytest.param(409, "already exists", [], id="another watcher was first"),
        pytest.param(422, "is invalid", ["the API server rejected an Event"], id="it is not taken"),
        pytest.param(
            500, "etcd", ["the API server rejected an Event"], id="the API server is unwell"
        ),
    ],
)
def test_what_else_is_answered(
    status: int, message: str, said: list[str], api: ApiServer, running: Running
) -> None:
    api.refusals[PLACE] = (status, orjson.dumps({"message": message}), {})
    running.events.look(pod(), NOW)
    told(api, 1)
    del api.refusals[PLACE]
    running.events.look(pod("GPU107"), NOW)
    told(api, 2)
    assert [line["message"] for line in running.lines()] == said


def test_too_many_requests_are_sent_again(api: ApiServer, running: Running) -> None:
    api.refusals[PLACE] = (429, b"{}", {"Retry-After": "0"})
    running.events.look(pod(), NOW)
    told(api, 3)


def test_one_namespace_cannot_fill_the_line_for_the_others(
    api: ApiServer, running: Running
) -> None:
    """Whoever makes pods makes up their owners."""
    for number in range(MOST_A_MINUTE + 50):
        running.events.look(pod(ownerReferences=[{**JOB, "uid": str(number)}]), NOW)
    running.events.look(pod(namespace="other"), NOW)
    bodies = told(api, MOST_A_MINUTE + 1)
    assert bodies[-1]["metadata"]["namespace"] == "other"
    running.events.look(pod(ownerReferences=[{**JOB, "uid": "later"}]), NOW + 60)
    told(api, MOST_A_MINUTE + 2)


def test_what_is_remembered_and_what_waits_is_bounded(
    api: ApiServer, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "REST_SECONDS", 3600.0)
    for number in range(MOST_OWNERS + MOST_WAITING):
        running.events.look(pod(namespace=f"n{number}", uid=str(number), ownerReferences=None), NOW)
    assert running.events._waiting.qsize() <= MOST_WAITING
    assert len(running.events._sent_to) <= MOST_OWNERS
    told(api, 1)


@pytest.mark.parametrize("name", ["Ünicode", "a/b", "x" * 300, "", "-"])
def test_the_name_of_an_event_is_one_that_the_api_server_takes(name: str) -> None:
    owner = {**JOB, "name": name, "uid": name}
    event = event_of(pod(ownerReferences=[owner]), ("GPU101",), Settings(), NOW)
    assert event.body["metadata"]["name"].replace("gpu-webhook.", "").isalnum()
