"""The watcher: runs a loop for each kind of object, publishes the snapshot and its own status."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from typing import TYPE_CHECKING, Any

import orjson

from webhook.inventory.events import Events
from webhook.inventory.kinds import kinds
from webhook.inventory.list_and_watch import ListAndWatch, Retired, State
from webhook.inventory.log_limits import LimitedLog, Outages
from webhook.inventory.publish import AHEAD_SECONDS, STALE_SECONDS, Publisher, Snapshot, memory_of
from webhook.inventory.store import Store
from webhook.rules import leak_guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from webhook.cluster.client import Client
    from webhook.core.settings import Settings
    from webhook.inventory import object_facts
    from webhook.telemetry.logs import Log

TICK_SECONDS = 0.25
GATHER_SECONDS = 0.05  # after an event: often several belong together
PUBLISH_SECONDS = 1.0
# In a large cluster whose nodes change all the time, publishing takes a fifth of a core.
PUBLISH_SHARE = 5.0
TIDY_SECONDS = 60.0
MOST_EXPOSED = 20  # namespaces that the status names
_THEN = f"after {STALE_SECONDS:.0f} s without data about nodes, no pod is denied for capacity"
_AWAY = f"the API server does not answer correctly: {{parts}}; the watcher tries again, and {_THEN}"
_UNWRITTEN = f"the snapshot cannot be written: {{parts}}; the watcher tries again, and {_THEN}"


class Watcher:
    """Runs the loops, publishes what they know, and writes the status."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        folder: Path,
        log: Log,
        audit_of: Callable[[Settings], object_facts.Audit | None] = lambda _: None,
    ) -> None:
        """`audit_of` returns the audit of the leak guard for given settings."""
        self.client = client
        self.log = log
        self.lines = LimitedLog(log)
        self.guard_lines = LimitedLog(log)
        self.outages = Outages(log, _AWAY, "the API server answers again: {parts}")
        self._writing = Outages(log, _UNWRITTEN, "the snapshot is written again: {parts}")
        self.stopped = threading.Event()
        self.changed = threading.Event()  # something else than pods
        self._folder = folder
        # The snapshot of an earlier process; not used if its clock was ahead.
        self._as_of = Snapshot(folder).status(time.time()).as_of
        self._published = 0
        self._next_publish = 0.0
        self._next_second = 0.0
        self.next_tidying = 0.0
        self._loops: list[ListAndWatch] = []
        self.extra: dict[str, Any] = {}  # more members of the status
        self._audit_of = audit_of
        self.events = Events(client, settings, log)
        self._set(settings)
        Snapshot(folder).recall(self.store)

    def _set(self, settings: Settings) -> None:
        self._lock = threading.Lock()
        # All that decisions need was listed, or at least requested.
        self.decided = threading.Event()
        self._received = 0.0  # the published snapshot has all events that came before
        self.store = Store(settings.capacity)
        self._kinds = kinds(self.store, settings, self._audit_of(settings))
        self.states = {kind.name: State() for kind in self._kinds}
        self._publisher = Publisher(self._folder, settings)
        self.events.settings = settings

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace that settings use."""
        facts = self.store.namespaces.facts.get(namespace)
        return facts.labels if facts is not None else {}

    def use(self, settings: Settings) -> None:
        """Use other settings: list everything again, and keep the published snapshot until then."""
        for loop in self._loops:
            loop.retired = True
        with self._lock:
            before = self.store
            self._set(settings)
            self.store.recall(before.nodes.facts.values(), orjson.loads(memory_of(before)))
        self._start()

    def _start(self) -> None:
        self._loops = [ListAndWatch(kind, self.states[kind.name], self) for kind in self._kinds]
        for loop in self._loops:
            loop.start()

    @contextlib.contextmanager
    def locked_by(self, loop: ListAndWatch) -> Iterator[None]:
        """Lock the store, if this loop is still the current one."""
        with self._lock:
            if loop.retired:
                raise Retired
            yield

    def note(self) -> None:
        """A kind was listed for the first time, or could not be."""
        needed = [state for name, state in self.states.items() if name != "pods"]
        if all(state.settled or state.faults for state in needed):
            self.decided.set()

    def run(
        self,
        every_second: Callable[[], None] = lambda: None,
        tidy: Callable[[], object] = gc.collect,
    ) -> None:
        """Run until `stopped` is set; `tidy` collects cycles after lists, and once a minute."""
        # Raw objects have no cycles: searching all facts for some after each page is useless.
        gc.disable()
        try:
            self._run(every_second, tidy)
        finally:
            gc.enable()

    def _run(self, every_second: Callable[[], None], tidy: Callable[[], object]) -> None:
        self._start()
        while not self._rest():
            now = time.monotonic()
            self._supervise(now)
            self._publish(now)
            if now >= self._next_second:
                self._next_second = now + 1.0
                every_second()
            self._write_status()
            self._say()
            if now >= self.next_tidying:
                self.next_tidying = now + TIDY_SECONDS
                tidy()

    def _rest(self) -> bool:
        """Wait for a tick, or less after an event that can be published; True at the end."""
        if self.changed.wait(TICK_SECONDS):
            wait = max(GATHER_SECONDS, self._next_publish - time.monotonic())
            self.stopped.wait(min(wait, TICK_SECONDS))
            self.changed.clear()
        return self.stopped.is_set()

    def _supervise(self, now: float) -> None:
        """Replace a loop that hangs where no time limit holds, for example in DNS."""
        for position, loop in enumerate(self._loops):
            if now > loop.due or not loop.is_alive():
                loop.retired = True
                loop.state.faults += 1
                loop.state.fault = "hung"
                self.lines.write("warning", f"watching {loop.kind.name} hung; it starts again")
                self._loops[position] = ListAndWatch(loop.kind, loop.state, self)
                self._loops[position].start()

    def _publish(self, now: float) -> None:
        if not (self.decided.is_set() and self.states["nodes"].listed):
            return
        as_of, received, is_new = self._known_until(), self._received_until(), False
        if now < self._next_publish:
            # Denials wait for this; what pods hold since then does not matter to them.
            with self._lock:
                if self._publisher.has_shape(self.store):
                    self._received = received
            return
        started = time.thread_time()
        try:
            with self._lock:
                is_new = self._publisher.publish(self.store, time.time())
        except OSError as error:
            self._writing.failed("inventory", str(error))
        else:
            self._writing.works("inventory")
            # After a clock was set back, a time would lie in the future and never count as old.
            self._as_of = max(self._as_of if self._as_of <= time.time() else 0.0, as_of)
            self._received = received
            self._published += is_new
        cost = time.thread_time() - started
        self._next_publish = now + max(PUBLISH_SECONDS * is_new, PUBLISH_SHARE * cost)

    def _received_until(self) -> float:
        """The present, if events of all that decisions need come as they happen."""
        follows = all(state.follows for name, state in self.states.items() if name != "pods")
        now = time.time()
        return now if follows else min(self._received, now)

    def _known_until(self) -> float:
        """Everything that happened before is in the store; 0.0 if a kind was never listed."""
        for name, state in self.states.items():
            if not state.settled and name != "pods":
                return 0.0
        now = time.time()
        as_of = min(state.alive for state in self.states.values() if state.listed)
        return min(as_of, now) if as_of - now <= AHEAD_SECONDS else 0.0

    def _write_status(self) -> None:
        try:
            self._publisher.write_status(self.status())
        except OSError as error:
            self._writing.failed("status", str(error))
        else:
            self._writing.works("status")

    def status(self) -> dict[str, Any]:
        """The status, for readers of the snapshot; with counters for metrics."""
        pods = self.store.pods
        return {
            "beat": time.time(),
            "as_of": self._as_of,
            "received": self._received,
            "settings": self._publisher.settings,
            "published": self._published,
            "shape": self._publisher.stamp,
            "bytes": self._publisher.size,
            "nodes": len(self.store.nodes.facts),
            "pods": len(pods.facts),  # that hold GPUs, or see GPUs that they did not request
            "kinds": {name: state.as_data() for name, state in self.states.items()},
            "exposed": {kind: number for kind, number in pods.exposed.items() if number},
            "exposed_in": dict(pods.exposed_in.most_common(MOST_EXPOSED)),
            **self.extra,
        }

    def _say(self) -> None:
        self.lines.tick()
        self.guard_lines.tick()
        self.outages.tick()
        self._writing.tick()
        self.events.tick()
        found = self.store.pods.newly_exposed()
        if found:
            self.guard_lines.write(
                "warning",
                f"{leak_guard.CODE} audit: pods see GPUs that they did not request",
                pods=[f"{key}: {', '.join(by)}" for key, by in found[:3]],
                new=len(found),
                all=self.store.pods.exposed_pods,
            )
