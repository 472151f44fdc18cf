"""What is counted, and by whom: nobody, unless a page was asked for (`--metrics-bind`).

NONE then stands in for the counter. Importing this costs nothing; prometheus_client comes with
`counting`, once it is known where its files are to be.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from webhook.core.findings import Finding

    Decision = tuple[str, str, str]  # rule, mode, action


OTHER = "other"  # a label's value for what has none of its own: names of tenants are many


class Metrics:
    """Counts nothing."""

    __slots__ = ()

    def review(self, path: str, outcome: str, seconds: float) -> None:
        """Count one answered review, and the time it took."""

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Count what `decisions_of` gave."""

    def legacy(self, namespace: str, kind: str) -> None:
        """Count an object that uses a legacy word, by the kind of what made it."""

    def rule_failed(self, code: str) -> None:
        """Count a rule that raised."""

    def tls_failed(self, reason: str) -> None:
        """Count a handshake that failed, or a call without the right client certificate."""

    def settings(self, *, ok: bool) -> None:
        """Note that the settings were read (again), or could not be."""

    def certificate(self, end: float, *, is_newest: bool) -> None:
        """Note when the pair in service expires, and whether it is what the files hold."""

    def inventory_loaded(self) -> None:
        """Note that this process has a new inventory."""

    def flush(self) -> None:
        """Hand over what was counted: once a second in each worker, and when it ends."""

    def ended(self, process: int) -> None:
        """Forget what was only true while that worker lived."""


NONE = Metrics()


def decisions_of(findings: Iterable[Finding]) -> tuple[Decision, ...]:
    """What is counted of these findings; worth keeping where the findings are kept."""
    return tuple((found.code, found.mode.value, found.action) for found in findings)


def counting(
    directory: Path,
    codes: Iterable[str] = (),
    reviews: Iterable[tuple[str, str]] = (),
    tls_failures: Iterable[str] = (),
) -> Metrics:
    """A counter whose processes share this folder.

    `codes` are the rules that may fail, `reviews` the paths and outcomes that there are,
    `tls_failures` the reasons.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)  # read when it is imported
    from webhook.telemetry.counting import Counting  # noqa: PLC0415  # so not before

    return Counting(directory, codes, reviews, tls_failures)
