"""Creates one Kubernetes Event for the owner of a repaired pod.

The API server sends the warnings about a pod to the controller that creates it, and controllers do
not show them to users. The server has no token, but it sets an annotation on the pod
(core/repaired_annotation.py), and the watcher sees all pods. The Event is about the controller of
the pod, for example a ReplicaSet or Job, with the name and uid from the pod; or about the pod
itself if no known kind of controller owns it. The name of the Event follows from the owner and the
codes, so the API server stores it once, however many watchers send it.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter
from hashlib import blake2b
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from webhook.cluster.client import Client, Fault, Refused, address
from webhook.core.repaired_annotation import REPAIRED, codes_in, was_sent
from webhook.evaluation.workloads import makes_pods
from webhook.inventory.log_limits import LimitedLog, Outages
from webhook.kube.pod import Raw, annotations_of, as_map, controller_of
from webhook.kube.times import seconds_of, stamp
from webhook.rules import leak_guard

if TYPE_CHECKING:
    from webhook.core.settings import Settings
    from webhook.telemetry.logs import Log


# A new watcher sees pods of any age. The owners of older pods got their Event when these were
# created.
YOUNG_SECONDS = 300.0
MOST_WAITING = 200
MOST_OWNERS = 4096  # owners that are remembered
MOST_A_MINUTE = 20  # for one namespace: its users can invent any number of owners
REST_SECONDS = 0.1  # between two Events
ATTEMPTS = 3
REFUSED_SECONDS = 60.0  # before the next try, if RBAC forbids creating Events
# It hides GPUs from pods that requested none; their owners need not do anything.
_GUARD = leak_guard.CODE


class Event(NamedTuple):
    """An Event to send, and whether it was sent."""

    namespace: str
    body: Raw

    @property
    def key(self) -> tuple[str, str]:
        """Unique to this Event."""
        return self.namespace, self.body["metadata"]["name"]


class Events:
    """Sends Events in a thread of its own, so that no watch waits for them."""

    def __init__(self, client: Client, settings: Settings, log: Log) -> None:
        self._client = client
        self._log = log
        self._lines = LimitedLog(log)
        self._outages = Outages(
            log,
            "owners of repaired pods get no Events: the API server does not answer",
            "owners of repaired pods get Events again",
        )
        self._sent_to: dict[tuple[str, str], None] = {}  # namespaces and names, the oldest first
        self._waiting: queue.Queue[Event] = queue.Queue(MOST_WAITING)
        self._minute = 0
        self._sent: Counter[str] = Counter()  # by namespace, in this minute
        self._thread: threading.Thread | None = None
        self._refused_until = 0.0
        self._is_refused = False
        self.settings = settings

    def look(self, pod: Raw, now: float) -> None:
        """Queue an Event for the owner of this pod if it was repaired recently. Never waits."""
        note = annotations_of(pod).get(REPAIRED)
        if note is None or not self.settings.messages.events:
            return
        codes = tuple(code for code in codes_in(note) if code != _GUARD)
        if not codes or not _is_young(pod, now) or was_sent(pod):
            return
        event = event_of(pod, codes, self.settings, now)
        if event.key not in self._sent_to and self._may_send(event, now):
            self._send_later(event)

    def tick(self) -> None:
        """Write the log lines that are due."""
        self._lines.tick()
        self._outages.tick()

    def _may_send(self, event: Event, now: float) -> bool:
        minute = int(now // 60)
        if minute != self._minute:
            self._minute, self._sent = minute, Counter()
        self._sent[event.namespace] += 1
        return self._sent[event.namespace] <= MOST_A_MINUTE and not self._waiting.full()

    def _send_later(self, event: Event) -> None:
        self._sent_to[event.key] = None
        if len(self._sent_to) > MOST_OWNERS:
            del self._sent_to[next(iter(self._sent_to))]
        self._waiting.put_nowait(event)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="events", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            event = self._waiting.get()
            if time.monotonic() >= self._refused_until:
                self._send(event)
            time.sleep(REST_SECONDS)

    def _send(self, event: Event) -> None:
        """Send the Event. A failure is logged and never stops the watcher."""
        for attempt in range(ATTEMPTS):
            try:
                path = address("api", "v1", "namespaces", event.namespace, "events")
                self._client.create(path, event.body)
            except Refused as refused:
                if refused.status != HTTPStatus.TOO_MANY_REQUESTS:
                    self._answered(refused)
                    return
                time.sleep(min(refused.retry_after, REFUSED_SECONDS))
            except Fault as fault:
                self._outages.failed("events", str(fault))
                time.sleep(2.0**attempt)
            else:
                self._outages.works("events")
                if self._is_refused:
                    self._is_refused = False
                    text = "owners of repaired pods get Events again: RBAC allows creating them now"
                    self._log.write("info", text)
                return

    def _answered(self, refused: Refused) -> None:
        self._outages.works("events")
        if refused.status == HTTPStatus.CONFLICT:
            return  # another watcher sent it first
        if refused.status == HTTPStatus.NOT_FOUND or "being terminated" in str(refused):
            return  # the namespace is being deleted, and the owner with it
        if refused.status != HTTPStatus.FORBIDDEN:
            self._lines.write("warning", "the API server rejected an Event", reason=str(refused))
            return
        self._refused_until = time.monotonic() + REFUSED_SECONDS
        if not self._is_refused:
            self._is_refused = True
            text = "owners of repaired pods get no Events: RBAC forbids creating them"
            self._log.write("warning", text, reason=str(refused))


def event_of(pod: Raw, codes: tuple[str, ...], settings: Settings, now: float) -> Event:
    """The Event for the owner of this pod.

    A user can name any object as the owner of a pod; only kinds that create pods are accepted.
    """
    metadata, contact = as_map(pod.get("metadata")), settings.messages.help
    namespace, owner = str(metadata.get("namespace", "")), controller_of(metadata)
    if not makes_pods(owner, settings):
        owner = {}
    about = owner or {**metadata, "apiVersion": "v1", "kind": "Pod"}
    involved = {key: str(about.get(key, "")) for key in ("apiVersion", "kind", "name", "uid")}
    listed = ", ".join(codes)
    who = "Its pods are repaired when they are" if owner else "This pod was repaired when it was"
    message = f"{who} created ({listed}). Change the manifest: `gpu-webhook explain {codes[0]}`"
    seen = blake2b(" ".join([*involved.values(), listed]).encode(), digest_size=16).hexdigest()
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"gpu-webhook.{seen}", "namespace": namespace},
        "involvedObject": {**involved, "namespace": namespace},
        "type": "Normal",
        "reason": "PodRepaired",
        "message": f"{message}; {contact}" if contact else message,
        "source": {"component": "gpu-webhook"},
        "reportingComponent": "gpu-webhook",
        "reportingInstance": os.uname().nodename,
        "firstTimestamp": stamp(now),
        "lastTimestamp": stamp(now),
        "count": 1,
    }
    return Event(namespace, body)


def _is_young(pod: Raw, now: float) -> bool:
    created = seconds_of(as_map(pod.get("metadata")).get("creationTimestamp"))
    return now - created <= YOUNG_SECONDS
