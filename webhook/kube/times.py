"""Times in seconds of the epoch: from the texts of the API server, to them, and for messages."""

from __future__ import annotations

from datetime import UTC, datetime

DAY = 86_400.0


def seconds_of(text: object) -> float:
    """A time of the API server as seconds of the epoch; 0.0 if it is not a time."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def stamp(seconds: float, precision: str = "seconds") -> str:
    """The time as the API server writes it, such as 2026-11-27T05:47:18Z."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision)
    return text.replace("+00:00", "Z")


def date(seconds: float) -> str:
    """The time for users."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
