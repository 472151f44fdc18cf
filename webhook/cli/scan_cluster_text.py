"""The text of `scan --cluster`: what was found in a cluster in, lines out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from webhook.core.repaired_annotation import REPAIRED
from webhook.files.results import Status
from webhook.reports.escaping import sentence, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cli.scan_cluster import Scan
    from webhook.cli.scan_cluster_result import Reported

_WORDS = {
    Status.FIXED: "fixed",
    Status.FIXABLE: "`migrate` does it",
    Status.MANUAL: "needs manual changes",
    Status.NOTICE: "worth knowing",
}


def lines(reported: list[Reported], scan: Scan) -> Iterator[str]:
    """Object by object, its owner and the findings; at last the counts."""
    for each in reported:
        result = each.result
        others = f" and {len(each.alike)} more alike" if each.alike else ""
        yield f"{visible(result.path)}{others}"
        if each.owner:
            yield f"  to be changed: {visible(each.owner)}"
        if result.error:
            yield f"  error: {sentence(result.error)}"
        for located in result.located:
            where = f" ({visible(located.path)})" if located.path else ""
            says = sentence(located.message)
            yield f"  {located.code} {_WORDS[located.status]}: {says}{where}"
        for skipped in result.skipped:
            yield f"  skipped: {sentence(skipped.reason)}"
        yield ""
    yield _summary(reported, scan)


def _summary(reported: list[Reported], scan: Scan) -> str:
    """The number of legacy objects, and of objects with other findings only."""
    found = [each for each in reported if each.result.located]
    legacy = [each for each in found if not each.came and each.is_legacy]
    rest = [
        each
        for each in found
        if len(each.result.located) > each.came and (each.came or not each.is_legacy)
    ]
    of_objects, others = (sum(1 + len(each.alike) for each in which) for which in (legacy, rest))
    words = f"{of_objects:,} of {scan.seen:,} objects are legacy"
    if others:
        words += f"; {others:,} more have other findings"
    if unread := sum(1 + len(each.alike) for each in reported if each.result.error):
        words += f"; {unread:,} could not be checked (see the errors)"
    if scan.repaired:
        words += f"; {scan.repaired:,} more came legacy and were repaired ({REPAIRED})"
    if scan.owned:
        words += f"; {scan.owned:,} owned objects skipped"
    counts = Counter(one.status for each in found for one in each.result.located)
    parts = [f"{counts[status]} {word}" for status, word in _WORDS.items() if counts[status]]
    return words + (f": {', '.join(parts)}" if parts else "")
