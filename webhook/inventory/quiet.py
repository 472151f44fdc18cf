"""Log lines of a fault that goes on: a few, not thousands."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.telemetry.logs import Log

LINE_SECONDS = 10.0


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
