"""A log whose lines a test can read."""

from __future__ import annotations

import json
import os
import weakref
from typing import Any

from webhook.telemetry.logs import Log

# A busy machine may let the log's thread wait. Were its pipe closed before, the next test's pipe
# could get the same number, and these lines.
_PATIENCE = 60.0


class KeptLines:
    """The lines that are written to `log`; a pipe that is closed though nobody reads it."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.log = Log(self._write)
        # Thousands of tests would leave thousands open.
        self._end = weakref.finalize(self, _close, self.log, self._read, self._write)

    def lines(self) -> list[dict[str, Any]]:
        """All lines; nothing can be written after that."""
        self._end.detach()
        self.log.close(_PATIENCE)
        os.close(self._write)
        with os.fdopen(self._read) as lines:
            return [json.loads(line) for line in lines]


def _close(log: Log, *ends: int) -> None:
    log.close(_PATIENCE)
    for end in ends:
        os.close(end)
