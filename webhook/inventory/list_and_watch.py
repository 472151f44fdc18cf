"""List, watch, resume: the loop that keeps the facts of one kind of object up to date.

A watch lasts 40 to 45 seconds, because a connection may freeze without notice (a firewall drops its
state, the backend of a load balancer is removed). TCP keep-alives only show that the next hop
lives, and bookmarks come once a minute, so a client that relies on them notices after two minutes
or never. The API server ends a watch after `timeoutSeconds`; a watch that stays silent for five
more seconds is frozen. So a frozen connection is noticed after at most 50 seconds, and nothing is
listed again: the next watch resumes from the last resource version. The cost is one request for
each kind every 45 seconds.
"""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webhook.cluster import answers
from webhook.cluster.client import Fault, Refused
from webhook.cluster.listing import pages
from webhook.inventory import object_facts
from webhook.inventory.kind_facts import Hints
from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.inventory.kinds import Kind
    from webhook.inventory.watch import Watcher

WATCH_SECONDS = (40, 45)
GRACE_SECONDS = 5
LIST_SECONDS = 10.0  # between two lists of one kind
LONGEST_REST = 60.0
# The API server refuses connections: a try is cheap, and the loop should continue as soon as it is
# back.
LONGEST_REST_AWAY = 4.0
FIRST_REST = 0.5
SHORTEST_WATCH = (
    1.0  # a watch that ends sooner without an event is a fault: it would be repeated without end
)
# Of one page. What is kept of them is stored between them, so larger pages leave larger holes: with
# 500 the watcher of 15,000 nodes and 150,000 pods needs 13 MiB more. Smaller ones cost etcd time,
# which counts for each page how many objects are left.
PAGE_OBJECTS = 200
REFUSED_SECONDS = 60.0  # before the next try if RBAC forbids it, or if the kind is not served
STUCK_SECONDS = 90.0  # a loop that did nothing for so long hangs where no time limit holds
WAIT_FOR_NODES = 10.0  # seconds that the list of pods waits for the lists that decisions need

_GONE = 410
_FORBIDDEN = 403
_NOT_FOUND = 404
_VERSION = re.compile(r"v\d{1,3}((alpha|beta)\d{1,3})?")


@dataclass
class State:
    """The state of one kind; it is kept if its loop hangs and is replaced."""

    state: str = "starting"  # listing | watching | resting | refused | absent
    alive: float = 0.0  # epoch: everything that happened before is known
    connected: bool = False  # a watch is open, so events come as they happen
    listed: bool = False  # at least once
    settled: bool = False  # listed, or there is nothing to list
    refused: bool = False  # RBAC forbids it, and that was logged
    fault: str = ""  # the last one; empty if there is none
    lists: int = 0
    watches: int = 0
    events: int = 0
    faults: int = 0
    skipped: int = 0  # objects that could not be read
    next_list: float = field(default=0.0, repr=False)  # monotonic

    @property
    def follows(self) -> bool:
        """Whether no event can be missing, except those that are under way."""
        return self.connected or self.state in ("absent", "refused")

    def as_data(self) -> dict[str, Any]:
        names = ("state", "alive", "fault", "lists", "watches", "events", "faults", "skipped")
        return {name: getattr(self, name) for name in (*names, "refused")}


class Retired(Exception):  # noqa: N818 - what happened
    """Another loop has taken over."""


class ListAndWatch(threading.Thread):
    """Keeps the facts of one kind up to date."""

    def __init__(self, kind: Kind, state: State, watcher: Watcher) -> None:
        super().__init__(name=kind.name, daemon=True)
        self.kind = kind
        self.state = state
        self.retired = False
        self.due = time.monotonic() + STUCK_SECONDS
        self._watcher = watcher
        self._path = ""
        self._version = ""  # empty: a list is needed
        self._failures = 0

    def run(self) -> None:
        """Run until another loop takes over or the program ends."""
        with contextlib.suppress(Retired):
            if self.kind.name == "pods":
                self._watcher.decided.wait(WAIT_FOR_NODES)
            while True:
                self._step()

    def _step(self) -> None:
        """One list, if it is needed, and one watch."""
        try:
            if not self._version:
                self._list()
            if self._version:
                self._watch()
        except Retired:
            raise
        except Refused as refused:
            self._refused(refused)
        except Fault as fault:
            self._fail(fault)
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop goes on
            self._version = ""
            self._fail(Fault(f"{type(error).__name__}: {error}"))

    def _refused(self, refused: Refused) -> None:
        if refused.status == _GONE:
            # Too old: a new list is needed. It is no failure, so only the usual rest between lists
            # applies.
            self._version = ""
            self.state.faults += 1
        elif refused.status == _NOT_FOUND and self.state.state == "watching":
            self._version = ""  # an upgrade removed the version; another may be served
        elif refused.status == _FORBIDDEN and (not self.state.listed or self._is_hint):
            self._version = ""
            self.state.listed = False  # the known facts may be old, so they must not count
            if self._is_served():
                self._unknown(refused)
            else:
                self._absent()
        else:
            self._fail(refused)

    @property
    def _is_hint(self) -> bool:
        """Whether the watcher can do without it."""
        return isinstance(self.kind.kept, Hints)

    def _is_served(self) -> bool:
        """Whether its API group is served; the role system:discovery lets every user ask that.

        RBAC forbids a list whether or not the kind is served.
        """
        _, root, group, _ = self.kind.paths[0].split("/", 3)
        if root != "apis":
            return True
        try:
            self._watcher.client.get(f"/apis/{group}", {})
        except Fault as fault:
            return not (isinstance(fault, Refused) and fault.status == _NOT_FOUND)
        return True

    # --- lists

    def _list(self) -> None:
        self._rest(self.state.next_list - time.monotonic())
        self.state.next_list = time.monotonic() + LIST_SECONDS
        self.state.state = "listing"
        self.state.lists += 1
        for path in self._paths():
            try:
                self._version = self._pages(path)
            except Refused as refused:
                if refused.status != _NOT_FOUND:
                    raise
            else:
                self._path = path
                self._well()
                return
        self._absent()

    def _paths(self) -> Iterator[str]:
        """The paths where it may be served; newer versions are asked for only at the end.

        Objects of a version that is not understood count as unknown.
        """
        yield from self.kind.paths
        if not self.kind.group:
            return
        try:
            found = _parsed(self._watcher.client.get(f"/apis/{self.kind.group}", {}))
        except Refused as refused:
            if refused.status not in (_NOT_FOUND, _FORBIDDEN):
                raise
            return
        listed = [each for _, each in as_items(found.get("versions"))]
        versions = (
            each.get("version") for each in (as_map(found.get("preferredVersion")), *listed)
        )
        for version in dict.fromkeys(each for each in versions if isinstance(each, str)):
            path = f"/apis/{self.kind.group}/{version}/{self.kind.name}"
            if _VERSION.fullmatch(version) and path not in self.kind.paths:
                yield path

    def _pages(self, path: str) -> str:
        """All pages of a list; each is dropped before the next is requested."""
        kept, version = self.kind.kept, ""
        with self._watcher.locked_by(self):
            kept.begin()
        for page in pages(self._watcher.client, path, self.kind.query, PAGE_OBJECTS):
            version = str(page["metadata"].get("resourceVersion") or "")
            if not version:
                raise Fault("the answer is not a list")
            with self._watcher.locked_by(self):
                for item in page["items"]:
                    self._put(item)
            page.clear()  # freed before the next one arrives
            self.due = time.monotonic() + STUCK_SECONDS
        with self._watcher.locked_by(self):
            kept.end(time.time())
            self.state.listed = self.state.settled = True
        self._watcher.note()
        self._watcher.next_tidying = 0.0  # give back what the pages needed
        return version

    def _absent(self) -> None:
        """No version of it is served, so there are no such objects."""
        with self._watcher.locked_by(self):
            self.kind.kept.begin()
            self.kind.kept.end(time.time())
            self.state.listed = False
            self.state.settled = True
            self.state.fault = ""
        self.state.refused = False
        self._watcher.outages.works(self.kind.name)
        self._watcher.note()
        self._rest(_about(REFUSED_SECONDS), "absent")

    def _unknown(self, refused: Refused) -> None:
        """RBAC forbids reading it. Logged once; all that depends on it counts as unknown."""
        self._watcher.outages.works(self.kind.name)  # the API server answers
        if not self.state.refused:
            self.state.refused = True
            message = f"{self.kind.name} are unknown: RBAC forbids listing them"
            self._watcher.log.write("warning", message, reason=str(refused))
        if isinstance(self.kind.kept, Hints):
            with self._watcher.locked_by(self):
                self.kind.kept.refuse()
        self.state.fault = str(refused)
        self.state.settled = self.kind.name != "nodes"
        self._watcher.note()
        self._rest(_about(REFUSED_SECONDS), "refused")

    # --- watches

    def _watch(self) -> None:
        seconds = random.randint(*WATCH_SECONDS)  # noqa: S311 - so that not all end at once
        query = {
            **self.kind.query,
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        self.state.state = "watching"
        self.state.watches += 1
        started, before = time.monotonic(), self.state.events
        lines = self._watcher.client.lines(self._path, query, seconds + GRACE_SECONDS)
        with contextlib.closing(lines):
            try:
                self.state.connected = not self.retired
                for line in lines:
                    self._event(_parsed(line))
            finally:
                self.state.connected = False
        if time.monotonic() - started < SHORTEST_WATCH and self.state.events == before:
            raise Fault("the watch ended at once")
        self._well()

    def _event(self, event: Mapping[str, Any]) -> None:
        obj, what = as_map(event.get("object")), event.get("type")
        if what == "ERROR":
            code = obj.get("code")
            after = as_map(obj.get("details")).get("retryAfterSeconds")
            raise Refused(
                code if isinstance(code, int) else 0,
                str(obj.get("message", ""))[:200],
                after if isinstance(after, int) else 0,
            )
        version, before = as_map(obj.get("metadata")).get("resourceVersion"), self.kind.kept.version
        if not isinstance(version, str) or not version:
            raise Fault("an event without a resource version")
        self.state.events += 1
        if what in {"ADDED", "MODIFIED"}:
            with self._watcher.locked_by(self):
                self._put(obj, new=what == "ADDED")
        elif what == "DELETED":
            with self._watcher.locked_by(self):
                self.kind.kept.drop(object_facts.key_of(obj), time.time())
        elif what != "BOOKMARK":
            self.state.skipped += 1
        if self.kind.kept.version != before and self.kind.name != "pods":
            self._watcher.changed.set()
        self._version = version
        self._well()

    def _put(self, obj: Any, *, new: bool = True) -> None:
        """Keep the facts of one object; an object that cannot be read is skipped."""
        key, fact, now = "", None, time.time()
        try:
            key = object_facts.key_of(obj)
            fact = self.kind.project(obj)
        except Exception as error:  # noqa: BLE001 - one odd object must not hide the others
            self.state.skipped += 1
            what = f"one of the {self.kind.name} cannot be read"
            self._watcher.lines.write("warning", what, object=key, reason=repr(error))
        if key:
            self.kind.kept.put(key, fact, now)
            if new and self.kind.name == "pods":  # pods are repaired when they are created
                self._watcher.events.look(obj, now)

    # --- state

    def _well(self) -> None:
        """Everything up to now is known."""
        self._watcher.outages.works(self.kind.name)
        if self.state.refused:
            self.state.refused = False
            message = f"{self.kind.name} are known now: RBAC allows listing them"
            self._watcher.log.write("info", message)
        self._failures = 0
        self.state.fault = ""
        self.state.alive = time.time()
        self.due = time.monotonic() + STUCK_SECONDS

    def _fail(self, fault: Fault) -> None:
        """Log the fault and rest, each time longer and with jitter."""
        self.state.faults += 1
        self.state.fault = str(fault)
        self._watcher.outages.failed(self.kind.name, str(fault))
        longest = LONGEST_REST_AWAY if fault.away else LONGEST_REST
        if fault.away:
            self.state.next_list = 0.0  # no server was reached, so no list was made
        ceiling = min(longest, FIRST_REST * 2.0 ** min(self._failures, 16))
        self._failures += 1
        asked = fault.retry_after if isinstance(fault, Refused) else 0.0
        self._watcher.note()
        self._rest(min(asked, LONGEST_REST) + random.uniform(0, ceiling))  # noqa: S311 - jitter

    def _rest(self, seconds: float, state: str = "resting") -> None:
        if seconds > 0:
            self.state.state = state
            self.due = time.monotonic() + seconds + STUCK_SECONDS
            self._watcher.stopped.wait(seconds)
        if self.retired or self._watcher.stopped.is_set():
            raise Retired
        self.due = time.monotonic() + STUCK_SECONDS


def _about(seconds: float) -> float:
    return random.uniform(seconds / 2, seconds)  # noqa: S311 - jitter


def _parsed(text: bytes) -> dict[str, Any]:
    value = answers.read(text)
    if not isinstance(value, dict):
        raise Fault("the answer is not an object")
    return value
