"""Creates one Kubernetes Event for the owner of a repaired pod.

A pod's warnings go to the controller that made it, which shows them to nobody. The server has no
token, but it leaves a note on the pod (core/repaired.py), and the watcher sees every pod. The Event
is about the pod's controller, as a ReplicaSet or a Job, whose name and uid stand in the pod; or
about the pod itself if it has none of a kind that is known to make pods. The Event's name follows
from its owner and the codes, so the API server takes it once, whatever number of watchers send it.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from hashlib import blake2b
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cluster.client import Fault, Refused, address
from webhook.core.repaired import REPAIRED, codes_in, was_sent
from webhook.evaluation.workloads import makes_pods
from webhook.inventory.log_limits import LimitedLog, Outages
from webhook.inventory.project import seconds_of
from webhook.kube.pod import as_map, controller_of
from webhook.rules import leak_guard

if TYPE_CHECKING:
    from webhook.cluster.client import Client
    from webhook.core.settings import Settings
    from webhook.telemetry.logs import Log

    Raw = dict[str, Any]

# A watcher that starts sees pods of any age; the owners of older ones were told when they came.
YOUNG_SECONDS = 300.0
MOST_WAITING = 200
MOST_TOLD = 4096  # owners that are remembered
MOST_A_MINUTE = 20  # for one namespace: whoever makes pods there makes up their owners
REST_SECONDS = 0.1  # between two Events
ATTEMPTS = 3
REFUSED_SECONDS = 60.0  # until we ask again for what we may not do
_GUARD = leak_guard.CODE  # hides GPUs from pods that asked for none: their owner need do nothing


class Event(NamedTuple):
    """What is to be told, and whether it was."""

    namespace: str
    body: Raw

    @property
    def key(self) -> tuple[str, str]:
        """What no other Event has."""
        return self.namespace, self.body["metadata"]["name"]


class Events:
    """Sends Events from a thread of its own, so that no watch ever waits for one."""

    def __init__(self, client: Client, settings: Settings, log: Log) -> None:
        self._client = client
        self._log = log
        self._lines = LimitedLog(log)
        self._outages = Outages(
            log,
            "owners of repaired pods get no Events: they cannot be sent",
            "owners of repaired pods get Events again",
        )
        self._told: dict[tuple[str, str], None] = {}  # namespaces and names, the oldest first
        self._waiting: queue.Queue[Event] = queue.Queue(MOST_WAITING)
        self._minute = 0
        self._sent: Counter[str] = Counter()  # by namespace, in this minute
        self._thread: threading.Thread | None = None
        self._refused_until = 0.0
        self._is_refused = False
        self.settings = settings

    def look(self, pod: Raw, now: float) -> None:
        """Tell the owner of this pod, if it was repaired a short while ago. Never waits."""
        note = as_map(as_map(pod.get("metadata")).get("annotations")).get(REPAIRED)
        if note is None or not self.settings.messages.events:
            return
        codes = tuple(code for code in codes_in(note) if code != _GUARD)
        if not codes or not _is_young(pod, now) or was_sent(pod):
            return
        event = event_of(pod, codes, self.settings, now)
        if event.key not in self._told and self._may_send(event, now):
            self._send_later(event)

    def tick(self) -> None:
        """Write what there is to say in the log, if it is time."""
        self._lines.tick()
        self._outages.tick()

    def _may_send(self, event: Event, now: float) -> bool:
        minute = int(now // 60)
        if minute != self._minute:
            self._minute, self._sent = minute, Counter()
        self._sent[event.namespace] += 1
        return self._sent[event.namespace] <= MOST_A_MINUTE and not self._waiting.full()

    def _send_later(self, event: Event) -> None:
        self._told[event.key] = None
        if len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]
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
        """Send it; what is wrong is said, and never stops the watcher."""
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
                    text = "owners of repaired pods get Events now: we may create events"
                    self._log.write("info", text)
                return

    def _answered(self, refused: Refused) -> None:
        self._outages.works("events")
        if refused.status == HTTPStatus.CONFLICT:
            return  # another watcher was first
        if refused.status == HTTPStatus.NOT_FOUND or "being terminated" in str(refused):
            return  # the namespace goes, and the owner with it
        if refused.status != HTTPStatus.FORBIDDEN:
            self._lines.write("warning", "an Event was not taken", reason=str(refused))
            return
        self._refused_until = time.monotonic() + REFUSED_SECONDS
        if not self._is_refused:
            self._is_refused = True
            text = "owners of repaired pods get no Event: we may not create events"
            self._log.write("warning", text, reason=str(refused))


def event_of(pod: Raw, codes: tuple[str, ...], settings: Settings, now: float) -> Event:
    """The Event for the owner of this pod.

    Whoever makes a pod may name any object as its owner; only a kind that makes pods is believed.
    """
    metadata, contact = as_map(pod.get("metadata")), settings.messages.help
    namespace, owner = str(metadata.get("namespace", "")), controller_of(metadata)
    if not makes_pods(owner, settings):
        owner = {}
    about = owner or {**metadata, "apiVersion": "v1", "kind": "Pod"}
    told = {key: str(about.get(key, "")) for key in ("apiVersion", "kind", "name", "uid")}
    listed = ", ".join(codes)
    who = "Its pods are repaired when they are" if owner else "This pod was repaired when it was"
    message = f"{who} created ({listed}). Change the manifest: `gpu-webhook explain {codes[0]}`"
    stamp = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    seen = blake2b(" ".join([*told.values(), listed]).encode(), digest_size=16).hexdigest()
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"gpu-webhook.{seen}", "namespace": namespace},
        "involvedObject": {**told, "namespace": namespace},
        "type": "Normal",
        "reason": "PodRepaired",
        "message": f"{message}; {contact}" if contact else message,
        "source": {"component": "gpu-webhook"},
        "reportingComponent": "gpu-webhook",
        "reportingInstance": os.uname().nodename,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
    return Event(namespace, body)


def _is_young(pod: Raw, now: float) -> bool:
    created = seconds_of(as_map(pod.get("metadata")).get("creationTimestamp"))
    return now - created <= YOUNG_SECONDS
