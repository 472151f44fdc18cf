"""A log that a process is writing: the lines that are in it as a whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def whole_lines(log: Path) -> bytes:
    """The log up to its last line end: a line may be there in part while it is written."""
    text, end, _ = log.read_bytes().rpartition(b"\n")
    return text + end


def entries(log: Path) -> list[dict[str, Any]]:
    """What the lines of a JSON log say."""
    return [json.loads(line) for line in whole_lines(log).splitlines()]
