"""Limits how often a repeated log message is written: many messages in, few lines out."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.telemetry.logs import Log

LINE_SECONDS = 10.0
GATHER_SECONDS = 1.0  # parts that fail within it share one line; a shorter failure gets none
STEADY_SECONDS = 10.0  # an outage is over when all parts have worked for so long


class LimitedLog:
    """Writes at most one line in LINE_SECONDS; of the others, only the last is written later."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0.0
        self._held: tuple[str, str, dict[str, object]] | None = None
        self._count = 0

    def write(self, level: str, message: str, **fields: object) -> None:
        with self._lock:
            self._count += self._held is not None
            self._held = (level, message, fields)
        self.tick()

    def tick(self) -> None:
        """Write the line that was held back, if it is time."""
        with self._lock:
            if self._held is None or self._clock() < self._next:
                return
            level, message, fields = self._held
            if self._count:
                fields = {**fields, "suppressed": self._count}
            self._log.write(level, message, **fields)
            self._held, self._count, self._next = None, 0, self._clock() + LINE_SECONDS


class Outages:
    """Outages of one part or several: one line when they begin, and one when all are over."""

    def __init__(
        self, log: Log, begun: str, over: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """In the texts, `{parts}` stands for the names of the parts."""
        self._log = log
        self._texts = begun, over
        self._clock = clock
        self._lock = threading.Lock()
        self._faults: dict[str, str] = {}  # the reason of each part that fails now
        self._named: dict[str, None] = {}  # parts named in a line since the outage began
        self._next = 0.0  # when the next line may be written
        self._changed = 0.0  # when a part last began to work again

    def failed(self, part: str, reason: str) -> None:
        """Note that this part fails."""
        with self._lock:
            if not self._faults and not self._named:
                self._next = max(self._next, self._clock() + GATHER_SECONDS)
            self._faults[part] = reason

    def works(self, part: str) -> None:
        """Note that this part works. Cheap, because it is called for each event."""
        if part in self._faults:
            with self._lock:
                self._faults.pop(part, None)
                self._changed = self._clock()

    def tick(self) -> None:
        """Write the line that is due, if it is time."""
        begun, over = self._texts
        with self._lock:
            now = self._clock()
            new = [part for part in self._faults if part not in self._named]
            if new and now >= self._next:
                self._named.update(dict.fromkeys(new))
                self._next = now + LINE_SECONDS
                text = begun.format(parts=", ".join(new))
                self._log.write("warning", text, reason=self._faults[new[0]])
            elif self._named and not self._faults and now - self._changed >= STEADY_SECONDS:
                self._log.write("info", over.format(parts=", ".join(self._named)))
                self._named.clear()
