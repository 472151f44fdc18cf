"""A line of the answer: what was checked, how bad it is, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

OK, WARNING, FAILED = 0, 2, 3  # exit codes
STATES = {OK: "ok", WARNING: "warning", FAILED: "failed"}
ASK = "ask for the right to read it"
_FEW = 5  # names in a message


class Line(NamedTuple):
    """`fix` says what to do, if anything; `until` is the end of a certificate.

    Without `what` it is named after its check.
    """

    state: int
    text: str
    fix: str = ""
    what: str = ""
    until: str = ""


def few(names: Iterable[str]) -> str:
    """The first names of a list."""
    listed = list(names)
    rest = f" and {len(listed) - _FEW} more" if len(listed) > _FEW else ""
    return ", ".join(listed[:_FEW]) + rest or "none"
