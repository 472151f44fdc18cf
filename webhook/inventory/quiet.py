"""Rate-limits a repeated log message."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.telemetry.logs import Log

LINE_SECONDS = 10.0
GATHER_SECONDS = 1.0  # what fails together is one line, and what heals at once is none
STEADY_SECONDS = 10.0  # it is over when all was well for so long


class Lines:
    """Log lines, at most one in LINE_SECONDS; the last of those held back is told later."""

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
        """Tell what was held back, if it is time."""
        with self._lock:
            if self._held is None or self._clock() < self._next:
                return
            level, message, fields = self._held
            if self._count:
                fields = {**fields, "unsaid": self._count}
            self._log.write(level, message, **fields)
            self._held, self._count, self._next = None, 0, self._clock() + LINE_SECONDS


class Trouble:
    """What goes wrong for a while, in one part or several: a line then, and one when it is over."""

    def __init__(
        self, log: Log, begun: str, over: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """The texts say `{parts}` where the parts are to be named."""
        self._log = log
        self._texts = begun, over
        self._clock = clock
        self._lock = threading.Lock()
        self._faults: dict[str, str] = {}  # of the parts that fail now: why
        self._told: dict[str, None] = {}  # parts that failed since it began, and were named
        self._next = 0.0  # when a line may be written
        self._changed = 0.0  # when a part was well again

    def wrong(self, part: str, reason: str) -> None:
        """Something fails there."""
        with self._lock:
            if not self._faults and not self._told:
                self._next = max(self._next, self._clock() + GATHER_SECONDS)
            self._faults[part] = reason

    def well(self, part: str) -> None:
        """It works there. Cheap: each event says so."""
        if part in self._faults:
            with self._lock:
                self._faults.pop(part, None)
                self._changed = self._clock()

    def tick(self) -> None:
        """Write what there is to say, if it is time."""
        begun, over = self._texts
        with self._lock:
            now = self._clock()
            new = [part for part in self._faults if part not in self._told]
            if new and now >= self._next:
                self._told.update(dict.fromkeys(new))
                self._next = now + LINE_SECONDS
                text = begun.format(parts=", ".join(new))
                self._log.write("warning", text, reason=self._faults[new[0]])
            elif self._told and not self._faults and now - self._changed >= STEADY_SECONDS:
                self._log.write("info", over.format(parts=", ".join(self._told)))
                self._told.clear()
