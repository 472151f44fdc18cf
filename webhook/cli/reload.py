"""Settings and inventory of a running server, checked for changes once a second in each worker.

A new file with mistakes changes nothing: the old settings stay, and one log line reports it. New
settings or inventory make a new Decider, which is used from the next request on.
"""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from webhook.admission.decide import Decider
from webhook.cli import inputs
from webhook.cli.settings_follower import SettingsFollower
from webhook.evaluation.match_conditions import missed_names
from webhook.inventory import inventory_file
from webhook.inventory.log_limits import LimitedLog
from webhook.inventory.publish import AHEAD_SECONDS, STALE_SECONDS, Snapshot, Status, basis
from webhook.kube.pod import as_map
from webhook.rules import GUARD, POLICY, RULES
from webhook.telemetry.metrics import NONE, Metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from webhook.capacity.nodes import Inventory
    from webhook.core.settings import Settings
    from webhook.telemetry.logs import Log

SILENT_SECONDS = 30.0  # a watcher that writes nothing for so long counts as dead
_THEN = (
    "A replica that is not ready gets no reviews; if none is ready, pods are admitted without "
    "repair and without checks (failurePolicy: Ignore)"
)


class SingleWriter:
    """Lets only one of the workers write a log line, so that it is written once.

    The lock belongs to a process and is released when the process ends; the next worker that tries
    gets it.
    """

    def __init__(self) -> None:
        self._fd = os.memfd_create("gpu-webhook-speaker")

    def is_me(self) -> bool:
        """Whether this process may write the line."""
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


_OTHERS = (
    "inventory: `watch` has made it with other settings than `serve` has (--config of both); until "
    "they are the same, nothing is denied for capacity"
)


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of settings and inventory; at most one of `nodes` and `snapshot` is given."""

    settings: str = ""  # a file
    nodes: str = ""  # a file with the output of `kubectl get nodes`
    snapshot: Snapshot | None = None

    def read(self) -> tuple[Settings, Inventory | None]:
        """Read both files; raises InputError or SettingsError."""
        settings = inputs.read(self.settings)
        return settings, inventory_file.load(self.nodes, settings) if self.nodes else None


@dataclass
class Live:
    """Settings and inventory of one worker."""

    sources: Sources
    settings: Settings
    inventory: Inventory | None
    log: Log
    speaker: SingleWriter
    metrics: Metrics = NONE
    clock: Callable[[], float] = time.time
    fresh: bool = True
    _status: Status = field(default_factory=Status)
    _known_until: float = 0.0
    _since: float = 0.0  # time of the last sign of life, or of the start
    _is_out: bool = False
    _said: str = ""

    def __post_init__(self) -> None:
        self._since = self.clock()
        self.lines = LimitedLog(self.log)
        self._following = SettingsFollower(self.sources.settings, self.sources.read, self._say)
        if self.sources.snapshot is not None:
            self.fresh = False
        self.metrics.settings(ok=True)
        self._say_missed(())

    def decider(self) -> Decider:
        """The Decider for the present settings and inventory."""
        return Decider(
            RULES,
            self.settings,
            self.inventory,
            self.log,
            policy=POLICY,
            guards=GUARD,
            metrics=self.metrics,
            fresh=self.fresh,
            known_until=self.known_until,
        )

    def known_until(self) -> float:
        """The inventory that was read has all changes that the watcher got until then."""
        return self._known_until if self.sources.snapshot is not None else inf

    def refresh(self) -> bool:
        """Read changed files; True if another Decider must be used."""
        changed = self._read_settings()
        return self.read_snapshot() or changed

    def _read_settings(self) -> bool:
        found = self._following.look()
        if found is None:
            if self._following.fault:
                self.metrics.settings(ok=False)
            return False
        settings, inventory = found
        self.metrics.settings(ok=True)
        if settings == self.settings:
            return False
        before, self.settings = missed_names(self.settings), settings
        if self.speaker.is_me():
            self._say_missed(before)
        if self.sources.nodes:
            self.inventory = inventory
        return True

    def _say_missed(self, before: Collection[str]) -> None:
        """Warn about names in the settings for which the API server sends no pods."""
        for name in missed_names(self.settings):
            if name not in before:
                self.log.write(
                    "warning",
                    f"{name} is in the settings, but not in the shipped matchConditions: the "
                    "API server sends no pod for this name alone, until the webhook "
                    "configuration has the output of `gpu-webhook config match-conditions`",
                )

    def read_snapshot(self) -> bool:
        """Read a changed inventory; True if another Decider must be used."""
        snapshot = self.sources.snapshot
        if snapshot is None:
            return False
        before = snapshot.said(self.clock())  # the inventory that is read next has all of it
        new = snapshot.refresh()
        if new is not None:
            self.inventory = new
            self.metrics.inventory_loaded()
        self._status = snapshot.status(self.clock())
        is_ours = before.settings == basis(self.settings) and not snapshot.fault
        self._known_until = before.received if is_ours else 0.0
        self._since = max(self._since, self._status.beat)  # the next status may be unreadable
        fresh = self.inventory is not None and self._age() <= STALE_SECONDS
        changed = fresh is not self.fresh
        self.fresh = fresh
        self._say_once("; ".join(self._inventory_notes(snapshot)))
        self._say_whether_ready()
        self.lines.tick()
        return changed or new is not None

    def _age(self) -> float:
        """Seconds for which the inventory may have been behind the cluster."""
        return self.clock() - self._status.as_of

    def not_ready(self) -> str:
        """Why no reviews should come; empty if the watcher is alive and well, or not used."""
        if self.sources.snapshot is None:
            return ""
        self._since = min(self._since, self.clock() + AHEAD_SECONDS)  # the clock may be set back
        silent = self.clock() - self._since
        if silent <= SILENT_SECONDS:
            return str(as_map(self._status.content.get("certificates")).get("untrusted", ""))
        fault = self._status.fault
        if fault:
            return f"the watcher's status could not be used for {silent:.0f} s: {fault}. {_THEN}"
        return (
            f"the watcher has written nothing for {silent:.0f} s: it ended, it hangs, or its "
            f"folder is full; see the log of `watch`. {_THEN}"
        )

    def _say_whether_ready(self) -> None:
        """Log once when no reviews should come, and once when they may again."""
        reason = self.not_ready()
        if bool(reason) is self._is_out:
            return
        self._is_out = bool(reason)
        if reason:
            self._say("error", "no longer ready", reason)
        else:
            self._say("info", "ready again", "")

    def notes(self) -> list[str]:
        """Faults although traffic may come."""
        notes = []
        if self._following.fault:
            first = self._following.fault.partition("\n")[0]
            notes.append(f"settings: the new file is not used: {first}")
        if self.sources.snapshot is not None:
            notes += self._inventory_notes(self.sources.snapshot)
            if self._status.settings not in ("", basis(self.settings)):
                notes.append(_OTHERS)
        return notes

    def _inventory_notes(self, snapshot: Snapshot) -> list[str]:
        notes = []
        if snapshot.fault:
            notes.append(f"inventory: {snapshot.fault}")
        if self._status.fault and self.inventory is not None:
            fault = self._status.fault
            notes.append(f"watcher: {fault}. Until then nothing is denied for capacity")
        elif self._status.fault:
            notes.append(f"watcher: {self._status.fault}")
        if self.inventory is None:
            notes.append("inventory: unknown; nothing is denied for capacity")
        elif not self.fresh and not self._status.fault:
            notes.append(
                f"inventory: stale for more than {STALE_SECONDS:.0f} s; "
                "nothing is denied for capacity"
            )
        elif self.fresh and not self.inventory.has_gpus:
            notes.append("inventory: no node offers GPUs; nothing is denied for capacity")
        return notes

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            if not self.speaker.is_me():
                return
            if text:
                self.lines.write("warning", "the inventory is incomplete or old", reason=text)
            else:
                self.lines.write("info", "the inventory is fresh")

    def _say(self, level: str, message: str, reason: str) -> None:
        if self.speaker.is_me():
            self.log.write(level, message, **({"reason": reason} if reason else {}))
