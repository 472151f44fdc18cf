"""A line of the answer: what was checked, how bad it is, and what to do."""

from __future__ import annotations

from typing import NamedTuple

OK, WARNING, FAILED = 0, 2, 3  # exit codes
STATES = {OK: "ok", WARNING: "warning", FAILED: "failed"}
COLOURS = {OK: "green", WARNING: "yellow", FAILED: "red"}


class Line(NamedTuple):
    """`fix` says what to do, if anything; `until` is the end of a certificate.

    Without `what` it is named after its check.
    """

    state: int
    text: str
    fix: str = ""
    what: str = ""
    until: str = ""
